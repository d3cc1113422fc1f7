"""Pairs of reductions that one pass over a row computes together, and how many passes a row takes.

The maximum and the sum of a softmax: each lane rescales its sum when its maximum grows. The sum and the
sum of squared deviations of a variance: both are taken of what is left when the mean of the row's first
tile is subtracted (of the lane's, where tiles have several steps). That tile is at least one of T equal
parts of the row, so the mean of the whole lies within sqrt(T - 1) standard deviations of it, and the
difference at the end loses no more digits than a sum of T numbers does.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define, field, frozen

from evokernel_core.compiler.lowering.plan import Plan
from evokernel_core.compiler.lowering.values import Domain, Operand, Value, needed
from evokernel_core.compiler.shapes.sizes import Extent, product


@frozen
class Pair:
    """``first`` is the maximum or the sum of ``source``; ``total`` sums exp(``source`` - ``first``), or
    the squares of what ``source`` is away from its mean. ``is_exposed``: more reads a softmax's maximum,
    powers or sum than the softmax itself, which is not a number in rows of nothing but -inf either way."""

    first: Value
    total: Value
    source: Operand
    is_exposed: bool = False

    @property
    def is_moments(self) -> bool:
        return self.first.op == "reduce_sum"


def online_pairs(plan: Plan) -> tuple[Pair, ...]:
    """The pairs of a plan, none with a reduction of another."""
    pairs: list[Pair] = []
    for total in plan.reductions:
        pair = _softmax_pair(total, plan) or _moments_pair(total, row_length(plan))
        if pair is not None and all(other.first is not pair.first for other in pairs):
            pairs.append(pair)
    return tuple(pairs)


def row_length(plan: Plan) -> Extent:
    """How many elements of a row a reduction takes."""
    if plan.family == "columnwise":
        return plan.mid
    return product((plan.leading, plan.mid, plan.inner)) if plan.family == "piecewise" else plan.inner


def _softmax_pair(total: Value, plan: Plan) -> Pair | None:
    exponential = total.args[0]
    if total.op != "reduce_sum" or not isinstance(exponential, Value) or exponential.op != "exp":
        return None
    shifted = exponential.args[0]
    if not isinstance(shifted, Value) or shifted.op != "sub":
        return None
    source, largest = shifted.args
    if isinstance(largest, Value) and largest.op == "reduce_max" and largest.args[0] is source:
        return Pair(largest, total, source, _is_exposed((largest, shifted, exponential, total), plan))
    return None


def _is_exposed(chain: tuple[Value, Value, Value, Value], plan: Plan) -> bool:
    """Whether a value that is neither of the chain (maximum, difference, power, sum), nor of the operation
    that the sum was lowered from, nor the quotient of power and sum reads one of the chain."""
    *_, exponential, total = chain
    inside = {value.index for value in chain}
    if any(isinstance(output.value, Value) and output.value.index in inside for output in plan.outputs):
        return True
    return any(
        not inside.isdisjoint(arg.index for arg in value.values())
        and value.index not in inside
        and value.origin != total.origin
        and not (value.op == "div" and value.args[0] is exponential and value.args[1] is total)
        for value in plan.values()
    )


def _moments_pair(total: Value, length: Extent) -> Pair | None:
    square = total.args[0]
    if total.op != "reduce_sum" or not isinstance(square, Value) or square.op != "mul":
        return None
    centred = square.args[0]
    if square.args[1] is not centred or not isinstance(centred, Value) or centred.op != "sub":
        return None
    source, mean = centred.args
    whole = _sum_behind_mean(mean, length)
    return Pair(whole, total, source) if whole is not None and whole.args[0] is source else None


def _sum_behind_mean(mean: Operand, length: Extent) -> Value | None:
    """The sum whose product with the reciprocal of the row's length is ``mean``."""
    if not isinstance(mean, Value) or mean.op not in ("mul", "div"):
        return None
    whole, scale = mean.args
    if not isinstance(whole, Value) or whole.op != "reduce_sum":
        return None
    if mean.op == "mul":
        if isinstance(scale, float):
            return whole if length.constant is not None and scale == 1.0 / length.constant else None
        if scale.op != "div" or scale.args[0] != 1.0:
            return None
        scale = scale.args[1]
    is_length = isinstance(scale, Value) and scale.op == "size" and scale.detail == length.cpp()
    return whole if is_length else None


@define
class Levels:
    """After how many passes each value can be known."""

    pairs: Sequence[Pair]
    known: dict[int, int] = field(factory=dict)

    def of(self, operand: Operand) -> int:
        if not isinstance(operand, Value):
            return 0
        for value in needed([operand]):
            if value.index not in self.known:
                self.known[value.index] = self._level(value)
        return self.known[operand.index]

    def _level(self, value: Value) -> int:
        pair = next((pair for pair in self.pairs if pair.total is value), None)
        if pair is not None:
            return self.known[pair.first.index]
        below = max((self.known[arg.index] for arg in value.values()), default=0)
        return below + value.op.startswith("reduce_")


def passes(plan: Plan, online: bool) -> int:
    """How often a row is read: once for each level of reductions, and once to write full rows."""
    levels = Levels(online_pairs(plan) if online else ())
    depth = max((levels.of(value) for value in plan.reductions), default=0)
    return depth + any(output.domain is Domain.FULL for output in plan.outputs)
