"""Records what a function takes from Python while it is traced: attributes of modules and of other objects.

Attributes are not passed to a call of a kernel, so what was read must be the same in the call. Objects are
known by the Python text that reaches them from the call site; a read of one below them extends that text.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch

from .changes import Held
from .code import TORCH, file_of, is_called_by_workspace, is_workspace
from .guard import CapturedGuard, same
from .lifting import Setting
from .value_guards import ValueGuards, is_torchs_class

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
_CALLING_WITH_OTHERS = ("nn/utils/stateless.py", "functional_call.py")
"""Files of torch's that put other tensors into a module for a call."""


class Reads(ValueGuards):
    """``walked`` are the tensors of modules that were walked through, by the text that reaches them."""

    def __init__(self, roots: Mapping[str, Any], shared: Mapping[str, Any], project: Path) -> None:
        super().__init__(roots, shared, project)
        self._made: set[int] = set()
        self._called: set[str] = set()
        self._dropped: set[CapturedGuard] = set()
        self.walked: dict[str, torch.Tensor] = {}
        self.settings: dict[str, Setting] = {}

    @property
    def guards(self) -> tuple[CapturedGuard, ...]:
        """In the order of the reads, owners before what is below them."""
        self._drop_settings_without_effect()
        return tuple(guard for guard in self._guards if guard not in self._dropped)

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
        if not is_torchs_class(kind):
            forward: Any = kind.forward
            self._function(path, ".forward", forward)
            if isinstance(forward, types.FunctionType):
                self._codes.add((id(forward.__code__), id(module)))
                self.beside(f"type({path}).forward", forward)

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

    def environment(self, name: str, value: str | None) -> None:
        """Notes that the user's code read a variable of the environment."""
        asked = same("", f"guards.environment({name!r})", value)
        self.add(CapturedGuard("", asked.text.replace("{}", "", 1)))

    def _drop_settings_without_effect(self) -> None:
        for path, module in self._modules.items():
            for kind, names in _NOT_IN_EVALUATION.items():
                if isinstance(module, kind) and not module.training:
                    self._dropped |= {
                        guard for guard in self._guards
                        if guard.owner == path and any(f"{{}}.{name}" in guard.text for name in names)
                    }  # fmt: skip

    def refuse_changed(self) -> None:
        """Refuses where the code that ran has changed what a guard compares."""
        for path in self.contents.changed():
            self.refuse(
                "Each call changes {path}, so that its kernel would not run: change it outside of the call.",
                path=path,
            )


def _is_walk() -> bool:
    """Whether the user's code goes through the members of a module, rather than what calls it with others."""
    frame: types.FrameType | None = sys._getframe(3)
    while frame is not None and frame.f_code.co_filename.startswith(TORCH):
        if frame.f_code.co_filename.endswith(_CALLING_WITH_OTHERS):
            return False
        frame = frame.f_back
    return frame is not None and is_workspace(frame.f_code.co_filename)


def _is_asked_for_all(depth: int) -> bool:
    """Whether the user's code itself reads the dictionary of an object's attributes."""
    file = sys._getframe(depth + 1).f_code.co_filename
    return is_workspace(file)
