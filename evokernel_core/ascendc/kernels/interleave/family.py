"""Family interleave: thin tensors joined so that elements alternate, as in a stack along a last dimension.

Long runs of every tensor come into the unified buffer, where two transpositions of squares interleave them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from attrs import asdict, frozen

from evokernel_core.ascendc.kernels.candidates import SearchingFamily, Settings, Sizes
from evokernel_core.ascendc.kernels.family import StageText
from evokernel_core.ascendc.kernels.machine import LOAD_START, TILE_FLAGS, VECTOR_START
from evokernel_core.ascendc.kernels.reading import input_below, only_node
from evokernel_core.ascendc.kernels.rendering import (
    RAW,
    addresses,
    kernel_text,
    parameter,
    parameters_of,
    symbols_in,
)
from evokernel_core.ascendc.shapes.boxes import BLOCK_BYTES
from evokernel_core.ascendc.shapes.sizes import Extent, extent, product
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import literal
from evokernel_core.domain.kernel import Descriptor, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE, TensorSpec
from evokernel_core.twin.api import most_of
from evokernel_core.twin.chip import Chip

INTERLEAVE = "evokernel.interleave.default"
"""``(tensors, dim)``: tensors of one shape joined along ``dim``, as ``aten.cat`` does."""
MOST_TENSORS = 16
_UNIT_BYTES = 512
"""What one repeat of a transposition takes: 16 blocks."""
_MOST_REPEATS = most_of("TransDataTo5HD", "repeatTimes")
_BLOCK_CYCLES = 2.0
"""Cycles of a transposition of 16 blocks (table of vector instructions)."""


@frozen
class Interleave:
    """The tensors' names; each holds ``words`` words of ``width`` bytes, of which ``item`` stay together."""

    sources: tuple[str, ...]
    words: Extent
    width: int
    item: int


@frozen
class InterleaveSchedule(Settings):
    """Repeats of a transposition that a tile of one tensor takes, and how many tiles are under way."""

    repeats: int
    buffers: int


def words_of(spec: TensorSpec, dim: int) -> tuple[int, int] | None:
    """Bytes of a word, and the words of one tensor of a join along ``dim`` that stay together; None where
    the squares that are transposed do not hold whole such items."""
    size = ITEM_SIZE[spec.dtype]
    inner = product(map(extent, spec.shape[dim:])).constant
    if size < 2 or not inner:
        return None
    width = min(size, 4)
    item = inner * size // width
    side = BLOCK_BYTES // width
    return (width, item) if item < side and side % item == 0 else None


def read_interleave(task: KernelTask) -> Interleave:
    """The one join of a task. Raises PlanError where the task is anything else."""
    node = only_node(task, {INTERLEAVE}, "The kernel is not exactly one join of thin tensors.")
    refs = list(node.operands())
    spec = task.graph.spec(refs[0])
    found = words_of(spec, literal(node.args[1]))
    if found is None:
        raise PlanError("The items of a join are too long to be interleaved by transpositions.")
    width, item = found
    sources = tuple(input_below(task.graph, ref, "a join of thin tensors") for ref in refs)
    words = product([*map(extent, spec.shape), Extent(ITEM_SIZE[spec.dtype] // width)])
    return Interleave(sources, words, width, item)


def _starts(found: Interleave, sizes: Sizes, chip: Chip) -> Iterator[InterleaveSchedule]:
    yield from (InterleaveSchedule(repeats, 2) for repeats in (1, 2, 4, 8, 16, 24, 32, 48, 64))


def _steps(
    found: Interleave, here: InterleaveSchedule, sizes: Sizes, chip: Chip
) -> Iterator[tuple[str, InterleaveSchedule]]:
    yield "larger tiles", InterleaveSchedule(here.repeats * 2, here.buffers)
    yield "smaller tiles", InterleaveSchedule(here.repeats // 2, here.buffers)
    yield "one more tile under way", InterleaveSchedule(here.repeats, here.buffers + 1)
    yield "one tile less under way", InterleaveSchedule(here.repeats, here.buffers - 1)


def _refusal(found: Interleave, item: InterleaveSchedule, sizes: Sizes, chip: Chip) -> str | None:
    if not 1 <= item.repeats <= _MOST_REPEATS or not 1 <= item.buffers <= 4:
        return f"A transposition repeats at most {_MOST_REPEATS} times, and at most four tiles are under way."
    tile = len(found.sources) * item.repeats * _UNIT_BYTES
    if (2 * item.buffers + 1) * tile > chip.ub_bytes - 4096:
        return "The tiles do not fit the unified buffer."
    return None


def _cost_us(found: Interleave, item: InterleaveSchedule, sizes: Sizes, chip: Chip) -> float:
    """Modelled microseconds: memory, or the busiest core's transpositions and copies."""
    count, held = len(found.sources), found.words.evaluate(sizes) * found.width
    tile_bytes = item.repeats * _UNIT_BYTES
    tiles = math.ceil(held / tile_bytes)
    computed = 2 * count * (VECTOR_START + _BLOCK_CYCLES * item.repeats)
    moved = count * (tile_bytes / BLOCK_BYTES + VECTOR_START) + LOAD_START
    tile = max(computed, moved) if item.buffers > 1 else computed + 2 * moved
    busy = math.ceil(tiles / chip.aiv) * (tile + 3 * TILE_FLAGS) + 3 * LOAD_START
    memory = 2 * count * held / (chip.constants["gm.hbm_achieved_gbps"] * 1e3)
    return float(chip.launch_us + 4 + max(busy / chip.mhz, memory))


def _strategy(found: Interleave, item: InterleaveSchedule, move: str) -> Strategy:
    notes = (
        f"Runs of {item.repeats * _UNIT_BYTES} bytes of every tensor, {item.buffers} under way.",
        "Two transpositions in the unified buffer interleave the runs.",
    )
    return Strategy("interleave", asdict(item), notes, Descriptor(2, item.buffers, 1), move)


def _text(found: Interleave, item: InterleaveSchedule, task: KernelTask, name: str) -> StageText:
    """A stack of the parts of numbers."""
    words = found.words.cpp()
    places = [f"source{index}" for index in range(len(found.sources))]
    return kernel_text(
        "interleave",
        name,
        s=item,
        places=places,
        declared=addresses(*places, "output"),
        arguments=", ".join((*map(parameter, found.sources), "output")),
        type=RAW[found.width],
        width=found.width,
        item=found.item,
        unit=_UNIT_BYTES // found.width,
        words=words,
        symbols=symbols_in(task, [words]),
        parameters=parameters_of(task),
    )


FAMILY = SearchingFamily(
    name="interleave",
    ops={INTERLEAVE: "kernel"},
    read=read_interleave,
    starts=_starts,
    steps=_steps,
    refusal=_refusal,
    cost_us=_cost_us,
    schedule_of=InterleaveSchedule.of,
    strategy_of=_strategy,
    text_of=_text,
)
