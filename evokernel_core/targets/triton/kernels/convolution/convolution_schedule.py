"""Schedules of convolutions as implicit products: the tile of a program and the order of what is summed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Annotated

from attrs import frozen

from evokernel_core.compiler.problems.direct_convolution import DirectConvolution
from evokernel_core.compiler.schedule import Listed, Named, Range, Scaled, Schedule, Stages
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Split
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.gpu.gpu import Gpu
from evokernel_core.targets.triton.expressions import next_power_of_2
from evokernel_core.targets.triton.kernels.occupancy import together
from evokernel_core.targets.triton.kernels.precision import (
    PRECISION_NAMES,
    Precision,
    first_precisions,
    why_not,
)
from evokernel_core.targets.triton.kernels.product_tiles import STEP_US, ProductTile

_OF_TAPS, _ADDRESSES, _APART = 4.0, 24.0, 146.0
"""Instructions for the address of an element of a tap, for that of one whose channel and tap follow from its
number, and for fetching a weight of one tap, which lies apart from the next (a convolution of float16 on an
H200, docs/results/gpu_search.md)."""
_TILE = Range(16, 256, power_of_two=True)


@frozen
class ConvolutionSchedule(Schedule):
    """``block_m`` channels of the result x ``block_n`` pixels of a program, from ``block_k`` terms at a time.
    ``by_taps``: the taps of the kernel are a loop around that over channels; else terms are numbered."""

    block_m: Annotated[int, _TILE, Scaled("double channels of tile", "halve channels of tile")]
    block_n: Annotated[int, _TILE, Scaled("double pixels of tile", "halve pixels of tile")]
    block_k: Annotated[int, _TILE, Scaled("double depth of tile", "halve depth of tile")]
    by_taps: Annotated[bool, Named({True: "tap by tap", False: "taps and channels at once"})]
    warps: Annotated[int, Range(1, 16, power_of_two=True), Scaled("double warps", "halve warps")] = 4
    stages: Annotated[
        int, Stages(1, 5), Listed("one stage more", "one stage less", table=(1, 2, 3, 4, 5))
    ] = 3
    precision: Annotated[Precision, Named(PRECISION_NAMES)] = Precision.IEEE

    def tile(self, dtype: str) -> ProductTile:
        """The tile as a product's."""
        blocks = (self.block_m, self.block_n, self.block_k)
        return ProductTile(*blocks, self.warps, self.stages, self.precision, dtype, scattered=True)


def starts(problem: DirectConvolution, sizes: Mapping[str, int], gpu: Gpu) -> Iterator[ConvolutionSchedule]:
    """Tiles no larger than the convolution needs."""
    outputs, pixels, terms = problem.evaluate(sizes)
    for rows, columns, depth, warps in (
        *((128, 128, 32, 8), (128, 64, 32, 8), (64, 128, 32, 8), (64, 256, 16, 8), (64, 128, 16, 4)),
        *((64, 64, 32, 4), (32, 256, 16, 8), (32, 128, 16, 4), (32, 64, 32, 4), (16, 256, 16, 4)),
        *((16, 128, 32, 4), (16, 64, 32, 2), (64, 32, 32, 4), (64, 64, 16, 4), (128, 128, 16, 16)),
        *((64, 128, 16, 8), (32, 128, 16, 4), (16, 128, 16, 4), (16, 16, 16, 1)),
    ):
        if rows > max(16, next_power_of_2(outputs)) or columns > max(16, next_power_of_2(pixels)):
            continue
        for by_taps in (False, True):
            channels = terms // problem.taps if by_taps else terms
            deep = min(depth, max(16, next_power_of_2(channels)))
            for stages, precision in product((3, 2), first_precisions(problem.dtype, gpu)):
                yield ConvolutionSchedule(rows, columns, deep, by_taps, warps, stages, precision)


def refusal(
    problem: DirectConvolution, schedule: ConvolutionSchedule, sizes: Mapping[str, int], gpu: Gpu
) -> str | None:
    """Why a schedule makes no kernel."""
    if reason := why_not(schedule.precision, problem.dtype, gpu):
        return reason
    if not schedule.tile(problem.dtype).resident(gpu):
        return "The tile does not fit the registers and the shared memory of a multiprocessor."
    return None


_PATCHES = 5.7
"""How many times as long products of float32 take whose panels are patches (57_Conv2d_ReLU_HardSwish of
KernelBench's level 2 took 3,958 us on an H200, docs/results/h200.md)."""


def estimate_us(
    problem: DirectConvolution,
    schedule: ConvolutionSchedule,
    sizes: Mapping[str, int],
    gpu: Gpu,
    behind: float = 0.0,
) -> float:
    """Estimated microseconds; ``behind``: bytes that an epilogue reads and writes in place of the result."""
    outputs, pixels, terms = problem.evaluate(sizes)
    size = ITEM_SIZE[problem.dtype]
    programs = problem.groups * math.ceil(outputs / schedule.block_m) * math.ceil(pixels / schedule.block_n)
    channels = terms // problem.taps
    depth = math.ceil(terms / schedule.block_k) * schedule.block_k
    if schedule.by_taps:
        depth = problem.taps * math.ceil(channels / schedule.block_k) * schedule.block_k
    computed = schedule.tile(problem.dtype).computed_us(gpu, programs, depth)
    if problem.dtype == "float32":
        computed *= _PATCHES
    addresses = (_OF_TAPS if schedule.by_taps else _ADDRESSES) * schedule.block_n
    if schedule.by_taps and problem.taps > 1 and not problem.transposed:
        addresses += _APART * schedule.block_m
    addresses *= programs * depth / gpu.vector_flops * 2
    image = math.prod(axis.size.evaluate(sizes) for axis in problem.axes)
    read = problem.groups * (problem.batch.evaluate(sizes) * channels * image + outputs * terms) * size
    written = behind or problem.groups * outputs * pixels * size
    panels = programs * (schedule.block_m + schedule.block_n) * depth * size
    total = together(computed + addresses, panels / gpu.l2_bytes_us, (read + written) / gpu.memory_bytes_us)
    return total + 2 * STEP_US + gpu.launch_us


def notes(problem: DirectConvolution, schedule: ConvolutionSchedule) -> Iterator[str]:
    """A schedule in words."""
    yield Sentence(
        "Tiles of {block_m} channels x {block_n} pixels, {block_k} deep, {warps} warps, {stages} stages."
    )
    taps = Sentence("Taps of the kernel one after another.")
    yield taps if schedule.by_taps else Sentence("Channels and taps in one loop.")


def cell(problem: DirectConvolution, schedule: ConvolutionSchedule) -> Descriptor:
    """Its archive cell."""
    flow = Dataflow.OUTPUT_STATIONARY if schedule.by_taps else Dataflow.IM2COL_PANELS
    return Descriptor(flow, "SHARED", Split.TILES, Algorithm.MATRIX_PRODUCT)
