"""Notes how the workspace's modules are built and called, in the person's own program.

``torch.nn.Module.__new__`` sees what a class is built with, ``__call__`` what an instance is called with.
Functions of the workspace get a first line that reports their arguments, until enough is known. Nothing that
goes wrong here may reach the program: what cannot be noted is left out.
"""

from __future__ import annotations

import atexit
import copy
import functools
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from .encode import Encoder
from .functions import Reporter, functions_of
from .journal import ObservationJournal
from .names import definition, reference
from .seen import Seen
from .workspace import Workspace

_busy = threading.local()


def quietly(work: Callable[..., Any]) -> Callable[..., Any]:
    """Work that never raises, and is not done while other such work runs in the thread."""

    @functools.wraps(work)
    def call(*args: Any, **kwargs: Any) -> Any:
        if getattr(_busy, "now", False):
            return None
        _busy.now = True
        try:
            return work(*args, **kwargs)
        except Exception:  # the program must go on as if nobody looked
            return None
        finally:
            _busy.now = False

    return call


class Home:
    """A class of the workspace whose code an instance runs: what is seen of it, and where it is found."""

    def __init__(self, seen: Seen, known: dict[str, str]) -> None:
        self.seen = seen
        self.reference = known


class Observer:
    """Everything that one process notes. ``install`` it once torch is there."""

    def __init__(self, journal: ObservationJournal, workspace: Workspace) -> None:
        self._workspace = workspace
        self._write = quietly_write(journal)
        self._classes: dict[type, tuple[Home, ...]] = {}
        self._functions: list[Seen] = []
        self._built: dict[int, tuple[weakref.ref[Any], dict[str, Any]]] = {}
        self._modules: set[str] = set()
        self._main_known = False
        self._call: Callable[..., Any] = torch.nn.Module.__call__

    def install(self) -> None:
        """Puts the hooks in place, for the rest of the process."""
        module = torch.nn.Module
        observer, call = self, self._call

        def new(cls: type, *args: Any, **kwargs: Any) -> Any:
            made = _plain_new(cls, args, kwargs)
            observer.was_built(made, args, kwargs)
            return made

        def observed_call(module_: Any, *args: Any, **kwargs: Any) -> Any:
            for home in observer._classes.get(type(module_), ()):
                if home.seen.looks(module_.training, args, kwargs):
                    observer.was_called(home, module_, args, kwargs)
            return call(module_, *args, **kwargs)

        module.__new__ = new
        module.__call__ = functools.wraps(call)(observed_call)
        copy.deepcopy = self._copying(copy.deepcopy)
        atexit.register(self.finish)

    @quietly
    def was_built(self, made: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A module was made, and will be set up with these arguments."""
        if not self._main_known:
            self._main_known = True
            self._take_in(sys.modules["__main__"])
        kind = type(made)
        if kind not in self._classes:
            self._classes[kind] = tuple(self._homes(kind))
        known = next((home.reference for home in self._classes[kind]), None) or reference(kind)
        if known is None:
            return
        encoded = Encoder(self.built_with, elements=True).call(args, kwargs)
        self._keep(made, {"class": known, **encoded})

    def _homes(self, kind: type) -> Iterator[Home]:
        """The class itself, and the one whose ``forward`` it inherits, where the workspace has them and they
        are built with the same arguments."""
        forward = next((base for base in kind.__mro__ if "forward" in vars(base)), kind)
        for base in dict.fromkeys((kind, forward)):
            result = reference(base)
            file = self._workspace.file(result["file"]) if result else ""
            if file and result and kind.__init__ is base.__init__:  # type: ignore[misc]
                yield Home(Seen(f"{file}\0{definition(result['qualname'])}", self._write), result)

    def _keep(self, made: Any, built: dict[str, Any]) -> None:
        number = id(made)
        self._built[number] = (weakref.ref(made, lambda _: self._built.pop(number, None)), built)

    def built_with(self, module: torch.nn.Module) -> dict[str, Any] | None:
        """What a module was built with, None where nobody saw it."""
        result = self._built.get(id(module))
        return result[1] if result and result[0]() is module else None

    @quietly
    def was_called(self, home: Home, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """An instance of a class of the workspace is called."""
        built = self.built_with(module)
        if built is None or torch.jit.is_tracing():
            return
        file, qualname = home.seen.key.split("\0")
        state = {
            "training": module.training, "dtype": _dtype_of(module),
            "modules": sum(1 for _ in module.modules()), **self._surroundings(),
        }  # fmt: skip
        call = Encoder(self.built_with).call(args, kwargs)
        built = {**built, "class": home.reference}
        home.seen.note({"file": file, "qualname": qualname, "built": built, "call": call, **state})

    def _copying(self, deepcopy: Callable[..., Any]) -> Callable[..., Any]:
        """``copy.deepcopy``: copies of modules were built like their originals."""

        @functools.wraps(deepcopy)
        def copied(x: Any, *args: Any, **kwargs: Any) -> Any:
            made = deepcopy(x, *args, **kwargs)
            if isinstance(x, torch.nn.Module):
                self._inherit(x.modules(), made.modules())
            return made

        return copied

    @quietly
    def _inherit(self, originals: Iterable[Any], copies: Iterable[Any]) -> None:
        for original, made in zip(originals, copies):  # noqa: B905 - a copy may leave parts out
            built = self.built_with(original)
            if built is not None and type(original) is type(made):
                self._keep(made, built)

    @quietly
    def imported(self, module: types.ModuleType) -> None:
        """A module was executed: where it is the workspace's, its functions report their calls."""
        self._take_in(module)

    def _take_in(self, module: types.ModuleType) -> None:
        file = self._workspace.file(getattr(module, "__file__", None))
        if not file or module.__name__ in self._modules:
            return
        self._modules.add(module.__name__)
        for function, node in functions_of(module, file):
            seen = Seen(f"{file}\0{function.__qualname__}", self._write)
            self._functions.append(seen)
            Reporter(function, node, seen, self.was_entered)

    @quietly
    def was_entered(self, seen: Seen, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A function of the workspace is called."""
        file, qualname = seen.key.split("\0")
        call = Encoder(self.built_with).call(args, kwargs)
        if holds_tensor(call):
            state = {"built": None, "call": call, "modules": 0, **self._surroundings()}
            seen.note({"file": file, "qualname": qualname, **state})

    def _surroundings(self) -> dict[str, Any]:
        """What a call depends on that is neither its module nor its arguments."""
        dtype = str(torch.get_default_dtype()).removeprefix("torch.")
        return {"default_dtype": dtype, "paths": self._workspace.folders(tuple(sys.path))}

    @quietly
    def finish(self) -> None:
        """Writes the counts, at the end of the process."""
        classes = [home.seen for homes in self._classes.values() for home in homes]
        for seen in [*classes, *self._functions]:
            seen.finish()


def _plain_new(cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What ``cls.__new__`` did before: that of the class behind Module, which is object's for most."""
    following = super(torch.nn.Module, cls).__new__
    return following(cls) if following is object.__new__ else following(cls, *args, **kwargs)


def quietly_write(journal: ObservationJournal) -> Callable[[dict[str, Any]], None]:
    """The journal for those whose failures nobody may see."""

    def write(line: dict[str, Any]) -> None:
        try:
            journal.write(line)
        except (OSError, ValueError):
            return

    return write


def _dtype_of(module: torch.nn.Module) -> str | None:
    """The type of all parameters that are floats, None where there are several or none."""
    result = {parameter.dtype for parameter in module.parameters() if parameter.is_floating_point()}
    return str(result.pop()).removeprefix("torch.") if len(result) == 1 else None


def holds_tensor(data: Any) -> bool:
    """Whether encoded arguments hold a tensor."""
    if isinstance(data, dict):
        return "tensor" in data or any(map(holds_tensor, data.values()))
    return isinstance(data, list) and any(map(holds_tensor, data))
