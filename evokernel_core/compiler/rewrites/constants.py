"""Values that are one number everywhere, whatever makes them."""

from __future__ import annotations

from evokernel_core.compiler.rewrites.picking import producer
from evokernel_core.compiler.rewrites.writer import GraphWriter
from evokernel_core.compiler.shapes.views import BROADCASTS, SAME_ORDER
from evokernel_core.domain.graph import ValueRef

_MOVES = frozenset((*SAME_ORDER, *BROADCASTS, "aten._to_copy.default", "aten.permute.default"))
_FILLS = {"zeros": 0, "zeros_like": 0, "ones": 1, "ones_like": 1}
_GIVEN = frozenset({"full", "full_like"})


def number_everywhere(writer: GraphWriter, ref: ValueRef) -> bool | int | float | None:
    """The number that all elements of a value are, None where they may differ."""
    below = producer(writer, ref)
    while below is not None and below.op in _MOVES:
        operand = next(iter(below.operands()), None)
        below = None if operand is None else producer(writer, operand)
    if below is None or not below.op.startswith("aten."):
        return None
    packet = below.op.split(".")[1]
    given = below.args[1] if packet in _GIVEN else _FILLS.get(packet)
    return given if isinstance(given, bool | int | float) else None
