"""Family integer rows: exact sums, products and extremes of rows of integers, whole or running.

Whole ones are computed in words of 32 bits, like element-wise arithmetic: lanes of vectors are elements of a
row, or short rows. A running one passes through the scalar unit, which has 64 bits, as few short rows do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from attrs import evolve

from evokernel_core.compiler.ops import REDUCE_INTEGERS, SCAN_INTEGERS, categories
from evokernel_core.compiler.problems.integers import IntegerRows, read_rows
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Reuse, Split
from evokernel_core.domain.sentence import Sentence
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.ir.nodes import Kernel
from evokernel_core.targets.ascendc.kernels.built import Sizes, variant_of
from evokernel_core.targets.ascendc.kernels.candidates import SearchingFamily, on_any_chip
from evokernel_core.targets.ascendc.kernels.integers import fold, lanes, scalar
from evokernel_core.targets.ascendc.kernels.integers.integers_settings import ROWS, TILES, IntegerRowsSchedule

_LONG = 1024
"""Elements of a tile from which on longer ones make little difference."""


def _why_illegal(problem: IntegerRows, schedule: IntegerRowsSchedule) -> str | None:
    if schedule.scalar and (schedule.buffers != 2 or schedule.rows):
        return "The scalar unit has two buffers, and no lanes."
    if problem.running and not schedule.scalar:
        return "What runs along a row takes one element after the other."
    return None


def _build(problem: IntegerRows, schedule: IntegerRowsSchedule) -> Kernel:
    if schedule.scalar:
        return scalar.build(problem, schedule)
    return lanes.build(problem, schedule) if schedule.rows else fold.build(problem, schedule)


_VARIANT = variant_of(_build, _why_illegal)


def _starts(problem: IntegerRows, sizes: Sizes, chip: Chip) -> Iterator[IntegerRowsSchedule]:
    """The scalar unit; as many rows as lanes as a core has and a tile holds; and elements as lanes, in tiles
    that make a difference."""
    rows, columns = problem.rows.evaluate(sizes), problem.columns.evaluate(sizes)
    share = math.ceil(rows / chip.aiv)
    for tile in TILES:
        yield IntegerRowsSchedule(tile, scalar=True)
    if problem.running:
        return
    most = [count for count in ROWS if count * columns <= TILES[-1] and count < 2 * share]
    yield from (IntegerRowsSchedule(TILES[-1], rows=count) for count in most[-2:])
    for tile in TILES[:-1]:
        if min(columns, _LONG) <= tile < 2 * max(columns, TILES[0]):
            two = IntegerRowsSchedule(tile)
            yield two if _VARIANT.rough(problem, two, sizes, chip) is None else evolve(two, buffers=1)


def _notes(problem: IntegerRows, schedule: IntegerRowsSchedule) -> Iterator[str]:
    if schedule.rows:
        yield Sentence("Up to {rows} rows are lanes.")
    elif schedule.scalar:
        yield Sentence("Element after element, on scalar units.")
    else:
        yield Sentence("Lanes, then halves of them.")
    yield Sentence("Tiles of {tile} elements, {buffers} buffer(s).")


def _cell(problem: IntegerRows, schedule: IntegerRowsSchedule) -> Descriptor:
    way = Algorithm.SCALAR if schedule.scalar else Algorithm.SINGLE_PASS
    dataflow = Dataflow.LANES if schedule.rows else Dataflow.STREAMED
    return Descriptor(dataflow, Reuse.NONE, Split.ROWS, way)


FAMILY = SearchingFamily(
    variant=_VARIANT,
    name="integer_rows",
    ops=categories(REDUCE_INTEGERS, SCAN_INTEGERS),
    read=on_any_chip(read_rows),
    schedule_of=IntegerRowsSchedule.of,
    starts=_starts,
    notes=_notes,
    cell=_cell,
)
