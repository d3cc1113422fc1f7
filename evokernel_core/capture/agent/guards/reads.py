"""Records what a function takes from Python while it is traced: attributes of modules and of other objects.

Attributes are not passed to a call of a kernel, so what was read must be the same in the call. Objects are
known by the Python text that reaches them from the call site; a read of one below them extends that text.
"""

from __future__ import annotations

import enum
import functools
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from ..sentence import Sentence
from .guard import Guard, is_member, is_plain, same
from .lifting import Setting

_MODULE = torch.nn.Module
_TORCH_FOLDER = torch.__path__[0]
_CONTAINERS = (torch.nn.Sequential, torch.nn.ModuleList, torch.nn.ModuleDict)
_CALL = "_call_impl"
_HOOKS = ("_forward_hooks", "_forward_pre_hooks")
_OF_MODULES = frozenset(vars(_MODULE())) - {"training"} | {
    "forward", "_call_impl", "_wrapped_call_impl", "_slow_forward", "_compiled_call_impl",
}  # fmt: skip
"""What a module keeps for itself; what of it matters is asked where the module is called."""
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
_MOST_ENTRIES = 4096


class Unnameable(Exception):
    """Something was read that no condition at the call site can ask for; the message is one sentence."""


class Reads:
    """``roots`` are the objects that the call site knows, by name. ``tensors`` are those that were read, by
    the text that reaches them."""

    def __init__(self, roots: Mapping[str, Any]) -> None:
        self._paths: dict[int, str] = {}
        self._kept: list[Any] = []
        self._made: set[int] = set()
        self._guards: dict[Guard, None] = {}
        self._modules: dict[str, Any] = {}
        self._dropped: set[Guard] = set()
        self.problem: Sentence = Sentence()
        self.tensors: dict[str, torch.Tensor] = {}
        self.settings: dict[str, Setting] = {}
        self._roots = set(roots)
        self._registered = {
            id(module): path for root, value in roots.items() for path, module in _modules_below(root, value)
        }
        for name, value in roots.items():
            self._know(value, name)

    @property
    def guards(self) -> tuple[Guard, ...]:
        """In the order of the reads, owners before what is below them."""
        self._drop_settings_without_effect()
        return tuple(guard for guard in self._guards if guard not in self._dropped)

    def know(self, value: Any, path: str) -> None:
        """An object that the call site reaches by a path."""
        self._know(value, path)

    def _know(self, value: Any, path: str) -> None:
        if id(value) not in self._paths:
            self._paths[id(value)] = path
            self._kept.append(value)
            if isinstance(value, _MODULE):
                self._modules[path] = value

    def made(self, module: Any) -> None:
        """A module that the traced code itself makes is no state."""
        self._made.add(id(module))
        self._kept.append(module)

    def called(self, module: Any) -> None:
        path = self._paths.get(id(module))
        if path in self._roots:
            return  # what stands around the function's own body is as it was
        if path is None:
            if id(module) not in self._made:
                self._refuse(
                    Sentence("A {kind} is called that no attribute reaches.", kind=type(module).__name__)
                )
            return
        kind = type(module)
        self._add(Guard(path, f"guards.plain({{}}, {_class_text(kind)})"))
        if not _is_torchs_class(kind):
            self._add(Guard(path, f'guards.named({{}}.forward, "{_name_of(kind.forward)}")'))

    def absent(self, owner: Any, name: str) -> None:
        path = self._paths.get(id(owner))
        if path is not None and name not in _OF_MODULES and not name.startswith("__"):
            self._add(Guard(path, f'not hasattr({{}}, "{name}")'))

    def attribute(self, owner: Any, name: str, value: Any) -> None:
        """Notes that ``owner.name`` gave ``value``."""
        path = self._paths.get(id(owner))
        if name in (_CALL, "forward") and isinstance(owner, _MODULE):
            self.called(owner)
        if path is None or name.startswith("__"):
            return
        if isinstance(owner, _MODULE) and name in _OF_MODULES:
            if name == "_modules" and (value or isinstance(owner, _CONTAINERS)):
                self._add(Guard(path, f"list({{}}._modules) == {list(value)!r}"))
                for key, child in value.items():
                    self._know(child, f"{path}._modules[{key!r}]")
            return
        held = getattr(owner, "__dict__", {}) if type(value) is float else {}
        if name in held:
            whole = f"{path}.{name}"
            self.settings.setdefault(whole, Setting(whole, held, name, value))
        self._value(path, f".{name}", value)

    def value(self, path: str, value: Any) -> None:
        """Notes that an object at a path that is no attribute, such as a global, was read."""
        self._value(path, "", value)

    def _value(self, owner: str, member: str, value: Any) -> None:
        if isinstance(value, _MODULE):
            self._know(value, owner + member)
        elif isinstance(value, types.MethodType):
            self._method(owner, member, value)
        elif isinstance(value, torch.Tensor):
            self.tensors.setdefault(owner + member, value)
        elif isinstance(value, _SILENT):
            return
        elif is_plain(value):
            self._add(same(owner, member, value))
        elif isinstance(value, enum.Enum):
            self._add(is_member(owner, member, value))
        elif isinstance(value, (tuple, list, dict)):
            self._container(owner, member, value)
        elif isinstance(value, (type, *_FUNCTIONS)):
            self._add(Guard(owner, f'guards.named({{}}{member}, "{_name_of(value)}")'))
            if isinstance(value, types.FunctionType) and not _is_torchs(value):
                self._closure(owner + member, value)
        elif isinstance(value, functools.partial):
            self._partial(owner, member, value)
        else:
            self._object(owner, member, value)

    def _method(self, owner: str, member: str, value: types.MethodType) -> None:
        """A method of the user's class may be set anew on an object, or be that of a subclass."""
        if not _is_torchs(value.__func__):
            self._add(Guard(owner, f'guards.named({{}}{member}, "{_name_of(value.__func__)}")'))

    def _closure(self, path: str, function: types.FunctionType) -> None:
        """Modules and settings that a function keeps from where it was made, as a lambda in ``__init__``."""
        for place, cell in enumerate(function.__closure__ or ()):
            try:
                held = cell.cell_contents
            except ValueError:
                continue  # a name that has no value
            member = f".__closure__[{place}].cell_contents"
            if isinstance(held, _MODULE):
                self._know(held, self._registered.get(id(held), path + member))
                self._add(Guard(path, f"{{}}{member} is {self._paths[id(held)]}"))
            elif is_plain(held):
                self._add(same(path, member, held))

    def _container(self, owner: str, member: str, value: Any) -> None:
        path = owner + member
        if len(value) > _MOST_ENTRIES:
            self._refuse(
                Sentence(
                    "{path} holds {count} entries, too many to compare in a call.",
                    path=path,
                    count=len(value),
                )
            )
            return
        entries = value.items() if isinstance(value, dict) else enumerate(value)
        size = (
            f"list({{}}{member}) == {list(value)!r}"
            if isinstance(value, dict)
            else f"len({{}}{member}) == {len(value)}"
        )
        self._add(Guard(owner, size))
        for key, item in entries:
            self._value(path, f"[{key!r}]", item)

    def _partial(self, owner: str, member: str, value: Any) -> None:
        path = owner + member
        self._value(path, ".func", value.func)
        self._value(path, ".args", value.args)
        self._value(path, ".keywords", value.keywords)

    def _object(self, owner: str, member: str, value: Any) -> None:
        if type(value).__module__.split(".")[0] == "numpy":
            self._refuse(
                Sentence(
                    "{owner}{member} is a {kind} of numpy: make it a number or a tensor.",
                    owner=owner,
                    member=member,
                    kind=type(value).__name__,
                )
            )
            return
        self._add(Guard(owner, f'guards.named(type({{}}{member}), "{_name_of(type(value))}")'))
        self._know(value, owner + member)
        if type(value).__flags__ & _OF_PYTHON:
            self.watch(type(value))
            return
        for name, item in getattr(value, "__dict__", {}).items():  # as of a SimpleNamespace: reads are unseen
            self._value(owner + member, f".{name}", item)

    def _add(self, guard: Guard) -> None:
        self._guards.setdefault(guard)

    def _refuse(self, what: Sentence) -> None:
        self.problem = self.problem or what

    def _drop_settings_without_effect(self) -> None:
        for path, module in self._modules.items():
            for kind, names in _NOT_IN_EVALUATION.items():
                if isinstance(module, kind) and not module.training:
                    self._dropped |= {
                        guard for guard in self._guards
                        if guard.owner == path and any(f"{{}}.{name}" in guard.text for name in names)
                    }  # fmt: skip

    def watch(self, kind: type) -> None:
        """Record the attributes of a class's objects too; replaced while ``recording``."""


def _modules_below(root: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The modules that a root's own attributes reach, by path."""
    for name, module in value.named_modules() if isinstance(value, _MODULE) else ():
        yield root + "".join(f"._modules[{part!r}]" for part in name.split(".") if part), module


def _class_text(kind: type) -> str:
    """A class of torch's itself; of others the name, which is all that two imports of a file share."""
    if not _is_torchs_class(kind):
        return f'"{_name_of(kind)}", "{kind.__module__.rpartition(".")[2]}"'
    short = getattr(torch.nn, kind.__name__, None) is kind
    return f"torch.nn.{kind.__name__}" if short else f"{kind.__module__}.{kind.__qualname__}"


def _is_torchs_class(kind: type) -> bool:
    return (
        kind.__module__.startswith("torch.nn.")
        and getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is kind
    )


def _name_of(value: Any) -> str:
    """``torch.nn.functional.gelu``; of a user's class or function without its module, which is another one
    where the file is run as a program."""
    code = getattr(value, "__code__", None)
    if code is not None and hasattr(code, "co_qualname"):
        return str(code.co_qualname)
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", "") or str(value)
    module = getattr(value, "__module__", "") or ""
    return f"{module}.{name}" if module.split(".")[0] == "torch" else str(name)


def _is_torchs(function: Any) -> bool:
    code = getattr(function, "__code__", None)
    return code is not None and code.co_filename.startswith(_TORCH_FOLDER)


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
        yield
    finally:
        patches.undo()


class _Patches:
    """Methods of classes that are replaced for a while."""

    def __init__(self) -> None:
        self._before: list[tuple[type, str, Any]] = []
        self._known: set[tuple[type, str]] = set()

    def wrap(self, kind: type, name: str, make: Callable[[Any], Any]) -> None:
        """Where the class cannot be changed, as those of C, its objects are compared as a whole."""
        if (kind, name) in self._known or not hasattr(kind, name):
            return
        self._known.add((kind, name))
        before = kind.__dict__.get(name)
        try:
            setattr(kind, name, make(getattr(kind, name)))
        except TypeError:
            return
        self._before.append((kind, name, before))

    def undo(self) -> None:
        for kind, name, before in reversed(self._before):
            if before is None:
                delattr(kind, name)
            else:
                setattr(kind, name, before)


def _watch(patches: _Patches, reads: Reads, kind: type) -> None:
    if kind.__module__ == "builtins" or (kind.__module__.startswith("torch") and kind is not _MODULE):
        return
    is_last = not hasattr(kind, "__getattr__")
    patches.wrap(kind, "__getattribute__", functools.partial(_noting, reads, is_last=is_last))
    patches.wrap(kind, "__getattr__", functools.partial(_noting, reads, is_last=True))


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


def _noting_init(reads: Reads, method: Any) -> Any:
    def init(module: Any, *args: Any, **kwargs: Any) -> None:
        reads.made(module)
        method(module, *args, **kwargs)

    return init
