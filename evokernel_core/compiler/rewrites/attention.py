"""Attention written as two matrix products around a softmax becomes one operation; its masks are added."""

from __future__ import annotations

import math
from collections.abc import Mapping

from attrs import evolve, frozen

from evokernel_core.compiler.aten import ATTENTION, BOTTOM_RIGHT
from evokernel_core.compiler.rewrites.attention_masks import Causal, causal_mask, without_guard
from evokernel_core.compiler.rewrites.wide_attention import WIDEST, in_parts
from evokernel_core.compiler.rewrites.writer import GraphWriter, Rewrite, rewritten
from evokernel_core.compiler.shapes.sizes import extent
from evokernel_core.compiler.shapes.views import BROADCASTS, SAME_ORDER
from evokernel_core.domain.graph import Arg, DTypeArg, Graph, Node, ValueRef, literal
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import Dim, TensorSpec
from evokernel_core.hardware.device import Device

_PRODUCT = "aten.bmm.default"


@frozen
class _Scores:
    """softmax(query @ turned_key * scale + mask), where ``causal`` hides the keys behind a query. The mask
    broadcasts to ``masked``, which is the shape of the scores where it is added.
    ``is_guarded``: a row that sees no key is zero."""

    query: ValueRef
    turned_key: ValueRef
    scale: float
    mask: ValueRef | None
    causal: Causal | None
    is_guarded: bool
    masked: tuple[Dim, ...] = ()


def recognise_attention(task: KernelTask, device: Device) -> KernelTask:
    """The task with one node for each product of a softmax over scaled scores that nothing else reads."""
    search = _Search(task.graph)
    result = {
        node.name: scores
        for node in task.graph.nodes
        if (scores := search.scores_of(node)) is not None and _fits(scores, node, task)
    }
    if not result:
        return task

    def rewrite(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
        scores = result.get(node.name)
        return None if scores is None else (_attention(node, scores, writer),)

    return rewritten(task, {_PRODUCT: rewrite}, device)


def _fits(scores: _Scores, node: Node, task: KernelTask) -> bool:
    """Whether one kernel holds the values where keys are aligned with the last query: only it knows how."""
    width = extent(node.outputs[0].shape[-1]).evaluate(task.sizes)
    return scores.causal is not Causal.BOTTOM_RIGHT or width <= WIDEST


def _attention(node: Node, scores: _Scores, writer: GraphWriter) -> ValueRef:
    """[batch, queries, depth] x [batch, keys, depth] x [batch, keys, width] of the product's operands."""
    _, value = node.operands()
    batch, depth, keys = writer.shape(scores.turned_key)
    dtype = node.outputs[0].dtype
    key = writer.call("aten.transpose.int", scores.turned_key, 1, 2, shape=(batch, keys, depth), dtype=dtype)
    queries = writer.shape(scores.query)[1]
    mask = scores.mask and _mask_of_matrices(scores.mask, scores.masked, (batch, queries, keys), writer)
    aligned = {BOTTOM_RIGHT: True} if scores.causal is Causal.BOTTOM_RIGHT else {}
    return writer.call(
        ATTENTION, scores.query, key, value, mask, 0.0, scores.causal is not None,
        scale=scores.scale, shape=node.outputs[0].shape, dtype=dtype, **aligned,
    )  # fmt: skip


def _mask_of_matrices(
    mask: ValueRef, masked: tuple[Dim, ...], shape: tuple[Dim, ...], writer: GraphWriter
) -> ValueRef:
    """The mask with one batch dimension, as the products have it, where scores have several."""
    if len(masked) <= len(shape):
        return mask
    spread = writer.call("aten.expand.default", mask, masked, shape=masked, dtype="float32")
    return writer.call("aten.view.default", spread, shape, shape=shape, dtype="float32")


class _Search:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._nodes = {node.name: node for node in graph.nodes}
        self._readers: dict[str, int] = {ref.name: 1 for ref in graph.outputs}
        for node in graph.nodes:
            for ref in node.operands() if not node.op.endswith("_like.default") else ():
                self._readers[ref.name] = self._readers.get(ref.name, 0) + 1

    def scores_of(self, product: Node) -> _Scores | None:
        """What the left operand of a product of matrices weighs, None where it is no softmax of scores."""
        if product.op != _PRODUCT:
            return None
        weights = self._under_views(product.args[0])
        softmax = weights and without_guard(weights, self._nodes)
        if weights is None or softmax is None or softmax.op != "aten._softmax.default" or softmax.args[2]:
            return None
        rank, is_guarded = len(softmax.outputs[0].shape), softmax is not weights
        if literal(softmax.args[1]) % rank != rank - 1 or not self._same_matrices(softmax, product.args[0]):
            return None
        empty = _Scores(ValueRef(""), ValueRef(""), 1.0, None, None, is_guarded)
        return self._scaled(softmax.args[0], empty, readers=1 + is_guarded)

    def _scaled(self, ref: Arg, so_far: _Scores, readers: int = 1) -> _Scores | None:
        """Follows scaling and masking down to the product of query and key."""
        node = self._under_views(ref, readers)
        if node is None:
            return None
        if node.op == _PRODUCT:
            query, key = (argument for argument in node.args if isinstance(argument, ValueRef))
            same = self._same_matrices(node, ref)
            return evolve(so_far, query=query, turned_key=key) if same and so_far.scale > 0 else None
        if node.op in ("aten.mul.Tensor", "aten.div.Tensor"):
            factor = _number(node.args[1])
            if not factor:
                return None
            factor = factor if node.op == "aten.mul.Tensor" else 1 / factor
            return self._scaled(node.args[0], evolve(so_far, scale=so_far.scale * factor))
        if so_far.scale != 1.0 or so_far.mask is not None or so_far.causal is not None:
            return None  # what is scaled after masking, or masked twice
        return self._masked(node, so_far)

    def _masked(self, node: Node, so_far: _Scores) -> _Scores | None:
        hidden = causal_mask(node, self._nodes, may_see_nothing=so_far.is_guarded)
        if hidden is not None:
            return self._scaled(hidden[0], evolve(so_far, causal=hidden[1]))
        if node.op == "aten.add.Tensor" and not node.kwargs:
            scores, mask = node.args[0], node.args[1]
            if isinstance(mask, ValueRef) and self._is_float32(mask) and self._has_shape_of(scores, node):
                return self._scaled(scores, evolve(so_far, mask=mask, masked=node.outputs[0].shape))
        return None

    def _under_views(self, ref: Arg, readers: int = 1) -> Node | None:
        """The node under views that keep the order of all elements and that nothing else reads, the first of
        them by as many as ``readers``."""
        while isinstance(ref, ValueRef) and ref.name in self._nodes:
            node = self._nodes[ref.name]
            if self._readers[ref.name] > readers:
                return None
            readers = 1
            whole = node.op in BROADCASTS and self._has_shape_of(next(iter(node.operands())), node)
            if node.op not in SAME_ORDER and not whole:
                return node
            ref = next(iter(node.operands()))
        return None

    def _has_shape_of(self, ref: Arg, node: Node) -> bool:
        if not isinstance(ref, ValueRef):
            return False
        shapes = (self._graph.spec(ref).shape, node.outputs[0].shape)
        return list(map(extent, shapes[0])) == list(map(extent, shapes[1]))

    def _same_matrices(self, node: Node, ref: Arg) -> bool:
        """Whether the last two dimensions of a value are those of the node under its views."""
        assert isinstance(ref, ValueRef)
        shapes = (node.outputs[0].shape[-2:], self._graph.spec(ref).shape[-2:])
        return list(map(extent, shapes[0])) == list(map(extent, shapes[1]))

    def _is_float32(self, ref: ValueRef) -> bool:
        return self._graph.spec(ref).dtype == "float32"


def _number(arg: Arg) -> float | None:
    return float(arg) if isinstance(arg, bool | int | float) else None


def _rewritten(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
    """Wide values in several kernels; masks as numbers to add."""
    return in_parts(node, writer) or rewrite_mask(node, writer)


def rewrite_mask(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
    """A mask of truth values, or of a half type, as float32 numbers to add to the scores."""
    args = dict(zip(("query", "key", "value", "attn_mask"), node.args, strict=False)) | dict(node.kwargs)
    mask = args.get("attn_mask")
    if not isinstance(mask, ValueRef) or writer.spec(mask).dtype == "float32":
        return None
    shape, dtype = writer.shape(mask), writer.spec(mask).dtype
    if dtype == "bool":
        number = writer.call("aten.where.self", mask, 0.0, -math.inf, shape=shape, dtype="float32")
    else:
        outputs = (TensorSpec(shape, "float32"),)
        (number,) = writer.call_many(
            "aten._to_copy.default", mask, outputs=outputs, dtype=DTypeArg("float32")
        )
    moved = tuple(number if arg == mask else arg for arg in node.args)
    kwargs = tuple((key, number if arg == mask else arg) for key, arg in node.kwargs)
    return writer.keep(evolve(node, args=moved, kwargs=kwargs))


REWRITES: Mapping[str, Rewrite] = {ATTENTION: _rewritten}
