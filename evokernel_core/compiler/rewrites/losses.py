"""Losses that pick the score of a class, in terms of comparisons and sums that one kernel fuses."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from evokernel_core.compiler.rewrites.picking import argument, one_hot, pick, producer, view
from evokernel_core.compiler.rewrites.writer import GraphWriter, Rewrite
from evokernel_core.compiler.shapes.sizes import extent
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Node, ValueRef, literal
from evokernel_core.domain.tensor import Dim

_MANY = 512
"""Classes: at one repeat of 64 a cycle, three instructions over them take as long as such a read."""
_MEAN, _SUM = 1, 2
"""PyTorch's numbers of the reductions; 0 is none."""


@frozen
class _Scores:
    """Scores of classes along ``dim`` and the wanted class of each position."""

    writer: GraphWriter
    scores: ValueRef
    target: ValueRef
    dim: int

    @property
    def shape(self) -> tuple[Dim, ...]:
        return self.writer.shape(self.scores)

    @property
    def kept(self) -> tuple[Dim, ...]:
        """The shape of the target."""
        return (*self.shape[: self.dim], *self.shape[self.dim + 1 :])

    @property
    def dtype(self) -> str:
        return self.writer.spec(self.scores).dtype

    @property
    def many(self) -> bool:
        """Whether comparing every class costs more than a read of one element for each position."""
        return extent(self.shape[self.dim]).evaluate(self.writer.sizes) >= _MANY

    def call(self, op: str, *args: ValueRef | float | tuple[int, ...], dtype: str = "") -> ValueRef:
        """An operation whose result has the target's shape."""
        return self.writer.call(f"aten.{op}", *args, shape=self.kept, dtype=dtype or self.dtype)


def _nll_loss(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
    """The loss of each position, and the weights that the mean divides by."""
    scores, target = node.args[0], node.args[1]
    if not isinstance(scores, ValueRef) or not isinstance(target, ValueRef):
        raise PlanError("{op} is called on something that is not a tensor.", op=node.op)
    item = _Scores(writer, scores, target, min(1, len(writer.shape(scores)) - 1))
    valid = item.call("ne.Scalar", target, float(str(argument(node, 4, "ignore_index", -100))), dtype="bool")
    loss = item.call("neg.default", _picked(item))
    weight = argument(node, 2, "weight")
    weights = item.call("_to_copy.default", valid)
    if isinstance(weight, ValueRef):
        weights = item.call("where.ScalarOther", valid, _weight(item, weight), 0.0)
        loss = item.call("mul.Tensor", loss, weights)
    losses = item.call("where.ScalarOther", valid, loss, 0.0)
    return _reduced(item, losses, weights, argument(node, 3, "reduction", _MEAN))


def _picked(scores: _Scores) -> ValueRef:
    """The score of the wanted class. Behind a log-softmax it is taken from what that was computed of."""
    writer, below = scores.writer, producer(scores.writer, scores.scores)
    if below is None or below.op != "aten._log_softmax.default":
        return _pick(scores, scores.scores)
    logits = below.args[0]
    if not isinstance(logits, ValueRef) or literal(below.args[1]) % len(scores.shape) != scores.dim:
        return _pick(scores, scores.scores)
    along, shape = (scores.dim,), scores.shape
    largest = scores.call("amax.default", logits, along)
    row = view(writer, largest, (*shape[: scores.dim], 1, *shape[scores.dim + 1 :]))
    shifted = writer.call("aten.sub.Tensor", logits, row, shape=shape, dtype=scores.dtype)
    exponential = writer.call("aten.exp.default", shifted, shape=shape, dtype=scores.dtype)
    total = scores.call("sum.dim_IntList", exponential, along)
    # The largest score goes first: beside a large one the logarithm would be lost.
    moved = scores.call("sub.Tensor", _pick(scores, logits), largest)
    return scores.call("sub.Tensor", moved, scores.call("log.default", total))


def _pick(item: _Scores, scores: ValueRef) -> ValueRef:
    """Few classes are compared with the target while they are read for something else; of many the
    wanted one is read alone."""
    if not item.many:
        return pick(item.writer, scores, one_hot(item.writer, item.target, item.dim, item.shape), item.dim)
    index = view(item.writer, item.target, (*item.kept[: item.dim], 1, *item.kept[item.dim :]))
    shape = item.writer.shape(index)
    chosen = item.writer.call("aten.gather.default", scores, item.dim, index, shape=shape, dtype=item.dtype)
    return view(item.writer, chosen, item.kept)


def _weight(scores: _Scores, weight: ValueRef) -> ValueRef:
    """The weight of the wanted class."""
    if not scores.many:
        spread = view(
            scores.writer, weight, (scores.shape[scores.dim], *(1,) * (len(scores.shape) - scores.dim - 1))
        )
        return pick(
            scores.writer, spread, one_hot(scores.writer, scores.target, scores.dim, scores.shape), scores.dim
        )
    return scores.writer.call(
        "aten.embedding.default", weight, scores.target, shape=scores.kept, dtype=scores.dtype
    )


def _reduced(scores: _Scores, losses: ValueRef, weights: ValueRef, reduction: object) -> tuple[ValueRef, ...]:
    writer, dtype = scores.writer, scores.dtype
    if reduction not in (_MEAN, _SUM):  # the total is zero then (torch._decomp.decompositions)
        return losses, writer.call("aten.full.default", (), 0.0, shape=(), dtype=dtype)
    total = writer.call("aten.sum.default", weights, shape=(), dtype=dtype)
    loss = writer.call("aten.sum.default", losses, shape=(), dtype=dtype)
    if reduction == _MEAN:
        loss = writer.call("aten.div.Tensor", loss, total, shape=(), dtype=dtype)
    return loss, total


REWRITES: Mapping[str, Rewrite] = {
    "aten.nll_loss_forward.default": _nll_loss,
    "aten.nll_loss2d_forward.default": _nll_loss,
}
