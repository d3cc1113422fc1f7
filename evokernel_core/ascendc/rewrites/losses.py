"""Losses that pick the score of a class, in terms of comparisons and sums that one kernel fuses."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from evokernel_core.ascendc.rewrites.picking import argument, one_hot, pick, producer, view
from evokernel_core.ascendc.rewrites.writer import GraphWriter, Rewrite
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Node, ValueRef
from evokernel_core.domain.tensor import Dim

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

    def call(self, op: str, *args: ValueRef | float, dtype: str = "") -> ValueRef:
        """An element-wise operation on values of the target's shape."""
        return self.writer.call(f"aten.{op}", *args, shape=self.kept, dtype=dtype or self.dtype)


def _nll_loss(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
    """The loss of each position, and the weights that the mean divides by."""
    scores, target = node.args[0], node.args[1]
    if not isinstance(scores, ValueRef) or not isinstance(target, ValueRef):
        raise PlanError(f"{node.op} is called on something that is not a tensor.")
    item = _Scores(writer, scores, target, min(1, len(writer.shape(scores)) - 1))
    mask = one_hot(writer, target, item.dim, item.shape)
    valid = item.call("ne.Scalar", target, float(str(argument(node, 4, "ignore_index", -100))), dtype="bool")
    loss = item.call("neg.default", _picked(item, mask))
    weight = argument(node, 2, "weight")
    weights = item.call("_to_copy.default", valid)
    if isinstance(weight, ValueRef):
        spread = view(writer, weight, (item.shape[item.dim], *(1,) * (len(item.shape) - item.dim - 1)))
        weights = item.call("where.ScalarOther", valid, pick(writer, spread, mask, item.dim), 0.0)
        loss = item.call("mul.Tensor", loss, weights)
    losses = item.call("where.ScalarOther", valid, loss, 0.0)
    return _reduced(item, losses, weights, argument(node, 3, "reduction", _MEAN))


def _picked(item: _Scores, mask: ValueRef) -> ValueRef:
    """The score of the wanted class. Behind a log-softmax it is taken from what that was computed of, so
    that both are sums over the same elements."""
    writer, below = item.writer, producer(item.writer, item.scores)
    if below is None or below.op != "aten._log_softmax.default":
        return pick(writer, item.scores, mask, item.dim)
    logits = below.args[0]
    if not isinstance(logits, ValueRef) or int(str(below.args[1])) % len(item.shape) != item.dim:
        return pick(writer, item.scores, mask, item.dim)
    total = item.call("logsumexp.default", logits, (item.dim,))  # type: ignore[arg-type]
    return item.call("sub.Tensor", pick(writer, logits, mask, item.dim), total)


def _reduced(item: _Scores, losses: ValueRef, weights: ValueRef, reduction: object) -> tuple[ValueRef, ...]:
    writer, dtype = item.writer, item.dtype
    total = writer.call("aten.sum.default", weights, shape=(), dtype=dtype)
    if reduction not in (_MEAN, _SUM):
        return losses, total
    loss = writer.call("aten.sum.default", losses, shape=(), dtype=dtype)
    if reduction == _MEAN:
        loss = writer.call("aten.div.Tensor", loss, total, shape=(), dtype=dtype)
    return loss, total


REWRITES: Mapping[str, Rewrite] = {
    "aten.nll_loss_forward.default": _nll_loss,
    "aten.nll_loss2d_forward.default": _nll_loss,
}
