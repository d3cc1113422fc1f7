"""Family convolution: implicit matrix products on the cube cores, without a copy of the unfolded input.

Rows of the product are output channels, columns are output pixels, and the depth runs over channels and
taps. A row of the right operand is a piece of the input shifted by a tap, so that it is read where it lies,
and the result lands where it belongs: nothing is transposed.
"""

from __future__ import annotations

from collections.abc import Iterator

from evokernel_core.compiler.ops import CONVOLUTION, categories
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Overlap, Split
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend import memories
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.ir.cube_legality import broken_rules
from evokernel_core.targets.ascendc.kernels.built import Sizes, told
from evokernel_core.targets.ascendc.kernels.candidates import SearchingFamily
from evokernel_core.targets.ascendc.kernels.convolution import convolution_rows, panels
from evokernel_core.targets.ascendc.kernels.convolution import convolution_rows_schedule as conv_rows
from evokernel_core.targets.ascendc.kernels.convolution import convolution_schedule as conv_schedule
from evokernel_core.targets.ascendc.kernels.convolution.convolution_estimate import (
    bounder,
    estimate_us,
    estimator,
)
from evokernel_core.targets.ascendc.kernels.convolution.convolution_rows_schedule import RowsSchedule
from evokernel_core.targets.ascendc.kernels.convolution.convolution_schedule import ConvolutionSchedule
from evokernel_core.targets.ascendc.kernels.convolution.epilogue import (
    MOST_OUTPUTS,
    MOST_PIXELS,
    Layer,
    Taker,
    behind_of,
    read_layer,
)
from evokernel_core.targets.ascendc.kernels.lowest import lowest
from evokernel_core.targets.ascendc.kernels.stage import KernelStage

AnySchedule = ConvolutionSchedule | RowsSchedule


def _build(layer: Layer, schedule: AnySchedule, chip: Chip, behind: Taker | None = None) -> KernelStage:
    if isinstance(schedule, RowsSchedule):
        return convolution_rows.build(layer.convolution, schedule, behind)
    return panels.build(layer.convolution, schedule, chip, behind)


def _schedule_of(strategy: Strategy) -> AnySchedule:
    is_rows = strategy.family == RowsSchedule.family
    return RowsSchedule.of(strategy) if is_rows else ConvolutionSchedule.of(strategy)


def refusal(layer: Layer, schedule: AnySchedule, chip: Chip) -> str | None:
    if layer.epilogue is not None and (schedule.base_m > MOST_OUTPUTS or schedule.part_n > MOST_PIXELS):
        return "The vector cores take smaller results."
    if isinstance(schedule, RowsSchedule):
        return conv_rows.refusal(layer.convolution, schedule, chip)
    return conv_schedule.refusal(layer.convolution, schedule, chip)


def _refusal(layer: Layer, schedule: AnySchedule, sizes: Sizes, chip: Chip) -> str | None:
    return refusal(layer, schedule, chip)


def _broken(layer: Layer, schedule: AnySchedule, sizes: Sizes, chip: Chip) -> str | None:
    return told(next(broken_rules(_build(layer, schedule, chip).kernel, chip, sizes), None))


def _cost_us(layer: Layer, schedule: AnySchedule, sizes: Sizes, chip: Chip) -> float:
    return estimate_us(layer.convolution, schedule, sizes, chip, layer.cost)


def _starts(layer: Layer, sizes: Sizes, chip: Chip) -> Iterator[AnySchedule]:
    """The best schedules of both kinds."""
    kinds = (best_of_panels(layer, sizes, chip), _best_of_rows(layer, sizes, chip))
    yield from (kind for kind in kinds if kind is not None)


def best_of_panels(layer: Layer, sizes: Sizes, chip: Chip) -> ConvolutionSchedule | None:
    convolution = layer.convolution
    return lowest(
        conv_schedule.shapes(convolution),
        at_least=bounder(convolution, sizes, chip, layer.cost),
        items=lambda shape: (
            schedule
            for schedule in conv_schedule.of_shape(convolution, shape, chip)
            if refusal(layer, schedule, chip) is None
        ),
        cost=estimator(convolution, sizes, chip, layer.cost, ranks=True),
    )


def _best_of_rows(layer: Layer, sizes: Sizes, chip: Chip) -> RowsSchedule | None:
    convolution = layer.convolution
    legal = (start for start in conv_rows.starts(convolution, chip) if refusal(layer, start, chip) is None)
    return min(legal, key=estimator(convolution, sizes, chip, layer.cost), default=None)


def _steps(layer: Layer, here: AnySchedule, sizes: Sizes, chip: Chip) -> Iterator[tuple[str, AnySchedule]]:
    """Steps from a schedule, and the best one of the other kind."""
    other: AnySchedule | None
    if isinstance(here, RowsSchedule):
        yield from conv_rows.steps(here)
        name, other = Sentence("rows come anew for each tap"), best_of_panels(layer, sizes, chip)
    else:
        yield from conv_schedule.steps(layer.convolution, here, chip)
        name, other = Sentence("rows stay in L1"), _best_of_rows(layer, sizes, chip)
    if other is not None:
        yield name, other


def _notes(layer: Layer, schedule: AnySchedule) -> Iterator[str]:
    pixels = f"{schedule.parts} * {schedule.part_n}"
    yield Sentence(
        "Tiles of {tile}, {depth} deep in L0; {held}.",
        tile=Sentence(
            "{channels} output channels x {pixels} pixels", channels=schedule.base_m, pixels=pixels
        ),
        depth=schedule.base_k,
        held=_held(schedule),
    )
    yield Sentence("Copies, loads, products and stores overlap.")


def _held(schedule: AnySchedule) -> Sentence:
    """What L1 holds, in words."""
    if isinstance(schedule, RowsSchedule):
        return Sentence("{pixels} pixels of rows and the weights stay in L1", pixels=schedule.ring_n)
    panels = f"{schedule.slots} * {schedule.panel_k}"
    held = Sentence("{panels} in L1; weights come in panels", panels=panels)
    if schedule.stay:
        held = Sentence("{panels} in L1; weights stay in L1", panels=panels)
    if not schedule.chunk_kib:
        return held
    size = schedule.chunk_kib
    return Sentence("{held}; vector cores frame {size} KiB of images ahead", held=held, size=size)


def _cell(layer: Layer, schedule: AnySchedule) -> Descriptor:
    """What stays in L1, and whether neighbouring tiles are other pixels or other outputs of the same ones."""
    product = Algorithm.MATRIX_PRODUCT
    if isinstance(schedule, RowsSchedule):
        return Descriptor(Dataflow.ROW_STATIONARY, memories.L1, Split.IMAGES, product, Overlap.PIPELINED)
    dataflow = Dataflow.WEIGHT_STATIONARY if schedule.stay else Dataflow.IM2COL_PANELS
    near = memories.L1 if schedule.stay or schedule.parts > 1 else memories.L0
    split = Split.CHANNELS if schedule.outputs_first else Split.IMAGES
    return Descriptor(
        dataflow, memories.L2 if schedule.chunk_kib else near, split, product, Overlap.PIPELINED
    )


def _text(layer: Layer, schedule: AnySchedule, task: KernelTask, chip: Chip, name: str) -> KernelStage:
    return _build(layer, schedule, chip, behind_of(layer, schedule.base_m, schedule.part_n, chip))


FAMILY = SearchingFamily(
    name="convolution",
    ops=categories(CONVOLUTION),
    read=read_layer,
    starts=_starts,
    steps=_steps,
    refusal=_refusal,
    broken=_broken,
    cost_us=_cost_us,
    schedule_of=_schedule_of,
    notes=_notes,
    cell=_cell,
    text_of=_text,
    strategies=frozenset({"convolution", RowsSchedule.family}),
)
