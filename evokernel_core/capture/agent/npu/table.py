"""The documented functions of ``torch_npu``, by name, for traces where no NPU runs them.

Each entry is a composition of PyTorch with the signature, the outputs and the dtypes of the public
documentation, named in its docstring: pages of Ascend's PyTorch documentation, "Custom APIs" (op-plugin,
docs/zh/custom_APIs), unless it names another. Types of 16 bits are computed in float32 and rounded once, as
the fused kernels do. The table serves captures and tests only: a person's program never sees it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import torch

TABLE: dict[str, Callable[..., Any]] = {}
"""The compositions by the name that ``torch_npu`` and ``torch.ops.npu`` give the function."""

_HALF = (torch.float16, torch.bfloat16)


class OutsideTable(Exception):
    """A call whose arguments ask for what no composition says; ``results`` are tensors like its results,
    where the documentation tells their shapes."""

    def __init__(self, what: str, results: tuple[torch.Tensor, ...] = ()) -> None:
        super().__init__(what)
        self.results = results


def documented(function: Callable[..., Any]) -> Callable[..., Any]:
    """Enters a composition into the table. The schemas of ``torch.ops.npu`` call a first ``input`` "self"."""
    first = next(iter(inspect.signature(function).parameters))

    @functools.wraps(function)
    def composed(*args: Any, **kwargs: Any) -> Any:
        if first == "input" and "self" in kwargs:
            kwargs["input"] = kwargs.pop("self")
        return function(*args, **kwargs)

    TABLE[function.__name__] = composed
    return composed


def outside(**given: Any) -> None:
    """Raises OutsideTable where one of these arguments is given, and neither zero nor empty."""
    for name, value in given.items():
        if isinstance(value, torch.Tensor) or value:
            raise OutsideTable(f"{name} is given")


def wide(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor in the type that the fused kernels compute in."""
    return tensor.float() if tensor.dtype in _HALF else tensor


def rounded(tensor: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """The tensor in the type of another."""
    return tensor.to(like.dtype)
