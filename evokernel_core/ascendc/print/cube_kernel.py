"""AscendC from the kernel IR of a cube core: Load and Use for each turn of its loops, and what is around.

The turns of all loops are one run, so that a turn's panels travel while those of the turn before are
multiplied, from one tile to the next too. What vector cores do with results that are handed over is a class
of its own, whose loops are printed from the IR too.
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import indent

from evokernel_core.ascendc.ir.cube import LoadData, Sum, Take
from evokernel_core.ascendc.ir.expr import Call, Side
from evokernel_core.ascendc.ir.handing_cube import stream_of
from evokernel_core.ascendc.ir.nodes import Buffer, For, Kernel, Let, Memory, Node, Ring, Tensor, flat
from evokernel_core.ascendc.kernels.cube import CubeKernel
from evokernel_core.ascendc.kernels.epilogue.tiles import EpilogueText
from evokernel_core.ascendc.kernels.family import StageText, facts_of
from evokernel_core.ascendc.kernels.rendering import addresses, class_name, tensors_of
from evokernel_core.ascendc.lowering.program import camel
from evokernel_core.ascendc.print import cube_methods
from evokernel_core.ascendc.print.cube_body import SLOTS, Body, free, full
from evokernel_core.ascendc.print.statements import (
    STEP,
    framed,
    function,
    in_lines,
    indented,
    let,
    method,
    wrapped,
)
from evokernel_core.ascendc.print.tiling import compute, refusal, settings
from evokernel_core.ascendc.print.turns import Turns
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.task import KernelTask

_POSITION = {Memory.L0A: "A2", Memory.L0B: "B2", Memory.L0C: "CO1"}


def cube_text(made: CubeKernel, task: KernelTask, name: str) -> StageText:
    """The kernel's two texts under a name in snake case; its tensors are the task's."""
    kernel = made.kernel
    tiles = kernel.tiles.end.cpp(Side.HOST)
    blocks = [
        "const uint64_t cubes = coreNum > 1 ? coreNum / 2 : 1; // one cube core beside two vector cores",
        f"tiling.blockDim = static_cast<uint32_t>({tiles} < cubes ? {tiles} : cubes);",
    ]
    if made.behind is None:
        parts = settings(kernel, []), compute(kernel, task, checks=[], blocks=blocks)
        text = f"{_Printer(kernel, class_name(name)).text()}\n{_entry(kernel, task, name)}"
    else:
        written = made.behind.written(class_name(name, "Epilogue"), _process_behind(made))
        blocks.append("tiling.workspaceBytes = tiling.blockDim * HANDED_BYTES;")
        parts = (
            settings(kernel, [_handed_bytes(kernel), written.constants.rstrip()], written.shape.fields),
            compute(
                kernel,
                task,
                checks=refusal("ubBytes < UB_BYTES_NEEDED"),
                blocks=blocks,
                also=written.shape.assignments,
                symbolic=[written],
            ),
        )
        cube = _Printer(kernel, class_name(name, "Product")).text()
        text = f"{cube}\n{written.kernel}\n{_mixed_entry(kernel, task, name, written)}"
    tiling, computing = map(in_lines, parts)
    return StageText(tiling, computing, in_lines(text), f"{name}_kernel", facts_of(made))


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


def _mixed_entry(kernel: Kernel, task: KernelTask, name: str, behind: EpilogueText) -> str:
    parameters = addresses(*map(camel, tensors_of(task)), *behind.outputs)
    return f"""\
extern "C" __global__ __mix__(1, 2) void {name}_kernel({parameters}, GM_ADDR workspace, OpTiling tiling)
{{
    // What a cube core hands over lies in its own part of the workspace.
    if ASCEND_IS_AIC {{ // without a TPipe, which on cube cores sets events of its own
        InitSocState();
        {class_name(name, "Product")} op;
        op.Init({_arguments(kernel)}, tiling);
        op.Process();
        PipeBarrier<PIPE_ALL>();
    }}
    if ASCEND_IS_AIV {{
        TPipe pipe;
        {behind.class_name} op;
        op.Init({behind.arguments}, tiling, &pipe);
        op.Process();
    }}
}}
"""


def _arguments(kernel: Kernel) -> str:
    """What Init is given beside the tiling."""
    return ", ".join(
        item.address if isinstance(item, Tensor) else "workspace + GetBlockIdx() * HANDED_BYTES"
        for item in _tensors(kernel)
    )


def _tensors(kernel: Kernel) -> list[Tensor | Ring]:
    return [*(item for item in kernel.tensors if isinstance(item, Tensor)), *kernel.rings]


def _handed_bytes(kernel: Kernel) -> str:
    (ring,) = kernel.rings
    size = f"{ring.places.name} * {ring.elements.cpp(Side.DEVICE, 2)} * {ring.item_bytes}"
    return f"constexpr uint64_t HANDED_BYTES = {size};"


def _process_behind(made: CubeKernel) -> list[str]:
    """Process of the vector cores: the loops in which their cube core hands results over."""
    (ring,) = made.kernel.rings
    lines = ["const uint64_t core = GetBlockIdx() / GetTaskRatio();", "uint32_t count = 0;"]
    return [*lines, *(line for node in made.takes for line in _taking(node, ring))]


def _taking(node: Node, ring: Ring) -> list[str]:
    if isinstance(node, Let):
        return let(node)
    if isinstance(node, Take):
        fields = [node.row.cpp(), node.column.cpp(), "spot", node.rows.cpp(), node.columns.cpp()]
        return [
            f"const uint64_t spot = count++ % {ring.places.name} * {ring.elements.cpp(Side.DEVICE, 2)};",
            "CrossCoreWaitFlag(RESULT_READY);",
            f"Take(Region{{{', '.join(fields)}}});",
            "CrossCoreSetFlag<2, PIPE_MTE2>(RESULT_TAKEN);",
        ]
    assert isinstance(node, For)
    inner = [line for item in node.body for line in _taking(item, ring)]
    if not node.cores:
        return framed(node, [inner])
    name, end = node.var.name, node.end.cpp(Side.DEVICE, 1)
    head = f"for (uint64_t {name} = core; {name} < {end}; {name} += tiling_.blockDim) {{"
    return [head, *indented(inner), "}"]


# -- the class of a cube core ---------------------------------------------------------------------


class _Printer:
    """The class of a cube core under its name."""

    def __init__(self, kernel: Kernel, name: str) -> None:
        stream = stream_of(kernel)
        if stream is None:
            raise PlanError("The loops of a cube core are no run of panels for each of its tiles.")
        self._kernel, self._name = kernel, name
        self._turns = Turns(stream)
        self._body = Body(self._turns.is_last)

    def text(self) -> str:
        """The constants and the class."""
        load, use = self._load(), self._use()
        functions = dict.fromkeys(
            item.function for item in self._kernel.expressions() if isinstance(item, Call)
        )
        private = [
            *self._turns.methods(),
            load,
            use,
            *self._body.methods,
            *map(function, functions),
            *cube_methods.methods(self._kernel),
        ]
        return f"""\
{self._constants()}
{cube_methods.SPAN}
// {wrapped(self._kernel.note, "// ")}
class {self._name} {{
public:
    __aicore__ inline {self._name}() {{}}
{indent(self._init(), STEP)}
{indent(self._process(), STEP)}
private:
{indent(chr(10).join(private), STEP)}
{indent(self._members(), STEP)}}};
"""

    def _constants(self) -> str:
        notes = {
            "PANELS": "in L1: one is loaded while the other is multiplied",
            "STEPS": "in L0A and L0B, likewise",
            "SUMS": "in L0C: one is stored while the other is computed",
        }
        counts = {SLOTS[item.memory]: item.stages for item in self._kernel.buffers}
        lines = [
            f"constexpr uint32_t {name} = {count};" + (f" // {notes[name]}" if count > 1 else "")
            for name, count in counts.items()
        ]
        lines += cube_methods.constants(self._kernel)
        if self._kernel.rings:
            lines += [
                "constexpr uint16_t RESULT_READY = 0; // from the cube core to its vector cores",
                "constexpr uint16_t RESULT_TAKEN = 1; // from both vector cores to the cube core",
            ]
        return "".join(f"{line}\n" for line in lines)

    # -- Init and members -----------------------------------------------------------------------

    def _init(self) -> str:
        tensors, buffers = _tensors(self._kernel), self._kernel.buffers
        lines = ["tiling_ = tiling;"]
        lines += [
            f"{item.name}Global.SetGlobalBuffer(reinterpret_cast<__gm__ {item.ctype} *>({item.name}));"
            for item in tensors
        ]
        memories = dict.fromkeys(item.memory for item in buffers)
        lines += [f"LocalMemAllocator<Hardware::{item.value}> in{item.value};" for item in memories]
        lines += [self._allocated(item) for item in buffers]
        parameters = [*(f"GM_ADDR {item.name}" for item in tensors), "const OpTiling &tiling"]
        return method("void", "Init", ", ".join(parameters), lines)

    def _allocated(self, buffer: Buffer) -> str:
        left = {
            item.source.buffer for item in self._kernel.nodes if isinstance(item, LoadData) and item.is_left
        }
        position = _POSITION.get(buffer.memory) or ("A1" if buffer in left else "B1")
        count = f"{SLOTS[buffer.memory]} * {buffer.elements.cpp(Side.DEVICE, 2)}"
        place = f"in{buffer.memory.value}.Alloc<TPosition::{position}, {buffer.ctype}, {count}>()"
        return f"{buffer.name} = {place};"

    def _members(self) -> str:
        lines = ["OpTiling tiling_;"]
        lines += [f"GlobalTensor<{item.ctype}> {item.name}Global;" for item in _tensors(self._kernel)]
        lines += [f"LocalTensor<{item.ctype}> {item.name};" for item in self._kernel.buffers]
        lines += [*self._turns.members, "uint32_t stepCount = 0;", "uint32_t sumCount = 0;"]
        lines += ["uint32_t storeCount = 0;" for _ in self._kernel.rings]
        return "\n".join(lines) + "\n"

    # -- what it does ---------------------------------------------------------------------------

    def _process(self) -> str:
        index, last = self._turns.index, self._turns.last_index
        lines = [
            *_every_slot("SetFlag"),
            *self._turns.begin,
            f"if (turn.{index} < {last}) {{",
            f"{STEP}Load(turn);",
            "}",
            f"while (turn.{index} < {last}) {{",
            f"{STEP}const Turn next = Next(turn);",
            f"{STEP}if (next.{index} < {last}) {{ // travels while this turn is multiplied",
            f"{STEP}{STEP}Load(next);",
            f"{STEP}}}",
            f"{STEP}Use(turn);",
            f"{STEP}turn = next;",
            "}",
            *_every_slot("WaitFlag"),
        ]
        for item in self._kernel.rings:
            most = item.places.name
            lines += [
                f"for (uint32_t left = storeCount < {most} ? storeCount : {most}; left > 0; --left) {{",
                f"{STEP}CrossCoreWaitFlag(RESULT_TAKEN);",
                "}",
            ]
        return method("void", "Process", "", lines)

    def _load(self) -> str:
        lines = [
            free("WaitFlag", Memory.L1, "turn.slot"),
            *self._body.lines(self._turns.inside(self._turns.stream.loads)),
            full("SetFlag", Memory.L1, "turn.slot"),
        ]
        return method("void", "Load", "const Turn &turn", lines)

    def _use(self) -> str:
        nodes = self._turns.inside(self._turns.stream.uses)
        lines = [
            full("WaitFlag", Memory.L1, "turn.slot"),
            *self._body.lines(nodes),
            f"if ({self._turns.is_last}) {{",
            f"{STEP}sumCount += {_lanes(nodes)};",
            "}",
            free("SetFlag", Memory.L1, "turn.slot"),
        ]
        return method("void", "Use", "const Turn &turn", lines)


def _lanes(nodes: Sequence[Node]) -> str:
    """How many sums a tile has: as many as the loop over their lanes has turns."""
    lanes = {item.lane for item in flat(nodes) if isinstance(item, Sum)}
    ends = [item.end.cpp() for item in flat(nodes) if isinstance(item, For) and item.var in lanes]
    return ends[0] if ends else "1"


def _every_slot(verb: str) -> list[str]:
    """All buffers are free in the beginning and in the end."""
    lines: list[str] = []
    for memory in (Memory.L1, Memory.L0A, Memory.L0C):
        head = f"for (uint32_t slot = 0; slot < {SLOTS[memory]}; ++slot) {{"
        lines += [head, f"{STEP}{free(verb, memory, 'slot')}", "}"]
    return lines
