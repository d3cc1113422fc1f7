"""What an attention is: its operands, and where they lie."""

from __future__ import annotations

from attrs import frozen

from evokernel_core.compiler.aten import ATTENTION, attention_arguments
from evokernel_core.compiler.problems.products import QUANT, Side, loops_of
from evokernel_core.compiler.problems.reading import below_views, one_node
from evokernel_core.compiler.problems.strided import NOWHERE, behind_views, expanded
from evokernel_core.compiler.shapes.sizes import ONE, Extent, extent, product
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import ValueRef
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import Dim

TOO_FAR = Sentence("The rows of an operand of an attention lie too far apart; copy the operand first.")


@frozen
class Attention:
    """``matrices`` of queries x depth; those of keys are shared by ``sharing`` matrices of queries each.
    The operands lie where their sides say."""

    query: Side
    key: Side
    value: Side
    mask: Side | None
    causal: bool
    scale: float | None
    matrices: Extent
    sharing: Extent
    queries: Extent
    keys: Extent
    depth: Extent
    width: Extent
    dtype: str


def read_attention(task: KernelTask) -> Attention:
    """The one attention of a task. Raises PlanError where the task is anything else."""
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
    return Attention(
        query=_side(task, query),
        key=_side(task, key),
        value=_side(task, value),
        mask=_mask(task, mask, (*specs[0].shape[:-1], specs[1].shape[-2])) if mask is not None else None,
        causal=causal,
        scale=scale,
        matrices=matrices,
        sharing=sharing,
        queries=shape[0][-2],
        keys=shape[1][-2],
        depth=shape[0][-1],
        width=shape[2][-1],
        dtype=dtype,
    )


def _side(task: KernelTask, ref: ValueRef) -> Side:
    """Where the rows of an operand lie. Raises PlanError where they are not dense in memory."""
    name, groups = behind_views(task, ref)
    rows, columns = groups[-2:]
    if len(rows) > 1 or len(columns) > 1 or (columns and columns[0].stride != ONE):
        raise PlanError("The rows of an operand of an attention are not dense; copy the operand first.")
    pitch = rows[0].stride if rows else columns[0].size if columns else ONE
    if pitch == NOWHERE:
        raise PlanError(TOO_FAR)
    return Side(name, False, pitch, loops_of(groups[:-2]))


def _mask(task: KernelTask, ref: ValueRef, shape: tuple[Dim, ...]) -> Side:
    """Where a mask lies that broadcasts to scores of a shape; a pitch of 0: one row for all queries."""
    if task.graph.spec(ref).dtype != "float32":
        raise PlanError("A mask that is not float32 is not covered; add float32 to the scores.")
    name, groups = behind_views(task, ref)
    *leading, rows, columns = expanded(groups, shape)
    if len(rows) > 1 or len(columns) > 1 or (columns and columns[0].stride != ONE):
        raise PlanError("The rows of a mask of an attention are not dense; copy the mask first.")
    return Side(name, False, rows[0].stride if rows else extent(shape[-1]), loops_of(leading))
