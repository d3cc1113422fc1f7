"""Family layout: kernels that move elements without computing."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from evokernel_core.ascendc.families import layout_copy as copying
from evokernel_core.ascendc.families.family import Move, StageText
from evokernel_core.ascendc.layout_boxes import VIEWS, WORK, read_layout
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.twin.chip import Chip


@frozen
class LayoutFamily:
    """Permutations, slices, joins, paddings and fills of one result."""

    name: str = field(default="layout", init=False)
    strategies: frozenset[str] = field(default=frozenset({copying.FAMILY}), init=False)

    @property
    def ops(self) -> Mapping[str, str]:
        return dict.fromkeys(sorted(WORK), "kernel") | dict.fromkeys(sorted(VIEWS), "view")

    def check(self, task: KernelTask, chip: Chip) -> None:
        read_layout(task)

    def initial(self, task: KernelTask, chip: Chip) -> Strategy:
        layout = read_layout(task)
        legal = [item for item in copying.starts() if copying.refusal(layout, item, chip) is None]
        best = min(legal, key=lambda item: copying.estimate_us(layout, item, task.sizes, chip))
        return copying.strategy_of(best, "")

    def moves(self, task: KernelTask, strategy: Strategy, chip: Chip) -> tuple[Move, ...]:
        layout, here = read_layout(task), copying.CopySchedule.of(strategy)
        return tuple(
            Move(name, copying.strategy_of(item, name), self.name)
            for name, item in copying.steps(here)
            if copying.refusal(layout, item, chip) is None
        )

    def adapt(self, task: KernelTask, strategy: Strategy, chip: Chip) -> Strategy | None:
        layout, schedule = read_layout(task), copying.CopySchedule.of(strategy)
        return copying.strategy_of(schedule, "") if copying.refusal(layout, schedule, chip) is None else None

    def estimate_us(self, task: KernelTask, strategy: Strategy, chip: Chip) -> float:
        layout = read_layout(task)
        return copying.estimate_us(layout, copying.CopySchedule.of(strategy), task.sizes, chip)

    def text(self, task: KernelTask, strategy: Strategy, chip: Chip, name: str) -> StageText:
        return copying.text(read_layout(task), copying.CopySchedule.of(strategy), task, name)
