"""Family put: a copy of a tensor into which runs or elements are written where indices say so.

No two cores write the same elements, and a core writes in the order of the indices: of several values for
one place the last one stays, and sums are added as one core sends them, each time alike. PyTorch raises for
an index outside of its dimension; copies then go to the nearest place, single elements nowhere.

Where one core would have to write nearly everything, the entries are dealt out in parts: each part is put
into neutral elements of its own, and a reduction over the parts follows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from attrs import evolve, frozen

from evokernel_core.ascendc.kernels.candidates import SearchingFamily, Sizes, on_any_chip
from evokernel_core.ascendc.kernels.family import VECTORS_ALONE, StageText
from evokernel_core.ascendc.kernels.indexed import (
    IndexedSchedule,
    index_dtype,
    refusal_of,
    steps_from,
)
from evokernel_core.ascendc.kernels.reading import input_below, only_node
from evokernel_core.ascendc.kernels.rendering import RAW, kernel_text, parameter, parameters_of, sized
from evokernel_core.ascendc.kernels.text import CPP_TYPE
from evokernel_core.ascendc.ops import LAST, SCATTER, SCATTER_PARTS, categories
from evokernel_core.ascendc.shapes.sizes import Extent, extent, product
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import ValueRef, literal
from evokernel_core.domain.kernel import Descriptor, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.twin.chip import Chip
from evokernel_core.twin.roofline import launch_us

SUMMED = {"float32": "float", "int32": "int32_t", "int64": "int64_t"}
"""What is combined with what is there, and its C++ type; int64 only element by element."""
_ATOMICS = {"add": "SetAtomicAdd", "max": "SetAtomicMax", "min": "SetAtomicMin"}
_COMBINED = {
    "add": "kept + value",
    "mul": "kept * value",
    "max": "value > kept || value != value ? value : kept",
    "min": "value < kept || value != value ? value : kept",
}
_NEUTRAL = {"add": "0.0f", "max": "-__builtin_inff()", "min": "__builtin_inff()"}
"""What changes nothing, of the kinds that parts have, as C++ says it."""
_WORDS = {
    LAST: "replaced by",
    "add": "added to",
    "mul": "multiplied by",
    "max": "compared with larger",
    "min": "compared with smaller",
}
_READER = "a write where indices say so"
_WRITE = 110.0
"""Cycles of one write that the next one waits for."""
_UNWAITED = 30.0
"""The same where none waits."""
_LOOK = 6.0
"""Cycles to tell whether an index, once read, lies in a range of places."""


@frozen
class Put:
    """See SCATTER and SCATTER_PARTS. ``source``, which parts have none of, ``places`` with what they count,
    and ``values`` are inputs of the task."""

    source: str | None
    places: tuple[tuple[str, str, Extent], ...]
    values: str
    dtype: str
    kind: str
    outer: Extent
    count: Extent
    run: Extent
    shared: bool
    wraps: bool
    parts: int = 0

    @property
    def elements(self) -> bool:
        """Whether single elements are put."""
        return self.run.is_one

    @property
    def size(self) -> Extent:
        return product(size for _, _, size in self.places)

    @property
    def copies(self) -> bool:
        """Whether copies into device memory can put the values: those combine only what atomics do."""
        return self.kind == LAST or (self.kind in _ATOMICS and self.dtype != "int64")

    @property
    def waits(self) -> bool:
        """Whether a copy waits for the one before: of two values for one place the last one stays, while
        combined ones all count."""
        return self.kind == LAST


@frozen
class PutSchedule(IndexedSchedule):
    """``picks``: the scalar unit puts single elements into a tile of the unified buffer; otherwise every run
    is a copy. ``owned``: a core copies the whole runs that go to its own range of places, and looks at every
    index for them; otherwise it copies a segment of every run."""

    picks: bool = False
    owned: bool = False


def read_put(task: KernelTask) -> Put:
    """The one put of a task. Raises PlanError where the task is anything else."""
    graph = task.graph
    node = only_node(
        task, {SCATTER.name, SCATTER_PARTS.name}, "The kernel does more than write where indices say so."
    )
    in_parts = node.op == SCATTER_PARTS.name
    source, indices, values, kind, wraps = node.args[:5]
    assert isinstance(indices, tuple) and isinstance(values, ValueRef)
    spec, places = graph.spec(values), graph.spec(indices[0])
    if kind != LAST and spec.dtype not in SUMMED:
        raise PlanError(f"{spec.dtype} combined at indices is not covered; float32, int32 and int64 are.")
    outer, count, run = map(extent, spec.shape)
    if kind != LAST and not run.is_one and (kind == "mul" or spec.dtype == "int64"):
        raise PlanError("Runs of int64, and products of runs, are put element by element.")
    sizes = node.outputs[0].shape[2:-1] if in_parts else node.outputs[0].shape[1:-1]
    return Put(
        source=None if in_parts else _input(task, source),
        places=tuple(
            (_input(task, ref), index_dtype(graph, ref), extent(size))
            for ref, size in zip(indices, sizes, strict=True)
        ),
        values=_input(task, values),
        dtype=spec.dtype,
        kind=str(kind),
        outer=outer,
        count=count,
        run=run,
        shared=extent(places.shape[0]).is_one and not outer.is_one,
        wraps=bool(wraps),
        parts=literal(node.args[5]) if in_parts else 0,
    )


def _input(task: KernelTask, ref: object) -> str:
    assert isinstance(ref, ValueRef)
    return input_below(task.graph, ref, _READER)


def _refusal(found: Put, item: PutSchedule, sizes: Sizes, chip: Chip) -> str | None:
    if not (found.elements if item.picks else found.copies):
        return "Runs are copied, and what atomics do not combine is put element by element."
    if item.owned and (item.picks or found.parts):
        return "Only whole runs that are put into one copy of the source are dealt out by their places."
    return refusal_of(item, 512, _ub_bytes(found, item), chip)


def _ub_bytes(found: Put, item: PutSchedule) -> int:
    indices = sum(item.runs * ITEM_SIZE[dtype] for _, dtype, _ in found.places)
    if item.picks:
        return item.bytes + 32 + indices + item.runs * ITEM_SIZE[found.dtype]
    return (3 if found.parts else 2) * item.bytes + indices


def _cost_us(found: Put, item: PutSchedule, sizes: Sizes, chip: Chip) -> float:
    """Modelled microseconds: the copy of the source, and the writes of the busiest core one by one."""
    outer, size, count, run = (
        getattr(found, key).evaluate(sizes) for key in ("outer", "size", "count", "run")
    )
    width, parts = ITEM_SIZE[found.dtype], max(found.parts, 1)
    copied = (1 + parts) * outer * size * run * width + outer * count * run * width
    rate = chip.gm.memory_bytes_us
    share = math.ceil(count / parts)
    reads = len(found.places) * chip.scalar.local_access_cycles
    if item.picks:
        tiles = math.ceil(size * width / item.bytes)
        rows = _rows_of_tile(found, item, outer, size, count, chip)
        units = parts * math.ceil(outer / rows) * tiles
        cores = min(units, chip.aiv)
        accesses = (2 if found.kind == LAST else 3) * chip.scalar.local_access_cycles + reads
        work = math.ceil(units / cores) * (rows * share * (accesses + 8) + 800.0)
    elif item.owned:
        units = outer * math.ceil(run * width / item.bytes)
        owners = math.ceil(size / math.ceil(size / math.ceil(chip.aiv / min(units, chip.aiv))))
        cores = min(units * owners, chip.aiv)
        written = math.ceil(count / owners) * (_WRITE if found.waits else _UNWAITED)
        work = math.ceil(units * owners / cores) * (count * (reads + _LOOK) + written)
    else:
        segments = math.ceil(run * width / item.bytes)
        wanted = math.ceil(chip.aiv / min(outer, chip.aiv))
        segments = max(segments, min(wanted, math.ceil(run * width / 512)))
        cores = min(parts * outer * segments, chip.aiv)
        work = math.ceil(parts * outer * segments / cores) * share
        work *= reads + (_WRITE if found.waits else _UNWAITED)
    moved = max(copied / rate, copied / cores / chip.mte.load_bytes_per_cycle / chip.mhz)
    return float(moved + work / chip.mhz + launch_us(chip, cores))


def _rows_of_tile(found: Put, item: PutSchedule, outer: int, size: int, count: int, chip: Chip) -> int:
    """Whole rows of elements that one core takes at a time, as ComputeTiling has them."""
    if found.parts:
        return 1
    fitting = min(item.bytes // (max(size, 1) * ITEM_SIZE[found.dtype]), item.runs // max(count, 1))
    return max(min(fitting, math.ceil(outer / chip.aiv)), 1)


def _starts(found: Put, sizes: Sizes, chip: Chip) -> Iterator[PutSchedule]:
    for runs in (256, 1024, 4080):
        for size in (16384, 32768, 65536):
            yield PutSchedule(runs, size, found.elements)
            yield PutSchedule(runs, size, not found.elements)
            yield PutSchedule(runs, size, picks=False, owned=True)


def _steps(found: Put, here: PutSchedule, sizes: Sizes, chip: Chip) -> Iterator[tuple[str, PutSchedule]]:
    for name, item in steps_from(here, "indices a tile"):
        yield name, evolve(here, runs=item.runs, bytes=item.bytes)
    yield "copies" if here.picks else "scalar unit", evolve(here, picks=not here.picks, owned=False)
    yield "segments of runs" if here.owned else "ranges of places", evolve(here, owned=not here.owned)


def _strategy(found: Put, item: PutSchedule, move: str) -> Strategy:
    dealt = (f"Entries in {found.parts} parts, each with a result of its own.",) if found.parts else ()
    notes = (
        f"Tiles of {item.bytes} bytes, {item.runs} indices at a time.",
        "Each core writes a range of places." if item.owned else "Writes in the order of indices.",
        *dealt,
    )
    return Strategy("put", item.settings(), notes, Descriptor(2, 1, 2), move)


def _text(found: Put, item: PutSchedule, task: KernelTask, name: str) -> StageText:
    """Two forms: runs are written by copies, elements by the scalar unit."""
    sizes = {key: getattr(found, key) for key in ("outer", "size", "count", "run")}
    width = ITEM_SIZE[found.dtype]
    indices = [{"type": CPP_TYPE[dtype], "size": size.cpp()} for _, dtype, size in found.places]
    read = [] if found.source is None else [found.source]
    arguments = [*read, *(ref for ref, _, _ in found.places), found.values]
    return kernel_text(
        "scatter/elements" if item.picks else "scatter/rows",
        name,
        VECTORS_ALONE,
        s=item,
        type=RAW[width] if found.kind == LAST else SUMMED[found.dtype],
        width=width,
        indices=indices,
        shared=found.shared,
        kind=found.kind,
        combined=_COMBINED.get(found.kind),
        atomic=_ATOMICS.get(found.kind),
        what=_WORDS[found.kind],
        waits=found.waits,
        wraps=found.wraps,
        parts=found.parts,
        neutral=_NEUTRAL[found.kind] if found.parts else "",
        ub_bytes=_ub_bytes(found, item),
        parameters=parameters_of(task),
        arguments=", ".join(map(parameter, arguments)),
        **sized(task, sizes, [size for _, _, size in found.places]),
    )


FAMILY = SearchingFamily(
    name="put",
    ops=categories(SCATTER, SCATTER_PARTS),
    read=on_any_chip(read_put),
    starts=_starts,
    steps=_steps,
    refusal=_refusal,
    cost_us=_cost_us,
    schedule_of=PutSchedule.of,
    strategy_of=_strategy,
    text_of=_text,
)
