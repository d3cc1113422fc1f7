"""Family integer rows: exact sums, products and extremes of rows of integers, whole or running.

Whole ones are computed in words of 32 bits, like element-wise arithmetic: lanes of vectors are elements of a
row, or short rows. A running one passes through the scalar unit, which has 64 bits, as few short rows do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from attrs import evolve

from evokernel_core.compiler.ops import REDUCE_INTEGERS, SCAN_INTEGERS, categories
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Overlap, Reuse, Split
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.sentence import Sentence
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.ir.nodes import Kernel
from evokernel_core.targets.ascendc.kernels.built import form_of
from evokernel_core.targets.ascendc.kernels.candidates import SearchingFamily, Sizes, on_any_chip
from evokernel_core.targets.ascendc.kernels.integers import fold, lanes, scalar
from evokernel_core.targets.ascendc.kernels.integers.integers_problem import (
    IntegerRows,
    RowsSchedule,
    read_rows,
)

_ROWS = (32, 64, 128, 256, 512)
"""Rows of a tile that are lanes."""
_TILES = (256, 512, 1024, 2048, 4096, 8192)
"""The last one is for rows as lanes and for the scalar unit."""
_LONG = 1024
"""Elements of a tile from which on longer ones make little difference."""


def _why_illegal(problem: IntegerRows, schedule: RowsSchedule) -> str | None:
    if schedule.tile not in _TILES or schedule.buffers not in (1, 2) or schedule.rows not in (0, *_ROWS):
        return "The tile or the number of buffers or rows is another one."
    if schedule.scalar and (schedule.buffers != 2 or schedule.rows):
        return "The scalar unit has two buffers, and no lanes."
    if problem.running and not schedule.scalar:
        return "What runs along a row takes one element after the other."
    return None


def _build(problem: IntegerRows, schedule: RowsSchedule) -> Kernel:
    if schedule.scalar:
        return scalar.build(problem, schedule)
    return lanes.build(problem, schedule) if schedule.rows else fold.build(problem, schedule)


_FORM = form_of(_build, _why_illegal)


def _starts(problem: IntegerRows, sizes: Sizes, chip: Chip) -> Iterator[RowsSchedule]:
    """The scalar unit; as many rows as lanes as a core has and a tile holds; and elements as lanes, in tiles
    that make a difference."""
    rows, columns = problem.rows.evaluate(sizes), problem.columns.evaluate(sizes)
    share = math.ceil(rows / chip.aiv)
    for tile in _TILES:
        yield RowsSchedule(tile, scalar=True)
    if problem.running:
        return
    most = [count for count in _ROWS if count * columns <= _TILES[-1] and count < 2 * share]
    yield from (RowsSchedule(_TILES[-1], rows=count) for count in most[-2:])
    for tile in _TILES[:-1]:
        if min(columns, _LONG) <= tile < 2 * max(columns, _TILES[0]):
            two = RowsSchedule(tile)
            yield two if _FORM.rough(problem, two, sizes, chip) is None else evolve(two, buffers=1)


def _steps(
    problem: IntegerRows, here: RowsSchedule, sizes: Sizes, chip: Chip
) -> Iterator[tuple[str, RowsSchedule]]:
    yield "double tile", evolve(here, tile=here.tile * 2)
    yield "halve tile", evolve(here, tile=here.tile // 2)
    yield "lanes" if here.scalar else "scalar unit", evolve(here, scalar=not here.scalar, rows=0)
    for rows in (0, *_ROWS):
        lanes = Sentence("{count} rows are lanes", count=rows) if rows else Sentence("elements are lanes")
        yield lanes, evolve(here, rows=rows)
    yield "double buffer" if here.buffers == 1 else "single buffer", evolve(here, buffers=3 - here.buffers)


def _strategy(problem: IntegerRows, schedule: RowsSchedule, move: str) -> Strategy:
    way = Sentence("Lanes, then halves of them.")
    if schedule.scalar:
        way = Sentence("Element after element, on scalar units.")
    if schedule.rows:
        way = Sentence("Up to {rows} rows are lanes.", rows=schedule.rows)
    notes = (
        way,
        Sentence(
            "Tiles of {tile} elements, {buffers} buffer(s).", tile=schedule.tile, buffers=schedule.buffers
        ),
    )
    return Strategy("integer_rows", schedule.settings(), notes, _descriptor(schedule), move)


def _descriptor(schedule: RowsSchedule) -> Descriptor:
    way = Algorithm.SCALAR if schedule.scalar else Algorithm.SINGLE_PASS
    dataflow = Dataflow.LANES if schedule.rows else Dataflow.STREAMED
    return Descriptor(dataflow, Reuse.NONE, Split.ROWS, way, Overlap.of(schedule.buffers))


FAMILY = SearchingFamily(
    name="integer_rows",
    ops=categories(REDUCE_INTEGERS, SCAN_INTEGERS),
    read=on_any_chip(read_rows),
    starts=_starts,
    steps=_steps,
    refusal=_FORM.refusal,
    rough=_FORM.rough,
    cost_us=_FORM.cost_us,
    schedule_of=RowsSchedule.of,
    strategy_of=_strategy,
    text_of=lambda found, schedule, task, name: _FORM.build(found, schedule),
)
