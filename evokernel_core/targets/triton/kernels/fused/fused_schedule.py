"""Schedules of fused kernels: the tile of a program, whether what is reduced is looped over, and warps."""

from __future__ import annotations

from typing import Annotated

from attrs import field, frozen

from evokernel_core.compiler.lowering.plan import Plan
from evokernel_core.compiler.schedule import Listed, Named, OneOf, Range, Scaled, Schedule
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.gpu.gpu import Gpu
from evokernel_core.targets.triton.expressions import next_power_of_2
from evokernel_core.targets.triton.kernels.fused.accumulating import count
from evokernel_core.targets.triton.kernels.live import live_tiles

MOST_TILE = 1 << 15
"""Elements of a tile that stays in registers: half of a multiprocessor's; results take as many."""
WARPS = (1, 2, 4, 8, 16, 32)
_BYTES_A_THREAD = 64
"""What a thread of a first draft loads of each input: four requests of 16 bytes are under way at once."""
_LOOPED = 4096
"""Columns of a step where a row is looped over."""
_LEAST_LANES = 16
"""Lanes of a program whose reduction goes over rows: two sectors of float32."""


@frozen
class TileSchedule(Schedule):
    """The tile of a program: ``rows`` by ``columns``, powers of two. A dimension that is reduced is the
    tile's own (its size rounded up), or comes in steps of a loop (``looped``). Element-wise: rows and columns
    of the iteration space; row-wise: columns are reduced; column-wise: rows are steps of the reduction and
    columns are lanes side by side; piecewise: both are reduced, rows are pieces."""

    rows: Annotated[int, Range(1, MOST_TILE, power_of_two=True), Scaled("double rows", "halve rows")]
    columns: Annotated[int, Range(1, MOST_TILE, power_of_two=True), Scaled("double columns", "halve columns")]
    warps: Annotated[int, OneOf(WARPS), Listed("more warps", "fewer warps", table=WARPS)]
    looped: Annotated[bool, Named({True: "loop over what is reduced", False: "keep what is reduced"})] = (
        field(default=False)
    )

    @property
    def tile(self) -> int:
        """Elements of the tile."""
        return self.rows * self.columns


def most_tile(plan: Plan, gpu: Gpu) -> int:
    """Elements of a tile at the most: of what registers hold, or of the memory that all tiles share which are
    alive at once, each of float32."""
    if not gpu.live_bytes:
        return MOST_TILE
    return 1 << (gpu.live_bytes // (4 * live_tiles(plan))).bit_length() - 1


def first_schedules(plan: Plan, sizes: dict[str, int], gpu: Gpu) -> tuple[TileSchedule, ...]:
    """The drafts of which an estimate chooses."""
    mid, inner = plan.mid.evaluate(sizes), plan.inner.evaluate(sizes)
    rows = plan.rows.evaluate(sizes)
    width = next_power_of_2(inner)
    if plan.family == "pointwise":
        size = max((ITEM_SIZE[one.dtype] for one in plan.inputs), default=4)
        return tuple(_pointwise(rows, width, size))
    if plan.family == "rowwise":
        return tuple(_rowwise(rows, width, is_read_once=count(plan) == 1))
    if plan.family == "columnwise":
        return tuple(_columnwise(mid, width))
    return tuple(_piecewise(mid * plan.leading.evaluate(sizes), width))


def _pointwise(rows: int, width: int, size: int) -> list[TileSchedule]:
    """``size``: bytes of an element of the widest input."""
    drafts = []
    for nbytes in (2048, 4096, 8192, 16384):
        columns = min(width, nbytes // size)
        height = min(next_power_of_2(rows), max(nbytes // size // columns, 1))
        drafts.append(TileSchedule(height, columns, warps_for(height * columns * size // 4)))
    return drafts


def _rowwise(rows: int, width: int, *, is_read_once: bool) -> list[TileSchedule]:
    """``is_read_once``: a loop reads no more than a tile that keeps the row, and holds less."""
    drafts = []
    if width <= (_LOOPED if is_read_once else MOST_TILE):
        for elements in (512, 1024, 2048, 4096):
            height = min(next_power_of_2(rows), max(elements // width, 1))
            drafts.append(TileSchedule(height, width, warps_for(height * width)))
    steps = (columns for columns in (_LOOPED // 2, _LOOPED, 2 * _LOOPED) if columns < width)
    drafts += [TileSchedule(1, columns, warps_for(columns), looped=True) for columns in steps]
    return list(dict.fromkeys(drafts))


def _columnwise(steps: int, width: int) -> list[TileSchedule]:
    drafts = []
    depth = next_power_of_2(steps)
    for lanes in (_LEAST_LANES, 2 * _LEAST_LANES, 64, 128, 256, 512):
        columns = min(width, lanes)
        if depth * columns <= MOST_TILE // 4:
            drafts.append(TileSchedule(depth, columns, warps_for(depth * columns)))
        for elements in (1024, 4096):
            height = max(elements // columns, 1)
            if height < depth:
                warps = warps_for(height * columns)
                drafts += [TileSchedule(height, columns, many, looped=True) for many in (2 * warps, warps)]
    return list(dict.fromkeys(drafts))


def _piecewise(pieces: int, width: int) -> list[TileSchedule]:
    drafts = []
    for elements in (1024, 2048, 4096):
        columns = min(width, elements)
        height = min(next_power_of_2(pieces), max(elements // columns, 1))
        drafts.append(TileSchedule(height, columns, warps_for(height * columns), looped=True))
    return list(dict.fromkeys(drafts))


def warps_for(elements: int) -> int:
    """The warps that give a thread about ``_BYTES_A_THREAD`` of float32 of each input."""
    wanted = max(elements * 4 // (_BYTES_A_THREAD * 32), 1)
    return max(warps for warps in WARPS[:-1] if warps <= wanted)
