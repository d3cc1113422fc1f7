"""Schedules of matrix products: the tile of a program, how sums are split, and what that costs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated

from attrs import evolve, frozen

from evokernel_core.compiler.problems.products import Product, Triangle
from evokernel_core.compiler.schedule import Listed, Named, Range, Scaled, Schedule, Stages
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Split
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.gpu.gpu import Gpu
from evokernel_core.targets.triton.kernels.occupancy import together
from evokernel_core.targets.triton.kernels.precision import (
    PRECISION_NAMES,
    TURNED,
    Precision,
    first_precisions,
    why_not,
)
from evokernel_core.targets.triton.kernels.product_tiles import STEP_US, ProductTile

_MOST_SPLITS = 64


_TILE = Range(16, 256, power_of_two=True)
_SIDES = Named({True: "operands exchange their sides", False: "operands on their own sides"})


@frozen
class MatmulSchedule(Schedule):
    """The tile of a program, and how programs are ordered.

    ``group_m``: rows of tiles that are computed column by column, so that L2 holds what they share.
    ``split_k``: parts of each sum, which a second launch adds. ``swapped``: a tile is the transpose of the
    product of the transposed panels.
    """

    block_m: Annotated[int, _TILE, Scaled("double rows of tile", "halve rows of tile")]
    block_n: Annotated[int, _TILE, Scaled("double columns of tile", "halve columns of tile")]
    block_k: Annotated[int, _TILE, Scaled("double depth of tile", "halve depth of tile")]
    warps: Annotated[int, Range(1, 16, power_of_two=True), Scaled("double warps", "halve warps")] = 4
    stages: Annotated[
        int, Stages(1, 6), Listed("one stage more", "one stage less", table=(1, 2, 3, 4, 5, 6))
    ] = 3
    group_m: Annotated[int, Range(1, 64), Listed("larger groups", "smaller groups", table=(1, 4, 8, 16))] = 8
    split_k: Annotated[
        int, Range(1, _MOST_SPLITS, power_of_two=True), Scaled("double splits", "halve splits")
    ] = 1
    precision: Annotated[Precision, Named(PRECISION_NAMES)] = Precision.IEEE
    swapped: Annotated[bool, _SIDES] = False

    def constants(self) -> dict[str, int]:
        """Its constexpr parameters."""
        blocks = {"BLOCK_M": self.block_m, "BLOCK_N": self.block_n, "BLOCK_K": self.block_k}
        return {"GROUP_M": self.group_m, **blocks}


_TILES = (
    *((128, 256, 64, 8, 3), (256, 128, 64, 8, 3), (128, 128, 64, 8, 4), (128, 128, 32, 4, 4)),
    *((128, 64, 64, 4, 4), (64, 128, 64, 4, 4), (64, 64, 64, 4, 4), (64, 64, 32, 4, 4), (64, 32, 64, 4, 4)),
    *((32, 64, 64, 4, 4), (32, 32, 64, 4, 4), (16, 64, 128, 4, 4), (64, 16, 128, 4, 4), (16, 128, 128, 4, 4)),
    *((128, 16, 128, 4, 4), (16, 16, 256, 4, 3), (32, 16, 128, 4, 4), (16, 32, 128, 4, 4)),
    *(
        (128, 128, 16, 8, 4),
        (128, 64, 32, 8, 4),
        (64, 128, 32, 8, 4),
        (64, 64, 16, 4, 4),
    ),
    *((64, 64, 16, 8, 3), (128, 64, 16, 8, 3), (128, 128, 16, 16, 3), (32, 32, 32, 4, 3)),
)
"""Rows, columns, depth, warps and stages of tiles that programs of GPUs have."""


def starts(problem: Product, sizes: Mapping[str, int], gpu: Gpu) -> Iterator[MatmulSchedule]:
    """Tiles no larger than the product needs, with sums split where they leave multiprocessors idle."""
    batch, m, n, k = problem.evaluate(sizes)
    seen = set[MatmulSchedule]()
    for rows, columns, depth, warps, stages in _TILES:
        if rows > _rounded(m) or columns > _rounded(n):
            continue
        first = MatmulSchedule(rows, columns, min(depth, _rounded(k)), warps, stages)
        programs = batch * math.ceil(m / rows) * math.ceil(n / columns)
        for split in (1, 2, 4, 8, 16, 32, 64):
            fits = split == 1 or (
                programs * split <= 8 * gpu.multiprocessors and k >= 4 * split * first.block_k
            )
            if fits:
                precisions = first_precisions(problem.dtype, gpu)
                seen |= {_first(problem, first, split, precision) for precision in precisions}
    yield from sorted(seen, key=repr)


def _first(problem: Product, first: MatmulSchedule, split: int, precision: Precision) -> MatmulSchedule:
    """A first schedule: operands are exchanged where that has the right one along k in memory."""
    along = not problem.b.transposed and not problem.a.transposed
    return evolve(first, split_k=split, precision=precision, swapped=along and precision is Precision.TF32X3)


def _is_turned(problem: Product, schedule: MatmulSchedule) -> bool:
    """Whether neighbours of the right operand in memory are not along k."""
    return problem.a.transposed if schedule.swapped else not problem.b.transposed


def _rounded(size: int) -> int:
    """The tile that holds a whole dimension."""
    return min(max(16, 1 << max(size - 1, 0).bit_length()), 256)


def refusal(problem: Product, schedule: MatmulSchedule, sizes: Mapping[str, int], gpu: Gpu) -> str | None:
    """Why a schedule makes no kernel."""
    if problem.splits and schedule.split_k > 1:
        return "The parts of the sums are the task's own."
    if reason := why_not(schedule.precision, problem.dtype, gpu):
        return reason
    if not tile(problem, schedule).resident(gpu):
        return "The tile does not fit the registers and the shared memory of a multiprocessor."
    return None


def tile(problem: Product, schedule: MatmulSchedule) -> ProductTile:
    """What a program computes."""
    blocks = (schedule.block_m, schedule.block_n, schedule.block_k)
    return ProductTile(*blocks, schedule.warps, schedule.stages, schedule.precision, problem.dtype)


def estimate_us(
    problem: Product,
    schedule: MatmulSchedule,
    sizes: Mapping[str, int],
    gpu: Gpu,
    behind: float = 0.0,
    instructions: float = 0.0,
) -> float:
    """Estimated microseconds: arithmetic, L2 and device memory side by side, and the way into the first
    step; split sums are written, read and added besides. ``behind``: bytes that an epilogue reads and writes
    in place of the results; ``instructions``: of it for each result."""
    batch, m, n, k = problem.evaluate(sizes)
    size, out = ITEM_SIZE[problem.dtype], ITEM_SIZE[problem.out_dtype]
    parts = schedule.split_k * max(problem.splits, 1)
    depth = math.ceil(k / parts / schedule.block_k) * schedule.block_k
    programs = batch * parts * math.ceil(m / schedule.block_m) * math.ceil(n / schedule.block_n)
    computed = tile(problem, schedule).computed_us(gpu, programs, depth, instructions)
    computed *= _kept_share(problem.triangle, m, n)
    if schedule.precision is Precision.TF32X3 and _is_turned(problem, schedule):
        computed *= TURNED
    panels = programs * (schedule.block_m + schedule.block_n) * depth * size
    written = behind or float(batch * m * n * out * max(problem.splits, 1))
    moved = batch * (m * k + k * n) * size + written
    total = together(computed, panels / gpu.l2_bytes_us, moved / gpu.memory_bytes_us)
    if schedule.split_k > 1:
        partial = 2 * 4 * batch * schedule.split_k * m * n
        total += partial / gpu.l2_bytes_us + STEP_US + gpu.launch_us
    return total + 2 * STEP_US + gpu.launch_us


def _kept_share(triangle: Triangle | None, m: int, n: int) -> float:
    """The share of a result's elements that its triangle keeps: whole tiles beside it take no sums."""
    if triangle is None or m == 0 or n == 0:
        return 1.0
    step = max(m // 64, 1)
    rows = range(step // 2, m, step)
    first = [min(max(row + triangle.diagonal, 0), n) for row in rows]  # column of the diagonal
    share = sum(n - column if triangle.upper else min(column + 1, n) for column in first) / (len(first) * n)
    return max(share, 1 / len(first))


def notes(problem: Product, schedule: MatmulSchedule) -> Iterator[str]:
    """A schedule in words."""
    yield Sentence("Tiles of {block_m} x {block_n}, {block_k} deep, {warps} warps, {stages} stages.")
    if schedule.split_k > 1:
        yield Sentence("Sums split into {split_k} parts, which a second launch adds.")
    if schedule.precision is Precision.TF32X3:
        yield Sentence("Float32 products on matrix units, in three parts of TF32.")
    if schedule.swapped:
        yield Sentence("Operands exchange their sides, and tiles are transposed.")


def cell(problem: Product, schedule: MatmulSchedule) -> Descriptor:
    """Its archive cell."""
    split = Split.REDUCTION if schedule.split_k > 1 else Split.TILES
    return Descriptor(Dataflow.OUTPUT_STATIONARY, "SHARED", split, Algorithm.MATRIX_PRODUCT)
