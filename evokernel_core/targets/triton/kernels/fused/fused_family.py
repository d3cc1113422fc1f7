"""Family of fused tiles: element-wise graphs and reductions over one iteration space."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from attrs import evolve, field, frozen

from evokernel_core.compiler.family import Move
from evokernel_core.compiler.lowering.opset import fused_ops
from evokernel_core.compiler.lowering.plan import Plan, plan
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Overlap, Reuse, Split
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import ById, KernelTask
from evokernel_core.hardware.gpu.gpu import Gpu
from evokernel_core.targets.triton.expressions import next_power_of_2
from evokernel_core.targets.triton.kernels.fused.fused_estimate import estimate_us
from evokernel_core.targets.triton.kernels.fused.fused_schedule import (
    TileSchedule,
    first_schedules,
    most_tile,
)
from evokernel_core.targets.triton.kernels.fused.fused_text import fused_kernel
from evokernel_core.targets.triton.kernels.text import TritonKernel

_STRATEGIES = frozenset({"pointwise", "rowwise", "columnwise", "piecewise"})
_NOTE = "Tiles of {rows} x {columns} elements, {warps} warps a program."


@frozen
class FusedFamily:
    """One pass over the points of a space of rows and columns, or one for each level of reductions."""

    name: str = field(default="fused", init=False)
    strategies: frozenset[str] = field(default=_STRATEGIES, init=False)

    @property
    def ops(self) -> Mapping[str, str]:
        return fused_ops()

    def check(self, task: KernelTask, gpu: Gpu) -> None:
        planned = _plan(task, gpu)
        fused_kernel(planned, first_schedules(planned, dict(task.sizes), gpu)[0], "kernel", gpu)

    def initial(self, task: KernelTask, gpu: Gpu) -> Strategy:
        planned = _plan(task, gpu)
        drafts = [
            draft
            for draft in first_schedules(planned, dict(task.sizes), gpu)
            if refusal(planned, draft, task, gpu) is None
        ]
        if not drafts:
            raise PlanError("No tile of the task fits a program's registers.")
        best = min(drafts, key=lambda draft: estimate_us(planned, draft, task.sizes, gpu))
        return _strategy(planned, best)

    def moves(self, task: KernelTask, strategy: Strategy, gpu: Gpu) -> tuple[Move, ...]:
        planned, here = _plan(task, gpu), TileSchedule.of(strategy)
        moves: dict[TileSchedule, Move] = {}
        for name, other in here.neighbours():
            changed = _resized(planned, other, task)
            if changed != here and refusal(planned, changed, task, gpu) is None:
                moves.setdefault(changed, Move(name, _strategy(planned, changed, name), self.name))
        return tuple(moves.values())

    def descriptor(self, task: KernelTask, strategy: Strategy, gpu: Gpu) -> Descriptor:
        return _descriptor(_plan(task, gpu), TileSchedule.of(strategy))

    def estimate_us(self, task: KernelTask, strategy: Strategy, gpu: Gpu) -> float:
        return estimate_us(_plan(task, gpu), TileSchedule.of(strategy), task.sizes, gpu)

    def text(self, task: KernelTask, strategy: Strategy, gpu: Gpu, name: str) -> TritonKernel:
        return fused_kernel(_plan(task, gpu), TileSchedule.of(strategy), name, gpu)

    def why_illegal(self, task: KernelTask, strategy: Strategy, gpu: Gpu) -> str | None:
        planned = _plan(task, gpu)
        if strategy.family != planned.family:
            return Sentence(
                "The task takes a {wanted} kernel, and no {given} one.",
                wanted=planned.family,
                given=strategy.family,
            )
        return refusal(planned, TileSchedule.of(strategy), task, gpu)

    def adapt(self, task: KernelTask, strategy: Strategy, gpu: Gpu) -> Strategy | None:
        planned = _plan(task, gpu)
        if strategy.family != planned.family:
            return None
        schedule = _resized(planned, TileSchedule.of(strategy), task)
        return None if refusal(planned, schedule, task, gpu) is not None else _strategy(planned, schedule)


def refusal(planned: Plan, schedule: TileSchedule, task: KernelTask, gpu: Gpu) -> Sentence | None:
    """Why a schedule makes no kernel; None where it makes one."""
    reason = schedule.why_out_of_range()
    if reason is not None:
        return reason
    if schedule != _resized(planned, schedule, task):
        return Sentence("The tile is larger than the task, or not what is reduced; draft it anew.")
    if schedule.tile > (most := most_tile(planned, gpu)):
        return Sentence(
            "A tile of {tile} elements is more than the {most} that registers hold.",
            tile=schedule.tile,
            most=most,
        )
    return None


def _resized(planned: Plan, schedule: TileSchedule, task: KernelTask) -> TileSchedule:
    """The schedule with what is kept in the tile as large as it is, and no tile larger than the task."""
    sizes, family = task.sizes, planned.family
    rows = planned.rows if family in ("pointwise", "rowwise") else planned.leading.times(planned.mid)
    height, width = next_power_of_2(rows.evaluate(sizes)), next_power_of_2(planned.inner.evaluate(sizes))
    if not planned.reductions:
        schedule = evolve(schedule, looped=False)
    looped = schedule.looped
    if family == "rowwise" and looped and schedule.columns >= width:
        return evolve(schedule, rows=min(schedule.rows, height), columns=max(width // 2, 1), looped=width > 1)
    rows_kept = family == "columnwise" and not looped
    columns_kept = family == "rowwise" and not looped
    if family == "piecewise":
        schedule = evolve(schedule, looped=True)
    return evolve(
        schedule,
        rows=height if rows_kept else min(schedule.rows, height),
        columns=width if columns_kept else min(schedule.columns, width),
    )


@lru_cache(maxsize=256)
def _planned(key: ById, gpu: Gpu) -> Plan:
    return plan(key.task, gpu)


def _plan(task: KernelTask, gpu: Gpu) -> Plan:
    return _planned(ById(task), gpu)


def _strategy(planned: Plan, schedule: TileSchedule, move: str = "") -> Strategy:
    notes = (schedule.told(_NOTE),)
    return Strategy(
        planned.family, schedule.settings(), notes, descriptor=_descriptor(planned, schedule), move=move
    )


def _descriptor(planned: Plan, schedule: TileSchedule) -> Descriptor:
    splits = {"pointwise": Split.TILES, "rowwise": Split.ROWS, "columnwise": Split.COLUMNS}
    flows = {"pointwise": Dataflow.STREAMED, "columnwise": Dataflow.LANES, "piecewise": Dataflow.BLOCKS}
    kept = Dataflow.PACKED_ROWS if schedule.rows > 1 else Dataflow.RESIDENT_ROWS
    looped = Dataflow.STREAMED if schedule.looped else kept
    algorithm = Algorithm.DIRECT
    if planned.reductions:
        algorithm = Algorithm.MULTI_PASS if schedule.looped else Algorithm.SINGLE_PASS
    return Descriptor(
        dataflow=flows.get(planned.family, looped),
        reuse="REGISTERS" if planned.reductions and not schedule.looped else Reuse.NONE,
        split=splits.get(planned.family, Split.ROWS),
        algorithm=algorithm,
        overlap=Overlap.PIPELINED if schedule.looped else Overlap.NONE,
    )
