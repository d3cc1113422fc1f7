"""The state of the process: what the user's code asks of it, and does to it, by calls that take no tensors.

The answer of a question that torch answers quickly can be asked again where the kernel is called. All other
calls of this kind, of clocks, threads, files, random numbers, messages and modes of gradients, are named:
a kernel does not make them.
"""

from __future__ import annotations

import random
import re
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from ..sentence import Sentence
from .code import file_of, is_stdlib, is_workspace
from .guard import CapturedGuard, is_plain, same

_C = "torch._C"
_QUESTION = re.compile(r"(is|are|get|has)_|.*_enabled$|device_count$")
_ACTION = re.compile(r"set_|manual_seed|seed|initial_seed|use_|enable_|disable_|reset_")
_OF_PROCESS = frozenset({"get_num_threads", "get_num_interop_threads", "get_rng_state"})
"""Of these the answer of the process that traces says nothing of the program's."""
_ASKED_ANYWAY = frozenset({
    "get_default_dtype", "is_autocast_enabled", "is_autocast_cpu_enabled", "is_compiling", "is_exporting",
    "is_dynamo_compiling", "is_scripting", "is_tracing", "is_tensor", "is_storage",
})  # fmt: skip
"""Every call of a kernel asks for these, or they ask nothing of the process."""
_DEVICES = (
    "torch.cuda", "torch.cpu", "torch.npu", "torch.xpu", "torch.mps", "torch.mtia", "torch.accelerator",
    "torch.random", "torch.backends", "torch.autograd", "torch.distributed",
)  # fmt: skip
_DECORATING = "torch/utils/_contextlib.py"
"""Calls a function below a decorator that sets a mode."""
_OF_MODES = "torch.autograd.grad_mode"
_OF_TENSORS = frozenset({"requires_grad_", "retain_grad", "register_hook", "backward", "share_memory_"})
_IN_C = {
    "time": "time", "posix": "os", "nt": "os", "_thread": "threading", "_io": "io", "io": "io", "sys": "sys",
    "_warnings": "warnings", "_random": "random", "gc": "gc", "_signal": "signal", "_queue": "queue",
}  # fmt: skip
"""Modules of Python's own that are written in C and ask or change the process, and what they are called."""
_IN_PYTHON = frozenset({
    "random", "threading", "os", "logging", "warnings", "genericpath", "tempfile", "shutil", "glob", "uuid",
    "secrets", "platform", "queue", "multiprocessing", "subprocess", "socket", "signal",
})  # fmt: skip
_WITHOUT_STATE = frozenset({
    "sys.intern", "sys.getsizeof", "os.fspath", "os.fsencode", "os.fsdecode", "os.getenv",
})  # fmt: skip
"""They compute, or the variable of the environment that they read is a guard."""
_BUILTINS = frozenset({"open", "input", "print", "globals"})
_CLOCKS = frozenset({"now", "today", "utcnow"})
_FILES = frozenset({
    "exists", "is_file", "is_dir", "open", "read_text", "read_bytes", "stat", "write_text", "write_bytes",
    "mkdir", "unlink", "iterdir", "glob", "rglob", "touch", "cwd", "home",
})  # fmt: skip


_ANSWERS = {"__instancecheck__": "isinstance", "__subclasscheck__": "issubclass"}


@dataclass(frozen=True, eq=False)
class AskedOfClass:
    """``isinstance(value, kind)``, or the same of a class; ``register`` may change what the answer is."""

    function: str
    value: Any
    kind: type

    @property
    def answer(self) -> bool:
        return bool(isinstance(self.value, self.kind) if self.function == "isinstance"
                    else issubclass(self.value, self.kind))  # fmt: skip


class ProcessCalls:
    """``guards`` ask again what the code asked while it ran; ``problem`` names the first call that no guard
    can stand for, empty where there is none. ``is_outside`` tells whether the code reached an object from
    outside, once that is known."""

    def __init__(self, is_outside: Callable[[Any], bool]) -> None:
        self.guards: dict[CapturedGuard, None] = {}
        self.problem = Sentence()
        self._is_outside = is_outside
        self._changed: list[tuple[Any, str]] = []
        self._modes = 0
        self._left = 0
        self.asked_of_classes: list[AskedOfClass] = []
        """Questions that classes of the user's answered by code of their own, as abstract ones do."""

    def in_c(self, function: Any) -> None:
        """The user's code is about to call a function or a method that is written in C."""
        owner = getattr(function, "__self__", None)
        if isinstance(owner, types.ModuleType):
            self._of_module(owner.__name__, function)
        elif isinstance(owner, torch.Tensor):
            if function.__name__ in _OF_TENSORS:
                self._refuse(f"Tensor.{function.__name__}")
        elif isinstance(owner, type):
            if owner.__module__ == "datetime" and function.__name__ in _CLOCKS:
                self._refuse(f"{owner.__name__}.{function.__name__}")
        elif owner is not None and _changes(owner, function.__name__):
            self._changed.append((owner, f"{type(owner).__name__}.{function.__name__}"))

    def in_python(self, frame: types.FrameType, caller: types.CodeType) -> None:
        """A function of Python's own or of torch begins that code of a ``caller`` has called."""
        module, code = str(frame.f_globals.get("__name__", "")), frame.f_code
        if module == _OF_MODES:
            if is_workspace(caller.co_filename) or caller.co_filename.endswith(_DECORATING):
                self._mode(frame)  # what torch's own code sets, as for values of distributions, it undoes
        elif not is_workspace(caller.co_filename):
            return
        elif module.split(".", maxsplit=1)[0] in ("torch", "torch_npu"):
            if code.co_name in _OF_TENSORS:
                self._refuse(f"Tensor.{code.co_name}")
            else:
                self._of_torch(module, code)
        elif code.co_name in _ANSWERS:
            self._answer(frame)
        elif module == "copy":
            self._changed.append((frame.f_locals.get("x"), f"copy.{code.co_name}"))
        elif is_stdlib(code.co_filename) or code.co_filename.startswith("<frozen"):
            self._of_library(module, code)

    def _answer(self, frame: types.FrameType) -> None:
        """A question of ``isinstance`` or ``issubclass`` that a metaclass of Python's own answers."""
        kind, *others = (frame.f_locals.get(name) for name in frame.f_code.co_varnames[:2])
        if others and isinstance(kind, type) and is_workspace(file_of(kind)):
            asked = AskedOfClass(_ANSWERS[frame.f_code.co_name], others[0], kind)
            if asked not in self.asked_of_classes:
                self.asked_of_classes.append(asked)

    def end(self) -> Sentence:
        """``problem``, when all has run and it is known what the code reached from outside."""
        for owner, name in self._changed:
            if self._is_outside(owner):
                self._refuse(name)
        if self._modes > self._left:
            self._refuse("torch.set_grad_enabled")
        return self.problem

    def _of_module(self, module: str, function: Any) -> None:
        name = function.__name__
        if module == _C:
            self._question_or_action("torch", name, function)
        elif module == "builtins":
            if name in _BUILTINS:
                self._refuse(name)
        elif module in _IN_C and f"{_IN_C[module]}.{name}" not in _WITHOUT_STATE:
            self._refuse(name if name == "open" else f"{_IN_C[module]}.{name}")

    def _of_torch(self, module: str, code: types.CodeType) -> None:
        name = code.co_name
        function = getattr(sys.modules.get(module), name, None)
        if function is None:
            return
        if not code.co_argcount and not code.co_kwonlyargcount:
            self._question_or_action(module, name, function)
        elif _ACTION.match(name):
            if module == "torch" or module.startswith(_DEVICES):
                self._refuse(f"{module}.{name}")
        elif _QUESTION.match(name) and module.startswith(_DEVICES):
            self._refuse(f"{module}.{name}")

    def _question_or_action(self, module: str, name: str, function: Any) -> None:
        if name in _ASKED_ANYWAY:
            return
        path = f"torch.{name}" if getattr(torch, name, None) is function else f"{module}.{name}"
        if _ACTION.match(name) or name in _OF_PROCESS:
            self._refuse(path)
        elif _QUESTION.match(name):
            try:
                answer = function()
            except (TypeError, RuntimeError):
                return  # it asks something of its arguments
            if not is_plain(answer):
                self._refuse(path)
                return
            self.guards.setdefault(CapturedGuard("", same("", f"{path}()", answer).text.replace("{}", "", 1)))

    def _mode(self, frame: types.FrameType) -> None:
        """A mode that was left again does no harm where it only takes gradients away."""
        kind, name = type(frame.f_locals.get("self")).__name__, frame.f_code.co_name
        if kind == "inference_mode" and name == "__enter__":
            self._refuse("torch.inference_mode")
        elif kind == "enable_grad" and name == "__enter__":
            self._refuse("torch.enable_grad")
        elif kind == "set_grad_enabled":
            self._modes += name == "__init__"
            self._left += name == "__exit__"
            if name == "__init__" and frame.f_locals.get("mode"):
                self._refuse("torch.set_grad_enabled")

    def _of_library(self, module: str, code: types.CodeType) -> None:
        name = code.co_name
        short = module.split(".", maxsplit=1)[0]
        if short == "pathlib" and name in _FILES:
            self._refuse(f"Path.{name}")
        elif short in _IN_PYTHON and f"{short}.{name}" not in _WITHOUT_STATE and not name.startswith("<"):
            named = getattr(code, "co_qualname", name)  # of Python 3.11 and later
            self._refuse(f"{'os.path' if short == 'genericpath' else short}.{named}")

    def _refuse(self, name: str) -> None:
        self.problem = self.problem or Sentence(
            "It calls {name}, which asks or changes what lies outside of the call: do that outside.",
            name=name,
        )


_CONTAINERS = {"deque": frozenset({"count", "index", "copy", "__copy__"}), "ContextVar": frozenset({"get"})}
"""Classes in C that hold something, and what asks them only."""


def _changes(owner: Any, name: str) -> bool:
    """Whether a method of an object that is written in C may change it, or gives another answer each time."""
    if isinstance(owner, (random.Random, torch.Generator)):
        return True
    only = _CONTAINERS.get(type(owner).__name__)
    return only is not None and name not in only
