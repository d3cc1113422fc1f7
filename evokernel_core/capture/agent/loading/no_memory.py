"""Tensors of a capture have no memory. Code in C that takes their memory as it is would end this process, and
code that asks where it lies would be told zero: both are errors meanwhile."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NoReturn

import torch
import torch.utils.dlpack
from torch._subclasses.fake_tensor import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor
from torch.distributions import Distribution
from torch.overrides import TorchFunctionMode

from ..torch_compat import TRUNCATED, draws_again
from .devices import patched

CANNOT = "Cannot access data pointer"
"""As PyTorch says it, where it does."""
_TAKING = {
    torch._C: ("_to_dlpack", "_to_dlpack_versioned"),
    torch: ("to_dlpack",),
    torch.utils.dlpack: ("to_dlpack",),
}
"""Functions that no mode hears of."""


def has_memory(value: Any) -> bool:
    """Whether a tensor has elements somewhere."""
    if isinstance(value, (FakeTensor, FunctionalTensor)) or value.is_meta:
        return False
    return not torch._is_functional_tensor(value)


class WithoutMemory(TorchFunctionMode):
    """While it is on, a tensor without memory does not say where that lies."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if getattr(func, "__name__", "") == "data_ptr" and not has_memory(args[0]):
            _refuse()
        return func(*args, **(kwargs or {}))


@contextmanager
def memory_asked() -> Iterator[None]:
    """Functions that take the memory of a tensor raise a RuntimeError for one that has none."""
    with ExitStack() as patches:
        for owner, names in _TAKING.items():
            for name in names:
                if hasattr(owner, name):
                    patches.enter_context(patched(owner, name, _asking(getattr(owner, name))))
        yield


def _asking(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def asked(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(tensor, torch.Tensor) and not has_memory(tensor):
            _refuse()
        return function(tensor, *args, **kwargs)

    return asked


def _refuse() -> NoReturn:
    raise RuntimeError(f"{CANNOT} of a tensor that has no memory")


@contextmanager
def without_values() -> Iterator[None]:
    """Initial values end at once, and lie in the range that was asked for; distributions check nothing."""
    with ExitStack() as patches:
        if draws_again():
            patches.enter_context(patched(torch.nn.init, TRUNCATED, _within))
        patches.enter_context(patched(Distribution, "_validate_args", False))
        yield


def _within(
    tensor: torch.Tensor, mean: float, std: float, a: float, b: float, generator: Any = None
) -> torch.Tensor:
    with torch.no_grad():
        return tensor.uniform_(a, b, generator=generator)
