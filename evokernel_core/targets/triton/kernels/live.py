"""How many tiles a text has alive at once, for devices whose tiles all lie in one buffer.

A count of the same kind over what a compiler makes of the text is in ``backends/live_tiles.py``.
"""

from __future__ import annotations

from evokernel_core.compiler.lowering.plan import Plan
from evokernel_core.compiler.lowering.values import Value

_OTHER = 3
"""Beside those of values: of indices, masks and conversions (assumed)."""
_ACCUMULATED = 2
"""Of a reduction: what a loop carries, and what it becomes in a step."""


def live_tiles(plan: Plan) -> int:
    """Tiles of float32 of a plan's own shape that are alive at once."""
    order = plan.values()
    begun = {value.index: place for place, value in enumerate(order)}
    last = begun | {operand.index: place for place, value in enumerate(order) for operand in value.values()}
    last |= {one.value.index: len(order) for one in plan.outputs if isinstance(one.value, Value)}
    spans = [(begun[value.index], last[value.index]) for value in order if value.op not in _SCALARS]
    most = max((sum(first <= place <= end for first, end in spans) for place in range(len(order))), default=1)
    return most + _OTHER + _ACCUMULATED * len(plan.reductions)


_SCALARS = frozenset({"scalar", "size"})
"""Values that are one number."""
