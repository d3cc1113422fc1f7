"""Family gather: what indices choose (embedding, index_select, gather), in runs of neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from evokernel_core.compiler.ops import GATHER, categories
from evokernel_core.compiler.problems.gather import Take, read_take
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Split
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.gpu.gpu import Gpu
from evokernel_core.targets.triton.kernels import tiles
from evokernel_core.targets.triton.kernels.function import JitFunction, expression
from evokernel_core.targets.triton.kernels.names import output_names
from evokernel_core.targets.triton.kernels.searching import GpuFamily, always, on_any_gpu
from evokernel_core.targets.triton.kernels.text import TritonKernel
from evokernel_core.targets.triton.kernels.tiles import TileSchedule

_INDEX_BYTES = 8


def _entries(problem: Take, sizes: Mapping[str, int]) -> int:
    return problem.outer.evaluate(sizes) * problem.count.evaluate(sizes) * problem.lanes.evaluate(sizes)


def _starts(problem: Take, sizes: Mapping[str, int], gpu: Gpu) -> Iterator[TileSchedule]:
    return tiles.first(_entries(problem, sizes), problem.run.evaluate(sizes), gpu)


def _cost_us(problem: Take, schedule: TileSchedule, sizes: Mapping[str, int], gpu: Gpu) -> float:
    entries, run = _entries(problem, sizes), problem.run.evaluate(sizes)
    programs = tiles.covered(entries, schedule.lines) * tiles.covered(run, schedule.columns)
    touched = max(run * problem.width, 32)  # a sector of L2 at least
    nbytes = entries * (run * problem.width + touched + _INDEX_BYTES * len(problem.indices))
    return tiles.tiled_us(gpu, nbytes, programs, schedule, 8.0)


def _text(problem: Take, schedule: TileSchedule, task: KernelTask, name: str) -> TritonKernel:
    function = JitFunction(name)
    add = function.add
    (output,) = output_names(task)
    source = function.tensor(problem.source)
    outer, count, lanes, run = (
        function.number(key, getattr(problem, key)) for key in ("outer", "count", "lanes", "run")
    )
    cast = tiles.wide(problem.outer, problem.count, problem.lanes, problem.run)
    add(f"tiles = tl.cdiv({run}, COLUMNS)")
    add(f"entries = (program // tiles){cast} * LINES + tl.arange(0, LINES)")
    add("places = program % tiles * COLUMNS + tl.arange(0, COLUMNS)")
    add(f"inside = entries < {outer} * {count} * {lanes}")
    each = f"{count} * {lanes}"
    if problem.outer.is_one:
        add("row = tl.zeros((LINES,), tl.int64)")
    else:
        add(f"row = (entries // ({each})).to(tl.int64)")
    add(f"number = entries % ({each})" if problem.shared else "number = entries")
    for place, (indices, _, size) in enumerate(problem.indices):
        pointer, most = function.tensor(indices), function.number(f"size_{place}", size)
        add(f"chosen = tl.load({pointer} + number, mask=inside, other=0).to(tl.int64)")
        if problem.wraps:
            add(f"chosen = tl.where(chosen < 0, chosen + {most}, chosen)")
        add(f"inside &= (chosen >= 0) & (chosen < {most})", f"row = row * {most} + chosen")
    if not problem.lanes.is_one:
        add(f"row = row * {lanes} + entries % {lanes}")
    add(f"mask = inside[:, None] & (places[None, :] < {run})")
    add(f"x = tl.load({source} + row[:, None] * {run} + places[None, :], mask=mask)")
    add(f"tl.store({function.tensor(output)} + entries[:, None] * {run} + places[None, :], x, mask=mask)")
    entries = " * ".join(expression(one) for one in (problem.outer, problem.count, problem.lanes))
    return tiles.kernel(function, schedule, tiles.grid(schedule, entries, expression(problem.run)))


FAMILY = GpuFamily(
    name="gather",
    ops=categories(GATHER),
    read=on_any_gpu(read_take),
    schedule_of=TileSchedule.of,
    starts=_starts,
    refusal=tiles.why_not,
    cost_us=_cost_us,
    notes=always((Sentence("{lines} choices of {columns} elements at a time, {warps} warps a program."),)),
    cell=always(Descriptor(Dataflow.PICKED, "NONE", Split.ELEMENTS, Algorithm.DIRECT)),
    text_of=_text,
)
