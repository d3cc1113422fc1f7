"""Schedules of convolutions that keep the input's rows in L1 for all rows of the kernel that they meet."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, ClassVar

from attrs import evolve, frozen

from evokernel_core.compiler.problems.convolution import Convolution
from evokernel_core.compiler.schedule import Range, Scaled, Schedule, Word
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.chip import Chip, CoreMemories
from evokernel_core.hardware.ascend.isa import FRACTAL
from evokernel_core.targets.ascendc.kernels.convolution.convolution_schedule import (
    IN_FRACTALS,
    OUTPUT_CHANNELS,
    PARTS,
    bias_bytes,
    step_depth,
    whole,
)


def _shallower(before: RowsSchedule, after: RowsSchedule) -> RowsSchedule:
    """A step of twice the pixels is half as deep."""
    is_wider = after.part_n > before.part_n
    return evolve(after, base_k=whole(after.base_k // 2)) if is_wider else after


@frozen
class RowsSchedule(Schedule):
    """A tile of the result is ``base_m`` output channels by ``parts`` times ``part_n`` pixels. L1 holds
    ``ring_n`` pixels of the input for each channel and tap of one row: the rows of two tiles, and those
    below that their taps reach. Weights stay in L1."""

    family: ClassVar[str] = "convolution_rows"
    base_m: Annotated[int, Word("channels"), IN_FRACTALS, OUTPUT_CHANNELS]
    part_n: Annotated[int, IN_FRACTALS, Scaled("more pixels a part", "fewer pixels a part", also=_shallower)]
    parts: Annotated[int, Range(), PARTS]
    base_k: Annotated[int, Word("depth"), IN_FRACTALS, Scaled("deeper step in L0", "shallower step in L0")]
    ring_n: Annotated[int, IN_FRACTALS]

    @property
    def base_n(self) -> int:
        return self.parts * self.part_n


def halo(problem: Convolution) -> int:
    """Rows below a row that its taps reach."""
    return (problem.kernel[1] - 1) * (problem.dilation[1].constant or 1)


def starts(problem: Convolution, chip: Chip) -> Iterator[RowsSchedule]:
    """Schedules among which a draft chooses; none where rows do not stay."""
    outputs, inner, size = problem.outputs.constant, problem.inner, ITEM_SIZE[problem.dtype]
    if not problem.rows_first or not inner:
        return
    widest = whole(min(outputs, 128)) if outputs else 128
    for base_m in sorted({widest, *(rows for rows in (16, 32, 64) if rows < widest)}):
        for part_n, parts in ((256, 2), (128, 2), (64, 2), (256, 1), (128, 1)):
            left = (chip.memory.l1_bytes - 2 * bias_bytes(problem, base_m)) // size
            fitting = (left - base_m * problem.kernel[1] * whole(inner)) // whole(inner)
            base_k = step_depth(problem, base_m, part_n, inner, chip)
            yield RowsSchedule(base_m, part_n, parts, base_k, fitting // FRACTAL * FRACTAL)


def steps(here: RowsSchedule) -> Iterator[tuple[str, RowsSchedule]]:
    """What one named step away is, legal or not."""
    yield from here.neighbours()
    yield "fewer rows in L1", evolve(here, ring_n=whole(here.ring_n // 2))


def refusal(problem: Convolution, schedule: RowsSchedule, chip: Chip) -> str | None:
    """Why a schedule breaks a rule of the hardware; None where it is legal."""
    if (
        problem.frame is not None
        or not problem.rows_first
        or not problem.inner
        or problem.stride[1] != 1
        or problem.dilation[1].constant is None
    ):
        return "The rows of the kernel do not meet the same rows of the input."
    return _too_large(problem, schedule, chip.memory)


def _too_large(problem: Convolution, schedule: RowsSchedule, memory: CoreMemories) -> str | None:
    size, inner = ITEM_SIZE[problem.dtype], problem.inner
    if schedule.ring_n < 2 * (1 + halo(problem)) * FRACTAL:
        return "L1 does not hold the rows of two tiles."
    if 2 * max(schedule.base_m, schedule.part_n) * schedule.base_k * size > memory.l0_bytes:
        return "Two steps of an operand do not fit L0."
    if schedule.parts * schedule.base_m * schedule.part_n * 4 > memory.l0c_bytes:
        return "The results do not fit L0C."
    biases = 2 * bias_bytes(problem, schedule.base_m)
    if (schedule.base_m * problem.kernel[1] + schedule.ring_n) * whole(
        inner
    ) * size + biases > memory.l1_bytes:
        return "Weights and rows do not fit L1."
    return None


@frozen
class RowTiles:
    """A tile: ``rows`` rows of ``width`` pixels, ``pitch`` columns apart, read in one ``run`` or row by
    row; ``of_plane`` counts those of one plane, ``strips`` those that begin one."""

    outputs: int
    rows: int
    width: int
    pitch: int
    run: bool
    of_outputs: int
    of_plane: int
    strips: int


def tiles_of(
    problem: Convolution, schedule: RowsSchedule, outputs: int, row_stride: int, made: tuple[int, ...]
) -> RowTiles:
    """The tiles that ComputeTiles of the kernel makes."""
    widest = schedule.ring_n // (2 * (1 + halo(problem))) // FRACTAL * FRACTAL
    narrow = min(schedule.part_n, widest)
    of_outputs = math.ceil(outputs / schedule.base_m)
    tile_m = whole(math.ceil(outputs / of_outputs))
    run = row_stride % FRACTAL == 0 and row_stride <= narrow
    pitch = row_stride if run else whole(made[2])
    if pitch > narrow:
        width = whole(math.ceil(made[2] / math.ceil(made[2] / min(schedule.base_n, widest))))
        strips = math.ceil(made[2] / width)
        return RowTiles(tile_m, 1, width, width, True, of_outputs, made[1] * strips, strips)
    most = min(schedule.parts * (schedule.part_n // pitch), schedule.ring_n // pitch // 2 - halo(problem))
    rows = math.ceil(made[1] / math.ceil(made[1] / most))
    return RowTiles(tile_m, rows, made[2], pitch, run or rows == 1, of_outputs, math.ceil(made[1] / rows), 1)
