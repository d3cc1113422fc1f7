"""Sizes that a file computes with fractions, such as ``math.ceil(length / stride)``.

One of them stays an expression of the sizes it was computed from. A size computed from such sizes with
fractions again is a number: expressions of expressions take minutes to simplify, and no kernel's contract
says them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.utils._sympy.functions import CeilToInt, FloorToInt, RoundToInt, TruncToInt

from ..loading.devices import patched

_ROUNDED = (CeilToInt, FloorToInt, RoundToInt, TruncToInt)
_METHODS: dict[str, Callable[..., int]] = {
    "__ceil__": math.ceil,
    "__floor__": math.floor,
    "__trunc__": math.trunc,
    "__round__": round,
}


@contextmanager
def rounded_once() -> Iterator[None]:
    """To be entered where sizes are symbols. A number that a size becomes is a condition of the trace."""
    with ExitStack() as patches:
        for name, method in _METHODS.items():
            known = getattr(torch.SymFloat, name)
            patches.enter_context(patched(torch.SymFloat, name, _rounding(known, method)))
        yield


def _rounding(known: Callable[..., Any], method: Callable[..., int]) -> Callable[..., Any]:
    def call(number: Any, *digits: Any) -> Any:
        if number.node.expr.has(*_ROUNDED):
            return method(float(number), *digits)
        return known(number, *digits)

    return call
