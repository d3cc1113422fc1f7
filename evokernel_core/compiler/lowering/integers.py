"""Integers in a kernel: what float32, which all numbers pass through, computes with them exactly."""

from __future__ import annotations

from collections.abc import Sequence

from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Node

INTEGERS = frozenset({"int32", "int64"})
SHORT = frozenset({"int16", "int8", "uint8"})
"""Integers that float32 holds exactly."""
COUNTS = frozenset({"aten._to_copy.default"})
"""Operations that may have integer results: those are whole numbers of float32 that nothing rounds."""
_EXACT = 1 << 24
"""Up to here float32 has every whole number. Rounding keeps order, so that a comparison with such a
number is right for any integer."""
ORDERS = ("eq", "ne", "lt", "le", "gt", "ge")


def check_integers(node: Node, operands: Sequence[str]) -> None:
    """Raises PlanError where float32 may not hold what PyTorch computes in integers; ``operands`` are
    the dtypes of the node's operands."""
    packet = node.op.split(".")[1]
    dtype = node.outputs[0].dtype
    if node.op in COUNTS and dtype in INTEGERS and operands[0] in INTEGERS:
        raise PlanError(
            "{op} keeps {operand}, which float32 does not hold exactly.", op=node.op, operand=operands[0]
        )
    if node.op in COUNTS and dtype in SHORT and operands[0] in INTEGERS | SHORT:
        raise PlanError(
            "{op} of {operand} to {dtype} wraps around, which float32 does not.",
            op=node.op,
            operand=operands[0],
            dtype=dtype,
        )
    if packet in ORDERS and all(dtype in INTEGERS for dtype in operands):
        numbers = [arg for arg in node.args if isinstance(arg, int | float)]
        if not any(abs(number) < _EXACT for number in numbers):
            raise PlanError(
                "{op} compares {operand} tensors, which float32 cannot do exactly.",
                op=node.op,
                operand=operands[0],
            )
