"""Arithmetic on whole numbers that surely are small, such as positions and distances of positions.

Vector cores compute in float32, which holds whole numbers up to 2**24 exactly. Where bounds show that
every value on the way is one of those, integers are computed there and become integers again at the end.
Integers that a call is given have no bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from attrs import evolve, frozen

from evokernel_core.compiler.lowering.integers import INTEGERS
from evokernel_core.compiler.ops import IOTA
from evokernel_core.compiler.rewrites.picking import argument, as_arg
from evokernel_core.compiler.rewrites.writer import GraphWriter, rewritten
from evokernel_core.compiler.shapes.sizes import extent
from evokernel_core.compiler.shapes.views import BROADCASTS, SAME_ORDER
from evokernel_core.domain.graph import Arg, Node, ValueRef
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.legalization.wide import WIDTHS

_EXACT = 1 << 24
MOST_POSITIONS = 1 << 20
"""Positions are counted up to here; the kernel that makes them refuses more."""
_MOVES = frozenset((
    *SAME_ORDER, *BROADCASTS, "aten.permute.default", "aten.transpose.int", "aten.t.default",
    "aten.slice.Tensor", "aten.select.int",
))  # fmt: skip
_ORDERS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))
_FILLS = {"full": None, "full_like": None, "zeros": 0, "zeros_like": 0, "ones": 1, "ones_like": 1,
          "scalar_tensor": None}  # fmt: skip


@frozen
class _Whole:
    """Whole numbers in float32 from ``low`` to ``high``; a number stands for itself. Bounds that are not
    finite are those of numbers that float32 had before they became whole: it holds them, however large.
    What was not finite has no whole number: PyTorch gives one or another for it on each device."""

    value: ValueRef | int
    low: float
    high: float


def integers_in_float32(task: KernelTask, chip: Chip) -> KernelTask:
    """The task with float32 arithmetic in place of that on integers with known bounds."""
    if not any(spec.dtype in INTEGERS for node in task.graph.nodes for spec in node.outputs):
        return task
    rewriter = _Rewriter()
    return rewritten(task, {node.op: rewriter for node in task.graph.nodes}, chip)


class _Rewriter:
    """Rewrites node by node; ``_known`` has the float32 values of integers with bounds, ``_ranges`` the
    bounds of finite numbers computed from those."""

    def __init__(self) -> None:
        self._known: dict[ValueRef, _Whole] = {}
        self._ranges: dict[ValueRef, tuple[float, float]] = {}
        self._writing = False

    def __call__(self, node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
        if self._writing:
            return None
        self._writing = True
        try:
            result = self._rewrite(node, writer)
        finally:
            self._writing = False
        return None if result is None else (result,)

    def _rewrite(self, node: Node, writer: GraphWriter) -> ValueRef | None:
        packet = node.op.split(".")[1]
        if len(node.outputs) != 1 or not node.op.startswith("aten."):
            return None
        if packet in _ORDERS:
            return self._compare(node, writer)
        if packet == "_to_copy" and node.outputs[0].dtype not in INTEGERS:
            return self._as_float(node, writer)
        if node.outputs[0].dtype not in INTEGERS:
            self._note_range(node, packet)
            return None
        whole = self._whole(node, packet, writer)
        if whole is None or not isinstance(whole.value, ValueRef):
            return None
        spec = node.outputs[0]
        result = writer.call("aten._to_copy.default", whole.value, shape=spec.shape, dtype=spec.dtype)
        self._known[result] = whole
        return result

    def _whole(self, node: Node, packet: str, writer: GraphWriter) -> _Whole | None:
        """The result of a node with integer results, None where its bounds are not known."""
        if packet == "_to_copy":
            return self._cast(node, writer)
        if packet == "arange":
            return _positions(node, writer)
        if packet in _FILLS:
            return _filled(node, _FILLS[packet], writer)
        if node.op in _MOVES:
            source = self._operand(node.args[0], writer)
            if source is None or not isinstance(source.value, ValueRef):
                return None
            return evolve(source, value=_as(node, writer, node.op, source.value, *node.args[1:]))
        rule = _RULES.get(packet)
        return rule(node, self._operand, writer) if rule else None

    def _operand(self, arg: Arg, writer: GraphWriter) -> _Whole | None:
        if isinstance(arg, bool | int):
            return _Whole(int(arg), int(arg), int(arg))
        if not isinstance(arg, ValueRef):
            return None
        if writer.spec(arg).dtype == "bool":
            shape = writer.shape(arg)
            number = writer.call("aten._to_copy.default", arg, shape=shape, dtype="float32")
            return _Whole(number, 0, 1)
        return self._known.get(arg)

    def _cast(self, node: Node, writer: GraphWriter) -> _Whole | None:
        source = node.args[0]
        if not isinstance(source, ValueRef):
            return None
        if writer.spec(source).dtype != "float32":
            return self._operand(source, writer)
        low, high = self._ranges.get(source, (-math.inf, math.inf))
        return _Whole(_as(node, writer, "aten.trunc.default", source), _floor(low), -_floor(-high))

    def _as_float(self, node: Node, writer: GraphWriter) -> ValueRef | None:
        known = self._known.get(node.args[0]) if isinstance(node.args[0], ValueRef) else None
        if known is None or not isinstance(known.value, ValueRef):
            return None
        spec = node.outputs[0]
        if spec.dtype in WIDTHS:  # which wraps around
            return None
        if spec.dtype == "float32":
            self._ranges[known.value] = (known.low, known.high)
            return known.value
        return writer.call("aten._to_copy.default", known.value, shape=spec.shape, dtype=spec.dtype)

    def _note_range(self, node: Node, packet: str) -> None:
        source = node.args[0] if node.args else None
        range_ = self._ranges.get(source) if isinstance(source, ValueRef) else None
        rule = _MONOTONE.get(packet)
        number = node.args[1] if len(node.args) > 1 else 0
        if range_ is None or rule is None or node.kwargs or not isinstance(number, int | float):
            return
        ends = [rule(end, float(number)) for end in range_]
        if not any(map(math.isnan, ends)):
            self._ranges[ValueRef(node.name)] = (min(ends), max(ends))

    def _compare(self, node: Node, writer: GraphWriter) -> ValueRef | None:
        if not any(isinstance(arg, ValueRef) and arg in self._known for arg in node.args):
            return None
        given = [self._operand(arg, writer) for arg in node.args[:2]]
        left, right = given
        if left is None or right is None:
            return None
        spec = node.outputs[0]
        return writer.call(node.op, left.value, right.value, shape=spec.shape, dtype="bool")


_LEAST_LOG = -104.0
"""The logarithm of the smallest number above zero of float32."""


def _log(x: float, _: float) -> float:
    return max(math.log(x), _LEAST_LOG) if x > 0 else _LEAST_LOG


_MONOTONE: Mapping[str, Callable[[float, float], float]] = {
    "mul": lambda x, number: x * number,
    "div": lambda x, number: x / number if number else math.nan,
    "add": lambda x, number: x + number,
    "sub": lambda x, number: x - number,
    "log": _log,
}
"""Operations that keep or turn the order of numbers, by what they make of the ends of a range."""


def _floor(x: float) -> float:
    return float(math.floor(x)) if math.isfinite(x) else x


_Operand = Callable[[Arg, GraphWriter], _Whole | None]
_Rule = Callable[[Node, _Operand, GraphWriter], _Whole | None]


def _as(node: Node, writer: GraphWriter, op: str, *args: Arg) -> ValueRef:
    """An operation in float32 with a result of the node's shape."""
    return writer.call(op, *args, shape=node.outputs[0].shape, dtype="float32")


def _positions(node: Node, writer: GraphWriter) -> _Whole | None:
    start, step = node.args[0], argument(node, 2, "step", 1)
    if node.op != "aten.arange.start_step" or not isinstance(start, int) or not isinstance(step, int):
        return None
    count = extent(node.outputs[0].shape[0]).constant
    ends = (start, start + step * count) if count is not None else (-MOST_POSITIONS, MOST_POSITIONS)
    if max(abs(start), *map(abs, ends)) > MOST_POSITIONS:
        return None
    value = _as(node, writer, IOTA.name, start, step, MOST_POSITIONS)
    if count is None and step > 0:
        ends = (start, MOST_POSITIONS)
    return _Whole(value, min(ends), max(ends))


def _filled(node: Node, number: int | None, writer: GraphWriter) -> _Whole | None:
    given = argument(node, 0 if "scalar_tensor" in node.op else 1, "fill_value") if number is None else number
    if not isinstance(given, bool | int) or abs(given) > _EXACT:
        return None
    shape = node.outputs[0].shape
    return _Whole(
        _as(node, writer, "aten.full.default", tuple(map(as_arg, shape)), float(given)), given, given
    )


def _pairwise(bounds_of: Callable[[_Whole, _Whole], Sequence[float]], *, exact: bool = True) -> _Rule:
    """The operation itself on two operands; ``bounds_of`` gives the ends of its results, which have to be
    ``exact`` in float32 where it makes new numbers."""

    def rule(node: Node, operand: _Operand, writer: GraphWriter) -> _Whole | None:
        left, right = (operand(arg, writer) for arg in node.args[:2])
        if left is None or right is None or argument(node, 2, "alpha", 1) != 1:
            return None
        bounds = bounds_of(left, right)
        if exact and not all(abs(bound) <= _EXACT for bound in bounds):
            return None
        return _Whole(_as(node, writer, node.op, left.value, right.value), min(bounds), max(bounds))

    return rule


def _products(left: _Whole, right: _Whole) -> list[float]:
    return [a * b for a in (left.low, left.high) for b in (right.low, right.high)]


def _negative(node: Node, operand: _Operand, writer: GraphWriter) -> _Whole | None:
    source = operand(node.args[0], writer)
    if source is None:
        return None
    return _Whole(_as(node, writer, node.op, source.value), -source.high, -source.low)


def _absolute(node: Node, operand: _Operand, writer: GraphWriter) -> _Whole | None:
    source = operand(node.args[0], writer)
    if source is None:
        return None
    low = max(source.low, -source.high, 0)
    return _Whole(_as(node, writer, node.op, source.value), low, max(abs(source.low), abs(source.high)))


def _extreme(choose: Callable[..., float]) -> _Rule:
    return _pairwise(
        lambda left, right: (choose(left.low, right.low), choose(left.high, right.high)), exact=False
    )


def _clamp(node: Node, operand: _Operand, writer: GraphWriter) -> _Whole | None:
    source = operand(node.args[0], writer)
    least, most = argument(node, 1, "min"), argument(node, 2, "max")
    if source is None or not isinstance(least, int | None) or not isinstance(most, int | None):
        return None
    low, high = source.low, source.high
    if least is not None:
        low, high = max(low, least), max(high, least)
    if most is not None:
        low, high = min(low, most), min(high, most)
    return _Whole(_as(node, writer, "aten.clamp.default", source.value, least, most), low, high)


def _where(node: Node, operand: _Operand, writer: GraphWriter) -> _Whole | None:
    left, right = (operand(arg, writer) for arg in node.args[1:3])
    if left is None or right is None:
        return None
    value = _as(node, writer, node.op, node.args[0], left.value, right.value)
    return _Whole(value, min(left.low, right.low), max(left.high, right.high))


_RULES: Mapping[str, _Rule] = {
    "add": _pairwise(lambda left, right: (left.low + right.low, left.high + right.high)),
    "sub": _pairwise(lambda left, right: (left.low - right.high, left.high - right.low)),
    "rsub": _pairwise(lambda left, right: (right.low - left.high, right.high - left.low)),
    "mul": _pairwise(_products),
    "neg": _negative,
    "abs": _absolute,
    "minimum": _extreme(min),
    "maximum": _extreme(max),
    "clamp_max": _extreme(min),
    "clamp_min": _extreme(max),
    "clamp": _clamp,
    "where": _where,
}
"""By operation, its result and the bounds of it."""
