"""Let code that names an accelerator run where there is none: shapes and dtypes do not depend on it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
import torch.utils.checkpoint
from torch.overrides import TorchFunctionMode

from ..stand_ins import stands_for
from . import npu

_ACCELERATOR = re.compile(r"(cuda|npu|xpu|hpu|mps|privateuseone)(:\d+)?")
_MOVES = ("cuda", "npu", "xpu", "hpu")


def learn_npu() -> None:
    """Without torch_npu, "npu" is no device to torch: give its reserved device that name."""
    if not npu.installed() and torch._C._get_privateuse1_backend_name() != "npu":
        torch.utils.rename_privateuse1_backend("npu")


def _to_host(value: Any) -> Any:
    if not isinstance(value, (str, torch.device)) or not _ACCELERATOR.fullmatch(str(value)):
        return value
    _note_npu(str(value).partition(":")[0])
    return "cpu" if isinstance(value, str) else torch.device("cpu")


def _note_npu(name: str) -> None:
    if name in ("npu", "privateuseone"):
        npu.asked.note()


class _HostMode(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if (name := getattr(func, "__name__", "")) in _MOVES:
            _note_npu(name)
            return args[0]
        args = tuple(_to_host(value) for value in args)
        return func(*args, **{name: _to_host(value) for name, value in (kwargs or {}).items()})


@contextmanager
def on_host() -> Iterator[None]:
    """Everything that would go to an accelerator stays on the CPU, and modules can be converted."""
    learn_npu()
    module = torch.nn.Module
    to = module.to

    def to_host(self: Any, *args: Any, **kwargs: Any) -> Any:
        moved = {name: _to_host(value) for name, value in kwargs.items()}
        return to(self, *(_to_host(value) for value in args), **moved)

    with ExitStack() as patches:
        patches.enter_context(npu.stand_in())
        patches.enter_context(patched(module, "to", to_host))
        patches.enter_context(patched(module, "_apply", _apply))
        patches.enter_context(patched(torch.utils.checkpoint, "checkpoint", _checkpoint))
        for name in _MOVES:
            patches.enter_context(patched(module, name, _staying(name)))
            if not hasattr(torch.Tensor, name):
                patches.enter_context(patched(torch.Tensor, name, _staying(name)))
        patches.enter_context(_HostMode())
        yield


_OF_CHECKPOINT = frozenset({
    "use_reentrant", "context_fn", "determinism_check", "debug", "early_stop", "preserve_rng_state",
})  # fmt: skip
"""The arguments that are not the function's own."""


def _checkpoint(function: Any, *args: Any, **kwargs: Any) -> Any:
    """torch.utils.checkpoint without what it keeps for a backward pass, such as an accelerator's state."""
    return function(*args, **{name: value for name, value in kwargs.items() if name not in _OF_CHECKPOINT})


def _staying(name: str) -> Callable[..., Any]:
    """The method that would move something to the accelerator of that name."""

    def stay(self: Any, *args: Any, **kwargs: Any) -> Any:
        _note_npu(name)
        return self

    return stay


def _apply(self: Any, function: Any, recurse: bool = True) -> Any:
    """Module._apply with new parameters: torch's own swaps tensors, which fake ones do not allow."""
    if recurse:
        for child in self.children():
            child._apply(function)
    for name, value in self._parameters.items():
        if value is not None:
            self._parameters[name] = torch.nn.Parameter(function(value.detach()), value.requires_grad)
    for name, value in self._buffers.items():
        if value is not None:
            self._buffers[name] = function(value)
    return self


@contextmanager
def patched(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Another value, which stands for the one that was there, for an attribute of a class or module, until
    the end."""
    if name in owner.__dict__:
        stands_for(value, owner.__dict__[name])
    with npu.replaced(owner, name, value):
        yield
