"""aten.one_hot as one node: PyTorch checks its classes, and the comparison of its decomposition does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_OPERATION = torch.ops.aten.one_hot.default
_LIBRARY = torch.library.Library("evokernel_capture", "FRAGMENT")
_LIBRARY.define(str(_OPERATION._schema).removeprefix("aten::"))
MARK = "evokernel_capture.one_hot.default"


def _compared(x: torch.Tensor, num_classes: int) -> torch.Tensor:
    """The values for classes within range, of which there may be none while tracing."""
    return (x.unsqueeze(-1) == torch.arange(num_classes, device=x.device)).to(torch.int64)


_LIBRARY.impl("one_hot", _compared, "CompositeExplicitAutograd")


def rules(fits: Callable[[str], bool]) -> dict[Any, Callable[..., Any]]:
    """How the operation is traced: as one node where it has kernels of its own, by ``fits``."""
    return {_OPERATION: _whole} if fits(str(_OPERATION)) else {}


def _whole(x: torch.Tensor, num_classes: int = -1) -> torch.Tensor:
    """Raises RuntimeError for indices of a type that PyTorch refuses too, and what reading a value raises
    where the number of classes is one more than the largest index."""
    if x.dtype is not torch.int64:
        raise RuntimeError(f"one_hot takes indices of int64, not {x.dtype}")
    classes = int(x.max().item()) + 1 if num_classes == -1 else num_classes
    made: torch.Tensor = torch.ops.evokernel_capture.one_hot(x, classes)
    return made
