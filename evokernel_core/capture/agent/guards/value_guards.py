"""The guards that ask whether a value is what it was, by its kind."""

from __future__ import annotations

import contextvars
import enum
import functools
import sys
import threading
import types
import weakref
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from ..stand_ins import stood_for
from .changes import Held
from .code import file_of, is_stdlib, is_torchs, is_workspace, place_of
from .contents import Contents
from .guard import CapturedGuard, is_member, is_plain, literal, name_of, same
from .known_objects import KnownObjects

_MODULE = torch.nn.Module
OF_PYTHON = 1 << 9
"""The flag of classes whose methods can be replaced (Py_TPFLAGS_HEAPTYPE)."""
_FUNCTIONS = (
    types.FunctionType,
    types.BuiltinFunctionType,
    torch._ops.OpOverloadPacket,
    torch._ops.OpOverload,
)
_SILENT = (
    types.ModuleType,
    types.MethodType,
    property,
    torch.Generator,
    torch.SymInt,
    torch.SymFloat,
)
"""Values that are followed otherwise, or that hold no setting."""
_OF_BUILTINS = frozenset({tuple, list, dict})
_NUMBERS_AND_TEXTS = (int, float, str)
"""Classes of Python whose subclasses hold a value that no attribute has."""
_MOST_ENTRIES = 4096
_LONGEST = 4096
"""Characters of the text of an object that a guard compares."""


class ValueGuards(KnownObjects):
    """``project`` is the folder that imports start from. ``tensors`` are those that were read, by the text
    that reaches them."""

    is_watching = False
    """Whether reads are being recorded."""
    watched: frozenset[type] = frozenset()
    """Classes whose objects' reads were recorded."""

    def __init__(self, roots: Mapping[str, Any], shared: Mapping[str, Any], project: Path) -> None:
        super().__init__(roots, shared)
        self._project = project
        self._entries: dict[int, str] = {}
        self._enclosed: set[int] = set()
        self._read: set[str] = set()
        self._held = Held()
        self.contents = Contents()
        self.tensors: dict[str, torch.Tensor] = {}

    def value(self, path: str, value: Any) -> None:
        """Notes that an object at a path that is no attribute, such as a global, was read."""
        self._value(path, "", value)

    def _value(self, owner: str, member: str, value: Any) -> None:
        self._below(owner, member)
        if isinstance(value, _MODULE):
            self._same(owner, member, value)
            self._know(value, owner + member)
            self._read.add(self._paths.get(id(value), ""))
        elif isinstance(value, types.MethodType):
            self._method(owner, member, value)
        elif isinstance(value, torch.Tensor):
            self.tensors.setdefault(owner + member, value)
        elif isinstance(value, _SILENT):
            if isinstance(value, torch.Generator):  # it holds no setting, but is the call's own or is not
                self._know(value, owner + member)
        elif is_plain(value):
            self.contents.note(owner + member, value)
            self.add(same(owner, member, value))
        elif isinstance(value, enum.Enum):
            self._entry(owner, member, value)
        elif isinstance(value, (tuple, list, dict)):
            self._container(owner, member, value)
        elif isinstance(value, (type, *_FUNCTIONS)):
            self._function(owner, member, value)
            if isinstance(value, types.FunctionType):
                self._codes.add((id(value.__code__), 0))
                self.beside(owner + member, value)
        else:
            self._held_otherwise(owner, member, value)

    def _held_otherwise(self, owner: str, member: str, value: Any) -> None:
        """Notes a value of a class that holds others in a way of its own."""
        if isinstance(value, functools.partial):
            self._partial(owner, member, value)
        elif isinstance(value, contextvars.ContextVar):
            self._variable(owner, member, value)
        elif isinstance(value, weakref.ref):
            self._value(owner, f"{member}()", value())
        elif isinstance(value, (set, frozenset)):
            self.refuse(
                "{path} is a set of objects, which no condition can compare: make it a list.",
                path=owner + member,
            )
        else:
            self._object(owner, member, value)

    def _function(self, owner: str, member: str, value: Any) -> None:
        """A class, or a function: the user's by the places where they stand, as two may share a name."""
        value = stood_for(value)
        code = getattr(value, "__code__", None)
        if isinstance(value, type):
            self._class(owner, f"{{}}{member}", value)
        elif code is None or not is_workspace(code.co_filename):
            self.add(CapturedGuard(owner, f'guards.named({{}}{member}, "{name_of(value)}")'))
        else:
            self.add(CapturedGuard(owner, f'guards.defined({{}}{member}, "{self.place_of(value)}")'))

    def place_of(self, function: Any) -> str:
        """Where the code of a function of the user's stands. Refuses where nothing tells it from others."""
        place = place_of(function.__code__, self._project)
        if not place:
            self.refuse(
                "{name} stands at no place of a file that tells it from others: write it on a line of "
                "its own.",
                name=function.__code__.co_qualname,
            )
        return place

    def _class(self, owner: str, text: str, kind: type) -> None:
        """That ``text`` gives a class: one of the user's by its file, too, as two may have one name."""
        if kind in _OF_BUILTINS:
            self.add(CapturedGuard(owner, f"{text} is {kind.__name__}"))
        elif is_torchs_class(kind):
            self.add(CapturedGuard(owner, f"{text} is {self._class_text(kind)}"))
        elif is_workspace(file_of(kind)):
            self.add(CapturedGuard(owner, f"guards.of({text}, {self._class_text(kind)})"))
        else:
            self.add(CapturedGuard(owner, f'guards.named({text}, "{name_of(kind)}")'))

    def _class_text(self, kind: type) -> str:
        """A class of torch's itself; of others the name and the file, which is all that two imports share."""
        if not is_torchs_class(kind):
            file = Path(file_of(kind))
            is_here = file.is_relative_to(self._project)
            place = (
                file.relative_to(self._project).as_posix() if is_here else kind.__module__.rpartition(".")[2]
            )
            return f'"{kind.__qualname__}", "{place}"'
        short = getattr(torch.nn, kind.__name__, None) is kind
        return f"torch.nn.{kind.__name__}" if short else f"{kind.__module__}.{kind.__qualname__}"

    def _entry(self, owner: str, member: str, value: enum.Enum) -> None:
        """An entry of an enumeration, which code compares by identity: two paths to one are such."""
        self.add(is_member(owner, member, value))
        if is_plain(value.value):
            self.add(same(owner, f"{member}.value", value.value))
        first = self._entries.setdefault(id(value), owner + member)
        if first != owner + member:
            self.add(CapturedGuard(owner, f"{{}}{member} is {first}"))

    def _method(self, owner: str, member: str, value: types.MethodType) -> None:
        """A method may be set anew on an object, or be that of a subclass; what all modules of torch have is
        their way to their parts."""
        function: Any = value.__func__
        if not is_torchs(function) or function.__name__ not in vars(_MODULE):
            self._function(owner, member, function)
        if isinstance(function, types.FunctionType):
            self._codes.add((id(function.__code__), id(value.__self__)))
            self.beside(f"{owner}{member}.__func__", function)

    def beside(self, path: str, function: types.FunctionType) -> None:
        """What a function of the user's holds beside its code; one of torch's may hold one of the user's, as
        that which a decorator of torch's has made."""
        inner = vars(function).get("__wrapped__")
        self._registered_functions(path, vars(function).get("registry"))
        if function.__code__.co_qualname.startswith(f"{functools.singledispatchmethod.__name__}."):
            self.refuse(
                "{path} chooses a method by a class, and a program may register more of them: use "
                "isinstance.",
                path=path,
            )
        if is_workspace(function.__code__.co_filename):
            self._closure(path, function)
            self._defaults(path, function)
        elif isinstance(inner, types.FunctionType) and id(inner) not in self._enclosed:
            self._enclosed.add(id(inner))
            self._value(path, ".__wrapped__", inner)

    def _registered_functions(self, path: str, registry: Any) -> None:
        """Those of ``functools.singledispatch``: a program may register more."""
        if not isinstance(registry, types.MappingProxyType):
            return
        self.add(CapturedGuard(path, f"len({{}}.registry) == {len(registry)}"))
        for place, function in enumerate(registry.values()):
            self._function(path, f".registry[list({path}.registry)[{place}]]", function)

    def _defaults(self, path: str, function: Any) -> None:
        """What arguments are that a call leaves out."""
        for name in ("__defaults__", "__kwdefaults__"):
            if getattr(function, name, None):
                self._value(path, f".{name}", getattr(function, name))

    def _closure(self, path: str, function: types.FunctionType) -> None:
        """Modules and settings that a function keeps from where it was made, as a lambda in ``__init__``."""
        for place, cell in enumerate(function.__closure__ or ()):
            try:
                held = cell.cell_contents
            except ValueError:
                continue  # a name that has no value
            member = f".__closure__[{place}].cell_contents"
            if isinstance(held, _MODULE):
                self._below(path, member)
                self._know(held, self._registered.get(id(held), path + member))
                self.add(CapturedGuard(path, f"{{}}{member} is {self.path_of(held)}"))
            elif isinstance(held, type):
                continue  # what ran of a class is asked for where it ran
            elif not isinstance(held, types.FunctionType):
                self._value(path, member, held)
            elif id(held) not in self._enclosed:
                self._enclosed.add(id(held))  # one that calls itself holds itself
                self._value(path, member, held)

    def _container(self, owner: str, member: str, value: Any) -> None:
        path = owner + member
        if len(value) > _MOST_ENTRIES:
            self.refuse(
                "{path} holds {count} entries, too many to compare in a call.", path=path, count=len(value)
            )
            return
        self.contents.note(path, value)
        if not isinstance(value, deque):
            self._class(owner, f"type({{}}{member})", type(value))
        entries = value.items() if isinstance(value, dict) else enumerate(value)
        size = (
            f"list({{}}{member}) == {list(value)!r}"
            if isinstance(value, dict)
            else f"len({{}}{member}) == {len(value)}"
        )
        self.add(CapturedGuard(owner, size))
        for key, element in entries:
            self._value(path, f"[{key!r}]", element)

    def _partial(self, owner: str, member: str, value: Any) -> None:
        path = owner + member
        self._value(path, ".func", value.func)
        self._value(path, ".args", value.args)
        self._value(path, ".keywords", value.keywords)

    def _variable(self, owner: str, member: str, value: contextvars.ContextVar[Any]) -> None:
        self._know(value, owner + member)
        try:
            self._value(owner, f"{member}.get()", value.get())
        except LookupError:
            self.add(CapturedGuard(owner, f"{{}}{member}.get(None) is None"))

    def _object(self, owner: str, member: str, value: Any) -> None:
        if type(value).__module__.split(".")[0] == "numpy":
            self.refuse(
                "{owner}{member} is a {kind} of numpy: make it a number or a tensor.",
                owner=owner,
                member=member,
                kind=type(value).__name__,
            )
            return
        kind = type(value)
        if isinstance(value, weakref.ProxyTypes):
            self.refuse(
                "{path} is a weak proxy, which hides what it stands for: make it a weakref.ref.",
                path=owner + member,
            )
            return
        if isinstance(value, Iterator) and not is_workspace(file_of(kind)):
            self.refuse(
                "{path} is an iterator, from which each call takes: make it a list.", path=owner + member
            )
            return
        if not isinstance(value, deque) and self._written_down(owner, member, value):
            return
        self._class(owner, f"type({{}}{member})", kind)
        for base in _NUMBERS_AND_TEXTS:
            if isinstance(value, base):
                name = base.__name__
                plain = getattr(base, f"__{name}__")(value)
                text = f"guards.equal({name}.__{name}__({{}}{member}), {literal(plain)})"
                self.add(CapturedGuard(owner, text))
        is_new = self.path_of(value) is None
        self._same(owner, member, value)
        self._know(value, owner + member)
        if isinstance(value, deque):
            self._container(owner, member, value)
            return
        if is_new:
            self._held.add(owner + member, value)
        if self.watch(kind) if self.is_watching else not is_new and kind in self.watched:
            return
        of_c = not kind.__flags__ & OF_PYTHON or kind is threading.local
        if of_c or not is_stdlib(file_of(kind)):
            for name, element in getattr(value, "__dict__", {}).items():  # reads of these are unseen
                if self.is_watching or is_plain(element):
                    self._value(owner + member, f".{name}", element)

    def _written_down(self, owner: str, member: str, value: Any) -> bool:
        """Whether the text of an object that is written in C, as of a range, an array or a date, tells all of
        it; that is asked for then."""
        kind = type(value)
        if "__repr__" not in vars(kind) or hasattr(value, "__dict__"):
            return False
        text = repr(value)
        if " at 0x" in text or "object" in text or len(text) > _LONGEST:
            return False
        self.contents.note(owner + member, value)
        self.add(CapturedGuard(owner, f"guards.shown({{}}{member}, {text!r})"))
        return True

    def watch(self, kind: type) -> bool:
        """Record the attributes of a class's objects too, where that can be; replaced while ``recording``."""
        return False


def is_torchs_class(kind: type) -> bool:
    return (
        kind.__module__.startswith("torch.nn.")
        and getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is kind
    )
