"""The schedule of a windowed kernel whose lanes are planes: how much of a plane a tile has, and those to
choose the first from.

Every element of a plane fills one block with the values of eight planes, so that any distance within a
plane is one in blocks. What a tile reads of a plane is one piece of memory, however short its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated

from attrs import evolve, frozen

from evokernel_core.compiler.problems.pooling import Axis, Combine, Window
from evokernel_core.compiler.schedule import Listed, Named, OneOf, Schedule, Word
from evokernel_core.compiler.shapes.sizes import ONE
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES
from evokernel_core.targets.ascendc.kernels.built import Sizes
from evokernel_core.targets.ascendc.kernels.pooling.lanes import BLOCK, GROUP, MOST_REPEATED, padded
from evokernel_core.targets.ascendc.kernels.settings import BUFFERS

_SHARES = (32, 64, 96, 128, 160, 192, 256, 320, 384, 448, 512, 640, 768, 896, 1024)
_BESIDE, _BURST = 384, 128
"""Elements that take as long as what a tile does once, and as a burst beside its elements."""


@frozen
class PlaneSchedule(Schedule):
    """Tiles of at most ``positions`` elements of a plane's result, in ``buffers`` buffers of the input."""

    positions: Annotated[int, Word("count"), OneOf(_SHARES), Listed("larger tile", "smaller tile", _SHARES)]
    buffers: Annotated[int, BUFFERS, Named({1: "one buffer", 2: "two buffers"})] = 2
    lanes: Annotated[str, OneOf(("planes",))] = "planes"


@frozen
class Planes:
    """A window as lanes of planes take it, with sizes of the user's file by which buffers are chosen: rows
    and columns of the result, columns of the input, and how many slices of sixteen planes there are.
    ``apply``: whether planes can lie side by side."""

    window: Window
    rows: int
    columns: int
    width: int
    tiles: int
    apply: bool


@frozen
class Room:
    """What buffers hold, in elements of a plane: ``inside`` of the input, ``middle`` after columns are
    combined. ``columns``: the widest tile that has all of them; others have ``part`` and read ``span``.
    ``line`` and ``result_line``: blocks of one half of the lanes, with what instructions read behind the last
    element. ``weights``: of a plane, its bias in a block behind them."""

    inside: int
    middle: int
    columns: int
    part: int
    span: int
    line: int
    result_line: int
    weights: int


def planes_of(window: Window, sizes: Sizes) -> Planes:
    """Rows with weights of their own are planes of one row each."""
    apply = applies(window)
    if window.weighs_rows:
        window = evolve(window, planes=window.rows.result, rows=Axis(ONE, ONE), weighs_rows=False)
    rows, columns, width, planes, slices = (
        choice.evaluate(sizes)
        for choice in (
            window.rows.result,
            window.columns.result,
            window.columns.size,
            window.planes,
            window.depth.result,
        )
    )
    return Planes(window, rows, columns, width, -(-planes // GROUP) * slices, apply)


def applies(window: Window) -> bool:
    """Whether planes can lie side by side: neighbours are combined within planes of several rows, or each
    row has weights of its own."""
    several = window.is_across and not (window.rows.is_plain and window.depth.is_plain)
    lies_side_by_side = several or window.finds or window.weighs_rows
    return lies_side_by_side and window.columns.stride <= MOST_REPEATED and window.spread == 1


def separates(window: Window) -> bool:
    """Whether columns are combined before rows."""
    return window.combine is not Combine.WEIGHTED and not window.finds


def room_of(problem: Planes, schedule: PlaneSchedule) -> Room:
    """What the buffers of a schedule hold."""
    window, unit = problem.window, max(BLOCK_BYTES // ITEM_SIZE[problem.window.dtype], BLOCK)
    across, down, positions = window.columns, window.rows, schedule.positions
    columns, width = problem.columns, problem.width
    if columns > positions // 2:
        columns = max(positions // 2, unit)
        width = reached(columns, across)
    rows = max(1, min(positions // columns, problem.rows))
    least = down.reach * padded(reached(unit, across), unit)
    inside = max(least, reached(rows, down) * padded(width, unit))
    middle = positions * down.stride + down.reach * 4 * BLOCK
    most = min(positions, middle // down.reach) if separates(window) else positions
    wide = inside // down.reach // unit * unit
    part = min((wide - across.reach) // across.stride + 1, most) // unit * unit
    line = padded(inside + BLOCK * across.stride + unit, GROUP)
    weights = padded(window.taps, unit) + (unit if window.bias else 0)
    span = padded(reached(part, across), unit)
    return Room(inside, middle, most, part, span, line, padded(positions, GROUP) + GROUP, weights)


def reached(windows: int, axis: Axis) -> int:
    """Elements from the first to the last that so many windows read."""
    return (windows - 1) * axis.stride + axis.reach


def tile_of(problem: Planes, schedule: PlaneSchedule) -> tuple[int, int]:
    """Rows and columns of a tile at the sizes of the user's file."""
    room, down = room_of(problem, schedule), problem.window.rows
    whole = problem.width <= room.inside // down.reach and problem.columns <= room.columns
    columns, width = (problem.columns, problem.width) if whole else (room.part, room.span)
    held = [room.inside // width, *([room.middle // columns] if separates(problem.window) else [])]
    fitting = min(schedule.positions // columns, *((rows - down.reach) // down.stride + 1 for rows in held))
    return -(-problem.rows // -(-problem.rows // fitting)), columns


def starts(problem: Planes, cores: int, fits: Callable[[PlaneSchedule], bool]) -> Iterator[PlaneSchedule]:
    """Of tiles that are cut alike those in the smallest buffers: the best that fits twice, and the best that
    fits once where it is twice as large."""
    largest = 0
    for buffers in (2, 1):
        tiles = {tile_of(problem, item): item for item in map(_of(buffers), reversed(_SHARES))}
        likely = [tile for tile in tiles if tile[0] * tile[1] >= 2 * largest]
        likely.sort(key=lambda tile: _work(problem, tile, cores))
        best = next((tile for tile in likely if fits(tiles[tile])), None)
        if best is not None:
            yield tiles[best]
            largest = best[0] * best[1]


def _of(buffers: int) -> Callable[[int], PlaneSchedule]:
    return lambda positions: PlaneSchedule(positions, buffers)


def _work(problem: Planes, tile: tuple[int, int], cores: int) -> int:
    """Elements of all tiles of a core, each tile with what it takes beside them."""
    rows, columns = tile
    tiles = problem.tiles * -(-problem.rows // rows) * -(-problem.columns // columns)
    held = reached(rows, problem.window.rows)
    bursts = 1 if columns == problem.columns else held
    inside = held * reached(columns, problem.window.columns) + bursts * _BURST
    return -(-tiles // cores) * (inside + rows * columns + _BESIDE)


def why_illegal(problem: Planes, schedule: PlaneSchedule) -> str | None:
    """Why a schedule makes no kernel."""
    return None if problem.apply else "The planes of the window cannot lie side by side."
