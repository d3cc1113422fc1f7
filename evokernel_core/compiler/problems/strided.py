"""Where the elements of a value lie in memory, seen through views: axes of a size and a stride.

A family that reads an operand by rows of any pitch and matrices at any distance takes permuted,
expanded and reshaped inputs as they lie in memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve, frozen

from evokernel_core.compiler.shapes.boxes import dimension_order
from evokernel_core.compiler.shapes.sizes import ONE, Extent, extent
from evokernel_core.compiler.shapes.views import BROADCASTS, PERMUTATIONS, SAME_ORDER
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Node, ValueRef, literal
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import Dim

FRONTS = frozenset({"aten.slice.Tensor"})
"""Views of the first elements along a dimension."""
_JOIN = "aten.cat.default"
NOWHERE = Extent(0)
"""The stride of an axis that repeats the same elements."""


@frozen
class Axis:
    """``size`` places, ``stride`` elements from one to the next."""

    size: Extent
    stride: Extent


Group = tuple[Axis, ...]
"""The axes of one dimension, the slowest first; none where its size is one."""


def dense(shape: Sequence[Dim]) -> tuple[Group, ...]:
    """The groups of a tensor whose elements lie in row-major order."""
    groups: list[Group] = []
    stride = ONE
    for size in map(extent, reversed(shape)):
        groups.insert(0, () if size.is_one else (Axis(size, stride),))
        stride = stride.times(size)
    return tuple(groups)


def behind_views(task: KernelTask, ref: ValueRef) -> tuple[str, tuple[Group, ...]]:
    """The input that ``ref`` is a view of, and where the elements of ``ref`` lie in it. Raises PlanError
    where something is computed on the way, or elements lie at no constant distances."""
    base, chain = _views_above(task, ref, frozenset())
    groups = dense(task.graph.spec(base).shape)
    for node in chain:
        groups = _through(node, groups)
    return base.name, groups


def behind_join(task: KernelTask, ref: ValueRef) -> tuple[tuple[str, Extent, tuple[Group, ...]], ...]:
    """The inputs whose rows are joined to those that ``ref`` is a view of, how long the rows of each are, and
    where those of ``ref`` lie in it, as if they went on: of places in a row only so many are there. Empty
    where nothing is joined. Raises PlanError as ``behind_views`` does."""
    base, chain = _views_above(task, ref, frozenset({_JOIN}))
    join = task.graph.nodes_by_name.get(base.name)
    if join is None:
        return ()
    whole, parts = extent(join.outputs[0].shape[-1]), []
    if literal(join.args[1] if len(join.args) > 1 else 0) not in (-1, len(join.outputs[0].shape) - 1):
        raise PlanError("Rows that are joined one after the other are no view of an input.")
    for operand in join.operands():
        name, groups = behind_views(task, operand)
        length = extent(task.graph.spec(operand).shape[-1])
        if groups[-1] != (Axis(length, ONE),):
            raise PlanError("Rows that are joined do not lie dense in memory.")
        groups = (*groups[:-1], (Axis(whole, ONE),))
        for node in chain:
            groups = _through(node, groups)
        parts.append((name, length, groups))
    return tuple(parts)


def _views_above(task: KernelTask, ref: ValueRef, stops: frozenset[str]) -> tuple[ValueRef, tuple[Node, ...]]:
    """The input below a value, or what one of the operations ``stops`` makes, and the nodes above it in their
    order."""
    nodes = task.graph.nodes_by_name
    chain: list[Node] = []
    while ref.name in nodes and nodes[ref.name].op not in stops:
        chain.insert(0, nodes[ref.name])
        below = next(iter(chain[0].operands()), None)
        if below is None:
            raise PlanError("{op} makes numbers, which is more than a view of an input.", op=chain[0].op)
        ref = below
    return ref, tuple(chain)


def _through(node: Node, groups: tuple[Group, ...]) -> tuple[Group, ...]:
    shape = node.outputs[0].shape
    if node.op in PERMUTATIONS:
        return tuple(groups[dim] for dim in dimension_order(node, len(groups)))
    if node.op in BROADCASTS:
        return expanded(groups, shape)
    if node.op in SAME_ORDER:
        return regrouped(groups, shape)
    if node.op in FRONTS:
        return _front(node, groups)
    raise PlanError("{op} before a matrix product is not covered.", op=node.op)


def _front(node: Node, groups: tuple[Group, ...]) -> tuple[Group, ...]:
    """The first elements along one dimension. Raises PlanError for a slice that begins or steps elsewhere."""
    dim, start = (node.args[place] if len(node.args) > place else 0 for place in (1, 2))
    step = node.args[4] if len(node.args) > 4 else 1
    place = literal(dim) % len(groups)
    if start not in (0, None) or step not in (1, None) or len(groups[place]) > 1:
        raise PlanError("A slice before a matrix product that is not its operand's front is not covered.")
    size = extent(node.outputs[0].shape[place])
    front = () if size.is_one else tuple(evolve(axis, size=size) for axis in groups[place])
    return (*groups[:place], front, *groups[place + 1 :])


def expanded(groups: tuple[Group, ...], shape: Sequence[Dim]) -> tuple[Group, ...]:
    """The groups of a tensor that broadcasts to a shape."""
    padded = ((),) * (len(shape) - len(groups)) + groups
    return tuple(
        group or (() if size.is_one else (Axis(size, NOWHERE),))
        for group, size in zip(padded, map(extent, shape), strict=True)
    )


def regrouped(groups: Sequence[Group], shape: Sequence[Dim]) -> tuple[Group, ...]:
    """The same elements in the same order under another shape."""
    waiting = list(_merged([axis for group in groups for axis in group]))
    result = tuple(_merged(_taken(waiting, extent(dim))) for dim in shape)
    if waiting:
        raise _mismatch()
    return result


def _taken(waiting: list[Axis], wanted: Extent) -> list[Axis]:
    """Axes from the front of ``waiting`` for ``wanted`` places; the last one may be cut in two."""
    group = []
    while not wanted.is_one:
        if not waiting:
            raise _mismatch()
        axis = waiting.pop(0)
        rest = wanted.divided_by(axis.size)
        if rest is None:
            inner = axis.size.divided_by(wanted)
            if inner is None:
                raise _mismatch()
            group.append(Axis(wanted, _steps(axis.stride, inner)))
            waiting.insert(0, evolve(axis, size=inner))
            return group
        group.append(axis)
        wanted = rest
    return group


def _merged(axes: Sequence[Axis]) -> Group:
    """Axes that together step evenly are one."""
    merged: list[Axis] = []
    for axis in axes:
        last = merged[-1] if merged else None
        if last is not None and last.stride == _steps(axis.stride, axis.size):
            merged[-1] = Axis(last.size.times(axis.size), axis.stride)
        else:
            merged.append(axis)
    return tuple(merged)


def _steps(stride: Extent, count: Extent) -> Extent:
    return NOWHERE if stride == NOWHERE else stride.times(count)


def _mismatch() -> PlanError:
    return PlanError("An operand of a matrix product is reshaped across dimensions that do not nest.")
