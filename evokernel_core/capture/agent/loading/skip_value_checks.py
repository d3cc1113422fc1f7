"""What PyTorch itself reads the values of tensors for, where no shape depends on it.

``trunc_normal_`` draws again until all values lie in its range. Distributions check their arguments and
samples; compilers switch that off, as ``torch.compile`` does, and only there where a file does not ask for
it by ``validate_args=True``. Tensors without values answer neither.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.distributions import Distribution

from ..torch_compat import TRUNCATED, draws_again
from .devices import patched


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
