"""The text of a family's kernel, whichever cores of it are built in the IR; of cube cores the class, that of
their vector cores, and what calls them.

What vector cores do with results that are handed over, or write for cube cores to read, is a class of its
own; the loops behind cube cores are printed from the IR too. Where they make of a turn's results what the
rest of the turn reads, they are a kernel of the IR themselves.
"""

from __future__ import annotations

from evokernel_core.compiler.family import Family
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.ir import allocation
from evokernel_core.targets.ascendc.ir.expr import Constant, Expr, Side, expr, round_up
from evokernel_core.targets.ascendc.ir.nodes import Kernel, Tensor
from evokernel_core.targets.ascendc.kernels.family import StageText
from evokernel_core.targets.ascendc.kernels.rendering import addresses, class_name, parameters_of, tensors_of
from evokernel_core.targets.ascendc.kernels.stage import Added, Around, KernelStage, Printed
from evokernel_core.targets.ascendc.lowering.program import camel
from evokernel_core.targets.ascendc.print.cube_class import addressed
from evokernel_core.targets.ascendc.print.fetching_class import class_of
from evokernel_core.targets.ascendc.print.statements import in_lines
from evokernel_core.targets.ascendc.print.tiling import compute, refusal, settings
from evokernel_core.targets.ascendc.print.vector_kernel import (
    addresses_of,
    arguments_of,
    stage_text,
    vector_class,
)


def text_of(family: Family, task: KernelTask, strategy: Strategy, chip: Chip, name: str) -> StageText:
    """The kernel under a name in snake case."""
    stage: KernelStage = family.text(task, strategy, chip, name)
    if stage.around is not None:
        return _text_around(stage, stage.around, task, name)
    if stage.cubes is not None:
        return cube_text(stage, task, name)
    return stage_text(stage.kernel, task, name)


def _text_around(stage: KernelStage, around: Around, task: KernelTask, name: str) -> StageText:
    kernel, class_name = stage.kernel, around.class_name
    text = vector_class(kernel, class_name) if stage.cubes is None else class_of(kernel, class_name)
    texts = around.text(Printed(in_lines(text), arguments_of(kernel)))
    tiling = texts.settings, texts.compute
    if around.added is not None:
        tiling = _tiling(kernel, around.added, task)
    return StageText(*tiling, texts.kernel, f"{name}_kernel", around.facts)


def _tiling(kernel: Kernel, added: Added, task: KernelTask) -> tuple[str, str]:
    """The tiling of the kernel in the IR, and what is added to it."""
    checks = refusal(added.refuses) if added.refuses else []
    computing = compute(
        kernel, task, checks=checks, also=added.computed, blocks=added.blocks, symbolic=[added]
    )
    return in_lines(settings(kernel, added.constants, added.fields)), in_lines(computing)


def cube_text(stage: KernelStage, task: KernelTask, name: str) -> StageText:
    """The two texts of a kernel with cube cores under a name in snake case; its tensors are the task's."""
    kernel, vectors = stage.kernel, stage.vectors
    if vectors is not None and stage.workspace_bytes is not None:
        parts = _behind_vectors(kernel, vectors, stage.workspace_bytes, task, name)
    elif vectors is not None:
        parts = _beside_vectors(kernel, vectors, task, name)
    else:
        text = f"{class_of(kernel, class_name(name))}\n{_entry(kernel, task, name)}"
        parts = settings(kernel, []), compute(kernel, task, checks=[], blocks=_blocks(kernel)), text
    tiling, computing, text = map(in_lines, parts)
    return StageText(tiling, computing, text, f"{name}_kernel", stage.facts)


def _blocks(kernel: Kernel, workspace: str = "") -> list[str]:
    """How many cube cores take part, and what their kernel takes of the workspace."""
    tiles = kernel.tiles.end.cpp(Side.HOST)
    return [
        "const uint64_t cubes = coreNum > 1 ? coreNum / 2 : 1; // one cube core beside two vector cores",
        f"tiling.blockDim = static_cast<uint32_t>({tiles} < cubes ? {tiles} : cubes);",
        *([f"tiling.workspaceBytes = {workspace};"] if workspace else []),
    ]


def _behind_vectors(
    kernel: Kernel, vectors: Kernel, workspace_bytes: Expr, task: KernelTask, name: str
) -> tuple[str, str, str]:
    """Constants and struct, ComputeTiling and kernel where vector cores write what cube cores read."""
    taken = f"constexpr uint64_t UB_BYTES_NEEDED = {allocation.bytes_of(vectors)};"
    before = vector_class(vectors, class_name(name, "Before"))
    blocks = _blocks(kernel, workspace_bytes.cpp(Side.HOST))
    cube = class_of(kernel, class_name(name, "Product"))
    return (
        settings(kernel, [taken], beside=[vectors]),
        compute(kernel, task, checks=refusal("ubBytes < UB_BYTES_NEEDED"), blocks=blocks),
        f"{cube}\n{before}\n{_entry_of_both(kernel, task, name, vectors)}",
    )


_RING_UNIT = Constant("RING_UNIT", 512, "bytes of which the workspace of a ring is a multiple")


def _beside_vectors(kernel: Kernel, beside: Kernel, task: KernelTask, name: str) -> tuple[str, str, str]:
    """The same where vector cores make of a turn's results what the rest of it reads."""
    fields = [
        (f"float {root.name}", f"1.0f / std::sqrt(static_cast<float>({root.of.cpp(Side.HOST)}))")
        for root in beside.roots()
    ]
    offset = expr(0)
    for ring in kernel.rings:
        fields.append((f"uint64_t {ring.name}Offset", offset.cpp(Side.HOST)))
        offset = offset + round_up(ring.places * ring.elements * ring.item_bytes, _RING_UNIT)
    fields.append(("uint64_t coreBytes", offset.cpp(Side.HOST)))
    computing = compute(
        kernel,
        task,
        checks=refusal("ubBytes < UB_BYTES_NEEDED"),
        also=[f"tiling.{field.split()[1]} = {value};" for field, value in fields],
        blocks=_blocks(kernel, "tiling.blockDim * tiling.coreBytes"),
    )
    constants = [
        f"constexpr uint32_t {_RING_UNIT.name} = {_RING_UNIT.value}; // {_RING_UNIT.note}",
        f"constexpr uint64_t UB_BYTES_NEEDED = {allocation.bytes_of(beside)};",
    ]
    struct = settings(kernel, constants, [field for field, _ in fields], [beside])
    cube, vector = class_of(kernel, class_name(name, "Product")), vector_class(beside, class_name(name))
    return struct, computing, f"{cube}\n{vector}\n{_joined_entry(kernel, beside, task, name)}"


# -- the functions that are called, and the vector cores -------------------------------------------


def _entry(kernel: Kernel, task: KernelTask, name: str) -> str:
    parameters = addresses(*map(camel, tensors_of(task)), *kernel.results)
    return f"""\
extern "C" __global__ __cube__ void {name}_kernel({parameters}, GM_ADDR workspace, OpTiling tiling)
{{
    InitSocState(); // no TPipe does: on cube cores it would set events of its own
    {class_name(name)} op;
    op.Init({_arguments(kernel)}, tiling);
    op.Process();
    PipeBarrier<PIPE_ALL>();
}}
"""


def _entry_of_both(kernel: Kernel, task: KernelTask, name: str, before: Kernel) -> str:
    parameters = addresses(*map(camel, tensors_of(task)), *kernel.results)
    return f"""\
extern "C" __global__ __mix__(1, 2) void {name}_kernel({parameters}, GM_ADDR workspace, OpTiling tiling)
{{
    // The vector cores write what is read in the workspace, while the cube cores multiply what came before.
    if ASCEND_IS_AIV {{
        TPipe pipe;
        {class_name(name, "Before")} op;
        op.Init({arguments_of(before)}, tiling, &pipe);
        op.Process();
    }}
    if ASCEND_IS_AIC {{ // without a TPipe, which on cube cores sets events of its own
        InitSocState();
        {class_name(name, "Product")} op;
        op.Init({_arguments(kernel)}, tiling);
        op.Process();
        PipeBarrier<PIPE_ALL>();
    }}
}}
"""


def _joined_entry(kernel: Kernel, beside: Kernel, task: KernelTask, name: str) -> str:
    results = tuple(dict.fromkeys((*kernel.results, *beside.results)))
    return f"""\
extern "C" __global__ __mix__(1, 2) void {name}_kernel(
    {parameters_of(task, results)}, GM_ADDR workspace, OpTiling tiling)
{{
    // What a cube core and its vector cores hand to each other lies in their own part of the workspace.
    if ASCEND_IS_AIC {{ // without a TPipe, which on cube cores sets events of its own
        InitSocState();
        GM_ADDR own = workspace + GetBlockIdx() * tiling.coreBytes;
        {class_name(name, "Product")} op;
        op.Init({", ".join(address for _, address in addresses_of(kernel))}, tiling);
        op.Process();
        PipeBarrier<PIPE_ALL>();
    }}
    if ASCEND_IS_AIV {{
        TPipe pipe;
        GM_ADDR own = workspace + GetBlockIdx() / GetTaskRatio() * tiling.coreBytes;
        {class_name(name)} op;
        op.Init({", ".join(address for _, address in addresses_of(beside))}, tiling, &pipe);
        op.Process();
    }}
}}
"""


def _arguments(kernel: Kernel) -> str:
    """What Init is given beside the tiling."""
    return ", ".join(node.address for node in addressed(kernel) if isinstance(node, Tensor))
