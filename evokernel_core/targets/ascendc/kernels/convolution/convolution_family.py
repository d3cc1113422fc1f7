"""Family convolution: implicit matrix products on the cube cores, without a copy of the unfolded input.

Rows of the product are output channels, columns are output pixels, and the depth runs over channels and
taps. A row of the right operand is a piece of the input shifted by a tap, so that it is read where it lies,
and the result lands where it belongs: nothing is transposed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import field, frozen

from evokernel_core.compiler.ops import CONVOLUTION, categories
from evokernel_core.compiler.target import Move
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Overlap, Reuse, Split
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.ir.cube_legality import broken_rules
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
    behind_of,
    read_layer,
)
from evokernel_core.targets.ascendc.kernels.cube import Behind, CubeKernel
from evokernel_core.targets.ascendc.kernels.lowest import lowest

_PANELS, _ROWS = "convolution", "convolution_rows"
_Schedule = ConvolutionSchedule | RowsSchedule


@frozen
class ConvolutionFamily:
    """Convolutions of one to three dimensions with any kernel, step, distance of taps and groups."""

    name: str = field(default="convolution", init=False)
    strategies: frozenset[str] = field(default=frozenset({_PANELS, _ROWS}), init=False)

    @property
    def ops(self) -> Mapping[str, str]:
        return categories(CONVOLUTION)

    def check(self, task: KernelTask, chip: Chip) -> None:
        read_layer(task, chip)

    def initial(self, task: KernelTask, chip: Chip) -> Strategy:
        layer = read_layer(task, chip)
        kinds = (best_of_panels(layer, task, chip), _best_of_rows(layer, task, chip))
        legal = [kind for kind in kinds if kind is not None]
        return _strategy(min(legal, key=lambda schedule: _cost(layer, schedule, task, chip)), "")

    def moves(self, task: KernelTask, strategy: Strategy, chip: Chip) -> tuple[Move, ...]:
        layer, here = read_layer(task, chip), _schedule(strategy)
        return tuple(
            Move(name, _strategy(schedule, name), self.name)
            for name, schedule in _steps(layer, here, task, chip)
            if schedule != here and refusal(layer, schedule, chip) is None
        )

    def why_illegal(self, task: KernelTask, strategy: Strategy, chip: Chip) -> str | None:
        layer, schedule = read_layer(task, chip), _schedule(strategy)
        reason = refusal(layer, schedule, chip)
        if reason is not None:
            return reason
        broken = next(broken_rules(_build(layer, schedule, chip).kernel, chip, task.sizes), None)
        return None if broken is None else f"{broken.rule} of {broken.place}: {broken.reason}"

    def adapt(self, task: KernelTask, strategy: Strategy, chip: Chip) -> Strategy | None:
        legal = self.why_illegal(task, strategy, chip) is None
        return _strategy(_schedule(strategy), "") if legal else None

    def descriptor(self, task: KernelTask, strategy: Strategy, chip: Chip) -> Descriptor:
        return _descriptor(_schedule(strategy))

    def estimate_us(self, task: KernelTask, strategy: Strategy, chip: Chip) -> float:
        return _cost(read_layer(task, chip), _schedule(strategy), task, chip)

    def text(self, task: KernelTask, strategy: Strategy, chip: Chip, name: str) -> CubeKernel:
        schedule = _schedule(strategy)
        layer = read_layer(task, chip)
        return _build(layer, schedule, chip, behind_of(layer, schedule.base_m, schedule.part_n, chip))


def _build(layer: Layer, schedule: _Schedule, chip: Chip, behind: Behind | None = None) -> CubeKernel:
    if isinstance(schedule, RowsSchedule):
        return convolution_rows.build(layer.convolution, schedule, behind)
    return panels.build(layer.convolution, schedule, chip, behind)


def _schedule(strategy: Strategy) -> _Schedule:
    return (RowsSchedule if strategy.family == _ROWS else ConvolutionSchedule).of(strategy)


def refusal(layer: Layer, schedule: _Schedule, chip: Chip) -> str | None:
    if layer.epilogue is not None and (schedule.base_m > MOST_OUTPUTS or schedule.part_n > MOST_PIXELS):
        return "The vector cores take smaller results."
    if isinstance(schedule, RowsSchedule):
        return conv_rows.refusal(layer.convolution, schedule, chip)
    return conv_schedule.refusal(layer.convolution, schedule, chip)


def _cost(layer: Layer, schedule: _Schedule, task: KernelTask, chip: Chip) -> float:
    return estimate_us(layer.convolution, schedule, task.sizes, chip, layer.cost)


def best_of_panels(layer: Layer, task: KernelTask, chip: Chip) -> ConvolutionSchedule | None:
    convolution = layer.convolution
    return lowest(
        conv_schedule.shapes(convolution),
        at_least=bounder(convolution, task.sizes, chip, layer.cost),
        items=lambda shape: (
            schedule
            for schedule in conv_schedule.of_shape(convolution, shape, chip)
            if refusal(layer, schedule, chip) is None
        ),
        cost=estimator(convolution, task.sizes, chip, layer.cost),
    )


def _best_of_rows(layer: Layer, task: KernelTask, chip: Chip) -> RowsSchedule | None:
    convolution = layer.convolution
    legal = (start for start in conv_rows.starts(convolution, chip) if refusal(layer, start, chip) is None)
    return min(legal, key=estimator(convolution, task.sizes, chip, layer.cost), default=None)


def _steps(layer: Layer, here: _Schedule, task: KernelTask, chip: Chip) -> Iterator[tuple[str, _Schedule]]:
    """Steps from a schedule, and the best one of the other kind."""
    convolution = layer.convolution
    other: _Schedule | None
    if isinstance(here, RowsSchedule):
        yield from conv_rows.steps(convolution, here)
        name, other = Sentence("rows come anew for each tap"), best_of_panels(layer, task, chip)
    else:
        yield from conv_schedule.steps(convolution, here, chip)
        name, other = Sentence("rows stay in L1"), _best_of_rows(layer, task, chip)
    if other is not None:
        yield name, other


def _strategy(schedule: _Schedule, move: str) -> Strategy:
    if isinstance(schedule, RowsSchedule):
        family = _ROWS
        held = Sentence("{pixels} pixels of rows and the weights stay in L1", pixels=schedule.ring_n)
    else:
        family = _PANELS
        told = {"panels": f"{schedule.slots} * {schedule.panel_k}"}
        held = Sentence("{panels} in L1; weights come in panels", **told)
        if schedule.stay:
            held = Sentence("{panels} in L1; weights stay in L1", **told)
    if isinstance(schedule, ConvolutionSchedule) and schedule.chunk_kib:
        held = Sentence(
            "{held}; vector cores frame {size} KiB of images ahead", held=held, size=schedule.chunk_kib
        )
    pixels = f"{schedule.parts} * {schedule.part_n}"
    tile = Sentence("{channels} output channels x {pixels} pixels", channels=schedule.base_m, pixels=pixels)
    notes = (
        Sentence("Tiles of {tile}, {depth} deep in L0; {held}.", tile=tile, depth=schedule.base_k, held=held),
        Sentence("Copies, loads, products and stores overlap."),
    )
    return Strategy(family, schedule.settings(), notes, _descriptor(schedule), move)


def _descriptor(schedule: _Schedule) -> Descriptor:
    """What stays in L1, and whether neighbouring tiles are other pixels or other outputs of the same ones."""
    product = Algorithm.MATRIX_PRODUCT
    if isinstance(schedule, RowsSchedule):
        return Descriptor(Dataflow.ROW_STATIONARY, Reuse.L1, Split.IMAGES, product, Overlap.PIPELINED)
    dataflow = Dataflow.WEIGHT_STATIONARY if schedule.stay else Dataflow.IM2COL_PANELS
    near = Reuse.L1 if schedule.stay or schedule.parts > 1 else Reuse.L0
    split = Split.CHANNELS if schedule.outputs_first else Split.IMAGES
    return Descriptor(dataflow, Reuse.L2 if schedule.chunk_kib else near, split, product, Overlap.PIPELINED)
