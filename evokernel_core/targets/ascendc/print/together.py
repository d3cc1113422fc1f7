"""Several kernels in one launch: cube and vector cores take turns, and wait only for what they read."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import indent

from evokernel_core.compiler.fusion.records import Place, Program, Stage
from evokernel_core.domain.graph import InputKind
from evokernel_core.domain.task import KernelTask
from evokernel_core.targets.ascendc.fusion.launches import MOST_TOGETHER, Barrier, Order, is_mixed, runs
from evokernel_core.targets.ascendc.kernels.family import Cores, KernelFacts
from evokernel_core.targets.ascendc.lowering.program import camel
from evokernel_core.targets.ascendc.print.scheduling import BATCHED, GLOBAL, as_function, batched
from evokernel_core.targets.ascendc.print.sharing import Part
from evokernel_core.targets.ascendc.print.statements import between_words

_WIDTH = 100
_CORES = {Cores.VECTOR: "__vector__", Cores.CUBE: "__cube__", Cores.BOTH: "__mix__(1, 2)"}
"""What a global function says of where it runs, unless its cores wait for each other."""
FRESH_NUMBERS = """\
// Numbers that the scalar unit has read may have changed since.
__aicore__ inline void ForgetNumbers(GM_ADDR workspace)
{
    GlobalTensor<uint32_t> memory;
    memory.SetGlobalBuffer(reinterpret_cast<__gm__ uint32_t *>(workspace));
    DataCacheCleanAndInvalid<uint32_t, CacheLine::ENTIRE_DATA_CACHE, DcciDst::CACHELINE_OUT>(memory);
}
"""


def part_text(part: Part) -> str:
    """One kernel as a function of a larger one; with a launch of its own where its cores all wait for each
    other."""
    if part.facts.waits_for_all:
        return batched(part.text)
    # Fewer cores may run a part than the launch has, so a part counts those of its own tiling.
    text = part.text.kernel.replace("GetBlockNum()", "tiling_.blockDim")
    return as_function(text, _CORES[part.facts.cores])


def block_dim(kernels: Sequence[KernelFacts]) -> list[str]:
    """Statements of ComputeTiling that set the blocks of the launches."""
    lines, mixed = ["uint64_t blocks = 1;"], is_mixed(kernels)
    for kind, facts in enumerate(kernels):
        if facts.waits_for_all:
            continue
        cores = f"tiling.stage{kind}.blockDim"
        if mixed and not facts.on_cube:
            cores = f"({cores} + 1) / 2"  # two vector cores beside one cube core
        lines.append(f"blocks = Larger(blocks, {cores});")
    return [*lines, "tiling.blockDim = static_cast<uint32_t>(blocks);"]


def launches(task: KernelTask, planned: Program, kinds: Sequence[Part], name: str) -> tuple[str, str]:
    """The kernels that run the parts, and the statements that launch them; ``kinds`` has one part a kind."""
    names = tensor_names(task)
    tensors = [f"tensors[{i}]" for i in range(len(names))]
    facts = [kind.facts for kind in kinds]
    kernels: list[str] = []
    calls: list[str] = []
    for stages in runs(planned, facts):
        first = stages[0].kind
        if facts[first].waits_for_all:
            entry, blocks = kinds[first].entry, f"tiling.stage{first}.blockDim"
            passed = _arguments(stages[0], tensors)
        else:
            entry, blocks = f"{name}_kernels{len(kernels)}", "tiling.blockDim"
            taken = _taken(planned, stages, names)
            kernels.append(_kernel(entry, stages, kinds, names, taken))
            passed = ", ".join((*(tensors[i] for i in taken), "workspace", "tiling"))
        wrapped = "\n".join(between_words(passed, _WIDTH, " " * 8))
        calls.append(f"    {entry}<<<{blocks}, nullptr, stream>>>(\n        {wrapped});")
    stale = any(facts[stage.kind].reads_numbers for stages in runs(planned, facts) for stage in stages[1:])
    return (f"{FRESH_NUMBERS}\n" if stale else "") + "\n".join(kernels), "\n".join(calls)


def declared(names: Sequence[str]) -> str:
    """The parameters of a kernel that runs parts, over lines."""
    parameters = ", ".join(f"GM_ADDR {name}" for name in (*names, "workspace"))
    return "\n".join(between_words(f"{parameters}, OpTiling tiling", _WIDTH, " " * 4))


def tensor_names(task: KernelTask) -> tuple[str, ...]:
    """Parameters for the tensors of a task."""
    inputs = [camel(operand.name) for operand in task.graph.inputs if operand.kind is not InputKind.SCALAR]
    taken = [*inputs, *(f"output{number}" for number in range(len(task.graph.outputs)))]
    return tuple(f"{name}Memory" if taken.count(name) == 1 else f"memory{i}" for i, name in enumerate(taken))


def barrier_lines(barrier: Barrier | None, *, mixed: bool) -> list[str]:
    """The statements of a barrier, which waits for all pipes of its core by itself; ``mixed``: the launch has
    cube and vector cores."""
    if barrier is None:
        return []
    if barrier is Barrier.ALL:
        return ["SyncAll<false>();"]
    return ["if ASCEND_IS_AIV {", "    SyncAll();", "}"] if mixed else ["SyncAll();"]


def _taken(planned: Program, stages: Sequence[Stage], names: Sequence[str]) -> Sequence[int]:
    """The task's tensors that a launch takes: all of them, but of a network's hundreds only those that its
    parts read or write."""
    if len(planned.stages) <= MOST_TOGETHER:
        return range(len(names))
    places = {place for stage in stages for place in (*stage.inputs, *stage.outputs)}
    return sorted(place.index for place in places if not place.in_workspace)


def _kernel(
    entry: str, stages: Sequence[Stage], kinds: Sequence[Part], names: Sequence[str], taken: Sequence[int]
) -> str:
    mixed = is_mixed([kind.facts for kind in kinds])
    order = Order()
    barriers = [order.barrier_before(stage, kinds[stage.kind].facts) for stage in stages]
    lines: list[str] = []
    for number, (stage, barrier) in enumerate(zip(stages, barriers, strict=True)):
        lines += barrier_lines(barrier, mixed=mixed)
        lines += _call(stage, kinds[stage.kind], names, mixed=mixed, again=number > 0)
    begin = BATCHED if any(barriers) else GLOBAL
    kind = "__mix__(1, 2)" if mixed else "__mix__(0, 1)"
    body = indent("\n".join(lines), "    ")
    return f"""\
// One launch: a part begins when what it reads has been written.
{begin} {kind} void {entry}(
    {declared([names[i] for i in taken])})
{{
{body}
}}
"""


def _call(stage: Stage, kernel: Part, names: Sequence[str], *, mixed: bool, again: bool) -> list[str]:
    tiling = f"tiling.stage{stage.kind}"
    both = kernel.facts.cores is Cores.BOTH
    lines = [f"if (GetBlockIdx(){' / GetTaskRatio()' if both else ''} < {tiling}.blockDim) {{"]
    if again and kernel.facts.reads_numbers:
        lines.append("    ForgetNumbers(workspace);")
    lines += [
        f"    {kernel.entry}(",
        f"        {_arguments(stage, names)});",
        "}",
    ]
    if not mixed or both:
        return lines
    guard = "if ASCEND_IS_AIC {" if kernel.facts.on_cube else "if ASCEND_IS_AIV {"
    return [guard, *(f"    {line}" for line in lines), "}"]


def _arguments(stage: Stage, names: Sequence[str]) -> str:
    places = [_place(place, names) for place in (*stage.inputs, *stage.outputs)]
    return ", ".join((*places, "workspace + tiling.scratch", f"tiling.stage{stage.kind}"))


def _place(place: Place, names: Sequence[str]) -> str:
    return f"workspace + tiling.slot{place.index}" if place.in_workspace else names[place.index]
