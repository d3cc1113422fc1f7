"""Initial values of parameters, which no shape depends on.

``trunc_normal_`` draws again until all values lie in its range, and reads them to know: tensors without
values never tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

_DRAWS = "_no_grad_trunc_normal_"  # what trunc_normal_ calls, under whatever name a file imported it


@contextmanager
def initial_values() -> Iterator[None]:
    """Lets ``trunc_normal_`` end at once; its values lie in the range that it was asked for."""
    initialisers: Any = torch.nn.init
    before = getattr(initialisers, _DRAWS, None)
    if before is None:  # another version of torch
        yield
        return
    setattr(initialisers, _DRAWS, _within)
    try:
        yield
    finally:
        setattr(initialisers, _DRAWS, before)


def _within(
    tensor: torch.Tensor, mean: float, std: float, a: float, b: float, generator: Any = None
) -> torch.Tensor:
    with torch.no_grad():
        return tensor.uniform_(a, b, generator=generator)
