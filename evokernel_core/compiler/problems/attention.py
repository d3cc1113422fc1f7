"""What an attention is: its operands, and where they lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve, frozen

from evokernel_core.compiler.aten import ATTENTION, BOTTOM_RIGHT, attention_arguments
from evokernel_core.compiler.problems.products import QUANT, Side, loops_of
from evokernel_core.compiler.problems.reading import below_views, one_node
from evokernel_core.compiler.problems.strided import (
    NOWHERE,
    Group,
    behind_join,
    behind_views,
    expanded,
    regrouped,
)
from evokernel_core.compiler.shapes.sizes import ONE, Extent, extent, product
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import ValueRef
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import Dim

_FEW = 16
"""Queries of a head below which a matrix unit computes mostly nothing: heads that share keys are one matrix
then, whatever hides keys."""
_MANY, _CHEAP = 32, 8
TOO_FAR = Sentence("The rows of an operand of an attention lie too far apart; copy the operand first.")


@frozen
class Tail:
    """The last ``depth`` columns of keys that lie in another tensor than the columns before. Those of the
    queries do so too, or follow in theirs (None)."""

    query: Side | None
    key: Side
    depth: Extent


@frozen
class Attention:
    """``matrices`` of queries x depth; those of keys are shared by ``sharing`` matrices of queries each.
    ``queries``: rows of a matrix, those of one of its ``heads`` after those of another.
    The operands lie where their sides say. ``causal``: a query sees the keys up to its own number, or, where
    the last ones are aligned (``bottom_right``), all but as many as queries follow it."""

    query: Side
    key: Side
    value: Side
    mask: Side | None
    causal: bool
    bottom_right: bool
    scale: float | None
    matrices: Extent
    sharing: Extent
    heads: Extent
    queries: Extent
    keys: Extent
    depth: Extent
    width: Extent
    dtype: str
    tail: Tail | None


def read_attention(task: KernelTask, *, takes_tail: bool = False) -> Attention:
    """The one attention of a task, of keys whose columns are joined of two tensors too if ``takes_tail``.
    Raises PlanError where the task is anything else."""
    graph = task.graph
    reason = Sentence("The kernel has not exactly one attention with one result.")
    node = one_node(task, {ATTENTION}, reason)
    if len(graph.outputs) != 1:
        raise PlanError(reason)
    if below_views(graph, graph.outputs[0]).name != node.name:
        raise PlanError("The result is more than an attention.")
    query, key, value, mask, dropout, causal, scale = attention_arguments(node)
    if dropout:
        raise PlanError("An attention with dropout draws random numbers inside, which is not covered.")
    specs = [graph.spec(ref) for ref in (query, key, value)]
    dtype = specs[0].dtype
    if dtype not in QUANT or any(spec.dtype != dtype for spec in specs):
        raise PlanError("An attention in {dtype} is not covered.", dtype=dtype)
    if scale is not None and scale <= 0:
        raise PlanError("An attention whose scale is not positive is not covered.")
    shape = [tuple(map(extent, spec.shape)) for spec in specs]
    matrices, shared = product(shape[0][:-2]), product(shape[1][:-2])
    sharing = matrices.divided_by(shared)
    if sharing is None or shape[1][:-2] != shape[2][:-2] or shape[0][:-3] != shape[1][:-3]:
        raise PlanError("Batches of query, key and value that broadcast are not covered.")
    bottom_right = bool(dict(node.kwargs).get(BOTTOM_RIGHT))
    causal = causal and not (bottom_right and shape[0][-2].is_one)
    queries, keys, values = (_parts(task, ref, takes_tail) for ref in (query, key, value))
    whole = shape[0][-1]
    if len(values) > 1 or len(keys) > 2 or _depths(queries) not in (_depths(keys), [whole]):
        raise PlanError("The columns of query, key and value are joined differently; copy the operand first.")
    (keys, values), sharing = _without_repeats((keys, values), sharing)
    heads = ONE
    if mask is None and not sharing.is_one:
        stacked = [_heads_as_rows(part, shape[0], sharing) for part in queries]
        even = [part for part in stacked if part is not None]
        few = shape[0][-2].evaluate(task.sizes) < _FEW
        if len(even) == len(queries) and (few or not causal):
            queries, heads = even, sharing
        elif few and _is_copy_cheap(matrices, shape[0][-2].times(sharing), shape[1][-2], task.sizes):
            raise PlanError("The queries of heads that share keys lie unevenly; copy the operand first.")
    return Attention(
        query=_side(queries[0]),
        key=_side(keys[0]),
        value=_side(values[0]),
        mask=_mask(task, mask, (*specs[0].shape[:-1], specs[1].shape[-2])) if mask is not None else None,
        causal=causal,
        bottom_right=bottom_right,
        scale=scale,
        matrices=_divided(matrices, heads),
        sharing=_divided(sharing, heads),
        heads=heads,
        queries=shape[0][-2].times(heads),
        keys=shape[1][-2],
        depth=shape[0][-1],
        width=shape[2][-1],
        dtype=dtype,
        tail=_tail(queries, keys),
    )


@frozen
class _Part:
    """Columns of an operand that lie in one tensor: how many, and where."""

    name: str
    depth: Extent
    groups: tuple[Group, ...]


def _parts(task: KernelTask, ref: ValueRef, takes_joined: bool) -> list[_Part]:
    joined = behind_join(task, ref) if takes_joined else ()
    if joined:
        return [_Part(*part) for part in joined]
    name, groups = behind_views(task, ref)
    return [_Part(name, extent(task.graph.spec(ref).shape[-1]), groups)]


def _tail(queries: Sequence[_Part], keys: Sequence[_Part]) -> Tail | None:
    if len(keys) == 1:
        return None
    return Tail(_side(queries[1]) if len(queries) > 1 else None, _side(keys[1]), keys[1].depth)


def _depths(parts: Sequence[_Part]) -> list[Extent]:
    return [part.depth for part in parts]


def _without_repeats(sides: Sequence[list[_Part]], sharing: Extent) -> tuple[Sequence[list[_Part]], Extent]:
    """Keys and values as they are without the heads that they are repeated for, which share them then."""
    axes = [[axis for group in part.groups[:-2] for axis in group] for side in sides for part in side]
    times = {leading[-1].size if leading and leading[-1].stride == NOWHERE else ONE for leading in axes}
    if not sharing.is_one or len(times) > 1 or times == {ONE}:
        return sides, sharing
    return [[_unrepeated(part) for part in side] for side in sides], times.pop()


def _unrepeated(part: _Part) -> _Part:
    *leading, rows, columns = part.groups
    axes = tuple(axis for group in leading for axis in group)
    return evolve(part, groups=(axes[:-1], rows, columns))


def _is_copy_cheap(matrices: Extent, rows: Extent, keys: Extent, sizes: Mapping[str, int]) -> bool:
    """Whether to copy queries, ``rows`` of heads that share keys, is little beside reading the keys, which
    more matrices than a chip has cores do again and again."""
    return matrices.evaluate(sizes) > _MANY and _CHEAP * rows.evaluate(sizes) <= keys.evaluate(sizes)


def _divided(size: Extent, times: Extent) -> Extent:
    quotient = size.divided_by(times)
    assert quotient is not None, "The heads that share keys are a factor of all matrices."
    return quotient


def _heads_as_rows(part: _Part, shape: Sequence[Extent], sharing: Extent) -> _Part | None:
    """Queries as matrices of all heads that share keys; None where their rows lie unevenly.

    Keys are read once for all of them, and few queries of a head fill the rows of a product.
    """
    matrices = product(shape[:-2]).divided_by(sharing)
    if matrices is None:
        return None
    rows = shape[-2].times(sharing)
    try:
        groups = regrouped(part.groups, tuple(map(str, (matrices, rows, shape[-1]))))
    except PlanError:
        return None
    return None if len(groups[1]) > 1 else evolve(part, groups=groups)


def _side(part: _Part) -> Side:
    """Where the rows of an operand lie. Raises PlanError where they are not dense in memory."""
    *leading, rows, columns = part.groups
    if len(rows) > 1 or len(columns) > 1 or (columns and columns[0].stride != ONE):
        raise PlanError("The rows of an operand of an attention are not dense; copy the operand first.")
    pitch = rows[0].stride if rows else columns[0].size if columns else ONE
    if pitch == NOWHERE:
        raise PlanError(TOO_FAR)
    return Side(part.name, False, pitch, loops_of(leading))


def _mask(task: KernelTask, ref: ValueRef, shape: tuple[Dim, ...]) -> Side:
    """Where a mask lies that broadcasts to scores of a shape; a pitch of 0: one row for all queries."""
    if task.graph.spec(ref).dtype != "float32":
        raise PlanError("A mask that is not float32 is not covered; add float32 to the scores.")
    name, groups = behind_views(task, ref)
    *leading, rows, columns = expanded(groups, shape)
    if len(rows) > 1 or len(columns) > 1 or (columns and columns[0].stride != ONE):
        raise PlanError("The rows of a mask of an attention are not dense; copy the mask first.")
    return Side(name, False, rows[0].stride if rows else extent(shape[-1]), loops_of(leading))
