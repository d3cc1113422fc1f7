"""Records what a function takes from Python while it is traced: attributes of modules and of other objects.

Attributes are not passed to a call of a kernel, so what was read must be the same in the call. Objects are
known by the Python text that reaches them from the call site; a read of one below them extends that text.
"""

from __future__ import annotations

import contextvars
import enum
import functools
import os
import re
import sys
import threading
import types
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from operator import length_hint
from pathlib import Path
from typing import Any

import torch

from ..sentence import Sentence
from ..stand_ins import stood_for
from .changes import Held
from .code import TORCH, file_of, is_called_by_workspace, is_stdlib, is_torchs, is_workspace, place_of
from .guard import MOST_ENTRIES, CapturedGuard, is_member, is_plain, literal, name_of, owner_and_member, same
from .lifting import Setting

_MODULE = torch.nn.Module
_CONTAINERS = (torch.nn.Sequential, torch.nn.ModuleList, torch.nn.ModuleDict)
_CALL = "_call_impl"
_OF_MODULES = frozenset(vars(_MODULE())) - {"training"} | {
    "forward", "_call_impl", "_wrapped_call_impl", "_slow_forward", "_compiled_call_impl",
}  # fmt: skip
"""What a module keeps for itself; what of it matters is asked where the module is called."""
_TENSORS_OF_MODULES = ("_parameters", "_buffers")
_NOT_IN_EVALUATION = {
    torch.nn.modules.dropout._DropoutNd: ("p", "inplace"),
    torch.nn.modules.batchnorm._NormBase: ("momentum", "num_batches_tracked"),
    torch.nn.Embedding: ("scale_grad_by_freq", "sparse"),
}
"""Settings that change nothing while a layer is not in training."""
_OF_PYTHON = 1 << 9
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
_MUTABLE = (tuple, list, dict, set, deque, bytearray)
_OF_BUILTINS = frozenset({tuple, list, dict})
_NUMBERS_AND_TEXTS = (int, float, str)
"""Classes of Python whose subclasses hold a value that no attribute has."""
_MOST_ENTRIES = 4096
_DEEPEST = 3
"""Containers in containers whose entries are compared before and behind a call."""
_LONGEST = 4096
"""Characters of the text of an object that a guard compares."""


class Reads:
    """``roots`` are the objects that the call site knows, by name; ``shared`` are those that globals hold,
    which a call has only where its code reads the global; ``project`` is the folder that imports start from.
    ``tensors`` are those that were read, by the text that reaches them."""

    def __init__(self, roots: Mapping[str, Any], shared: Mapping[str, Any], project: Path) -> None:
        self._project = project
        self._paths: dict[int, str] = {}
        self._shared: dict[int, str] = {}
        self._shared_paths: set[str] = set()
        self._shared_roots = dict(shared)
        self._kept: list[Any] = []
        self._entries: dict[int, str] = {}
        self._enclosed: set[int] = set()
        self._codes: set[tuple[int, int]] = set()
        self._made: set[int] = set()
        self._guards: dict[CapturedGuard, None] = {}
        self._modules: dict[str, Any] = {}
        self._called: set[str] = set()
        self._read: set[str] = set()
        self._dropped: set[CapturedGuard] = set()
        self.problem: Sentence = Sentence()
        self.tensors: dict[str, torch.Tensor] = {}
        self.walked: dict[str, torch.Tensor] = {}
        self.settings: dict[str, Setting] = {}
        self._held = Held()
        self._compared: dict[str, tuple[Any, Any]] = {}
        self._before: dict[int, tuple[Any, Any]] = {}
        self._roots = set(roots)
        self._registered = {
            id(module): path for root, value in roots.items() for path, module in _modules_below(root, value)
        }
        # a function that is an argument is asked for where the arguments are
        given = (value for value in roots.values() if isinstance(value, types.FunctionType))
        self._codes.update((id(value.__code__), 0) for value in given)
        for name, value in roots.items():
            self._know(value, name)
        for name, value in shared.items():
            self._shared_paths.add(name)
            self._know(value, name)

    @property
    def guards(self) -> tuple[CapturedGuard, ...]:
        """In the order of the reads, owners before what is below them."""
        self._drop_settings_without_effect()
        return tuple(guard for guard in self._guards if guard not in self._dropped)

    def know(self, value: Any, path: str) -> None:
        """An object that the call site itself reaches by a path, be it a global's name."""
        self._shared_paths.discard(path)
        self._shared_roots.pop(path, None)
        self._same(*owner_and_member(path), value)
        self._know(value, path)

    def _know(self, value: Any, path: str) -> None:
        """What the call itself reaches has that path, whatever global holds it, too."""
        paths = self._shared if path in self._shared_paths else self._paths
        if id(value) not in paths:
            paths[id(value)] = path
            self._kept.append(value)
            if isinstance(value, _MODULE):
                self._modules[path] = value

    def is_known(self, value: Any) -> bool:
        """Whether an object is one that the call has reached from outside."""
        return self.path_of(value) is not None

    def add(self, guard: CapturedGuard) -> None:
        self._guards.setdefault(guard)

    def refuse(self, template: str, /, **values: object) -> None:
        """No guards can tell what was read; the first reason stays."""
        self.problem = self.problem or Sentence(template, **values)

    def asks(self, path: str, name: str) -> bool:
        """Whether a guard compares what an attribute of an object gives."""
        return any(guard.owner == path and f"{{}}.{name}" in guard.text for guard in self._guards)

    def asks_code(self, code: types.CodeType, receiver: Any) -> bool:
        """Whether guards ask for a function of that code, or for the method of that object."""
        return (id(code), 0) in self._codes or (id(code), id(receiver)) in self._codes

    def classes(self) -> dict[str, type]:
        """The user's classes of objects that were reached, by a text each."""
        result: dict[int, tuple[str, type]] = {}
        for value in self._kept:
            path = self._paths.get(id(value))
            if path is not None and is_workspace(file_of(type(value))):
                result.setdefault(id(type(value)), (f"type({path})", type(value)))
        return dict(result.values())

    def set_anew(self, shared: Held) -> None:
        """Refuses where the code that ran has set attributes of what is ``shared``, or of an object that it
        reached."""
        for text in (*self._held.changed(), *shared.changed()):
            self.refuse("The call rebinds {expression}, which a kernel cannot do.", expression=text)

    def of_process(self, name: str) -> None:
        """Refuses for what was read of Python's own modules and belongs to the program that runs."""
        self.refuse(
            "It reads {name}, which differs between programs: pass what it is as an argument.", name=name
        )

    def path_of(self, value: Any) -> str | None:
        """The text that reaches an object; None where none is known."""
        return self._paths.get(id(value)) or self._shared.get(id(value))

    def hold_to_globals(self, values: Iterable[Any]) -> None:
        """``values`` are what the code reads of globals: an object that a call reaches, too, has to be the
        same there; one that only some global holds is not the call's, and is refused."""
        read = {id(value) for value in values}
        for path, value in self._shared_roots.items():
            if id(value) in read and id(value) in self._paths:
                self.add(CapturedGuard(path, f"{{}} is {self._paths[id(value)]}"))
            elif id(value) not in read and self._is_asked(path):
                self.refuse(
                    "{path} is read by a way that no call can follow: make it an attribute, or read the "
                    "global itself.",
                    path=path,
                )

    def read_of_classes(self, names: Iterable[str], texts: Iterable[str]) -> None:
        """Names that code reads of classes which it reaches by their objects, as in ``type(self).factor``;
        ``texts`` are those by which it may ask for them."""
        asked = sorted(texts)
        wanted = sorted({*names, *asked})
        for path, value in [(path, value) for value in self._kept if (path := self._paths.get(id(value)))]:
            kind = type(value)
            own = [base for base in kind.__mro__ if is_workspace(file_of(base))]
            for name in wanted:
                if any(name in vars(base) for base in own):
                    self._value(f"type({path})", f".{name}", getattr(kind, name))
            for name in asked if own else ():
                if not hasattr(kind, name):
                    self.add(CapturedGuard(f"type({path})", f"not hasattr({{}}, {name!r})"))

    def ask_classes(self, *, of_all: bool, of_roots: bool) -> None:
        """That modules which the code reads and does not call are of the classes that they were: where it may
        ask for the class of any, and where it asks nothing else of one. The others are asked as they are
        called; ``of_roots``: it asks so of what the call site knows by name."""
        asked = {guard.owner for guard in self._guards} | {*self.tensors} | {*self.settings}
        for path, module in [*self._modules.items()]:
            if path in self._roots or path in self._shared_paths or path in self._called:
                wanted = path in self._roots and of_roots
            else:
                is_plain_read = path in self._read and not any(request.startswith(path) for request in asked)
                wanted = of_all or is_plain_read
            if wanted:
                self._class(path, "type({})", type(module))

    def _is_asked(self, root: str) -> bool:
        """Whether anything was noted of a shared object or below it."""
        asked = {guard.owner for guard in self._guards} | self.tensors.keys() | self.settings.keys()
        return any(path == root or path.startswith((f"{root}.", f"{root}[")) for path in asked)

    def made(self, module: Any) -> None:
        """A module that the traced code itself makes is no state."""
        self._made.add(id(module))
        self._kept.append(module)

    def called(self, module: Any) -> None:
        path = self.path_of(module)
        if path in self._roots:
            return  # what stands around the function's own body is as it was
        if path is None:
            if id(module) not in self._made:
                self.refuse("A {kind} is called that no attribute reaches.", kind=type(module).__name__)
            return
        self._called.add(path)
        if module._forward_hooks or module._forward_pre_hooks:
            self.refuse(
                "{path} has hooks, which run at each call of it: remove them, or call it outside.", path=path
            )
        kind = type(module)
        calling = next(base for base in kind.__mro__ if "__call__" in vars(base))
        own = "" if calling is _MODULE else ", False"
        self.add(CapturedGuard(path, f"guards.plain({{}}, {self._class_text(kind)}{own})"))
        if own:  # it is of a class of the user's: torch has no layers with such
            self._value(f"type({path})", ".__call__", vars(calling)["__call__"])
        if not _is_torchs_class(kind):
            forward: Any = kind.forward
            self._function(path, ".forward", forward)
            if isinstance(forward, types.FunctionType):
                self._codes.add((id(forward.__code__), id(module)))
                self.beside(f"type({path}).forward", forward)

    def _class_text(self, kind: type) -> str:
        """A class of torch's itself; of others the name and the file, which is all that two imports share."""
        if not _is_torchs_class(kind):
            file = Path(file_of(kind))
            is_here = file.is_relative_to(self._project)
            place = (
                file.relative_to(self._project).as_posix() if is_here else kind.__module__.rpartition(".")[2]
            )
            return f'"{kind.__qualname__}", "{place}"'
        short = getattr(torch.nn, kind.__name__, None) is kind
        return f"torch.nn.{kind.__name__}" if short else f"{kind.__module__}.{kind.__qualname__}"

    def absent(self, owner: Any, name: str) -> None:
        path = self.path_of(owner)
        if path is not None and name not in _OF_MODULES and not name.startswith("__"):
            self.add(CapturedGuard(path, f'not hasattr({{}}, "{name}")'))

    def attribute(self, owner: Any, name: str, value: Any) -> None:
        """Notes that ``owner.name`` gave ``value``."""
        path = self.path_of(owner)
        if name in (_CALL, "forward") and isinstance(owner, _MODULE):
            self.called(owner)
        if path is not None and name == "__dict__" and _is_asked_for_all(2):
            self._all_attributes(owner, path)
        if path is None or name.startswith("__"):
            return
        if isinstance(owner, _MODULE) and name in _TENSORS_OF_MODULES and _is_walk():
            self._walk(path, name, value)
            return
        if isinstance(owner, _MODULE) and name in _OF_MODULES:
            if name == "_modules" and (value or isinstance(owner, _CONTAINERS) or _is_walk()):
                self.add(CapturedGuard(path, f"list({{}}._modules) == {list(value)!r}"))
                for key, child in value.items():
                    self._below(path, f"._modules[{key!r}]")
                    self._same(path, f"._modules[{key!r}]", child)
                    self._know(child, f"{path}._modules[{key!r}]")
            return
        held = getattr(owner, "__dict__", {}) if type(value) is float else {}
        if name in held:
            whole = f"{path}.{name}"
            self.settings.setdefault(whole, Setting(whole, held, name, value))
        self._value(path, f".{name}", value)

    def deleted(self, owner: Any, name: str) -> None:
        """Refuses where the user's code deletes an attribute, or tries to."""
        path = self.path_of(owner)
        if path is not None and is_called_by_workspace(3):
            self.refuse("The call deletes {path}.{name}, which a kernel cannot do.", path=path, name=name)

    def _all_attributes(self, owner: Any, path: str) -> None:
        if isinstance(owner, _MODULE):
            self.refuse(
                "It reads all attributes of {path} at once, of which no condition can ask: read them by "
                "their names.",
                path=path,
            )
            return
        own = object.__getattribute__(owner, "__dict__")
        self.add(CapturedGuard(path, f"list({{}}.__dict__) == {list(own)!r}"))
        for name, value in own.items():
            self._value(path, f".__dict__[{name!r}]", value)

    def _walk(self, path: str, group: str, tensors: Mapping[str, Any]) -> None:
        """Notes that all tensors of a module were walked through, as ``parameters()`` does."""
        self.add(CapturedGuard(path, f"list({{}}.{group}) == {list(tensors)!r}"))
        for key, tensor in tensors.items():
            member = f".{key}" if key.isidentifier() else f".{group}[{key!r}]"
            self._value(path, member, tensor)
            if tensor is not None:
                self.walked[path + member] = tensor

    def value(self, path: str, value: Any) -> None:
        """Notes that an object at a path that is no attribute, such as a global, was read."""
        self._value(path, "", value)

    def _below(self, owner: str, member: str) -> None:
        """Notes that what a member reaches is shared as its owner is."""
        if owner in self._shared_paths:
            self._shared_paths.add(owner + member)

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
            self._note_contents(owner + member, value)
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
        elif _is_torchs_class(kind):
            self.add(CapturedGuard(owner, f"{text} is {self._class_text(kind)}"))
        elif is_workspace(file_of(kind)):
            self.add(CapturedGuard(owner, f"guards.of({text}, {self._class_text(kind)})"))
        else:
            self.add(CapturedGuard(owner, f'guards.named({text}, "{name_of(kind)}")'))

    def _entry(self, owner: str, member: str, value: enum.Enum) -> None:
        """An entry of an enumeration, which code compares by identity: two paths to one are such."""
        self.add(is_member(owner, member, value))
        if is_plain(value.value):
            self.add(same(owner, f"{member}.value", value.value))
        first = self._entries.setdefault(id(value), owner + member)
        if first != owner + member:
            self.add(CapturedGuard(owner, f"{{}}{member} is {first}"))

    def _same(self, owner: str, member: str, value: Any) -> None:
        """That a second way to an object leads to it still: what is asked of it is asked by the first one."""
        first = self._paths.get(id(value))
        path = owner + member
        if first is not None and path not in self._shared_paths and _steps(first) != _steps(path):
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
        self._note_contents(path, value)
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

    def _note_contents(self, path: str, value: Any) -> None:
        """Notes what a guard compares of a container, or of an object by its text, when it is first read."""
        before = self._before.get(id(value), (value, None))[1]
        self._compared.setdefault(path, (value, _contents(value) if before is None else before))

    def note_globals(self, modules: Iterable[types.ModuleType]) -> None:
        """What the containers of modules hold before the call: which of them it reads is seen behind it."""
        for module in modules:
            for value in vars(module).values():
                held = value.__defaults__ if isinstance(value, types.FunctionType) else value
                if isinstance(held, _MUTABLE):
                    self._before[id(held)] = (held, _contents(held))

    def refuse_changed(self) -> None:
        """Refuses where the code that ran has changed what a guard compares, which would not hold again."""
        for path, (value, before) in self._compared.items():
            after = _contents(value)
            if after is not before and after != before:  # NaN is no other NaN
                self.refuse(
                    "Each call changes {path}, so that its kernel would not run: change it outside of "
                    "the call.",
                    path=path,
                )

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

    def environment(self, name: str, value: str | None) -> None:
        """Notes that the user's code read a variable of the environment."""
        asked = same("", f"guards.environment({name!r})", value)
        self.add(CapturedGuard("", asked.text.replace("{}", "", 1)))

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
        of_c = not kind.__flags__ & _OF_PYTHON or kind is threading.local
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
        self._note_contents(owner + member, value)
        self.add(CapturedGuard(owner, f"guards.shown({{}}{member}, {text!r})"))
        return True

    def _drop_settings_without_effect(self) -> None:
        for path, module in self._modules.items():
            for kind, names in _NOT_IN_EVALUATION.items():
                if isinstance(module, kind) and not module.training:
                    self._dropped |= {
                        guard for guard in self._guards
                        if guard.owner == path and any(f"{{}}.{name}" in guard.text for name in names)
                    }  # fmt: skip

    is_watching = False
    """Whether reads are being recorded."""
    watched: frozenset[type] = frozenset()
    """Classes whose objects' reads were recorded."""

    def watch(self, kind: type) -> bool:
        """Record the attributes of a class's objects too, where that can be; replaced while ``recording``."""
        return False


def _contents(value: Any, depth: int = 0) -> Any:
    """What tells whether a value that guards compare is as it was: objects by their identity, and of what is
    large or deep the size."""
    if isinstance(value, (tuple, list, dict, deque)):
        if depth > _DEEPEST or len(value) > MOST_ENTRIES:
            return len(value)
        entries = value.items() if isinstance(value, dict) else enumerate(value)
        return [(key, _contents(element, depth + 1)) for key, element in entries]
    if isinstance(value, (set, frozenset, bytearray)) or _is_shown(value):
        size = length_hint(value)  # 0 for what has none, as an array without dimensions
        return repr(value) if size <= MOST_ENTRIES else size
    return value if is_plain(value) else id(value)


def _is_shown(value: Any) -> bool:
    return "__repr__" in vars(type(value)) and not hasattr(value, "__dict__") and not is_plain(value)


def _modules_below(root: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The modules that a root's own attributes reach, by path."""
    for name, module in value.named_modules() if isinstance(value, _MODULE) else ():
        yield root + "".join(f"._modules[{part!r}]" for part in name.split(".") if part), module


def _steps(path: str) -> tuple[str, ...]:
    """The names on a path: ``.layers[0]`` and ``._modules['layers']._modules['0']`` have the same ones."""
    return tuple(name for name in _NAMES.findall(path) if name != "_modules")


_NAMES = re.compile(r"\w+")


def _is_torchs_class(kind: type) -> bool:
    return (
        kind.__module__.startswith("torch.nn.")
        and getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is kind
    )


@contextmanager
def recording(reads: Reads) -> Iterator[None]:
    """Attributes that are read meanwhile, of modules and of the objects that they hold, are noted."""
    patches = _Patches()
    reads.watch = functools.partial(_watch, patches, reads)  # type: ignore[method-assign]
    try:
        _watch(patches, reads, _MODULE)
        patches.wrap(_MODULE, "__init__", functools.partial(_noting_init, reads))
        for kind in {type(value) for value in reads._kept}:
            if not issubclass(kind, (_MODULE, torch.Tensor)):
                _watch(patches, reads, kind)
        _watch_environment(patches, reads)
        reads.is_watching = True
        yield
    finally:
        reads.is_watching = False
        reads.watched = patches.classes
        patches.undo()


class _Patches:
    """Methods of classes that are replaced for a while."""

    def __init__(self) -> None:
        self._before: list[tuple[type, str, Any]] = []
        self._known: set[tuple[type, str]] = set()

    def wrap(self, kind: type, name: str, make: Callable[[Any], Any]) -> bool:
        """Whether it is: of a class that cannot be changed, such as one of C, objects are compared whole."""
        if (kind, name) in self._known or not hasattr(kind, name):
            return (kind, name) in self._known
        before = kind.__dict__.get(name)
        try:
            setattr(kind, name, make(getattr(kind, name)))
        except TypeError:
            return False
        self._known.add((kind, name))
        self._before.append((kind, name, before))
        return True

    @property
    def classes(self) -> frozenset[type]:
        return frozenset(kind for kind, name in self._known if name == "__getattribute__")

    def undo(self) -> None:
        for kind, name, before in reversed(self._before):
            if before is None:
                delattr(kind, name)
            else:
                setattr(kind, name, before)


def _watch(patches: _Patches, reads: Reads, kind: type) -> bool:
    if kind.__module__ == "builtins" or (kind.__module__.startswith("torch") and kind is not _MODULE):
        return bool(kind.__flags__ & _OF_PYTHON)
    is_last = not hasattr(kind, "__getattr__")
    done = patches.wrap(kind, "__getattribute__", functools.partial(_noting, reads, is_last=is_last))
    patches.wrap(kind, "__getattr__", functools.partial(_noting, reads, is_last=True))
    patches.wrap(kind, "__delattr__", functools.partial(_noting_deletion, reads))
    return done


def _watch_environment(patches: _Patches, reads: Reads) -> None:
    def noting(method: Any) -> Any:
        def read(owner: Any, name: str) -> Any:
            try:
                value = method(owner, name)
            except KeyError:
                if is_called_by_workspace():
                    reads.environment(name, None)
                raise
            if is_called_by_workspace():
                reads.environment(name, value)
            return value

        return read

    patches.wrap(type(os.environ), "__getitem__", noting)


def _noting(reads: Reads, method: Any, *, is_last: bool) -> Any:
    def read(owner: Any, name: str) -> Any:
        try:
            value = method(owner, name)
        except AttributeError:
            if is_last:
                reads.absent(owner, name)
            raise
        reads.attribute(owner, name, value)
        return value

    return read


def _noting_deletion(reads: Reads, method: Any) -> Any:
    def delete(owner: Any, name: str) -> None:
        reads.deleted(owner, name)
        method(owner, name)

    return delete


def _is_walk() -> bool:
    """Whether the user's code goes through the members of a module, rather than what calls it with others."""
    frame: types.FrameType | None = sys._getframe(3)
    while frame is not None and frame.f_code.co_filename.startswith(TORCH):
        if frame.f_code.co_filename.endswith(_CALLING_WITH_OTHERS):
            return False
        frame = frame.f_back
    return frame is not None and is_workspace(frame.f_code.co_filename)


_CALLING_WITH_OTHERS = ("nn/utils/stateless.py", "functional_call.py")
"""Files of torch's that put other tensors into a module for a call."""


def _is_asked_for_all(depth: int) -> bool:
    """Whether the user's code itself reads the dictionary of an object's attributes."""
    file = sys._getframe(depth + 1).f_code.co_filename
    return is_workspace(file)


def _noting_init(reads: Reads, method: Any) -> Any:
    def init(module: Any, *args: Any, **kwargs: Any) -> None:
        reads.made(module)
        method(module, *args, **kwargs)

    return init
