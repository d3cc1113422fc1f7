"""Family bag: sums, means and largest elements of rows that indices choose, as bags of embeddings have them.

A core takes some bags, row by row of theirs: copies bring rows side by side into the unified buffer, and
halves of them are combined until one is left, the same way each time. Where offsets say what belongs to a
bag, they are read as numbers by the scalar unit and bound the loop over its rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from attrs import evolve, frozen

from evokernel_core.ascendc.kernels.candidates import SearchingFamily, Sizes, on_any_chip
from evokernel_core.ascendc.kernels.family import VECTORS_ALONE, StageText
from evokernel_core.ascendc.kernels.indexed import IndexedSchedule, index_dtype, refusal_of
from evokernel_core.ascendc.kernels.reading import input_below, only_node
from evokernel_core.ascendc.kernels.rendering import kernel_text, parameter, parameters_of, sized
from evokernel_core.ascendc.kernels.text import CPP_TYPE
from evokernel_core.ascendc.ops import EMBEDDING_BAG, categories
from evokernel_core.ascendc.shapes.sizes import Extent, extent
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Graph, ValueRef, literal
from evokernel_core.domain.kernel import Descriptor, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.twin.chip import Chip
from evokernel_core.twin.isa import BLOCK_BYTES, LANES
from evokernel_core.twin.roofline import launch_us

_WORDS = "a bag of rows"
_DTYPES = ("float32", "float16", "bfloat16")
MOST_RUN = 2048
"""Elements of a row that one core combines at a time."""
_BAGS = 64
"""Bags whose offsets are known at a time."""
_ROW_CYCLES = 35.0
_BAG_CYCLES = 260.0


@frozen
class Bag:
    """See EMBEDDING_BAG; names are those of the task's inputs."""

    table: str
    indices: tuple[str, str]
    offsets: tuple[str, str] | None
    weights: str | None
    mode: str
    padding: int
    whole: bool
    dtype: str
    rows: Extent
    run: Extent
    bags: Extent
    count: Extent
    length: Extent | None


def read_bag(task: KernelTask) -> Bag:
    """The one bag of a task. Raises PlanError where the task is anything else."""
    graph = task.graph
    node = only_node(
        task, {EMBEDDING_BAG.name}, "The kernel does more than combine rows that indices choose."
    )
    table, indices, offsets, weights, mode, padding, whole = node.args
    assert isinstance(table, ValueRef) and isinstance(indices, ValueRef)
    spec, chosen = graph.spec(table), graph.spec(indices).shape
    if spec.dtype not in _DTYPES:
        raise PlanError(f"Bags of {spec.dtype} rows are not covered.")
    starts = _index(graph, offsets) if isinstance(offsets, ValueRef) else None
    sizes = tuple(map(extent, chosen))
    return Bag(
        table=input_below(graph, table, _WORDS),
        indices=_index(graph, indices),
        offsets=starts,
        weights=input_below(graph, weights, _WORDS) if isinstance(weights, ValueRef) else None,
        mode=str(mode),
        padding=literal(padding),
        whole=bool(whole),
        dtype=spec.dtype,
        rows=extent(spec.shape[0]),
        run=extent(spec.shape[1]),
        bags=extent(node.outputs[0].shape[0]),
        count=sizes[0] if starts else sizes[0].times(sizes[1]),
        length=None if starts else sizes[1],
    )


def _index(graph: Graph, ref: ValueRef) -> tuple[str, str]:
    return input_below(graph, ref, _WORDS), index_dtype(graph, ref)


def _refusal(found: Bag, item: IndexedSchedule, sizes: Sizes, chip: Chip) -> str | None:
    if item.bytes < MOST_RUN * 4:
        return "A tile has at least one row."
    return refusal_of(item, 512, _ub_bytes(found, item), chip)


def _ub_bytes(found: Bag, item: IndexedSchedule) -> int:
    width, results = ITEM_SIZE[found.dtype], 2 * MOST_RUN * ITEM_SIZE[found.dtype]
    floats = (item.bytes // width + MOST_RUN) * 4 if width == 2 else 0
    window = item.runs * (ITEM_SIZE[found.indices[1]] + 4 * (found.weights is not None))
    starts = (_BAGS + 8) * ITEM_SIZE[found.offsets[1]] if found.offsets else 0
    return 2 * item.bytes + floats + results + window + starts


def _cost_us(found: Bag, item: IndexedSchedule, sizes: Sizes, chip: Chip) -> float:
    """Modelled microseconds: the slowest of the scalar unit, the copies and the vector unit of a core."""
    start = chip.vector.startup_cycles
    bags, count, run = (getattr(found, key).evaluate(sizes) for key in ("bags", "count", "run"))
    width, segments = ITEM_SIZE[found.dtype], math.ceil(run / MOST_RUN)
    length, segment = max(count / max(bags, 1), 1.0), min(run, MOST_RUN)
    units = math.ceil(bags * segments / chip.aiv)
    fitting = max(item.bytes // (math.ceil(segment * width / BLOCK_BYTES) * BLOCK_BYTES), 1)
    tiles = math.ceil(length / fitting)
    each = _ROW_CYCLES + chip.scalar.local_access_cycles * (found.weights is not None) * 2
    scalar = length * each + _BAG_CYCLES
    load = length * max(chip.mte.min_copy_cycles, segment * width / chip.mte.load_bytes_per_cycle)
    halves = math.ceil(math.log2(min(length, fitting) + 1))
    vector = length * segment / LANES * (2 if width == 2 else 1) + tiles * (halves + 2) * 2 * start
    rate = chip.gm.memory_bytes_us
    moved = (count + bags) * run * width / rate
    cores = min(bags * segments, chip.aiv)
    return float(max(units * max(scalar, load, vector) / chip.mhz, moved) + launch_us(chip, cores))


def _starts(found: Bag, sizes: Sizes, chip: Chip) -> Iterator[IndexedSchedule]:
    for size in (8192, 16384, 32768):
        for runs in (256, 1024):
            yield IndexedSchedule(runs, size)


def _steps(
    found: Bag, here: IndexedSchedule, sizes: Sizes, chip: Chip
) -> Iterator[tuple[str, IndexedSchedule]]:
    yield "more indices", evolve(here, runs=here.runs * 2)
    yield "larger tile", evolve(here, bytes=here.bytes * 2)
    yield "smaller tile", evolve(here, bytes=here.bytes // 2)


def _strategy(found: Bag, item: IndexedSchedule, move: str) -> Strategy:
    notes = (f"Tiles of {item.bytes} bytes of rows, {item.runs} indices at a time.", "Halves are combined.")
    return Strategy("bag", item.settings(), notes, Descriptor(2, 1, 2), move)


def _text(found: Bag, item: IndexedSchedule, task: KernelTask, name: str) -> StageText:
    """Rows into the unified buffer, halves onto each other, the result back."""
    extents = {key: getattr(found, key) for key in ("rows", "run", "bags", "count")}
    lengths = [] if found.length is None else [found.length]
    given = (found.table, found.indices[0], found.offsets and found.offsets[0], found.weights)
    return kernel_text(
        "embedding_bag",
        name,
        VECTORS_ALONE,
        s=item,
        type=CPP_TYPE[found.dtype],
        width=ITEM_SIZE[found.dtype],
        index_type=CPP_TYPE[found.indices[1]],
        offset_type=CPP_TYPE[found.offsets[1]] if found.offsets else None,
        weighted=found.weights is not None,
        mode=found.mode,
        padding=found.padding,
        whole=found.whole,
        length=lengths[0].cpp() if lengths else None,
        most_run=MOST_RUN,
        most_bags=_BAGS,
        ub_bytes=_ub_bytes(found, item),
        parameters=parameters_of(task),
        arguments=", ".join(parameter(tensor) for tensor in given if tensor),
        **sized(task, extents, lengths),
    )


FAMILY = SearchingFamily(
    name="bag",
    ops=categories(EMBEDDING_BAG),
    read=on_any_chip(read_bag),
    starts=_starts,
    steps=_steps,
    refusal=_refusal,
    cost_us=_cost_us,
    schedule_of=IndexedSchedule.of,
    strategy_of=_strategy,
    text_of=_text,
)
