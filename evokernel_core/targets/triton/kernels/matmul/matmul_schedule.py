"""Schedules of matrix products: the tile of a program, how sums are split, and what that costs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated

from attrs import evolve, frozen

from evokernel_core.compiler.problems.products import Product
from evokernel_core.compiler.schedule import Listed, Named, Range, Scaled, Schedule, Stages
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Split
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.gpu.gpu import Gpu
from evokernel_core.targets.triton.kernels.occupancy import resident, together

_OTHER_REGISTERS = 40
"""A thread's registers beside sums: addresses, masks and what is on its way."""
_STEP_US = 0.35
"""Assumed: from a load's request to the product of what it brought, with nothing ahead."""
_VECTOR_EFFICIENCY, _MATRIX_EFFICIENCY = 0.45, 0.75
"""Assumed shares of the peak rate that Triton's products reach on vector and on matrix units."""
_MOST_SPLITS = 64


class Precision(StrEnum):
    """How float32 operands are multiplied; other dtypes have one way."""

    IEEE = "ieee"
    TF32X3 = "tf32x3"
    """On matrix units in three parts, which keep float32's accuracy."""
    TF32 = "tf32"
    """Where the caller's own PyTorch setting allows it; no first schedule has it."""


_TILE = Range(16, 256, power_of_two=True)


@frozen
class MatmulSchedule(Schedule):
    """The tile of a program, and how programs are ordered.

    ``group_m``: rows of tiles that are computed column by column, so that L2 holds what they share.
    ``split_k``: parts of each sum, which a second launch adds.
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
    precision: Annotated[
        Precision, Named({Precision.IEEE: "float32 products", Precision.TF32X3: "products of three TF32 parts"})
    ] = Precision.IEEE  # fmt: skip

    def constants(self) -> dict[str, int]:
        """Its constexpr parameters."""
        return {"BLOCK_M": self.block_m, "BLOCK_N": self.block_n, "BLOCK_K": self.block_k}


_TILES = (
    *((128, 256, 64, 8, 3), (256, 128, 64, 8, 3), (128, 128, 64, 8, 4), (128, 128, 32, 4, 4)),
    *((128, 64, 64, 4, 4), (64, 128, 64, 4, 4), (64, 64, 64, 4, 4), (64, 64, 32, 4, 4), (64, 32, 64, 4, 4)),
    *((32, 64, 64, 4, 4), (32, 32, 64, 4, 4), (16, 64, 128, 4, 4), (64, 16, 128, 4, 4), (16, 128, 128, 4, 4)),
    *((128, 16, 128, 4, 4), (16, 16, 256, 4, 3), (32, 16, 128, 4, 4), (16, 32, 128, 4, 4)),
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
        tile = MatmulSchedule(rows, columns, min(depth, _rounded(k)), warps, stages)
        programs = batch * math.ceil(m / rows) * math.ceil(n / columns)
        for split in (1, 2, 4, 8, 16, 32, 64):
            fits = split == 1 or (
                programs * split <= 8 * gpu.multiprocessors and k >= 4 * split * tile.block_k
            )
            if fits:
                seen.add(evolve(tile, split_k=split))
    yield from sorted(seen, key=lambda one: (one.block_m, one.block_n, one.block_k, one.warps, one.split_k))


def _rounded(size: int) -> int:
    """The tile that holds a whole dimension."""
    return min(max(16, 1 << max(size - 1, 0).bit_length()), 256)


def refusal(problem: Product, schedule: MatmulSchedule, sizes: Mapping[str, int], gpu: Gpu) -> str | None:
    """Why a schedule makes no kernel."""
    if problem.splits and schedule.split_k > 1:
        return "The parts of the sums are the task's own."
    if schedule.precision is not Precision.IEEE and problem.dtype != "float32":
        return "Only products in float32 have a precision."
    if schedule.precision is Precision.TF32:
        return "Products in TF32 lose digits, which only the caller's PyTorch setting may allow."
    if not _resident(problem, schedule, gpu):
        return "The tile does not fit the registers and the shared memory of a multiprocessor."
    return None


def _registers(problem: Product, schedule: MatmulSchedule, gpu: Gpu) -> int:
    threads = schedule.warps * gpu.threads_per_warp
    sums = schedule.block_m * schedule.block_n / threads
    on_vectors = problem.dtype == "float32" and schedule.precision is Precision.IEEE
    operands = (
        (schedule.block_m + schedule.block_n) * min(schedule.block_k, 16) / threads if on_vectors else 0
    )
    return math.ceil(sums + operands) + _OTHER_REGISTERS


def _resident(problem: Product, schedule: MatmulSchedule, gpu: Gpu) -> int:
    panel = (schedule.block_m + schedule.block_n) * schedule.block_k * ITEM_SIZE[problem.dtype]
    return resident(gpu, schedule.warps, panel * schedule.stages, _registers(problem, schedule, gpu))


def estimate_us(problem: Product, schedule: MatmulSchedule, sizes: Mapping[str, int], gpu: Gpu) -> float:
    """Estimated microseconds: arithmetic, L2 and device memory side by side, and the way into the first
    step; split sums are written, read and added besides."""
    batch, m, n, k = problem.evaluate(sizes)
    size, out = ITEM_SIZE[problem.dtype], ITEM_SIZE[problem.out_dtype]
    parts = schedule.split_k * max(problem.splits, 1)
    depth = math.ceil(k / parts / schedule.block_k) * schedule.block_k
    programs = batch * parts * math.ceil(m / schedule.block_m) * math.ceil(n / schedule.block_n)
    held = max(_resident(problem, schedule, gpu), 1)
    rounds = math.ceil(programs / (gpu.multiprocessors * held))
    at_once = min(held, math.ceil(programs / gpu.multiprocessors))
    tile = (
        2
        * schedule.block_m
        * schedule.block_n
        * depth
        / (_rate(problem, schedule, gpu) / gpu.multiprocessors)
    )
    latency = depth / schedule.block_k * _STEP_US / schedule.stages
    computed = rounds * max(tile * at_once, latency)
    panels = programs * (schedule.block_m + schedule.block_n) * depth * size
    moved = batch * (m * k + k * n) * size + batch * m * n * out * max(problem.splits, 1)
    total = together(computed, panels / gpu.l2_bytes_us, moved / gpu.memory_bytes_us)
    if schedule.split_k > 1:
        partial = 2 * 4 * batch * schedule.split_k * m * n
        total += partial / gpu.l2_bytes_us + gpu.launch_us
    return total + 2 * _STEP_US + gpu.launch_us


def _rate(problem: Product, schedule: MatmulSchedule, gpu: Gpu) -> float:
    """Operations a microsecond of the whole GPU: small tiles load more than they compute with."""
    shape = schedule.block_m * schedule.block_n / (schedule.block_m + schedule.block_n)
    if problem.dtype == "float32" and schedule.precision is Precision.IEEE:
        return gpu.vector_flops * _VECTOR_EFFICIENCY * min(1.0, shape / 32)
    kind = "tf32" if problem.dtype == "float32" else problem.dtype
    peak = gpu.flops.get(kind, gpu.vector_flops) / (3 if schedule.precision is Precision.TF32X3 else 1)
    return peak * _MATRIX_EFFICIENCY * min(1.0, shape / 64)


def notes(problem: Product, schedule: MatmulSchedule) -> Iterator[str]:
    """A schedule in words."""
    yield "tiles of {block_m} x {block_n}, {block_k} deep, {warps} warps, {stages} stages"
    if schedule.split_k > 1:
        yield "sums split into {split_k} parts, added by a second launch"
    if schedule.precision is Precision.TF32X3:
        yield "float32 products on matrix units in three parts"


def cell(problem: Product, schedule: MatmulSchedule) -> Descriptor:
    """Its archive cell."""
    split = Split.REDUCTION if schedule.split_k > 1 else Split.TILES
    return Descriptor(Dataflow.OUTPUT_STATIONARY, "SHARED", split, Algorithm.MATRIX_PRODUCT)
