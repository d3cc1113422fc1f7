"""Family windowed: pooling and depthwise convolution on the vector cores.

Neighbours along a row of memory do not start on 32 bytes, which vector instructions need. Sixteen rows
or sixteen planes at a time are therefore turned, so that the values of eight of them fill one block, and
any distance along a row or within a plane is a distance in blocks; what they combine to is turned back.

Lanes are ``rows`` where planes are large: rows of a window are combined as they lie, before 16 results
are turned. Lanes are ``planes`` where rows are short: what a tile reads of a plane is then one piece.
"""

from __future__ import annotations

from collections.abc import Iterator

from evokernel_core.compiler.aten import AVERAGE_POOLS, MAX_POOLS
from evokernel_core.compiler.problems.pooling import CONVOLUTIONS, Window, read_window
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Split
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend import memories
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.kernels.built import Sizes, variant_of
from evokernel_core.targets.ascendc.kernels.candidates import SearchingFamily, on_any_chip
from evokernel_core.targets.ascendc.kernels.pooling import pooling_planes_schedule as planes
from evokernel_core.targets.ascendc.kernels.pooling import pooling_rows_schedule as rows
from evokernel_core.targets.ascendc.kernels.pooling.planes import build as build_planes
from evokernel_core.targets.ascendc.kernels.pooling.planes import least_bytes as least_bytes_of_planes
from evokernel_core.targets.ascendc.kernels.pooling.pooling_planes_schedule import PlaneSchedule
from evokernel_core.targets.ascendc.kernels.pooling.pooling_rows import build, least_bytes
from evokernel_core.targets.ascendc.kernels.pooling.pooling_rows_schedule import WindowSchedule
from evokernel_core.targets.ascendc.kernels.settings import chosen
from evokernel_core.targets.ascendc.kernels.stage import KernelStage

_OPS = MAX_POOLS | AVERAGE_POOLS | CONVOLUTIONS
AnySchedule = WindowSchedule | PlaneSchedule
_ROWS = variant_of(build, rows.why_illegal)
_PLANES = variant_of(build_planes, planes.why_illegal)
_KINDS: dict[str, type[AnySchedule]] = {"rows": WindowSchedule, "planes": PlaneSchedule}


def _read(task: KernelTask) -> Window:
    return read_window(task, _OPS)


def schedule_of(strategy: Strategy) -> AnySchedule:
    """The schedule that a strategy describes."""
    kind: type[AnySchedule] = chosen(strategy, "lanes", _KINDS)
    return kind.of(strategy)


def _notes(window: Window, schedule: AnySchedule) -> Iterator[str]:
    if isinstance(schedule, PlaneSchedule):
        yield Sentence("Tiles of {count} elements of the result of sixteen planes.")
        yield Sentence("Sixteen planes at a time are transposed, so that neighbours lie blocks apart.")
        return
    yield Sentence("Tiles of {rows} rows and {columns} columns of the result.")
    yield Sentence("Rows of a window are combined as they lie in memory.")
    if window.is_across:
        yield Sentence("Sixteen rows at a time are transposed, so that columns of a window lie blocks apart.")


def _cell(window: Window, schedule: AnySchedule) -> Descriptor:
    if isinstance(schedule, PlaneSchedule):
        return Descriptor(Dataflow.LANES, memories.UB, Split.CHANNELS, Algorithm.TRANSPOSE)
    way = Algorithm.TRANSPOSE if window.is_across else Algorithm.DIRECT
    return Descriptor(Dataflow.BLOCKS, memories.UB, Split.TILES, way)


def _starts(window: Window, sizes: Sizes, chip: Chip) -> Iterator[AnySchedule]:
    if not window.finds:
        yield from _rows_starts(window, sizes, chip)
    yield from _plane_starts(window, sizes, chip)


def _plane_starts(window: Window, sizes: Sizes, chip: Chip) -> Iterator[AnySchedule]:
    problem = planes.planes_of(window, sizes)

    def fits(schedule: PlaneSchedule) -> bool:
        return (
            least_bytes_of_planes(problem, schedule) <= chip.ub_bytes
            and _rough(window, schedule, sizes, chip) is None
        )

    return planes.starts(problem, chip.aiv, fits) if problem.apply else iter(())


def _rows_starts(window: Window, sizes: Sizes, chip: Chip) -> Iterator[AnySchedule]:
    def fits(schedule: WindowSchedule) -> bool:
        return rows.why_illegal(window, schedule) is None and least_bytes(window, schedule) <= chip.ub_bytes

    return rows.starts(window, sizes, fits)


def _steps(window: Window, here: AnySchedule, sizes: Sizes, chip: Chip) -> Iterator[tuple[str, AnySchedule]]:
    """Named steps; a change of lanes goes to the best schedule of the others."""
    if isinstance(here, PlaneSchedule):
        yield from here.neighbours()
        others: Iterator[AnySchedule] = iter(()) if window.finds else _rows_starts(window, sizes, chip)
        name = Sentence("rows in lanes")
    else:
        yield from rows.steps(here, window)
        others = _plane_starts(window, sizes, chip)
        name = Sentence("planes in lanes")
    legal = [other_ for other_ in others if _refusal(window, other_, sizes, chip) is None]
    if legal:
        yield name, min(legal, key=lambda schedule: _cost_us(window, schedule, sizes, chip))


def _refusal(window: Window, schedule: AnySchedule, sizes: Sizes, chip: Chip) -> str | None:
    if isinstance(schedule, PlaneSchedule):
        return _PLANES.refusal(planes.planes_of(window, sizes), schedule, sizes, chip)
    if window.finds:
        return "Places of maxima are found with planes in lanes."
    return _ROWS.refusal(window, schedule, sizes, chip)


def _rough(window: Window, schedule: AnySchedule, sizes: Sizes, chip: Chip) -> str | None:
    if isinstance(schedule, PlaneSchedule):
        return _PLANES.rough(planes.planes_of(window, sizes), schedule, sizes, chip)
    return _ROWS.rough(window, schedule, sizes, chip)


def _cost_us(window: Window, schedule: AnySchedule, sizes: Sizes, chip: Chip) -> float:
    if isinstance(schedule, PlaneSchedule):
        return _PLANES.cost_us(planes.planes_of(window, sizes), schedule, sizes, chip)
    return _ROWS.cost_us(window, schedule, sizes, chip)


def _text(window: Window, schedule: AnySchedule, task: KernelTask, chip: Chip, name: str) -> KernelStage:
    if isinstance(schedule, PlaneSchedule):
        return KernelStage(vectors=_PLANES.build(planes.planes_of(window, task.sizes), schedule))
    return KernelStage(vectors=_ROWS.build(window, schedule))


FAMILY = SearchingFamily(
    name="windowed",
    ops=dict.fromkeys(sorted(_OPS), "kernel"),
    read=on_any_chip(_read),
    starts=_starts,
    steps=_steps,
    refusal=_refusal,
    rough=_rough,
    cost_us=_cost_us,
    schedule_of=schedule_of,
    notes=_notes,
    cell=_cell,
    text_of=_text,
    too_large=Sentence("A window's rows do not fit the unified buffer."),
    slowest_adapted=1.02,
)
