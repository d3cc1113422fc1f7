"""Family attention: softmax(query @ key^T * scale + mask) @ value in one kernel, with an online softmax.

The cube core of a unit writes scores of some queries against some keys into the workspace, where L2
keeps them; its two vector cores turn them into weights and sum the parts of the output. Both work at
the same time: scores are computed one step ahead.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from attrs import evolve, frozen

from evokernel_core.ascendc.aten import ATTENTION, attention_arguments
from evokernel_core.ascendc.kernels.candidates import SearchingFamily, Sizes, on_any_chip
from evokernel_core.ascendc.kernels.family import Cores, KernelFacts, StageText
from evokernel_core.ascendc.kernels.matmul.problem import QUANT, Side, loops_of
from evokernel_core.ascendc.kernels.reading import below_views
from evokernel_core.ascendc.kernels.rendering import class_name, kernel_text, parameters_of, sized
from evokernel_core.ascendc.kernels.settings import Settings
from evokernel_core.ascendc.kernels.strided import NOWHERE, behind_views, expanded
from evokernel_core.ascendc.kernels.text import CPP_TYPE
from evokernel_core.ascendc.lowering.program import camel
from evokernel_core.ascendc.shapes.sizes import ONE, Extent, extent, product
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import ValueRef
from evokernel_core.domain.kernel import Descriptor, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE, Dim
from evokernel_core.twin.api import most_of
from evokernel_core.twin.chip import Chip, Memory
from evokernel_core.twin.isa import FRACTAL, LANES
from evokernel_core.twin.roofline import launch_us

_MOST_PITCH = most_of("DataCopyNd2Nz", "srcDValue")
"""Elements from row to row that one copy into L1 can step over."""
_MOST_BLOCKS = most_of("Sub", "src0RepStride")
"""32-byte blocks between two repeats of a vector instruction."""
_HANDOVER = 2000.0
"""Cycles of a step in which the vector cores wait: for the flag, the store and their first load."""


@frozen
class Attention:
    """``matrices`` of queries x depth; those of keys are shared by ``sharing`` matrices of queries each.
    The operands lie where their sides say."""

    query: Side
    key: Side
    value: Side
    mask: Side | None
    causal: bool
    scale: float | None
    matrices: Extent
    sharing: Extent
    queries: Extent
    keys: Extent
    depth: Extent
    width: Extent
    dtype: str


@frozen
class AttentionSchedule(Settings):
    """``queries`` x ``keys`` scores in a step, of which a vector core holds ``chunk`` rows at a time in
    ``buffers`` slots; the cube's tile is ``base_n`` wide, ``base_k`` deep in L0, ``panel_k`` in L1."""

    queries: int
    keys: int
    chunk: int
    base_n: int
    base_k: int
    panel_k: int
    buffers: int = 2
    c_slots: int = 1


def _text(found: Attention, schedule: AttentionSchedule, task: KernelTask, name: str) -> StageText:
    headers = () if found.scale is not None else ("cmath",)
    return kernel_text(
        "attention",
        name,
        KernelFacts(Cores.BOTH, uses_workspace=True, tiling_headers=headers),
        class_name=class_name(name, ""),
        s=schedule,
        **_sizes(found, task),
        scale=_scale(found),
        causal=found.causal,
        type=CPP_TYPE[found.dtype],
        item_size=ITEM_SIZE[found.dtype],
        quant=QUANT[found.dtype],
        fixed_bytes=_fixed_bytes(found, schedule),
        parameters=parameters_of(task),
    )


def _sizes(found: Attention, task: KernelTask) -> dict[str, Any]:
    """Sizes and operands for the templates, and the symbols that they name."""
    extents = {
        key: getattr(found, key) for key in ("matrices", "sharing", "queries", "keys", "depth", "width")
    }
    operands = {"query": found.query, "key": found.key, "value": found.value, "mask": found.mask}
    given = {name: side for name, side in operands.items() if side is not None}
    sides = {name: _side_context(side, name) for name, side in given.items()}
    return {**sized(task, extents, given.values()), "mask": None, **sides, "sides": list(sides.values())}


def _side_context(side: Side, letter: str) -> dict[str, Any]:
    """What templates write of one operand; ``letter`` begins the names of its numbers in the tiling."""
    loops = [
        {
            "index": index,
            "stride": loop.stride.cpp(),
            "size": loop.size.cpp(),
            "within": "" if loop.within.is_one else loop.within.cpp(),
            "wraps": loop.wraps,
        }
        for index, loop in enumerate(side.loops)
    ]
    terms = []
    for loop in loops:
        index = loop["index"]
        within = f" / tiling_.{letter}Within{index}" if loop["within"] else ""
        wraps = f" % tiling_.{letter}Count{index}" if loop["wraps"] else ""
        terms.append(f"matrix{within}{wraps} * tiling_.{letter}Stride{index}")
    return {
        "name": camel(side.name),
        "letter": letter,
        "pitch": side.pitch.cpp(),
        "loops": loops,
        "start": " + ".join(terms),
    }


def _scale(found: Attention) -> str:
    if found.scale is None:
        return "1.0f / std::sqrt(static_cast<float>(tiling.depth))"
    return f"{found.scale!r}f"


# -- what is asked --------------------------------------------------------------------------------


def read_attention(task: KernelTask) -> Attention:
    """The one attention of a task. Raises PlanError where the task is anything else."""
    graph = task.graph
    found = [node for node in graph.nodes if node.op == ATTENTION]
    if len(found) != 1 or len(graph.outputs) != 1:
        raise PlanError("The kernel has not exactly one attention with one result.")
    node = found[0]
    if below_views(graph, graph.outputs[0]).name != node.name:
        raise PlanError("The result is more than an attention.")
    query, key, value, mask, dropout, causal, scale = attention_arguments(node)
    if dropout:
        raise PlanError("An attention with dropout draws random numbers inside, which is not covered.")
    specs = [graph.spec(ref) for ref in (query, key, value)]
    dtype = specs[0].dtype
    if dtype not in QUANT or any(spec.dtype != dtype for spec in specs):
        raise PlanError(f"An attention in {dtype} is not covered.")
    if scale is not None and scale <= 0:
        raise PlanError("An attention whose scale is not positive is not covered.")
    shape = [tuple(map(extent, spec.shape)) for spec in specs]
    matrices, shared = product(shape[0][:-2]), product(shape[1][:-2])
    sharing = matrices.divided_by(shared)
    if sharing is None or shape[1][:-2] != shape[2][:-2] or shape[0][:-3] != shape[1][:-3]:
        raise PlanError("Batches of query, key and value that broadcast are not covered.")
    return Attention(
        query=_side(task, query),
        key=_side(task, key),
        value=_side(task, value),
        mask=_mask(task, mask, (*specs[0].shape[:-1], specs[1].shape[-2])) if mask is not None else None,
        causal=causal,
        scale=scale,
        matrices=matrices,
        sharing=sharing,
        queries=shape[0][-2],
        keys=shape[1][-2],
        depth=shape[0][-1],
        width=shape[2][-1],
        dtype=dtype,
    )


def _side(task: KernelTask, ref: ValueRef) -> Side:
    """Where the rows of an operand lie. Raises PlanError where they are not dense in memory."""
    name, groups = behind_views(task, ref)
    rows, columns = groups[-2:]
    if len(rows) > 1 or len(columns) > 1 or (columns and columns[0].stride != ONE):
        raise PlanError("The rows of an operand of an attention are not dense; copy the operand first.")
    pitch = rows[0].stride if rows else columns[0].size if columns else ONE
    if pitch == NOWHERE or pitch.evaluate(task.sizes) > _MOST_PITCH:
        raise PlanError("The rows of an operand of an attention lie too far apart; copy the operand first.")
    return Side(name, False, pitch, loops_of(groups[:-2]))


def _mask(task: KernelTask, ref: ValueRef, shape: tuple[Dim, ...]) -> Side:
    """Where a mask lies that broadcasts to scores of a shape; a pitch of 0: one row for all queries."""
    if task.graph.spec(ref).dtype != "float32":
        raise PlanError("A mask that is not float32 is not covered; add float32 to the scores.")
    name, groups = behind_views(task, ref)
    *leading, rows, columns = expanded(groups, shape)
    if len(rows) > 1 or len(columns) > 1 or (columns and columns[0].stride != ONE):
        raise PlanError("The rows of a mask of an attention are not dense; copy the mask first.")
    return Side(name, False, rows[0].stride if rows else extent(shape[-1]), loops_of(leading))


# -- schedules ------------------------------------------------------------------------------------


_SHAPES = (
    (1024, 32),
    (512, 64),
    (256, 128),
    (1024, 8),
    (1024, 16),
    (512, 16),
    (512, 32),
    (256, 32),
    (256, 64),
    (128, 32),
    (128, 64),
    (64, 32),
)
"""Keys of a step, and rows of a chunk; the first ones take a larger unified buffer than that of the 910B."""


def _starts(found: Attention, sizes: Sizes, chip: Chip) -> Iterator[AttentionSchedule]:
    size = ITEM_SIZE[found.dtype]
    base_k = 128 // size
    for queries in (256, 128, 64, 32):
        for keys, chunk in _SHAPES:
            for base_n in (256, 128):
                slots = 2 if 2 * queries * base_n * 4 <= chip.memory.l0c_bytes else 1
                deep = min(base_k, chip.memory.l0_bytes // 2 // size // max(queries, base_n) // 16 * 16)
                for buffers in (2, 1):
                    yield AttentionSchedule(queries, keys, chunk, base_n, deep, 4 * deep, buffers, slots)


def _fixed_bytes(found: Attention, item: AttentionSchedule) -> int:
    """Bytes of the unified buffer that do not depend on sizes at run time."""
    chunk = item.chunk * item.keys
    queues = item.buffers * chunk * (4 + ITEM_SIZE[found.dtype]) + (chunk * 4 if found.mask else 0)
    numbers = item.chunk * 256 + item.queries // 2 * (32 + 24)
    return queues + numbers + (item.keys * 4 + item.keys // 8 if found.causal else 0)


def _refusal(found: Attention, item: AttentionSchedule, sizes: Sizes, chip: Chip) -> str | None:
    keys, width = found.keys.evaluate(sizes), found.width.evaluate(sizes)
    padded = -(-width // 8) * 8
    parts = 0 if keys <= item.keys else item.queries // 2 * padded * 4
    if item.queries % 32 or item.keys % 64 or item.chunk % 8 or not 8 <= item.chunk <= item.queries // 2:
        return "Tiles are whole repeats, and a vector core has at least one chunk of rows."
    if max(item.keys, padded) // 8 > _MOST_BLOCKS:
        return "A row is too long to step over in one repeat."
    if _fixed_bytes(found, item) + parts > chip.ub_bytes or padded * 8 > item.chunk * item.keys:
        return "Scores, weights and parts of the output do not fit the unified buffer."
    return _cube_refusal(item, ITEM_SIZE[found.dtype], chip.memory)


def _cube_refusal(item: AttentionSchedule, size: int, memory: Memory) -> str | None:
    steps = (item.base_n, item.base_k)
    if min(steps) < 16 or any(length % 16 for length in steps) or item.panel_k % item.base_k:
        return "Tiles are whole fractals, and panels whole steps."
    if 2 * max(item.queries, item.base_n) * item.base_k * size > memory.l0_bytes:
        return "Two steps of an operand do not fit L0."
    if 2 * (item.queries + item.base_n) * item.panel_k * size > memory.l1_bytes:
        return "Two panels of each operand do not fit L1."
    if item.c_slots * item.queries * item.base_n * 4 > memory.l0c_bytes:
        return "The results do not fit L0C."
    return None


def _steps(
    found: Attention, here: AttentionSchedule, sizes: Sizes, chip: Chip
) -> Iterator[tuple[str, AttentionSchedule]]:
    yield "more queries a unit", evolve(here, queries=here.queries * 2)
    yield "fewer queries a unit", evolve(here, queries=here.queries // 2)
    yield "more keys a step", evolve(here, keys=here.keys * 2, chunk=max(8, here.chunk // 2))
    yield "fewer keys a step", evolve(here, keys=here.keys // 2, chunk=here.chunk * 2)
    yield "more rows in UB", evolve(here, chunk=here.chunk * 2)
    yield "fewer rows in UB", evolve(here, chunk=here.chunk // 2)
    yield "one buffer", evolve(here, buffers=1)
    yield "two buffers", evolve(here, buffers=2)
    yield "wider tile", evolve(here, base_n=here.base_n * 2)
    yield "narrower tile", evolve(here, base_n=here.base_n // 2)
    yield (
        "deeper step in L0",
        evolve(here, base_k=here.base_k * 2, panel_k=max(here.panel_k, here.base_k * 2)),
    )
    yield "shallower step in L0", evolve(here, base_k=here.base_k // 2)
    yield "deeper panel in L1", evolve(here, panel_k=here.panel_k * 2)
    yield "shallower panel in L1", evolve(here, panel_k=here.panel_k // 2)
    yield "two results in L0C", evolve(here, c_slots=2)
    yield "one result in L0C", evolve(here, c_slots=1)


@frozen
class _Step:
    """One step of a core, in elements: rows x columns scores."""

    rows: int
    columns: int
    depth: int
    width: int
    online: bool


def _cost_us(found: Attention, item: AttentionSchedule, sizes: Sizes, chip: Chip) -> float:
    """Modelled microseconds: the slower of cube and vector cores in each step, all steps of a core."""
    queries, keys, depth, width = (
        getattr(found, key).evaluate(sizes) for key in ("queries", "keys", "depth", "width")
    )
    tiles = math.ceil(queries / item.queries)
    units = found.matrices.evaluate(sizes) * tiles
    cores = min(units, chip.aic)
    seen = [min(keys, (tile + 1) * item.queries) if found.causal else keys for tile in range(tiles)]
    steps = sum(math.ceil(each / item.keys) for each in seen) / tiles
    columns = math.ceil(sum(seen) / tiles / steps)
    step = _Step(min(queries, item.queries), columns, depth, width, keys > item.keys)
    share = min(chip.gm.l2_bytes_us / chip.mhz / cores, chip.mte.cube_load_hit_bytes_per_cycle)
    cube = _cube_cycles(found.dtype, item, step, share, chip)
    vector = _vector_cycles(found, item, step, 1 / steps if found.causal else 0.0, chip)
    busy = math.ceil(units / cores) * steps * max(cube, vector + _HANDOVER) + cube + vector
    return float(busy / chip.mhz + launch_us(chip, cores))


def _cube_cycles(dtype: str, item: AttentionSchedule, step: _Step, share: float, chip: Chip) -> float:
    """``share``: bytes a cycle that the core loads from L2."""
    high, size = -(-step.rows // 16) * 16, ITEM_SIZE[dtype]
    score_tiles, result_tiles = math.ceil(step.columns / item.base_n), math.ceil(step.width / item.base_n)
    macs = high * step.columns * (step.depth + step.width) / FRACTAL**2 / chip.cube.depth_a_cycle(size)
    score_steps, result_steps = (math.ceil(length / item.base_k) for length in (step.depth, step.columns))
    starts = chip.cube.mmad_overhead_cycles * (score_tiles * score_steps + result_tiles * result_steps)
    right = step.columns * (step.depth + step.width)
    left = high * (step.depth * score_tiles + step.columns * result_tiles)
    stored = high * (step.columns + step.width) * 4 / chip.cube.fixpipe_gm_bytes_per_cycle
    return max(macs + starts, size * (left + right) / share, stored)


def _vector_cycles(
    found: Attention, item: AttentionSchedule, step: _Step, hiding: float, chip: Chip
) -> float:
    """``hiding``: the share of steps in which some rows see fewer keys than others."""
    mine, size = math.ceil(step.rows / 2), ITEM_SIZE[found.dtype]
    start, copied_a_cycle = chip.vector.startup_cycles, chip.mte.load_bytes_per_cycle
    height = min(item.chunk, mine)
    flat = height * step.columns / LANES
    slabs = math.ceil(step.columns / LANES) * (start + height)
    passes = 3 + (size < 4) + (found.mask is not None)  # scaling, and exp at half rate
    chunk = passes * flat + (3 if step.online else 4) * slabs + 14 * height + 14 * start
    chunk += 2 * (start + item.queries / LANES) * height * hiding
    cycles = math.ceil(mine / item.chunk) * chunk
    copied = mine * step.columns * (4 + size) / copied_a_cycle
    if step.online:
        cycles += math.ceil(step.width / LANES) * (start + mine) + mine * step.width / 32 + 4 * start
        copied += mine * step.width * 4 / copied_a_cycle
    return max(cycles, copied) if item.buffers > 1 else cycles + copied


def _strategy(found: Attention, item: AttentionSchedule, move: str) -> Strategy:
    notes = (
        f"Steps of {item.queries} queries and {item.keys} keys; scores stay in L2.",
        f"Tiles {item.base_n} wide, {item.base_k} deep in L0; {item.chunk} rows in UB at a time.",
    )
    return Strategy("attention", item.settings(), notes, Descriptor(3, 3, 3), move)


FAMILY = SearchingFamily(
    name="attention",
    ops={ATTENTION: "kernel"},
    read=on_any_chip(read_attention),
    starts=_starts,
    steps=_steps,
    refusal=_refusal,
    cost_us=_cost_us,
    schedule_of=AttentionSchedule.of,
    strategy_of=_strategy,
    text_of=_text,
    too_large="The values of this attention are too wide for the unified buffer.",
)
