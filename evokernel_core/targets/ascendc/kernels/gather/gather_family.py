"""Family take: runs of memory that indices choose, as gather, index_select and embeddings read them.

An index is read as a number by the scalar unit and becomes the address of a copy. No copy depends on it
otherwise, so that a kernel takes the same way for all indices. PyTorch raises for an index outside of its
dimension; a kernel takes the nearest element and so reads no other memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from evokernel_core.compiler.ops import GATHER, categories
from evokernel_core.compiler.problems.gather import Take, read_take
from evokernel_core.compiler.shapes.sizes import product
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Overlap, Reuse, Split
from evokernel_core.domain.sentence import Sentence
from evokernel_core.hardware.ascend import memories
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES
from evokernel_core.targets.ascendc.ir.builder import Builder, at
from evokernel_core.targets.ascendc.ir.expr import U32, U64, Constant, CoreCount, Int, Size, ceil_div, least
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Kernel
from evokernel_core.targets.ascendc.kernels.built import Sizes, variant_of
from evokernel_core.targets.ascendc.kernels.candidates import SearchingFamily, on_any_chip
from evokernel_core.targets.ascendc.kernels.gather import gather_vector
from evokernel_core.targets.ascendc.kernels.gather.gather_settings import GatherSchedule
from evokernel_core.targets.ascendc.kernels.indexed import Indices
from evokernel_core.targets.ascendc.kernels.rendering import RAW, parameter

_NOTE = "Copies runs of the source to where the indices say, element for element as they are."
_MOST_RUN_BYTES = 2**32 - 1
_SECTOR_BYTES = 64
"""What is read of memory at least."""


def _why_illegal(problem: Take, schedule: GatherSchedule) -> str | None:
    return gather_vector.why_illegal(problem) if schedule.picks else None


def build(problem: Take, schedule: GatherSchedule) -> Kernel:
    """The kernel of a legal schedule."""
    return gather_vector.build(problem, schedule) if schedule.picks else _copies(problem, schedule)


def _copies(problem: Take, schedule: GatherSchedule) -> Kernel:
    """Runs go from device memory to device memory by way of the unified buffer."""
    k, width = Builder(_NOTE), problem.width
    source = k.input("source", parameter(problem.source), RAW[width], width, bypass_l2=schedule.bypass_l2)
    result = k.output("result", "output", RAW[width], width)
    entries = Constant("TILE_RUNS", schedule.runs, "whose indices are known at a time")
    most = Constant("TILE_ELEMENTS", schedule.bytes // width)
    block = Constant("BLOCK", BLOCK_BYTES // width, "elements")
    outer = k.param(
        "outer", Size(problem.outer), "dimensions of the source in front of those that are indexed"
    )
    lanes = k.param("lanes", Size(problem.lanes), "behind them, with an index for each")
    run = k.param("run", Size(problem.run), "elements behind the lanes, which move together")
    own = k.param("perOuter", Size(problem.count) * lanes, "runs of the result in each outer iteration")
    indices = Indices(k, problem.indices, entries, wraps=problem.wraps, clamps=True)
    runs = k.param("runs", outer * own)
    for size in (runs, run, *indices.sizes):
        k.require(size, ">=", 1)
    k.require(run, "<=", _MOST_RUN_BYTES // width, "copies count the bytes between runs in 32 bits")
    # What is read with the same indices: every outer iteration, or all as one.
    groups, all_of = (outer, own) if problem.shared else (Int(1), runs)
    share = k.param("share", least(ceil_div(runs, CoreCount()), all_of), "runs for every core")
    whole = k.param("unitRuns", least(share, entries), ctype=U32)
    units = k.param("unitsPerGroup", ceil_div(all_of, whole))
    segment = k.param("segmentElements", least(run, most), "of a run that move at a time", U32)
    pitch = k.param("pitch", ceil_div(segment, block) * block, "from run to run in a tile", U32)
    high = k.param("runsPerTile", least(entries, most // pitch), ctype=U32)
    tile = Buffer("tile", RAW[width], width, most, 2)
    with k.cores("unit", k.param("units", groups * units)) as unit:
        start = k.let("start", unit % units * whole, U64)
        count = k.let("count", least(k.let("left", all_of - start, U64), whole))
        first = k.let("first", unit // units * all_of + start, U64)
        indices.load(start, count)
        pieces = k.pieces("element", (0, run), segment), k.pieces("entry", (0, count), high)
        with pieces[0] as (element, elements), pieces[1] as (entry, rows):
            with k.loop("i", rows) as i:
                number = k.let("number", first + entry + i, U64)
                place = indices.place(entry + i)
                if not problem.outer.is_one:
                    place = (unit // units if problem.shared else number // own) * indices.places + place
                if not problem.lanes.is_one:
                    place = place * lanes + number % lanes
                start_of_run = k.let("from", place * run + element, U64)
                k.load(at(tile, i * pitch), source, start_of_run, elements)
            k.store(result, (first + entry) * run + element, tile, elements, rows=rows, apart=run)
    return k.kernel()


_BUILT = variant_of(build, _why_illegal)
_PICKS = tuple(
    GatherSchedule(runs, size, picks=True)
    for runs, size in (
        (1024, 16384),
        (512, 16384),
        (2048, 16384),
        (1024, 32768),
        (2048, 32768),
        (1024, 65536),
    )
)
"""Schedules of the vector unit to choose the first one from, the usual one in front."""


def _cost_us(problem: Take, schedule: GatherSchedule, sizes: Sizes, chip: Chip) -> float:
    again = _again_bytes(problem, sizes, chip) if schedule.bypass_l2 else 0.0
    return _BUILT.cost_us(problem, schedule, sizes, chip) + again / chip.gm.memory_bytes_us


def _again_bytes(problem: Take, sizes: Sizes, chip: Chip) -> float:
    """Bytes of runs that are chosen again while L2 would hold them; indices are taken as evenly spread."""
    places = product((problem.outer, *(size for _, _, size in problem.indices))).evaluate(sizes)
    chosen = product((problem.outer, problem.count)).evaluate(sizes)
    run = max(problem.run.evaluate(sizes) * problem.width, _SECTOR_BYTES) * problem.lanes.evaluate(sizes)
    distinct = -places * math.expm1(-chosen / max(places, 1))
    return float((chosen - distinct) * run * max(0.0, 1 - distinct * run / chip.l2_bytes))


def _starts(problem: Take, sizes: Sizes, chip: Chip) -> Iterator[GatherSchedule]:
    yield from _PICKS
    if not _are_slower(problem, sizes, chip):
        for runs in (128, 512, 1024, 2048):
            for size in (16384, 32768, 65536):
                yield GatherSchedule(runs, size)
                yield GatherSchedule(runs, size, bypass_l2=True)


def _are_slower(problem: Take, sizes: Sizes, chip: Chip) -> bool:
    """Whether copies take longer than the vector unit by their instructions alone, one for each run."""
    usual = _PICKS[0]
    if _BUILT.rough(problem, usual, sizes, chip) is not None:
        return False
    runs = product((problem.outer, problem.count, problem.lanes)).evaluate(sizes)
    least = math.ceil(runs / chip.aiv) * chip.mte.min_copy_cycles / chip.mhz
    return _BUILT.cost_us(problem, usual, sizes, chip) < least


def _notes(problem: Take, schedule: GatherSchedule) -> Iterator[str]:
    if schedule.picks:
        yield Sentence("{runs} elements at a time are picked from {bytes} bytes of rows.")
        yield Sentence("Vector unit.")
        yield Sentence("Rows come through L2.")
    else:
        yield Sentence("Tiles of {runs} runs and {bytes} bytes.")
        yield Sentence("Two tiles and two sets of indices.")
        yield Sentence("Runs pass L2 by.") if schedule.bypass_l2 else Sentence("Runs come through L2.")


def _cell(problem: Take, schedule: GatherSchedule) -> Descriptor:
    if schedule.picks:
        return Descriptor(Dataflow.PICKED, memories.UB, Split.ROWS, Algorithm.TABLE, Overlap.PIPELINED)
    reuse = Reuse.NONE if schedule.bypass_l2 else memories.L2
    return Descriptor(Dataflow.STREAMED, reuse, Split.SEGMENTS, Algorithm.COPY, Overlap.PIPELINED)


FAMILY = SearchingFamily(
    variant=_BUILT,
    name="take",
    ops=categories(GATHER),
    read=on_any_chip(read_take),
    schedule_of=GatherSchedule.of,
    starts=_starts,
    notes=_notes,
    cell=_cell,
    cost_us=_cost_us,
)
