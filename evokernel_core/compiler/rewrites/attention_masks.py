"""Masks of an attention as programs write them: keys behind a query, and rows that see no key."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum

from evokernel_core.compiler.ops import IOTA
from evokernel_core.compiler.rewrites.picking import argument
from evokernel_core.compiler.shapes.sums import ZERO, Sum, integer, size
from evokernel_core.compiler.shapes.views import SAME_ORDER
from evokernel_core.domain.graph import Arg, Node, ValueRef, literal

_ONES = frozenset({"aten.ones.default", "aten.ones_like.default"})
_FILLS = frozenset({"aten.full.default", "aten.full_like.default"})
_ZEROS = frozenset({"aten.zeros.default", "aten.zeros_like.default"})
_LARGEST = frozenset({"aten.max.dim", "aten.amax.default"})
_BOTH = frozenset({"aten.bitwise_and.Tensor", "aten.logical_and.default"})
_ARANGE = "aten.arange.start_step"
_CONVERTED = {"aten._to_copy.default": ("int64", "int32", "float32")}
"""Types that hold the numbers of positions exactly."""
_TURNED = {"gt": "lt", "ge": "le", "lt": "gt", "le": "ge"}
_ROWS, _COLUMNS = -2, -1

Nodes = Mapping[str, Node]


class Causal(Enum):
    """Which keys a query sees: those up to its own number, or all but as many as queries follow it."""

    TOP_LEFT = "top left"
    BOTTOM_RIGHT = "bottom right"


def causal_mask(node: Node, nodes: Nodes, *, may_see_nothing: bool) -> tuple[Arg, Causal] | None:
    """The scores under a mask that hides the keys behind each query, and how the two are aligned; None where
    a node is no such mask. ``may_see_nothing``: there may be queries that see no key."""
    if node.op == "aten.masked_fill.Scalar" and node.args[2] == -math.inf:
        scores, ref, is_shown = node.args[0], node.args[1], False
    elif node.op == "aten.where.self" and node.args[2] == -math.inf:
        scores, ref, is_shown = node.args[1], node.args[0], True
    else:
        return None
    mask, shape = _below_views(ref, nodes), list(map(size, node.outputs[0].shape[-2:]))
    if mask is None or list(map(size, mask.outputs[0].shape)) != shape:
        return None
    diagonal = _diagonal(mask, nodes, is_shown=is_shown)
    more = shape[1].minus(shape[0])
    if diagonal == ZERO:
        return scores, Causal.TOP_LEFT
    is_safe = may_see_nothing or (more.constant or -1) > 0
    return (scores, Causal.BOTTOM_RIGHT) if diagonal == more and is_safe else None


def without_guard(node: Node, nodes: Nodes) -> Node:
    """The softmax under a choice that makes rows zero which see no key; any other node as it is."""
    if node.op != "aten.where.self" or not _is_zero(node.args[1], nodes):
        return node
    softmax = _node(node.args[2], nodes)
    if softmax is None or not softmax.args or not _sees_nothing(node.args[0], softmax.args[0], nodes):
        return node
    return softmax


def _sees_nothing(ref: Arg, scores: Arg, nodes: Nodes) -> bool:
    """Whether a truth value says of each row that its largest score is minus infinity."""
    both = _node(ref, nodes)
    if both is None or both.op not in _BOTH:
        return False
    tests = [test for part in both.operands() if (test := _node(part, nodes)) is not None]
    ops = {(test.op, test.args[1:]) for test in tests}
    below = {next(test.operands()) for test in tests}
    if ops != {("aten.isinf.default", ()), ("aten.lt.Scalar", (0,))} or len(below) != 1:
        return False
    largest = _node(below.pop(), nodes)
    if largest is None or largest.op not in _LARGEST or largest.args[0] != scores:
        return False
    dim, rank = largest.args[1], len(largest.outputs[0].shape)
    last = literal(dim[0] if isinstance(dim, tuple) else dim) % rank == rank - 1
    return last and largest.args[2:] == (True,)


def _diagonal(mask: Node, nodes: Nodes, *, is_shown: bool) -> Sum | None:
    """How many keys behind its own number a query sees, where a truth value says of each pair whether it
    does (``is_shown``) or does not."""
    op = mask.op.removeprefix("aten.").partition(".")[0]
    if op in ("tril", "triu"):
        distance = integer(mask.args[1]) if len(mask.args) > 1 else ZERO
        is_whole = is_shown == (op == "tril") and _is_true(mask.args[0], nodes)
        return distance.minus(Sum.number(not is_shown)) if is_whole and distance is not None else None
    if op not in _TURNED or len(mask.args) != 2:
        return None
    key, query = (_numbered(arg, nodes) for arg in mask.args)
    if key is None or query is None or key[0] == query[0]:
        return None
    if key[0] == _ROWS:
        op, key, query = _TURNED[op], query, key
    if op not in (("le", "lt") if is_shown else ("gt", "ge")):
        return None
    return query[1].minus(key[1]).minus(Sum.number(op in ("lt", "ge")))


def _numbered(ref: Arg, nodes: Nodes) -> tuple[int, Sum] | None:
    """Along which dimension whole numbers go up one by one, and the first of them."""
    node, first = _node(ref, nodes), ZERO
    if node is None:
        return None
    long = [dim - len(node.outputs[0].shape) for dim, size_ in enumerate(node.outputs[0].shape) if size_ != 1]
    while node is not None and node.op not in (_ARANGE, IOTA.name):
        if node.op in ("aten.add.Tensor", "aten.sub.Tensor") and not node.kwargs:
            more = integer(node.args[1])
            if more is None:
                return None
            first = first.plus(more) if "add" in node.op else first.minus(more)
        elif node.op not in SAME_ORDER and node.outputs[0].dtype not in _CONVERTED.get(node.op, ()):
            return None
        node = _node(node.args[0], nodes)
    if node is None or len(long) != 1 or long[0] not in (_ROWS, _COLUMNS):
        return None
    step = argument(node, 1 if node.op == IOTA.name else 2, "step", 1)
    if step != 1:
        return None
    begin = integer(node.args[0])
    return None if begin is None else (long[0], first.plus(begin))


def _is_true(ref: Arg, nodes: Nodes) -> bool:
    node = _node(ref, nodes)
    return node is not None and (node.op in _ONES or (node.op in _FILLS and bool(node.args[1])))


def _is_zero(ref: Arg, nodes: Nodes) -> bool:
    node = _node(ref, nodes)
    return ref == 0 if node is None else node.op in _ZEROS


def _below_views(ref: Arg, nodes: Nodes) -> Node | None:
    """The node under views that keep the order of all elements."""
    node = _node(ref, nodes)
    while node is not None and node.op in SAME_ORDER:
        node = _node(node.args[0], nodes)
    return node


def _node(ref: Arg, nodes: Nodes) -> Node | None:
    return nodes.get(ref.name) if isinstance(ref, ValueRef) else None
