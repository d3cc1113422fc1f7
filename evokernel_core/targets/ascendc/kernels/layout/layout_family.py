"""Family layout: kernels that move elements without computing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import field, frozen

from evokernel_core.compiler.shapes.boxes import VIEWS, WORK, Layout, read_layout
from evokernel_core.compiler.target import Move
from evokernel_core.domain.descriptor import Descriptor
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.ir.nodes import Kernel
from evokernel_core.targets.ascendc.kernels.layout import copy as copying
from evokernel_core.targets.ascendc.kernels.layout import transpose as turning
from evokernel_core.targets.ascendc.kernels.layout.copy import CopySchedule
from evokernel_core.targets.ascendc.kernels.layout.transpose import TurnSchedule

_STRATEGIES = frozenset({copying.FAMILY, turning.FAMILY})


@frozen
class LayoutFamily:
    """Permutations, slices, joins, paddings and fills of one result."""

    name: str = field(default="layout", init=False)
    strategies: frozenset[str] = field(default=_STRATEGIES, init=False)

    @property
    def ops(self) -> Mapping[str, str]:
        return dict.fromkeys(sorted(WORK), "kernel") | dict.fromkeys(sorted(VIEWS), "view")

    def check(self, task: KernelTask, chip: Chip) -> None:
        read_layout(task)

    def initial(self, task: KernelTask, chip: Chip) -> Strategy:
        starts = list(_starts(read_layout(task), task.sizes, chip))
        if not starts:
            raise PlanError("The parts of the result are filled with more numbers than fit on a core.")
        return min(starts, key=lambda pair: pair[0])[1]

    def moves(self, task: KernelTask, strategy: Strategy, chip: Chip) -> tuple[Move, ...]:
        result = {step.settings: Move(step.move, step, self.name) for step in _steps(task, strategy, chip)}
        result.pop(strategy.settings, None)
        return tuple(result.values())

    def why_illegal(self, task: KernelTask, strategy: Strategy, chip: Chip) -> str | None:
        layout = read_layout(task)
        if strategy.family == copying.FAMILY:
            return copying.refusal(layout, CopySchedule.of(strategy), chip)
        return turning.refusal(_turn(layout, task), TurnSchedule.of(strategy), chip)

    def adapt(self, task: KernelTask, strategy: Strategy, chip: Chip) -> Strategy | None:
        layout = read_layout(task)
        if strategy.family == copying.FAMILY:
            return _copied(layout, CopySchedule.of(strategy), "", chip)
        turn = turning.turn_of(layout, task.sizes)
        return None if turn is None else _turned(turn, TurnSchedule.of(strategy), "", chip)

    def descriptor(self, task: KernelTask, strategy: Strategy, chip: Chip) -> Descriptor:
        if strategy.family == copying.FAMILY:
            return copying.strategy_of(CopySchedule.of(strategy), "").descriptor
        return turning.strategy_of(TurnSchedule.of(strategy), "").descriptor

    def estimate_us(self, task: KernelTask, strategy: Strategy, chip: Chip) -> float:
        layout = read_layout(task)
        if strategy.family == copying.FAMILY:
            return copying.estimate_us(layout, CopySchedule.of(strategy), task.sizes, chip)
        return turning.estimate_us(_turn(layout, task), TurnSchedule.of(strategy), chip)

    def text(self, task: KernelTask, strategy: Strategy, chip: Chip, name: str) -> Kernel:
        layout = read_layout(task)
        if strategy.family == copying.FAMILY:
            return copying.kernel(layout, CopySchedule.of(strategy))
        return turning.kernel(layout, _turn(layout, task), TurnSchedule.of(strategy))


def _turn(layout: Layout, task: KernelTask) -> turning.Turn:
    turn = turning.turn_of(layout, task.sizes)
    if turn is None:
        raise PlanError("The result consists of parts, which are copied and not turned.")
    return turn


def _copied(layout: Layout, schedule: CopySchedule, move: str, chip: Chip) -> Strategy | None:
    return copying.strategy_of(schedule, move) if copying.refusal(layout, schedule, chip) is None else None


def _turned(turn: turning.Turn, schedule: TurnSchedule, move: str, chip: Chip) -> Strategy | None:
    return turning.strategy_of(schedule, move) if turning.refusal(turn, schedule, chip) is None else None


def _starts(layout: Layout, sizes: Mapping[str, int], chip: Chip) -> Iterator[tuple[float, Strategy]]:
    """The schedules to choose the first one from, each behind its modelled microseconds."""
    for copy in copying.starts():
        strategy = _copied(layout, copy, "", chip)
        if strategy is not None:
            yield copying.estimate_us(layout, copy, sizes, chip), strategy
    turn = turning.turn_of(layout, sizes)
    if turn is not None:
        for start in turning.starts(turn, chip):
            yield turning.estimate_us(turn, start, chip), turning.strategy_of(start, "")


def _steps(task: KernelTask, strategy: Strategy, chip: Chip) -> Iterator[Strategy]:
    """The legal schedules one step away, the change of method included."""
    layout = read_layout(task)
    turn = turning.turn_of(layout, task.sizes)
    if strategy.family == copying.FAMILY:
        steps = (
            (name, _copied(layout, schedule, name, chip))
            for name, schedule in copying.steps(CopySchedule.of(strategy))
        )
        yield from (found for _, found in steps if found is not None)
        if turn is not None:
            yield from (
                turning.strategy_of(start, Sentence("turned in the unified buffer"))
                for start in turning.starts(turn, chip)
            )
        return
    assert turn is not None
    for name, schedule in turning.steps(turn, TurnSchedule.of(strategy)):
        result = _turned(turn, schedule, name, chip)
        if result is not None:
            yield result
    yield copying.strategy_of(CopySchedule(), Sentence("copied without turning"))
