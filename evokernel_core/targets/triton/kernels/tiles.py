"""Schedules of kernels that memory limits: a tile of lines and columns to a program."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any

from attrs import frozen

from evokernel_core.compiler.schedule import Range, Scaled, Schedule
from evokernel_core.compiler.shapes.sizes import Extent, product
from evokernel_core.domain.sentence import Sentence
from evokernel_core.hardware.gpu.gpu import Gpu
from evokernel_core.targets.triton.expressions import next_power_of_2
from evokernel_core.targets.triton.kernels.function import JitFunction
from evokernel_core.targets.triton.kernels.occupancy import busy_share, streamed_us, together
from evokernel_core.targets.triton.kernels.text import TritonKernel

MOST_ELEMENTS = 1 << 14
"""Of a tile: more do not fit the registers of 16 warps with what is computed from them."""
_LIVE_BYTES = 32
"""Of an element, with its place and what is computed from it, where tiles lie in a buffer (assumed)."""
_IN_THREAD = 8
"""Elements of a tile to a thread that hide the way to memory."""
_START, _STEP = 60.0, 10.0
"""Instructions of a warp for the places of its tile, and for a step's (docs/results/gpu_search.md)."""
_INT32 = (1 << 31) - 1


@frozen
class TileSchedule(Schedule):
    """``lines`` x ``columns`` elements of a program at a time."""

    lines: Annotated[int, Range(1, 4096, power_of_two=True), Scaled("double lines", "halve lines")]
    columns: Annotated[int, Range(1, 8192, power_of_two=True), Scaled("double columns", "halve columns")]
    warps: Annotated[int, Range(1, 16, power_of_two=True), Scaled("double warps", "halve warps")] = 4

    @property
    def elements(self) -> int:
        """Of a tile."""
        return self.lines * self.columns


def why_not(problem: object, schedule: TileSchedule, sizes: object, gpu: Gpu) -> str | None:
    """Why a schedule makes no kernel."""
    most = min(MOST_ELEMENTS, gpu.live_bytes // _LIVE_BYTES) if gpu.live_bytes else MOST_ELEMENTS
    if schedule.elements > most:
        return Sentence("A tile has more than {most} elements.", most=most)
    if schedule.elements > 64 * schedule.warps * gpu.threads_per_warp:
        return "A tile has more elements than the registers of its threads hold."
    return None


def first(lines: int, columns: int, gpu: Gpu) -> Iterator[TileSchedule]:
    """Tiles no larger than what there is: neighbours along a column first, as memory brings them
    together."""
    for warps in (1, 2, 4, 8):
        elements = warps * gpu.threads_per_warp * _IN_THREAD
        for most in (elements, elements // 2, 128, 32):
            width = min(next_power_of_2(columns), most)
            height = min(next_power_of_2(lines), max(1, elements // width))
            yield TileSchedule(height, width, warps)


def tiled_us(
    gpu: Gpu, nbytes: float, programs: int, schedule: TileSchedule, each: float = 0.0, steps: int = 1
) -> float:
    """Estimated microseconds of programs that move bytes in so many steps of a tile, with ``each``
    instructions for an element of a thread in a step. Of a tile with fewer elements than threads, several do
    the same."""
    held = max(1.0, schedule.elements / (schedule.warps * gpu.threads_per_warp))
    issued = programs * schedule.warps * (_START + steps * (_STEP + each * held))
    rate = gpu.vector_flops / 2 / gpu.threads_per_warp * max(busy_share(gpu, programs), 0.01)
    moved = streamed_us(gpu, nbytes, programs, schedule.warps)
    return together(moved, issued / rate, programs / gpu.programs_us) + gpu.launch_us


def grid(schedule: TileSchedule, lines: str, columns: str) -> str:
    """The programs that cover so many lines and columns, in a grid."""
    return f"cdiv({lines}, {schedule.lines}) * cdiv({columns}, {schedule.columns})"


def kernel(
    function: JitFunction, schedule: TileSchedule, grid: str, stages: int = 1, **more: Any
) -> TritonKernel:
    """The kernel of one launch of a function, whose tiles have LINES and COLUMNS."""
    function.constant("LINES", schedule.lines)
    function.constant("COLUMNS", schedule.columns)
    launch = function.launch(grid, schedule.warps, stages)
    return TritonKernel((function.jit_text(),), (launch,), **more)


def covered(size: int, block: int) -> int:
    """Blocks that cover a size."""
    return math.ceil(size / block)


def wide(*extents: Extent) -> str:
    """The cast that numbers up to a product of extents take: none where 32 bits hold them for sure."""
    most = product(extents).constant
    return "" if most is not None and most <= _INT32 else ".to(tl.int64)"
