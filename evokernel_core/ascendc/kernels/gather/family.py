"""Family take: runs of memory that indices choose, as gather, index_select and embeddings read them.

An index is read as a number by the scalar unit and becomes the address of a copy. No copy depends on it
otherwise, so that a kernel takes the same way for all indices. PyTorch raises for an index outside of its
dimension; a kernel takes the nearest element and so reads no other memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from attrs import evolve, frozen

from evokernel_core.ascendc.ir.builder import Builder, at
from evokernel_core.ascendc.ir.expr import U32, U64, Constant, CoreCount, Int, Size, ceil_div, least
from evokernel_core.ascendc.ir.nodes import Buffer, Kernel
from evokernel_core.ascendc.kernels.built import form_of
from evokernel_core.ascendc.kernels.candidates import SearchingFamily, Sizes, on_any_chip
from evokernel_core.ascendc.kernels.family import StageText
from evokernel_core.ascendc.kernels.gather import vector as take_gather
from evokernel_core.ascendc.kernels.indexed import (
    IndexedSchedule,
    Indices,
    index_dtype,
    size_refusal,
    steps_from,
)
from evokernel_core.ascendc.kernels.reading import input_below, only_node
from evokernel_core.ascendc.kernels.rendering import RAW, parameter
from evokernel_core.ascendc.ops import GATHER, categories
from evokernel_core.ascendc.shapes.sizes import Extent, extent, product
from evokernel_core.domain.graph import ValueRef
from evokernel_core.domain.kernel import Descriptor, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.twin.chip import Chip
from evokernel_core.twin.isa import BLOCK_BYTES

_WORDS = "a read of what indices choose"
_NOTE = "Copies runs of the source to where the indices say, element for element as they are."
_MOST_RUN_BYTES = 2**32 - 1
_SECTOR_BYTES = 64
"""What is read of memory at least."""


@frozen
class Take:
    """``places`` are the inputs with indices and what they count; see GATHER for the shapes."""

    source: str
    indices: tuple[tuple[str, str, Extent], ...]
    outer: Extent
    count: Extent
    lanes: Extent
    run: Extent
    shared: bool
    wraps: bool
    width: int


@frozen
class TakeSchedule(IndexedSchedule):
    """``picks``: the vector unit picks ``runs`` elements at a time from ``bytes`` of rows in the unified
    buffer; otherwise every run is a copy. ``bypass_l2``: runs do not push results out of L2."""

    picks: bool = False
    bypass_l2: bool = False


def read_take(task: KernelTask) -> Take:
    """The one take of a task. Raises PlanError where the task is anything else."""
    graph = task.graph
    node = only_node(task, {GATHER.name}, "The kernel does more than read what indices choose.")
    source, indices = node.args[0], node.args[1]
    assert isinstance(source, ValueRef) and isinstance(indices, tuple)
    spec, first = graph.spec(source), graph.spec(indices[0])
    shape = tuple(map(extent, spec.shape))
    outer = shape[0]
    return Take(
        source=input_below(graph, source, _WORDS),
        indices=tuple(
            (input_below(graph, ref, _WORDS), index_dtype(graph, ref), size)
            for ref, size in zip(indices, shape[1:-2], strict=True)
        ),
        outer=outer,
        count=extent(first.shape[1]),
        lanes=shape[-2],
        run=shape[-1],
        shared=extent(first.shape[0]).is_one and not outer.is_one,
        wraps=bool(node.args[2]),
        width=ITEM_SIZE[spec.dtype],
    )


def _why_illegal(found: Take, item: TakeSchedule) -> str | None:
    return size_refusal(item, BLOCK_BYTES)


def build(found: Take, schedule: TakeSchedule) -> Kernel:
    """The kernel of a schedule that copies, from device memory by way of the unified buffer."""
    k, width = Builder(_NOTE), found.width
    source = k.input("source", parameter(found.source), RAW[width], width, bypass_l2=schedule.bypass_l2)
    result = k.output("result", "output", RAW[width], width)
    entries = Constant("TILE_RUNS", schedule.runs, "whose indices are known at a time")
    most = Constant("TILE_ELEMENTS", schedule.bytes // width)
    block = Constant("BLOCK", BLOCK_BYTES // width, "elements")
    outer = k.param("outer", Size(found.outer), "dimensions of the source in front of those that are indexed")
    lanes = k.param("lanes", Size(found.lanes), "behind them, with an index for each")
    run = k.param("run", Size(found.run), "elements behind the lanes, which move together")
    own = k.param("perOuter", Size(found.count) * lanes, "runs of the result in each outer iteration")
    indices = Indices(k, found.indices, entries, wraps=found.wraps, clamps=True)
    runs = k.param("runs", outer * own)
    for size in (runs, run, *indices.sizes):
        k.require(size, ">=", 1)
    k.require(run, "<=", _MOST_RUN_BYTES // width, "copies count the bytes between runs in 32 bits")
    # What is read with the same indices: every outer iteration, or all as one.
    groups, all_of = (outer, own) if found.shared else (Int(1), runs)
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
                if not found.outer.is_one:
                    place = (unit // units if found.shared else number // own) * indices.places + place
                if not found.lanes.is_one:
                    place = place * lanes + number % lanes
                start_of_run = k.let("from", place * run + element, U64)
                k.load(at(tile, i * pitch), source, start_of_run, elements)
            k.store(result, (first + entry) * run + element, tile, elements, rows=rows, apart=run)
    return k.kernel()


_COPIES = form_of(build, _why_illegal)


def _refusal(found: Take, item: TakeSchedule, sizes: Sizes, chip: Chip) -> str | None:
    if item.picks:
        return take_gather.refusal(found, item, chip)
    return _COPIES.refusal(found, item, sizes, chip)


def _rough(found: Take, item: TakeSchedule, sizes: Sizes, chip: Chip) -> str | None:
    if item.picks:
        return take_gather.refusal(found, item, chip)
    return _COPIES.rough(found, item, sizes, chip)


def _cost_us(found: Take, item: TakeSchedule, sizes: Sizes, chip: Chip) -> float:
    if item.picks:
        return take_gather.cost_us(found, item, sizes, chip)
    again = _again_bytes(found, sizes, chip) if item.bypass_l2 else 0.0
    return _COPIES.cost_us(found, item, sizes, chip) + again / chip.gm.memory_bytes_us


def _again_bytes(found: Take, sizes: Sizes, chip: Chip) -> float:
    """Bytes of runs that are chosen again while L2 would hold them; indices are taken as evenly spread."""
    places = product((found.outer, *(size for _, _, size in found.indices))).evaluate(sizes)
    chosen = product((found.outer, found.count)).evaluate(sizes)
    run = max(found.run.evaluate(sizes) * found.width, _SECTOR_BYTES) * found.lanes.evaluate(sizes)
    distinct = -places * math.expm1(-chosen / max(places, 1))
    return float((chosen - distinct) * run * max(0.0, 1 - distinct * run / chip.l2_bytes))


def _starts(found: Take, sizes: Sizes, chip: Chip) -> Iterator[TakeSchedule]:
    for runs in (128, 512, 1024, 2048):
        for size in (16384, 32768, 65536):
            yield TakeSchedule(runs, size)
            yield TakeSchedule(runs, size, bypass_l2=True)
            yield TakeSchedule(runs, size, picks=True)


def _steps(found: Take, here: TakeSchedule, sizes: Sizes, chip: Chip) -> Iterator[tuple[str, TakeSchedule]]:
    for name, item in steps_from(here, "runs"):
        yield name, evolve(here, runs=item.runs, bytes=item.bytes)
    yield "copies" if here.picks else "vector unit", evolve(here, picks=not here.picks, bypass_l2=False)
    if not here.picks:
        yield "toggle L2 bypass", evolve(here, bypass_l2=not here.bypass_l2)


def _strategy(found: Take, item: TakeSchedule, move: str) -> Strategy:
    past = "Runs pass L2 by." if item.bypass_l2 else "Runs come through L2."
    notes = (f"Tiles of {item.runs} runs and {item.bytes} bytes.", "Two tiles and two sets of indices.", past)
    if item.picks:
        notes = (
            f"{item.runs} elements at a time are picked from {item.bytes} bytes of rows.",
            "Vector unit.",
            "Rows come through L2.",
        )
    return Strategy("take", item.settings(), notes, Descriptor(3, 0, 2), move)


def _text(found: Take, item: TakeSchedule, task: KernelTask, name: str) -> StageText | Kernel:
    """Copies, or rows to pick from in the unified buffer."""
    return take_gather.text(found, item, task, name) if item.picks else _COPIES.build(found, item)


FAMILY = SearchingFamily(
    name="take",
    ops=categories(GATHER),
    read=on_any_chip(read_take),
    starts=_starts,
    steps=_steps,
    refusal=_refusal,
    rough=_rough,
    cost_us=_cost_us,
    schedule_of=TakeSchedule.of,
    strategy_of=_strategy,
    text_of=_text,
)
