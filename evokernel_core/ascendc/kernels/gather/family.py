"""Family take: runs of memory that indices choose, as gather, index_select and embeddings read them.

An index is read as a number by the scalar unit and becomes the address of a copy. No copy depends on it
otherwise, so that a kernel takes the same way for all indices. PyTorch raises for an index outside of its
dimension; a kernel takes the nearest element and so reads no other memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from attrs import evolve, frozen

from evokernel_core.ascendc.kernels.candidates import SearchingFamily, Sizes, on_any_chip
from evokernel_core.ascendc.kernels.family import VECTORS_ALONE, StageText
from evokernel_core.ascendc.kernels.gather import vector as take_gather
from evokernel_core.ascendc.kernels.indexed import (
    IndexedSchedule,
    index_dtype,
    refusal_of,
    steps_from,
)
from evokernel_core.ascendc.kernels.reading import input_below, only_node
from evokernel_core.ascendc.kernels.rendering import RAW, kernel_text, parameter, parameters_of, sized
from evokernel_core.ascendc.kernels.text import CPP_TYPE
from evokernel_core.ascendc.ops import GATHER, categories
from evokernel_core.ascendc.shapes.sizes import Extent, extent, product
from evokernel_core.domain.graph import ValueRef
from evokernel_core.domain.kernel import Descriptor, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.twin.chip import Chip
from evokernel_core.twin.isa import BLOCK_BYTES
from evokernel_core.twin.roofline import launch_us

_WORDS = "a read of what indices choose"
_RUN_CYCLES = 20.0
"""Scalar cycles to find an address and to start a copy."""


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
    buffer; otherwise every run is a copy."""

    picks: bool = False


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


def _refusal(found: Take, item: TakeSchedule, sizes: Sizes, chip: Chip) -> str | None:
    if item.picks:
        return take_gather.refusal(found, item, chip)
    return refusal_of(item, BLOCK_BYTES, _ub_bytes(found, item), chip)


def _ub_bytes(found: Take, item: IndexedSchedule) -> int:
    return 2 * item.bytes + sum(2 * item.runs * ITEM_SIZE[dtype] for _, dtype, _ in found.indices)


def _cost_us(found: Take, item: TakeSchedule, sizes: Sizes, chip: Chip) -> float:
    """Modelled microseconds: the slowest of the scalar unit and the copies of the busiest core."""
    if item.picks:
        return take_gather.cost_us(found, item, sizes, chip)
    runs = product((found.outer, found.count, found.lanes)).evaluate(sizes)
    run_bytes = found.run.evaluate(sizes) * found.width
    segment = min(run_bytes, item.bytes)
    pitch = math.ceil(segment / BLOCK_BYTES) * BLOCK_BYTES
    fitting = min(item.runs, item.bytes // pitch, math.ceil(runs / chip.aiv))
    cores = min(math.ceil(runs / fitting), chip.aiv)
    mine = math.ceil(runs / cores)
    segments = math.ceil(run_bytes / segment)
    scalar = mine * segments * (chip.scalar.local_access_cycles * len(found.indices) + _RUN_CYCLES)
    load = mine * segments * max(chip.mte.min_copy_cycles, segment / chip.mte.load_bytes_per_cycle)
    store = mine * segments * max(chip.mte.min_burst_cycles, segment / chip.mte.store_bytes_per_cycle)
    tiles = math.ceil(mine / fitting) * segments
    rate = chip.gm.memory_bytes_us
    moved = runs * (max(run_bytes, 64) + run_bytes) / rate
    # The first tile's loads and the last one's stores have nothing to overlap with.
    alone = (min(mine, fitting) / mine) * (max(scalar, load) + store - max(scalar, load, store))
    busy = max(scalar, load, store) + alone + tiles * 100.0 + 400.0
    return max(busy / chip.mhz, moved) + launch_us(chip, cores)


def _starts(found: Take, sizes: Sizes, chip: Chip) -> Iterator[TakeSchedule]:
    for runs in (128, 512, 1024, 2048):
        for size in (16384, 32768, 65536):
            yield TakeSchedule(runs, size)
            yield TakeSchedule(runs, size, picks=True)


def _steps(found: Take, here: TakeSchedule, sizes: Sizes, chip: Chip) -> Iterator[tuple[str, TakeSchedule]]:
    for name, item in steps_from(here, "runs"):
        yield name, evolve(here, runs=item.runs, bytes=item.bytes)
    yield "copies" if here.picks else "vector unit", evolve(here, picks=not here.picks)


def _strategy(found: Take, item: TakeSchedule, move: str) -> Strategy:
    notes = (f"Tiles of {item.runs} runs and {item.bytes} bytes.", "Two tiles and two sets of indices.")
    if item.picks:
        notes = (
            f"{item.runs} elements at a time are picked from {item.bytes} bytes of rows.",
            "Vector unit.",
        )
    return Strategy("take", item.settings(), notes, Descriptor(3, 0, 2), move)


def _text(found: Take, item: TakeSchedule, task: KernelTask, name: str) -> StageText:
    """Copies from device memory to device memory by way of the unified buffer, or rows to pick from there."""
    if item.picks:
        return take_gather.text(found, item, task, name)
    sizes = {key: getattr(found, key) for key in ("outer", "count", "lanes", "run")}
    indices = [{"type": CPP_TYPE[dtype], "size": size.cpp()} for _, dtype, size in found.indices]
    arguments = [found.source, *(source for source, _, _ in found.indices)]
    return kernel_text(
        "gather",
        name,
        VECTORS_ALONE,
        s=item,
        type=RAW[found.width],
        width=found.width,
        indices=indices,
        shared=found.shared,
        wraps=found.wraps,
        ub_bytes=_ub_bytes(found, item),
        parameters=parameters_of(task),
        arguments=", ".join(map(parameter, arguments)),
        **sized(task, sizes, [size for _, _, size in found.indices]),
    )


FAMILY = SearchingFamily(
    name="take",
    ops=categories(GATHER),
    read=on_any_chip(read_take),
    starts=_starts,
    steps=_steps,
    refusal=_refusal,
    cost_us=_cost_us,
    schedule_of=TakeSchedule.of,
    strategy_of=_strategy,
    text_of=_text,
)
