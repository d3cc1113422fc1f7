"""Attention written as two matrix products around a softmax becomes one operation; its masks are added."""

from __future__ import annotations

import math
from collections.abc import Mapping

from attrs import evolve, frozen

from evokernel_core.compiler.aten import ATTENTION, BOTTOM_RIGHT
from evokernel_core.compiler.ops import FLOATS
from evokernel_core.compiler.rewrites.attention_masks import (
    Causal,
    added_behind,
    causal_of,
    number,
    without_guard,
)
from evokernel_core.compiler.rewrites.wide_attention import WIDEST, in_parts, row_widths
from evokernel_core.compiler.rewrites.writer import GraphWriter, Rewrite, rewritten
from evokernel_core.compiler.shapes.boxes import dimension_order
from evokernel_core.compiler.shapes.sizes import extent
from evokernel_core.compiler.shapes.views import BROADCASTS, PERMUTATIONS, SAME_ORDER
from evokernel_core.domain.graph import Arg, DTypeArg, Graph, Node, ValueRef, literals
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import Dim, TensorSpec
from evokernel_core.hardware.device import Device

_PRODUCT = "aten.bmm.default"
_CAST = "aten._to_copy.default"
_HIDES = {"float32": -1e9, "bfloat16": -1e9, "float16": -65504.0}
"""From which number down a score weighs nothing beside others."""


@frozen
class _Scores:
    """softmax(query @ turned_key * scale + mask), where ``causal`` hides the keys behind a query, and the
    operation ``scaling`` also multiplies or divides by a ``factor`` that the call is given. A mask of
    truth values says which keys are seen, or those that are not where it is of the ``hidden``. It broadcasts
    to ``masked``, which is the shape of the scores where it is read. ``is_guarded``: a row that sees no key
    is zero."""

    query: ValueRef
    turned_key: ValueRef
    scale: float
    mask: ValueRef | None
    causal: Causal | None
    is_guarded: bool
    masked: tuple[Dim, ...] = ()
    hidden: bool = False
    factor: ValueRef | None = None
    scaling: str = ""


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
    queries, query = writer.shape(scores.query)[1], scores.query
    if scores.factor is not None:
        factor = writer.call("aten.view.default", scores.factor, (1,), shape=(1,), dtype=dtype)
        query = writer.like(writer.spec(query), scores.scaling, query, factor)
    mask = scores.mask and _mask_of_matrices(scores, (batch, queries, keys), writer)
    aligned = {BOTTOM_RIGHT: True} if scores.causal is Causal.BOTTOM_RIGHT else {}
    result = writer.call(
        ATTENTION, query, key, value, mask, 0.0, scores.causal is not None,
        scale=scores.scale, shape=node.outputs[0].shape, dtype=dtype, **aligned,
    )  # fmt: skip
    is_of_truth = scores.mask is not None and writer.spec(scores.mask).dtype == "bool"
    if mask and is_of_truth and not scores.is_guarded:
        return _undefined_without_keys(result, mask, writer)
    return result


def _undefined_without_keys(result: ValueRef, mask: ValueRef, writer: GraphWriter) -> ValueRef:
    """The result with NaN for queries that see no key, of which attention makes 0 and a softmax NaN."""
    shape = (*writer.shape(mask)[:-1], 1)
    highest = writer.call("aten.amax.default", mask, (-1,), True, shape=shape, dtype="float32")
    undefined = writer.call("aten.mul.Tensor", highest, 0.0, shape=shape, dtype="float32")
    spec = writer.spec(result)
    total = writer.call("aten.add.Tensor", result, undefined, shape=spec.shape, dtype="float32")
    if spec.dtype != "float32":
        (total,) = writer.call_many(_CAST, total, outputs=(spec,), dtype=DTypeArg(spec.dtype))
    return total


def _mask_of_matrices(scores: _Scores, shape: tuple[Dim, ...], writer: GraphWriter) -> ValueRef:
    """The mask as numbers to add, with one batch dimension, as the products have it, where scores have
    several."""
    assert scores.mask is not None
    mask, spec = scores.mask, writer.spec(scores.mask)
    if spec.dtype == "bool":
        numbers = (-math.inf, 0.0) if scores.hidden else (0.0, -math.inf)
        spec = TensorSpec(spec.shape, "float32")
        mask = writer.like(spec, "aten.where.self", mask, *numbers)
    inner, outer = spec.shape[-2:], spec.shape[:-2]
    if spec.rank <= 2 or len(scores.masked) <= len(shape):
        return mask
    if all(extent(size).is_one for size in outer):
        return writer.call("aten.view.default", mask, inner, shape=inner, dtype=spec.dtype)
    whole, flat = (*scores.masked[:-2], *inner), (shape[0], *inner)
    spread = writer.call("aten.expand.default", mask, whole, shape=whole, dtype=spec.dtype)
    return writer.call("aten.view.default", spread, flat, shape=flat, dtype=spec.dtype)


class _Search:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._nodes = graph.nodes_by_name
        self._readers: dict[str, int] = {ref.name: 1 for ref in graph.outputs}
        for node in graph.nodes:
            for ref in node.operands() if not node.op.endswith("_like.default") else ():
                self._readers[ref.name] = self._readers.get(ref.name, 0) + 1

    def scores_of(self, product: Node) -> _Scores | None:
        """What the left operand of a product of matrices weighs, None where it is no softmax of scores."""
        if product.op != _PRODUCT:
            return None
        weights = self._under_views(product.args[0])
        if weights is None or not self._same_matrices(weights, product.args[0]):
            return None
        softmax = without_guard(weights, self._nodes)
        none = _Scores(ValueRef(""), ValueRef(""), 1.0, None, None, softmax is not weights)
        if softmax.op == "aten._softmax.default":
            plain = not softmax.args[2] and _is_last(softmax, softmax.args[1])
            return self._scaled(softmax.args[0], none, readers=1 + none.is_guarded) if plain else None
        scores = self._under_exponentials(weights)
        return None if scores is None else self._scaled(scores, none, readers=2)

    def _under_exponentials(self, weights: Node) -> ValueRef | None:
        """The scores s of weights that are written as e / sum(e) with e = exp(s - amax(s))."""
        powers, total = self._args(weights, "aten.div.Tensor", 2)
        summed, *over_sum = self._args(total, "aten.sum.dim_IntList", 3)
        (shifted,) = self._args(powers, "aten.exp.default", 1, readers=2)
        scores, largest = self._args(shifted, "aten.sub.Tensor", 2)
        highest, *over_largest = self._args(largest, "aten.amax.default", 3)
        if not isinstance(scores, ValueRef) or summed != powers or highest != scores:
            return None
        over_last = all(_is_last(weights, dims) and kept for dims, kept in (over_sum, over_largest))
        return scores if over_last else None

    def _args(self, arg: Arg | Node, op: str, count: int, readers: int = 1) -> tuple[Arg, ...]:
        """The arguments of the operation that gives a value for so many readers, else as many of None."""
        node = self._nodes.get(arg.name) if isinstance(arg, ValueRef) else arg
        if not isinstance(node, Node) or node.op != op or len(node.args) != count or node.kwargs:
            return (None,) * count
        return node.args if self._readers[node.name] == readers else (None,) * count

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
            return self._by_factor(node, so_far)
        is_masked = so_far.mask is not None or so_far.causal is not None
        if so_far.scale != 1.0 or so_far.factor is not None or is_masked:
            return None  # what is scaled after masking, or masked twice
        return self._masked(node, so_far)

    def _by_factor(self, node: Node, so_far: _Scores) -> _Scores | None:
        """Scores times a number, or times a factor that the call is given, which then scales the queries."""
        scores, factor = node.args[:2]
        times = number(factor, self._nodes)
        if times:
            times = times if node.op == "aten.mul.Tensor" else 1 / times
            return self._scaled(scores, evolve(so_far, scale=so_far.scale * times))
        if times is not None or not isinstance(factor, ValueRef) or so_far.factor is not None:
            return None
        spec = self._graph.spec(factor)
        if spec.dtype != node.outputs[0].dtype or not all(extent(size).is_one for size in spec.shape):
            return None
        return self._scaled(scores, evolve(so_far, factor=factor, scaling=node.op))

    def _masked(self, node: Node, so_far: _Scores) -> _Scores | None:
        if node.op == "aten.add.Tensor" and not node.kwargs:
            return self._added(node, so_far)
        if node.op == "aten.masked_fill.Scalar":
            scores, mask, fill, hidden = *node.args[:3], True
        elif node.op == "aten.where.self" and number(node.args[2], self._nodes) is not None:
            mask, scores, fill, hidden = *node.args[:3], False
        elif node.op == "aten.where.self":
            mask, fill, scores, hidden = *node.args[:3], True
        else:
            return None
        least, shape = number(fill, self._nodes), node.outputs[0].shape
        may_see_nothing = so_far.is_guarded and least == -math.inf
        causal = causal_of(mask, shape, self._nodes, is_shown=not hidden, may_see_nothing=may_see_nothing)
        if causal is not None and least is not None and self._hides(least, node):
            return self._scaled(scores, evolve(so_far, causal=causal))
        if least != -math.inf or not isinstance(mask, ValueRef) or not self._has_shape_of(scores, node):
            return None  # of keys that are all hidden by a number, each weighs as much as another
        masked = evolve(so_far, mask=mask, masked=shape, hidden=hidden)
        return self._scaled(scores, masked)

    def _added(self, node: Node, so_far: _Scores) -> _Scores | None:
        scores, mask = node.args[:2]
        if not isinstance(mask, ValueRef) or not self._has_shape_of(scores, node):
            return None
        behind = added_behind(mask, node.outputs[0].shape, self._nodes)
        if behind is not None and self._hides(behind[0], node):
            return self._scaled(scores, evolve(so_far, causal=behind[1]))
        if self._graph.spec(mask).dtype not in FLOATS:
            return None
        return self._scaled(scores, evolve(so_far, mask=mask, masked=node.outputs[0].shape))

    @staticmethod
    def _hides(number: float, node: Node) -> bool:
        """Whether a score of that number weighs nothing beside any other."""
        return number <= _HIDES[node.outputs[0].dtype]

    def _under_views(self, ref: Arg, readers: int = 1) -> Node | None:
        """The node under changes of type, and views that keep the order of all elements, with so many readers
        of the value and no others."""
        order: list[int] = []
        while isinstance(ref, ValueRef) and ref.name in self._nodes:
            node = self._nodes[ref.name]
            source = next(iter(node.operands()), None)
            if self._readers[ref.name] != readers or source is None:
                return None
            readers = 1
            if node.op in PERMUTATIONS:  # several in a row may come to none
                moved = dimension_order(node, len(node.outputs[0].shape))
                order = [moved[dim] for dim in order] if order else moved
            elif order and not self._keeps_order(ref, order):
                return None
            elif not self._is_same_matrix(node):
                return node
            else:
                order = []
            ref = source
        return None

    def _is_same_matrix(self, node: Node) -> bool:
        """Whether a node gives the elements of its operand as they are, but for rounding."""
        if node.op in BROADCASTS:
            return self._has_shape_of(next(iter(node.operands())), node)
        return node.op in SAME_ORDER or (node.op == _CAST and node.outputs[0].dtype in FLOATS)

    def _keeps_order(self, ref: ValueRef, order: list[int]) -> bool:
        """Whether a permutation of a value moves dimensions of one element alone."""
        shape = self._graph.spec(ref).shape
        long = [dim for dim in order if not extent(shape[dim]).is_one]
        return long == sorted(long)

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


def _is_last(node: Node, dims: Arg) -> bool:
    """Whether an argument names the last dimension alone."""
    rank = len(node.outputs[0].shape)
    return [dim % rank for dim in literals(dims, 1)] == [rank - 1]


def _rewritten(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
    """Wide values in several kernels; masks as numbers to add."""
    return (in_parts(node, writer) if row_widths(node, writer)[1] > WIDEST else None) or rewrite_mask(
        node, writer
    )


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
