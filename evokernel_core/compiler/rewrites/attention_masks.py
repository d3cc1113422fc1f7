"""Masks of an attention as programs write them: keys behind a query, and rows that see no key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from evokernel_core.compiler.ops import FLOATS, IOTA
from evokernel_core.compiler.rewrites.picking import argument
from evokernel_core.compiler.shapes.sums import ZERO, Sum, integer, size
from evokernel_core.compiler.shapes.views import BROADCASTS, SAME_ORDER
from evokernel_core.domain.graph import Arg, Node, ValueRef, literal
from evokernel_core.domain.tensor import Dim

_ONES = frozenset({"aten.ones.default", "aten.ones_like.default"})
_FILLS = {"aten.full.default": 1, "aten.full_like.default": 1, "aten.scalar_tensor.default": 0}
"""Operations that repeat a number, and which argument it is."""
_ZEROS = frozenset({"aten.zeros.default", "aten.zeros_like.default"})
_LARGEST = frozenset({"aten.max.dim", "aten.amax.default"})
_NOT = frozenset({"aten.logical_not.default", "aten.bitwise_not.default"})
_SAME = frozenset({*SAME_ORDER, *BROADCASTS})
"""Operations that keep numbers, and with them what is true."""
_BOTH = frozenset({"aten.bitwise_and.Tensor", "aten.logical_and.default"})
_ARANGE = "aten.arange.start_step"
_CAST = "aten._to_copy.default"
_CONVERTED = {_CAST: ("int64", "int32", "float32")}
"""Types that hold the numbers of positions exactly."""
_TURNED = {"gt": "lt", "ge": "le", "lt": "gt", "le": "ge"}
_ROWS, _COLUMNS = -2, -1

Nodes = Mapping[str, Node]


class Causal(Enum):
    """Which keys a query sees: those up to its own number, or all but as many as queries follow it."""

    TOP_LEFT = "top left"
    BOTTOM_RIGHT = "bottom right"


def causal_of(
    ref: Arg, shape: Sequence[Dim], nodes: Nodes, *, is_shown: bool, may_see_nothing: bool
) -> Causal | None:
    """How a matrix of truth values, of the last two dimensions of ``shape``, hides the keys behind each
    query: it says which keys are shown, or which are hidden. None where it is another one.
    ``may_see_nothing``: there may be queries that see no key."""
    node = _node(ref, nodes)
    while node is not None and (_turns(node) or _keeps(node)):
        is_shown = is_shown != _turns(node)
        node = _node(node.args[0], nodes)
    if node is None or not _is_matrix_of(node, shape):
        return None
    return _aligned(_diagonal(node, nodes, is_shown=is_shown), shape, may_see_nothing)


def added_behind(ref: Arg, shape: Sequence[Dim], nodes: Nodes) -> tuple[float, Causal] | None:
    """The number that a matrix adds to the keys behind each query, where it adds 0 to all others."""
    node = _node(ref, nodes)
    while node is not None and _is_same(node):
        node = _node(node.args[0], nodes)
    if node is None or node.op != "aten.triu.default" or not _is_matrix_of(node, shape):
        return None
    distance, added = _distance(node), number(node.args[0], nodes)
    if distance is None or added is None:
        return None
    causal = _aligned(distance.minus(Sum.number(1)), shape, may_see_nothing=False)
    return None if causal is None else (added, causal)


def number(arg: Arg, nodes: Nodes) -> float | None:
    """The number that an argument is, or that all of its elements are."""
    if isinstance(arg, bool | int | float):
        return float(arg)
    node = _node(arg, nodes)
    while node is not None and _is_same(node):
        node = _node(node.args[0], nodes)
    if node is None:
        return None
    if node.op in _ONES or node.op in _ZEROS:
        return float(node.op in _ONES)
    return number(node.args[_FILLS[node.op]], nodes) if node.op in _FILLS else None


def _turns(node: Node) -> bool:
    return (node.op in _NOT and node.outputs[0].dtype == "bool") or _compares(node, "eq")


def _keeps(node: Node) -> bool:
    return _is_same(node) or _compares(node, "ne") or (node.op == _CAST and node.outputs[0].dtype == "bool")


def _is_same(node: Node) -> bool:
    """Whether a node gives the numbers of its operand, but for rounding."""
    return node.op in _SAME or (node.op == _CAST and node.outputs[0].dtype in FLOATS)


def _compares(node: Node, relation: str) -> bool:
    return node.op == f"aten.{relation}.Scalar" and node.args[1] in (0, False)


def _is_matrix_of(node: Node, shape: Sequence[Dim]) -> bool:
    """Whether a node gives one matrix of the last two dimensions of a shape."""
    own = list(map(size, node.outputs[0].shape))
    return own[-2:] == list(map(size, shape[-2:])) and all(each.constant == 1 for each in own[:-2])


def _aligned(diagonal: Sum | None, shape: Sequence[Dim], may_see_nothing: bool) -> Causal | None:
    if diagonal == ZERO:
        return Causal.TOP_LEFT
    more = size(shape[-1]).minus(size(shape[-2]))
    is_safe = may_see_nothing or (more.constant or -1) > 0
    return Causal.BOTTOM_RIGHT if diagonal == more and is_safe else None


def without_guard(node: Node, nodes: Nodes) -> Node:
    """The softmax under a choice that makes rows zero which see no key; any other node as it is."""
    if node.op != "aten.where.self" or number(node.args[1], nodes) != 0:
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
        distance = _distance(mask)
        is_whole = is_shown == (op == "tril") and bool(number(mask.args[0], nodes))
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


def _distance(triangle: Node) -> Sum | None:
    """How far the diagonal of a triangle lies above the main one."""
    return integer(argument(triangle, 1, "diagonal", 0))


def _node(ref: Arg, nodes: Nodes) -> Node | None:
    return nodes.get(ref.name) if isinstance(ref, ValueRef) else None
