"""Layout, method copy: boxes whose rows lie together on both sides go through the unified buffer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar

from attrs import frozen

from evokernel_core.compiler.schedule import Listed, Range, Schedule, Shifted, Word
from evokernel_core.compiler.shapes.boxes import Box, Layout
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Reuse, Split
from evokernel_core.domain.sentence import Sentence
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES
from evokernel_core.targets.ascendc.ir.nodes import Kernel
from evokernel_core.targets.ascendc.ir.traffic import Burst, Tile, grain_of, kernel_us
from evokernel_core.targets.ascendc.kernels.layout.copied import (
    FILL_BYTES,
    LEAST_AXES,
    LINE_BYTES,
    MOST_ROWS,
    build,
    fills_of,
    loops,
)
from evokernel_core.targets.ascendc.kernels.settings import BUFFERS

_TILES = (4096, 8192, 16384, 24576, 32768, 49152, 65536)


@frozen
class CopySchedule(Schedule):
    """Bytes of a tile, and how many are in flight."""

    family: ClassVar[str] = "layout_copy"
    tile_bytes: Annotated[
        int,
        Word("bytes"),
        Range(BLOCK_BYTES, unit=BLOCK_BYTES),
        Listed("larger tile", "smaller tile", _TILES),
    ] = 32768
    buffers: Annotated[int, BUFFERS, Shifted("one more tile in flight", "one tile in flight less")] = 2


def starts() -> Iterator[CopySchedule]:
    for tile in _TILES:
        yield CopySchedule(tile, 2)
        yield CopySchedule(tile, 4)


def refusal(layout: Layout, schedule: CopySchedule, chip: Chip) -> str | None:
    """Why a schedule breaks a rule of the hardware; None where it is legal."""
    used = schedule.tile_bytes * schedule.buffers + len(fills_of(layout)) * FILL_BYTES
    return "The tiles do not fit the unified buffer." if used > chip.ub_bytes else None


# -- cost -----------------------------------------------------------------------------------------


def estimate_us(layout: Layout, schedule: CopySchedule, sizes: Mapping[str, int], chip: Chip) -> float:
    """Modelled microseconds of a schedule."""
    tiles, held = [], 0.0
    for box in layout.boxes:
        number, tile = _tile(box, layout.width, schedule, sizes)
        tiles.append((number, tile))
        held += number * sum(burst.bytes for burst in (*tile.loads, *tile.stores))
    return kernel_us(tiles, held, (schedule.buffers, schedule.buffers), chip)


def _tile(box: Box, width: int, schedule: CopySchedule, sizes: Mapping[str, int]) -> tuple[float, Tile]:
    axes = [
        (a.size.evaluate(sizes), a.from_stride.evaluate(sizes), a.to_stride.evaluate(sizes))
        for a in loops(box)
    ]
    axes = [(1, 0, 0)] * (LEAST_AXES - len(axes)) + axes
    (planes, _, _), (rows, from_stride, to_stride), (run, _, _) = axes[-3:]
    pads = (box.left + box.right) * width
    most = FILL_BYTES if box.is_fill else schedule.tile_bytes
    part = min(run, max((most - pads) // LINE_BYTES * LINE_BYTES // width, 1))
    parts = math.ceil(run / max(part, 1)) or 1
    length = run * width / parts
    pitch = math.ceil((length + pads) / BLOCK_BYTES) * BLOCK_BYTES or BLOCK_BYTES
    height = min(rows, max(1, min(most // pitch, MOST_ROWS))) or 1
    depth = min(planes, max(1, most // (pitch * height))) or 1
    number = math.prod(size for size, _, _ in axes[:-3]) * parts * (rows / height) * (planes / depth)
    starts = [box.from_start.evaluate(sizes), *(step for _, step, _ in axes[:-1])]
    ends = [box.to_start.evaluate(sizes) - box.left, *(step for _, _, step in axes[:-1])]

    def burst(stride: int, length: float, places: list[int]) -> Burst:
        grain = grain_of(place * width for place in places)
        if stride * width == length and length % BLOCK_BYTES == 0:
            return Burst(depth, 1, height * length, grain)
        if stride * width < length:
            return Burst(depth * height, 1, length, grain)
        return Burst(depth, height, length, grain)

    loads = () if box.is_fill else (burst(from_stride, length, starts),)
    return number, Tile(loads, (burst(to_stride, length + pads, ends),), bound=True)


# -- kernel ---------------------------------------------------------------------------------------


NOTES = (
    Sentence("Rows that lie together on both sides are copied in tiles of {bytes} bytes."),
    Sentence("{buffers} tiles are in flight."),
)
CELL = Descriptor(Dataflow.STREAMED, Reuse.NONE, Split.SEGMENTS, Algorithm.COPY)


def kernel(layout: Layout, schedule: CopySchedule) -> Kernel:
    """The kernel of a legal schedule."""
    return build(layout, schedule.tile_bytes, schedule.buffers)
