"""The schedules of an attention, and what it takes of a chip."""

from __future__ import annotations

from typing import Annotated

from attrs import asdict, evolve, frozen

from evokernel_core.compiler.problems.attention import TOO_FAR, Attention, read_attention
from evokernel_core.compiler.schedule import Named, Range, Scaled, Schedule, Word
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.api import most_of
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES, FRACTAL
from evokernel_core.targets.ascendc.kernels.settings import BUFFERS, whole_step

_MOST_PITCH = most_of("DataCopyNd2Nz", "srcDValue")
"""Elements from row to row that one copy into L1 can step over."""


@frozen
class ChipAttention(Attention):
    """An attention on a chip whose unified buffer has ``room`` bytes."""

    room: int


def read_on_chip(task: KernelTask, chip: Chip) -> ChipAttention:
    """The one attention of a task. Raises PlanError where the task is anything else, or copies do not reach
    from row to row of an operand."""
    problem = read_attention(task, takes_tail=True)
    sides = [problem.query, problem.key, problem.value]
    if problem.tail is not None:
        sides += [side for side in (problem.tail.query, problem.tail.key) if side is not None]
    if any(side.pitch.evaluate(task.sizes) > _MOST_PITCH for side in sides):
        raise PlanError(TOO_FAR)
    return ChipAttention(**asdict(problem, recurse=False), room=chip.ub_bytes)


def _same_scores(before: AttentionSchedule, after: AttentionSchedule) -> AttentionSchedule:
    """Rows of a chunk for other keys, so that its scores stay as many."""
    return evolve(after, chunk=max(8, before.chunk * before.keys // max(after.keys, 1)))


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
        Scaled("deeper step in L0", "shallower step in L0", also=whole_step),
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


def widest_parts(problem: ChipAttention, schedule: AttentionSchedule) -> int:
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
