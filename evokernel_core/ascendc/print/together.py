"""Several kernels in one launch: cube and vector cores take turns, and wait only for what they read.

A launch costs a few microseconds that a barrier between cores does not. Kernels that do not touch each
other's values run at the same time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from textwrap import fill, indent

from attrs import define, field, frozen

from evokernel_core.ascendc.fusion.program import Place, Program, Stage
from evokernel_core.ascendc.kernels.family import StageText
from evokernel_core.ascendc.lowering.program import camel
from evokernel_core.ascendc.print.scheduling import WAITS, batched
from evokernel_core.domain.graph import InputKind
from evokernel_core.domain.task import KernelTask
from evokernel_core.twin.chip import Chip
from evokernel_core.twin.roofline import launch_us

MOST_TOGETHER = 12
"""Kernels of one launch: their code is part of it each time that they run."""
_WIDTH = 100
_CUBE_ENTRY, _VECTOR_ENTRY = 'extern "C" __global__ __cube__ void', 'extern "C" __global__ __vector__ void'
_MIXED_ENTRY = 'extern "C" __global__ __mix__(1, 2) void'
_READS_NUMBERS = re.compile(r"Global(\[[^\]]*\])?\.GetValue\(")
FRESH_NUMBERS = """\
// Numbers that the scalar unit has read may have changed since.
__aicore__ inline void ForgetNumbers(GM_ADDR workspace)
{
    GlobalTensor<uint32_t> memory;
    memory.SetGlobalBuffer(reinterpret_cast<__gm__ uint32_t *>(workspace));
    DataCacheCleanAndInvalid<uint32_t, CacheLine::ENTIRE_DATA_CACHE, DcciDst::CACHELINE_OUT>(memory);
}
"""


@frozen
class Part:
    """One kernel as a function of a larger one. ``on_vectors``: also where it is ``on_cube``, each cube
    core with its two vector cores. ``alone``: all its cores wait for each other, so that it stays a
    kernel with a launch of its own."""

    text: str
    entry: str
    on_cube: bool = False
    on_vectors: bool = True
    uses_scratch: bool = False
    reads_numbers: bool = False
    alone: bool = False

    @staticmethod
    def of(stage: StageText) -> Part:
        if WAITS.search(stage.kernel):
            return Part(batched(stage.kernel), stage.entry, alone=True)
        # Fewer cores may run a part than the launch has, so a part counts those of its own tiling.
        text = stage.kernel.replace("GetBlockNum()", "tiling_.blockDim")
        entry = next(entry for entry in (_MIXED_ENTRY, _CUBE_ENTRY, _VECTOR_ENTRY) if entry in text)
        text = text.replace(entry, "__aicore__ inline void")
        return Part(
            text,
            stage.entry,
            on_cube=entry != _VECTOR_ENTRY,
            on_vectors=entry != _CUBE_ENTRY,
            uses_scratch=len(re.findall(r"\bworkspace\b", text)) > 1,
            reads_numbers=bool(_READS_NUMBERS.search(text)),
        )


def parts_of(stages: Sequence[StageText]) -> tuple[Part, ...]:
    """Every kind of kernel as a part."""
    return tuple(map(Part.of, stages))


def block_dim(parts: Sequence[Part]) -> list[str]:
    """Statements of ComputeTiling that set the blocks of the launches."""
    lines = ["uint64_t blocks = 1;"]
    for kind, part in enumerate(parts):
        if part.alone:
            continue
        cores = f"tiling.stage{kind}.blockDim"
        if not part.on_cube and any(other.on_cube for other in parts):
            cores = f"({cores} + 1) / 2"  # two vector cores beside one cube core
        lines.append(f"blocks = Larger(blocks, {cores});")
    return [*lines, "tiling.blockDim = static_cast<uint32_t>(blocks);"]


def _runs(planned: Program, parts: Sequence[Part]) -> Iterator[tuple[Stage, ...]]:
    """The stages of each launch, in order."""
    waiting: list[Stage] = []
    for stage in planned.stages:
        alone = parts[stage.kind].alone
        if waiting and (alone or len(waiting) == MOST_TOGETHER):
            yield tuple(waiting)
            waiting = []
        if alone:
            yield (stage,)
        else:
            waiting.append(stage)
    if waiting:
        yield tuple(waiting)


def launches(task: KernelTask, planned: Program, parts: Sequence[Part], name: str) -> tuple[str, str]:
    """The kernels that run the parts, and the statements that launch them."""
    names = tensor_names(task)
    mixed = any(part.on_cube for part in parts)
    kernels: list[str] = []
    calls: list[str] = []
    for stages in _runs(planned, parts):
        part = parts[stages[0].kind]
        if part.alone:
            tensors = [f"tensors[{i}]" for i in range(len(names))]
            entry, blocks = f"stage{stages[0].kind}::{part.entry}", f"tiling.stage{stages[0].kind}.blockDim"
            passed = _arguments(stages[0], tensors)
        else:
            entry, blocks = f"{name}_kernels{len(kernels)}", "tiling.blockDim"
            kernels.append(batched(_kernel(entry, stages, parts, names, mixed=mixed)))
            passed = ", ".join((*(f"tensors[{i}]" for i in range(len(names))), "workspace", "tiling"))
        wrapped = fill(passed, _WIDTH, subsequent_indent=" " * 8)
        calls.append(f"    {entry}<<<{blocks}, nullptr, stream>>>(\n        {wrapped});")
    fresh = f"{FRESH_NUMBERS}\n" if any("ForgetNumbers" in kernel for kernel in kernels) else ""
    return fresh + "\n".join(kernels), "\n".join(calls)


def saved_us(planned: Program, chip: Chip) -> float:
    """Modelled microseconds by which barriers are shorter than launches."""
    barrier = 2 * chip.sync.sync_all_cycles / chip.mhz
    joints = len(planned.stages) - math.ceil(len(planned.stages) / MOST_TOGETHER)
    return joints * max(0.0, launch_us(chip) - barrier)


def declared(names: Sequence[str]) -> str:
    """The parameters of a kernel that runs parts, over lines."""
    parameters = ", ".join(f"GM_ADDR {name}" for name in (*names, "workspace"))
    return fill(f"{parameters}, OpTiling tiling", _WIDTH, subsequent_indent=" " * 4)


def tensor_names(task: KernelTask) -> tuple[str, ...]:
    """Parameters for the tensors of a task."""
    inputs = [camel(item.name) for item in task.graph.inputs if item.kind is not InputKind.SCALAR]
    taken = [*inputs, *(f"output{number}" for number in range(len(task.graph.outputs)))]
    return tuple(f"{name}Memory" if taken.count(name) == 1 else f"memory{i}" for i, name in enumerate(taken))


def _kernel(
    entry: str, stages: Sequence[Stage], parts: Sequence[Part], names: Sequence[str], *, mixed: bool
) -> str:
    order = Order()
    lines: list[str] = []
    for number, stage in enumerate(stages):
        part = parts[stage.kind]
        lines += order.barrier_before(stage, part, mixed)
        lines += _call(stage, part, names, mixed=mixed, again=number > 0)
    kind = "__mix__(1, 2)" if mixed else "__mix__(0, 1)"
    body = indent("\n".join(lines), "    ")
    return f"""\
// One launch: a part begins when what it reads has been written.
extern "C" __global__ {kind} void {entry}(
    {declared(names)})
{{
{body}
}}
"""


def _call(stage: Stage, part: Part, names: Sequence[str], *, mixed: bool, again: bool) -> list[str]:
    tiling = f"tiling.stage{stage.kind}"
    both = part.on_cube and part.on_vectors
    lines = [f"if (GetBlockIdx(){' / GetTaskRatio()' if both else ''} < {tiling}.blockDim) {{"]
    if again and part.reads_numbers:
        lines.append("    ForgetNumbers(workspace);")
    lines += [
        f"    stage{stage.kind}::{part.entry}(",
        f"        {_arguments(stage, names)});",
        "}",
    ]
    if not mixed or both:
        return lines
    guard = "if ASCEND_IS_AIC {" if part.on_cube else "if ASCEND_IS_AIV {"
    return [guard, *(f"    {line}" for line in lines), "}"]


def _arguments(stage: Stage, names: Sequence[str]) -> str:
    places = [_place(place, names) for place in (*stage.inputs, *stage.outputs)]
    return ", ".join((*places, "workspace + tiling.scratch", f"tiling.stage{stage.kind}"))


def _place(place: Place, names: Sequence[str]) -> str:
    return f"workspace + tiling.slot{place.index}" if place.in_workspace else names[place.index]


_SCRATCH = Place(True, -1)


@frozen
class _Run:
    """A part that has run since the last barrier of all cores: what it touched."""

    on_cube: bool
    read: frozenset[Place]
    written: frozenset[Place]

    def meets(self, other: _Run) -> bool:
        """Whether one writes what the other touches."""
        return bool(self.written & (other.read | other.written) or other.written & self.read)


@define
class Order:
    """Which barriers a sequence of parts takes."""

    unordered: list[_Run] = field(factory=list)
    behind_vectors: list[_Run] = field(factory=list)

    def barrier_before(self, stage: Stage, part: Part, mixed: bool) -> list[str]:
        """Statements that make the parts so far come before the next one, where it must wait for one."""
        scratch = frozenset({_SCRATCH} if part.uses_scratch else ())
        run = _Run(part.on_cube, frozenset(stage.inputs), frozenset(stage.outputs) | scratch)
        waits = [other for other in self.unordered if other.meets(run)]
        # A barrier of the vector cores says nothing to cube cores.
        waits += [other for other in self.behind_vectors if run.on_cube and other.meets(run)]
        lines: list[str] = []
        if any(other.on_cube or run.on_cube for other in waits):
            self.unordered.clear()
            self.behind_vectors.clear()
            lines = ["PipeBarrier<PIPE_ALL>();", "SyncAll<false>();"]
        elif waits:
            self.behind_vectors += [other for other in self.unordered if not other.on_cube]
            self.unordered = [other for other in self.unordered if other.on_cube]
            lines = ["PipeBarrier<PIPE_ALL>();", "SyncAll();"]
            if mixed:
                lines = ["if ASCEND_IS_AIV {", *(f"    {line}" for line in lines), "}"]
        self.unordered.append(run)
        return lines
