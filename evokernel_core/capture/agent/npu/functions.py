"""Every function of the table by name, and what answers for the names that it lacks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from . import activations, attention, experts, norms, opaque, products, quantization, rotary, tensors
from .table import TABLE, OutsideTable

FILES = (activations, attention, experts, norms, products, quantization, rotary, tensors)
_OPERATIONS = ("npu_", "_npu_")
"""How names of operations begin; others, as those of settings, are asked for by programs to see whether
they are there."""


called: set[str] = set()
"""The names of operations that this process has called since somebody cleared it."""


@functools.cache
def function(name: str) -> Callable[..., Any] | None:
    """What stands for ``torch_npu.<name>`` in a trace; None where that is no operation."""
    composed = TABLE.get(name)
    if composed is None and not name.startswith(_OPERATIONS):
        return None

    @functools.wraps(composed or opaque.call)
    def traced(*args: Any, **kwargs: Any) -> Any:
        called.add(name)
        if composed is None:
            return opaque.call(name, args, kwargs)
        try:
            return composed(*args, **kwargs)
        except OutsideTable as error:
            return opaque.call(name, args, kwargs, error.results)

    traced.__name__ = traced.__qualname__ = name
    traced.default = traced  # type: ignore[attr-defined] # as overloads of torch.ops are named
    return traced
