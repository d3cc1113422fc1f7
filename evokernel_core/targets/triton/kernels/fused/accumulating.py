"""Reductions that a loop over steps makes together, so that data are read once for several of them.

A softmax has its maximum and its sum of exponentials side by side: sums are rescaled where a maximum grows
(Milakov and Gimelshein, arXiv 1805.02867). A sum and the sum of squares about its mean go side by side by
Welford's method. Both hold one number for each lane of the tile until the loop ends.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from evokernel_core.compiler.lowering.plan import Plan
from evokernel_core.compiler.lowering.values import Domain, Value


@frozen
class LoopPair:
    """``first`` and ``second`` are accumulated in one loop. ``mean``: of Welford's, the value between them,
    computed of the first behind the loop; None for a maximum and the sum of exponentials below it."""

    first: Value
    second: Value
    mean: Value | None = None


def passes(plan: Plan) -> list[tuple[list[Value], list[LoopPair]]]:
    """What each loop over the steps accumulates: reductions by themselves, and pairs."""
    levels = levels_of(plan)
    pairs = {pair.second.index: pair for pair in _pairs(plan, levels)}
    firsts = {pair.first.index for pair in pairs.values()}
    result = []
    for level in range(1, max(levels.values(), default=0) + 1):
        here = [value for value in plan.reductions if levels[value.index] == level]
        alone = [value for value in here if value.index not in pairs and value.index not in firsts]
        begun = [pair for pair in pairs.values() if levels[pair.first.index] == level]
        if alone or begun:
            result.append((alone, begun))
    return result


def count(plan: Plan) -> int:
    """How often the points are gone over where they are not kept."""
    return len(passes(plan)) + any(output.domain is Domain.FULL for output in plan.outputs)


def levels_of(plan: Plan) -> dict[int, int]:
    """How many reductions lie one in another, up to each value."""
    levels: dict[int, int] = {}
    for value in plan.values():
        below = max((levels[operand.index] for operand in value.values()), default=0)
        levels[value.index] = below + value.op.startswith("reduce_")
    return levels


def _pairs(plan: Plan, levels: dict[int, int]) -> Iterator[LoopPair]:
    taken: set[int] = set()
    for value in plan.reductions:
        pair = _of_maximum(value) or _of_mean(value)
        if pair is None or pair.first.index in taken or levels[value.index] != levels[pair.first.index] + 1:
            continue
        taken.add(pair.first.index)
        yield pair


def _of_maximum(total: Value) -> LoopPair | None:
    """A sum of exp(x - max(x))."""
    power = _operand(total, "reduce_sum", 0)
    apart = power and _operand(power, "exp", 0)
    maximum = apart and _unwidened(_operand(apart, "sub", 1))
    if apart is None or maximum is None or maximum.op != "reduce_max" or maximum.args[0] is not apart.args[0]:
        return None
    return LoopPair(maximum, total)


def _of_mean(squares: Value) -> LoopPair | None:
    """A sum of (x - mean)**2, where the mean is a multiple of the sum of x."""
    square = _operand(squares, "reduce_sum", 0)
    apart = square and _operand(square, "mul", 0)
    if square is None or apart is None or square.args[1] is not apart:
        return None
    mean = _unwidened(_operand(apart, "sub", 1))
    if mean is None or mean.op not in ("mul", "div"):
        return None
    total = mean.args[0]
    if not isinstance(total, Value) or total.op != "reduce_sum" or total.args[0] is not apart.args[0]:
        return None
    return LoopPair(total, squares, mean)


def _operand(value: Value, op: str, place: int) -> Value | None:
    operand = value.args[place] if value.op == op else None
    return operand if isinstance(operand, Value) else None


def _unwidened(value: Value | None) -> Value | None:
    while value is not None and value.op == "widen":
        value = _operand(value, "widen", 0)
    return value
