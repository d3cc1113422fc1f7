"""Family put: a copy of a tensor into which runs or elements are written where indices say so.

No two cores write the same elements, and a core writes in the order of the indices: of several values for
one place the last one stays, and sums are added in the same order each time. PyTorch raises for an index
outside of its dimension; runs then go to the nearest place, single elements nowhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from attrs import asdict, frozen

from evokernel_core.ascendc.families.family import StageText
from evokernel_core.ascendc.families.indexed import (
    ACCESS_CYCLES,
    IndexedSchedule,
    index_dtype,
    refusal_of,
    steps_from,
)
from evokernel_core.ascendc.families.reading import input_below, only_node
from evokernel_core.ascendc.families.rendering import RAW, kernel_text, parameter, parameters_of, symbols_in
from evokernel_core.ascendc.families.searching import SearchingFamily, Sizes
from evokernel_core.ascendc.families.text import CPP_TYPE
from evokernel_core.ascendc.lowering_sizes import Extent, extent
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import ValueRef
from evokernel_core.domain.kernel import Descriptor, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.twin.chip import Chip
from evokernel_core.twin.roofline import launch_us

PUT = "evokernel.put.default"
"""``put(source, index, values, adds, wraps)``: source [outer, size, run], index [outer or 1, count], values
[outer, count, run]; ``adds`` sums instead of replacing, ``wraps``: negative indices count from the end."""
_WORDS = "a write where indices say so"
_SUMS = {"float32": "float", "int32": "int32_t"}
_WRITE = 110.0
"""Cycles of one write that the next one waits for."""


@frozen
class Put:
    """See PUT. ``source``, ``index`` and ``values`` are inputs of the task."""

    source: str
    index: str
    values: str
    dtype: str
    index_dtype: str
    outer: Extent
    size: Extent
    count: Extent
    run: Extent
    shared: bool
    adds: bool
    wraps: bool

    @property
    def elements(self) -> bool:
        """Whether single elements are put, which the scalar unit does in the unified buffer."""
        return self.run.is_one


def read_put(task: KernelTask) -> Put:
    """The one put of a task. Raises PlanError where the task is anything else."""
    graph = task.graph
    node = only_node(task, {PUT}, "The kernel does more than write where indices say so.")
    source, index, values, adds, wraps = node.args
    assert isinstance(source, ValueRef) and isinstance(index, ValueRef) and isinstance(values, ValueRef)
    spec, places = graph.spec(source), graph.spec(index)
    if adds and spec.dtype not in _SUMS:
        raise PlanError(f"Sums of {spec.dtype} at indices are not covered; float32 and int32 are.")
    outer, size, run = map(extent, spec.shape)
    return Put(
        source=input_below(graph, source, _WORDS),
        index=input_below(graph, index, _WORDS),
        values=input_below(graph, values, _WORDS),
        dtype=spec.dtype,
        index_dtype=index_dtype(graph, index),
        outer=outer,
        size=size,
        count=extent(places.shape[1]),
        run=run,
        shared=extent(places.shape[0]).is_one and not outer.is_one,
        adds=bool(adds),
        wraps=bool(wraps),
    )


def _refusal(found: Put, item: IndexedSchedule, sizes: Sizes, chip: Chip) -> str | None:
    return refusal_of(item, 512, _ub_bytes(found, item), chip)


def _ub_bytes(found: Put, item: IndexedSchedule) -> int:
    indices = item.runs * ITEM_SIZE[found.index_dtype]
    if found.elements:
        return item.bytes + 32 + indices + item.runs * ITEM_SIZE[found.dtype]
    return 2 * item.bytes + indices


def _cost_us(found: Put, item: IndexedSchedule, sizes: Sizes, chip: Chip) -> float:
    """Modelled microseconds: the copy of the source, and the writes of the busiest core one by one."""
    outer, size, count, run = (
        getattr(found, key).evaluate(sizes) for key in ("outer", "size", "count", "run")
    )
    width = ITEM_SIZE[found.dtype]
    copied = 2 * outer * size * run * width + outer * count * run * width
    rate = chip.constants.get("gm.hbm_achieved_gbps", chip.hbm_gbps) * 1e3
    if found.elements:
        tiles = math.ceil(size * width / item.bytes)
        cores = min(outer * tiles, chip.aiv)
        accesses = 4 if found.adds else 3
        work = math.ceil(outer * tiles / cores) * (count * (accesses * ACCESS_CYCLES + 8) + 800.0)
    else:
        segments = math.ceil(run * width / item.bytes)
        cores = min(outer * segments * math.ceil(chip.aiv / min(outer, chip.aiv)), chip.aiv)
        work = math.ceil(outer * segments / cores) * count * (ACCESS_CYCLES + _WRITE)
    moved = max(copied / rate, copied / cores / 32.0 / chip.mhz)
    return float(moved + work / chip.mhz + launch_us(chip, cores))


def _starts(found: Put, sizes: Sizes, chip: Chip) -> Iterator[IndexedSchedule]:
    for runs in (256, 1024):
        for size in (16384, 32768, 65536):
            yield IndexedSchedule(runs, size)


def _steps(
    found: Put, here: IndexedSchedule, sizes: Sizes, chip: Chip
) -> Iterator[tuple[str, IndexedSchedule]]:
    return steps_from(here, "indices a tile")


def _strategy(found: Put, item: IndexedSchedule, move: str) -> Strategy:
    notes = (
        f"Tiles of {item.bytes} bytes, {item.runs} indices at a time.",
        "Writes in the order of indices.",
    )
    return Strategy("put", asdict(item), notes, Descriptor(2, 1, 2), move)


def _text(found: Put, item: IndexedSchedule, task: KernelTask, name: str) -> StageText:
    """Two forms: runs are written by copies, elements by the scalar unit."""
    sizes = {key: getattr(found, key).cpp() for key in ("outer", "size", "count", "run")}
    width = ITEM_SIZE[found.dtype]
    return kernel_text(
        "put_elements" if found.elements else "put_rows",
        name,
        s=item,
        type=_SUMS[found.dtype] if found.adds else RAW[width],
        width=width,
        index_type=CPP_TYPE[found.index_dtype],
        shared=found.shared,
        adds=found.adds,
        wraps=found.wraps,
        ub_bytes=_ub_bytes(found, item),
        symbols=symbols_in(task, sizes.values()),
        parameters=parameters_of(task),
        arguments=", ".join(map(parameter, (found.source, found.index, found.values))),
        **sizes,
    )


FAMILY = SearchingFamily(
    name="put",
    ops={PUT: "kernel"},
    read=read_put,
    starts=_starts,
    steps=_steps,
    refusal=_refusal,
    cost_us=_cost_us,
    schedule_of=IndexedSchedule.of,
    strategy_of=_strategy,
    text_of=_text,
)
