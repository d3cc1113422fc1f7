"""Family integer rows: exact sums, products and extremes of rows of integers, whole or running.

Whole ones are computed in words of 32 bits, like element-wise arithmetic: lanes of vectors are elements of a
row, or short rows. A running one passes through the scalar unit, which has 64 bits, as few short rows do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from attrs import evolve

from evokernel_core.ascendc.ir.nodes import Kernel
from evokernel_core.ascendc.kernels.built import form_of
from evokernel_core.ascendc.kernels.candidates import SearchingFamily, Sizes, on_any_chip
from evokernel_core.ascendc.kernels.family import VECTORS_ALONE, StageText
from evokernel_core.ascendc.kernels.integers import fold, lanes
from evokernel_core.ascendc.kernels.integers.problem import IntegerRows, RowsSchedule, read_rows
from evokernel_core.ascendc.kernels.rendering import class_name, parameter, parameters_of, render, sized
from evokernel_core.ascendc.kernels.text import CPP_TYPE
from evokernel_core.ascendc.ops import REDUCE_INTEGERS, SCAN_INTEGERS, categories
from evokernel_core.domain.kernel import Descriptor, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.twin.chip import Chip
from evokernel_core.twin.isa import RESERVED_BYTES
from evokernel_core.twin.roofline import launch_us

_ROWS = (32, 64, 128, 256, 512)
"""Rows of a tile that are lanes."""
_TILES = (256, 512, 1024, 2048, 4096, 8192)
"""The last one is for rows as lanes and for the scalar unit."""
_LONG = 1024
"""Elements of a tile from which on longer ones make little difference."""
_COPY = 400.0
"""Cycles of a copy and its flags before its first byte."""


def _why_illegal(found: IntegerRows, item: RowsSchedule) -> str | None:
    if item.tile not in _TILES or item.buffers not in (1, 2) or item.rows not in (0, *_ROWS):
        return "The tile or the number of buffers or rows is another one."
    if item.scalar and (item.buffers != 2 or item.rows):
        return "The scalar unit has two buffers, and no lanes."
    if found.running and not item.scalar:
        return "What runs along a row takes one element after the other."
    return None


def _build(found: IntegerRows, item: RowsSchedule) -> Kernel:
    return lanes.build(found, item) if item.rows else fold.build(found, item)


_VECTORS = form_of(_build, _why_illegal)


def _scalar_bytes(found: IntegerRows, item: RowsSchedule) -> int:
    return 2 * 2 * item.tile * ITEM_SIZE[found.dtype]


def _refusal(found: IntegerRows, item: RowsSchedule, sizes: Sizes, chip: Chip) -> str | None:
    if not item.scalar:
        return _VECTORS.refusal(found, item, sizes, chip)
    if _scalar_bytes(found, item) > chip.ub_bytes - RESERVED_BYTES:
        return "The buffers do not fit the unified buffer."
    return _why_illegal(found, item)


def _rough(found: IntegerRows, item: RowsSchedule, sizes: Sizes, chip: Chip) -> str | None:
    return (_refusal if item.scalar else _VECTORS.rough)(found, item, sizes, chip)


def _cost_us(found: IntegerRows, item: RowsSchedule, sizes: Sizes, chip: Chip) -> float:
    """Modelled microseconds of the kernel, its launch included."""
    if not item.scalar:
        return _VECTORS.cost_us(found, item, sizes, chip)
    rows, columns = found.rows.evaluate(sizes), found.columns.evaluate(sizes)
    share = math.ceil(rows / chip.aiv)
    accesses = share * columns * (2 if found.running else 1)
    cycles = accesses * chip.scalar.local_access_cycles + math.ceil(share * columns / item.tile) * _COPY
    return cycles / chip.mhz + launch_us(chip, math.ceil(rows / share))


def _starts(found: IntegerRows, sizes: Sizes, chip: Chip) -> Iterator[RowsSchedule]:
    """The scalar unit; as many rows as lanes as a core has and a tile holds; and elements as lanes, in tiles
    that make a difference."""
    rows, columns = found.rows.evaluate(sizes), found.columns.evaluate(sizes)
    share = math.ceil(rows / chip.aiv)
    for tile in _TILES:
        yield RowsSchedule(tile, scalar=True)
    if found.running:
        return
    most = [count for count in _ROWS if count * columns <= _TILES[-1] and count < 2 * share]
    yield from (RowsSchedule(_TILES[-1], rows=count) for count in most[-2:])
    for tile in _TILES[:-1]:
        if min(columns, _LONG) <= tile < 2 * max(columns, _TILES[0]):
            two = RowsSchedule(tile)
            yield two if _VECTORS.rough(found, two, sizes, chip) is None else evolve(two, buffers=1)


def _steps(
    found: IntegerRows, here: RowsSchedule, sizes: Sizes, chip: Chip
) -> Iterator[tuple[str, RowsSchedule]]:
    yield "double tile", evolve(here, tile=here.tile * 2)
    yield "halve tile", evolve(here, tile=here.tile // 2)
    yield "lanes" if here.scalar else "scalar unit", evolve(here, scalar=not here.scalar, rows=0)
    for rows in (0, *_ROWS):
        yield f"{rows} rows are lanes" if rows else "elements are lanes", evolve(here, rows=rows)
    yield "double buffer" if here.buffers == 1 else "single buffer", evolve(here, buffers=3 - here.buffers)


def _strategy(found: IntegerRows, item: RowsSchedule, move: str) -> Strategy:
    way = "Element after element, on scalar units." if item.scalar else "Lanes, then halves of them."
    if item.rows:
        way = f"Up to {item.rows} rows are lanes."
    notes = (way, f"Tiles of {item.tile} elements, {item.buffers} buffer(s).")
    return Strategy("integer_rows", item.settings(), notes, Descriptor(1 + item.buffers, 1, 1), move)


def _combined(kind: str, dtype: str) -> str:
    """The same combination as a C++ expression; unsigned integers wrap around."""
    if kind in ("max", "min"):
        return f"a {'>' if kind == 'max' else '<'} b ? a : b"
    unsigned, sign = f"u{CPP_TYPE[dtype]}", "+" if kind == "sum" else "*"
    return f"static_cast<{CPP_TYPE[dtype]}>(static_cast<{unsigned}>(a) {sign} static_cast<{unsigned}>(b))"


def _text(found: IntegerRows, item: RowsSchedule, task: KernelTask, name: str) -> StageText | Kernel:
    if not item.scalar:
        return _VECTORS.build(found, item)
    context: Mapping[str, object] = {
        "name": name,
        "class_name": class_name(name),
        "s": item,
        "type": CPP_TYPE[found.dtype],
        "running": found.running,
        "what": found.what,
        "combined": _combined(found.kind, found.dtype),
        "ub_bytes": _scalar_bytes(found, item),
        "source": parameter(found.source),
        "parameters": parameters_of(task),
        **sized(task, {"rows": found.rows, "columns": found.columns}),
    }
    tiling, compute, kernel = (
        render(f"integers/scalar_{part}", **context) for part in ("tiling", "compute", "kernel")
    )
    return StageText(tiling, compute, kernel, f"{name}_kernel", VECTORS_ALONE)


FAMILY = SearchingFamily(
    name="integer_rows",
    ops=categories(REDUCE_INTEGERS, SCAN_INTEGERS),
    read=on_any_chip(read_rows),
    starts=_starts,
    steps=_steps,
    refusal=_refusal,
    rough=_rough,
    cost_us=_cost_us,
    schedule_of=RowsSchedule.of,
    strategy_of=_strategy,
    text_of=_text,
)
