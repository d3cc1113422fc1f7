"""What an attention is: its operands, where they lie, and a schedule of it."""

from __future__ import annotations

from typing import Annotated

from attrs import evolve, frozen

from evokernel_core.compiler.aten import ATTENTION, attention_arguments
from evokernel_core.compiler.problems.products import QUANT, Side, loops_of
from evokernel_core.compiler.problems.reading import below_views
from evokernel_core.compiler.problems.strided import NOWHERE, behind_views, expanded
from evokernel_core.compiler.schedule import Named, Range, Scaled, Schedule, Word
from evokernel_core.compiler.shapes.sizes import ONE, Extent, extent, product
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import ValueRef
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE, Dim
from evokernel_core.hardware.ascend.api import most_of
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES, FRACTAL
from evokernel_core.targets.ascendc.kernels.settings import BUFFERS

_MOST_PITCH = most_of("DataCopyNd2Nz", "srcDValue")
"""Elements from row to row that one copy into L1 can step over."""


@frozen
class Attention:
    """``matrices`` of queries x depth; those of keys are shared by ``sharing`` matrices of queries each.
    The operands lie where their sides say; ``room``: bytes of the unified buffer."""

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
    room: int


def _same_scores(before: AttentionSchedule, after: AttentionSchedule) -> AttentionSchedule:
    """Rows of a chunk for other keys, so that its scores stay as many."""
    return evolve(after, chunk=max(8, before.chunk * before.keys // max(after.keys, 1)))


def _whole_step(before: AttentionSchedule, after: AttentionSchedule) -> AttentionSchedule:
    """A panel has a step at least."""
    return evolve(after, panel_k=max(after.panel_k, after.base_k))


@frozen
class AttentionSchedule(Schedule):
    """``queries`` x ``keys`` scores in a step, of which a vector core holds ``chunk`` rows at a time in
    ``buffers`` slots; the cube's tile is ``base_n`` wide, ``base_k`` deep in L0, ``panel_k`` in L1."""

    queries: Annotated[int, Range(32, unit=32), Scaled("more queries a unit", "fewer queries a unit")]
    keys: Annotated[
        int, Range(64, unit=64), Scaled("more keys a step", "fewer keys a step", also=_same_scores)
    ]
    chunk: Annotated[int, Word("rows"), Range(8, unit=8), Scaled("more rows in UB", "fewer rows in UB")]
    base_n: Annotated[int, Word("width"), Range(FRACTAL, unit=FRACTAL), Scaled("wider tile", "narrower tile")]
    base_k: Annotated[
        int,
        Word("depth"),
        Range(FRACTAL, unit=FRACTAL),
        Scaled("deeper step in L0", "shallower step in L0", also=_whole_step),
    ]
    panel_k: Annotated[int, Scaled("deeper panel in L1", "shallower panel in L1")]
    buffers: Annotated[int, BUFFERS, Named({1: "one buffer", 2: "two buffers"})] = 2
    c_slots: Annotated[int, Named({2: "two results in L0C", 1: "one result in L0C"})] = 1


def fixed_bytes(problem: Attention, schedule: AttentionSchedule) -> int:
    """Bytes of the unified buffer that do not depend on sizes at run time."""
    chunk = schedule.chunk * schedule.keys
    queues = schedule.buffers * chunk * (4 + ITEM_SIZE[problem.dtype]) + (chunk * 4 if problem.mask else 0)
    numbers = schedule.chunk * 256 + schedule.queries // 2 * (32 + 24)
    seen = -(-schedule.keys // 8 // BLOCK_BYTES) * BLOCK_BYTES
    return queues + numbers + (schedule.keys * 4 + seen if problem.causal else 0)


def widest_parts(problem: Attention, schedule: AttentionSchedule) -> int:
    """Columns, in whole blocks, of the output's parts that a vector core may keep; 0: none, so that one step
    has to hold all keys."""
    room = min(
        (problem.room - fixed_bytes(problem, schedule)) // (schedule.queries // 2 * 4),
        schedule.chunk * schedule.keys // 8,
    )
    known, keys = problem.width.constant, problem.keys.constant
    if keys is not None and keys <= schedule.keys:
        return 0
    wanted = room // 8 * 8 if known is None else -(-known // 8) * 8
    return wanted if 0 < wanted <= room else 0


def read_attention(task: KernelTask, chip: Chip) -> Attention:
    """The one attention of a task. Raises PlanError where the task is anything else."""
    graph = task.graph
    nodes = [node for node in graph.nodes if node.op == ATTENTION]
    if len(nodes) != 1 or len(graph.outputs) != 1:
        raise PlanError("The kernel has not exactly one attention with one result.")
    node = nodes[0]
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
        room=chip.ub_bytes,
    )


def _side(task: KernelTask, ref: ValueRef) -> Side:
    """Where the rows of an operand lie. Raises PlanError where they are not dense in memory."""
    name, groups = behind_views(task, ref)
    rows, columns = groups[-2:]
    if len(rows) > 1 or len(columns) > 1 or (columns and columns[0].stride != ONE):
        raise PlanError("The rows of an operand of an attention are not dense; copy the operand first.")
    pitch = rows[0].stride if rows else columns[0].size if columns else ONE
    if pitch == NOWHERE or pitch.evaluate(task.sizes) > _MOST_PITCH:
        raise PlanError("The rows of an operand of an attention lie too far apart; copy the operand first.")
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
