"""Family layout: kernels that move elements without computing."""

from __future__ import annotations

from collections.abc import Iterator

from evokernel_core.compiler.shapes.boxes import VIEWS, WORK, Layout, read_layout
from evokernel_core.domain.descriptor import Descriptor
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.kernels.built import Sizes
from evokernel_core.targets.ascendc.kernels.candidates import SearchingFamily, on_any_chip
from evokernel_core.targets.ascendc.kernels.layout import copy as copying
from evokernel_core.targets.ascendc.kernels.layout import transpose as transposing
from evokernel_core.targets.ascendc.kernels.layout.copy import CopySchedule
from evokernel_core.targets.ascendc.kernels.layout.transpose import TransposeSchedule, Transposition
from evokernel_core.targets.ascendc.kernels.stage import KernelStage

LayoutSchedule = CopySchedule | TransposeSchedule
_PARTS = Sentence("The result consists of parts, which are copied and not transposed.")


def _schedule_of(strategy: Strategy) -> LayoutSchedule:
    is_copy = strategy.family == CopySchedule.family
    return CopySchedule.of(strategy) if is_copy else TransposeSchedule.of(strategy)


def _transposition(layout: Layout, sizes: Sizes) -> Transposition:
    result = transposing.transposition_of(layout, sizes)
    if result is None:
        raise PlanError(_PARTS)
    return result


def _starts(layout: Layout, sizes: Sizes, chip: Chip) -> Iterator[LayoutSchedule]:
    yield from copying.starts()
    transposition = transposing.transposition_of(layout, sizes)
    if transposition is not None:
        yield from transposing.starts(transposition, chip)


def _steps(
    layout: Layout, here: LayoutSchedule, sizes: Sizes, chip: Chip
) -> Iterator[tuple[str, LayoutSchedule]]:
    """The schedules one step away, the change of method included."""
    if isinstance(here, TransposeSchedule):
        yield from transposing.steps(_transposition(layout, sizes), here)
        yield "copied without turning", CopySchedule()
        return
    yield from here.neighbours()
    transposition = transposing.transposition_of(layout, sizes)
    if transposition is not None:
        for start in transposing.starts(transposition, chip):
            yield "turned in the unified buffer", start


def _refusal(layout: Layout, schedule: LayoutSchedule, sizes: Sizes, chip: Chip) -> str | None:
    if isinstance(schedule, CopySchedule):
        return copying.refusal(layout, schedule, chip)
    transposition = transposing.transposition_of(layout, sizes)
    return _PARTS if transposition is None else transposing.refusal(transposition, schedule, chip)


def _cost_us(layout: Layout, schedule: LayoutSchedule, sizes: Sizes, chip: Chip) -> float:
    if isinstance(schedule, CopySchedule):
        return copying.estimate_us(layout, schedule, sizes, chip)
    return transposing.estimate_us(_transposition(layout, sizes), schedule, chip)


def _notes(layout: Layout, schedule: LayoutSchedule) -> tuple[str, ...]:
    return copying.NOTES if isinstance(schedule, CopySchedule) else transposing.notes(schedule)


def _cell(layout: Layout, schedule: LayoutSchedule) -> Descriptor:
    return copying.CELL if isinstance(schedule, CopySchedule) else transposing.cell(schedule)


def _text(layout: Layout, schedule: LayoutSchedule, task: KernelTask, chip: Chip, name: str) -> KernelStage:
    if isinstance(schedule, CopySchedule):
        return KernelStage(vectors=copying.kernel(layout, schedule))
    return KernelStage(vectors=transposing.kernel(layout, _transposition(layout, task.sizes), schedule))


FAMILY = SearchingFamily(
    name="layout",
    ops=dict.fromkeys(sorted(WORK), "kernel") | dict.fromkeys(sorted(VIEWS), "view"),
    read=on_any_chip(read_layout),
    starts=_starts,
    steps=_steps,
    refusal=_refusal,
    cost_us=_cost_us,
    schedule_of=_schedule_of,
    notes=_notes,
    cell=_cell,
    text_of=_text,
    too_large=Sentence("The parts of the result are filled with more numbers than fit on a core."),
    strategies=frozenset({CopySchedule.family, TransposeSchedule.family}),
)
