"""The class of a cube core from the IR: Load and Use for each turn of its loops, and what is around.

The turns of all loops are one run, so that the panels of turns to come travel while those of a turn are
multiplied, from one tile to the next too. Where vector cores make of a turn's results what the rest of the
turn reads, those of turns to come are computed in the meantime.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import indent

from evokernel_core.domain.errors import PlanError
from evokernel_core.targets.ascendc.ir.cube import Keep, LoadData, LoadFractals, Reach, Sum
from evokernel_core.targets.ascendc.ir.expr import CallExpr, Side
from evokernel_core.targets.ascendc.ir.handing_cube import kept, rings_of, stream_of
from evokernel_core.targets.ascendc.ir.nodes import (
    Buffer,
    For,
    Kernel,
    Memory,
    Node,
    Ring,
    Role,
    Tensor,
    flat,
)
from evokernel_core.targets.ascendc.print import cube_methods
from evokernel_core.targets.ascendc.print.cube_body import SLOTS, TURNS_OWN, Body, free, full, misses
from evokernel_core.targets.ascendc.print.statements import STEP, function, indented, method, wrapped
from evokernel_core.targets.ascendc.print.turns import Turns

_POSITION = {Memory.L0A: "A2", Memory.L0B: "B2", Memory.L0C: "CO1"}


def cube_class(kernel: Kernel, name: str) -> str:
    """The class under a name, behind its constants."""
    return _CubePrinter(kernel, name).text()


def addressed(kernel: Kernel) -> list[Tensor | Ring]:
    """What Init is given the addresses of, in their order."""
    return [*(tensor for tensor in kernel.tensors if isinstance(tensor, Tensor)), *kernel.rings]


def flags(rings: Sequence[Ring]) -> list[str]:
    """The flags between a cube core and its vector cores, one for each ring of turns."""
    ways = {Role.OUTPUT: "from the cube core to its vector cores",
            Role.INPUT: "from both vector cores to the cube core"}  # fmt: skip
    return [
        f"constexpr uint16_t {ring.flag} = {number}; // {ways[ring.role]}"
        for number, ring in enumerate(rings)
    ]


def init_text(kernel: Kernel, stages: Callable[[Buffer], str]) -> str:
    """Init of a cube core, which lays out its buffers; ``stages``: how many there are of each, by name."""
    tensors, buffers = addressed(kernel), kernel.buffers
    lines = ["tiling_ = tiling;"]
    lines += [
        f"{tensor.name}Global.SetGlobalBuffer(reinterpret_cast<__gm__ {tensor.ctype} *>({tensor.name}));"
        for tensor in tensors
    ]
    memories = dict.fromkeys(buffer.memory for buffer in buffers)
    lines += [f"LocalMemAllocator<Hardware::{memory.value}> in{memory.value};" for memory in memories]
    loads = (node for node in kernel.nodes if isinstance(node, (LoadData, LoadFractals)))
    left = {load.source.buffer for load in loads if load.is_left}
    for buffer in buffers:
        position = _POSITION.get(buffer.memory) or ("A1" if buffer in left else "B1")
        count, times = buffer.elements.cpp(Side.DEVICE, 2), stages(buffer)
        count = f"{times} * {count}" if times else count
        place = f"in{buffer.memory.value}.Alloc<TPosition::{position}, {buffer.ctype}, {count}>()"
        lines.append(f"{buffer.name} = {place};")
    parameters = [*(f"GM_ADDR {tensor.name}" for tensor in tensors), "const OpTiling &tiling"]
    return method("void", "Init", ", ".join(parameters), lines)


def class_text(
    kernel: Kernel,
    name: str,
    constants: str,
    public: Sequence[str],
    private: Sequence[str],
    members: Sequence[str],
) -> str:
    """The class of a cube core behind its constants, of the methods and members that are its own."""
    calls = (node.function for node in kernel.expressions() if isinstance(node, CallExpr))
    private = [*private, *map(function, dict.fromkeys(calls)), *cube_methods.methods(kernel)]
    lines = ["OpTiling tiling_;"]
    lines += [f"GlobalTensor<{node.ctype}> {node.name}Global;" for node in addressed(kernel)]
    lines += [f"LocalTensor<{buffer.ctype}> {buffer.name};" for buffer in kernel.buffers]
    return f"""\
{constants}
// {wrapped(kernel.note, "// ")}
class {name} {{
public:
    __aicore__ inline {name}() {{}}
{chr(10).join(indent(text, STEP) for text in public)}
private:
{indent(chr(10).join(private), STEP)}
{indent("".join(f"{line}{chr(10)}" for line in (*lines, *members)), STEP)}}};
"""


class _CubePrinter:
    """The class of a cube core under its name."""

    def __init__(self, kernel: Kernel, name: str) -> None:
        stream = stream_of(kernel)
        if stream is None:
            raise PlanError("The loops of a cube core are no run of panels for each of its tiles.")
        self._kernel, self._name = kernel, name
        self._turns = Turns(stream)
        self._body = Body(self._turns.is_last, "panel" if stream.rings else TURNS_OWN)
        self._kept = [node for node in stream.loads if isinstance(node, Keep) and node.is_common]
        self._reached = next((node for node in kernel.nodes if isinstance(node, Reach)), None)

    def text(self) -> str:
        """The constants and the class."""
        load, use = self._load(), self._use()
        private = [
            *self._turns.methods(),
            *map(self._keeping, self._kept),
            load,
            use,
            *([_REACH] if self._reached is not None else []),
            *self._body.methods,
        ]
        constants, public = f"{self._constants()}\n{cube_methods.SPAN}", [self._init(), self._process()]
        return class_text(self._kernel, self._name, constants, public, private, self._members())

    def _constants(self) -> str:
        notes = {
            "PANELS": "in L1: some are loaded while one is multiplied",
            "STEPS": "in L0A and L0B: one is filled while the other is used",
            "SUMS": "in L0C: one is stored while the other is computed",
        }
        common = kept(self._kernel)
        counts = {
            SLOTS[buffer.memory]: buffer.stages for buffer in self._kernel.buffers if buffer not in common
        }
        lines = [
            f"constexpr uint32_t {name} = {count};" + (f" // {notes[name]}" if count > 1 else "")
            for name, count in counts.items()
        ]
        lines += cube_methods.constants(self._kernel)
        if self._turns.stream.rings:
            lines += flags(self._turns.stream.rings)
        elif self._kernel.rings:
            lines += [
                "constexpr uint16_t RESULT_READY = 0; // from the cube core to its vector cores",
                "constexpr uint16_t RESULT_TAKEN = 1; // from both vector cores to the cube core",
            ]
        if self._reached is not None:
            lines += [
                "constexpr uint16_t CHUNK_READY = 0; // from both vector cores to their cube core",
                "constexpr uint16_t CHUNK_READ = 1; // from the cube core to its vector cores",
            ]
        return "".join(f"{line}\n" for line in lines)

    # -- Init and members -----------------------------------------------------------------------

    def _init(self) -> str:
        common = kept(self._kernel)
        return init_text(self._kernel, lambda node: "" if node in common else SLOTS[node.memory])

    def _members(self) -> list[str]:
        lines = [*self._turns.members, "uint32_t stepCount = 0;", "uint32_t sumCount = 0;"]
        if self._turns.stream.rings:
            lines.append("uint32_t panelCount = 0;")
        else:
            lines += ["uint32_t storeCount = 0;" for _ in self._kernel.rings]
        keys = {
            node.buffer.name: "1" if node.is_common else "PANELS"
            for node in self._kernel.nodes
            if isinstance(node, Keep)
        }
        note = "// of what it holds, one more than its number"
        lines += [f"uint64_t {name}Key[{count}] = {{}}; {note}" for name, count in keys.items()]
        lines += ["uint64_t reachedChunks = 0;"] if self._reached is not None else []
        return lines

    # -- what it does ---------------------------------------------------------------------------

    def _process(self) -> str:
        index, last, slots = self._turns.index, self._turns.last_index, self._turns.slots
        load, use, meanwhile = "Load", "Use", "travel in the meantime"
        if self._turns.stream.rings:
            load, use, meanwhile = "Hand", "Resume", "vector cores work on them"
        lines = [
            *every_slot("SetFlag"),
            *self._turns.begin,
            f"Turn turns[{slots}];",
            "uint64_t used = 0;",
            "for (uint64_t loaded = 0;; ++used) {",
            f"{STEP}while (ahead.{index} < {last} && loaded < used + {slots}) {{ // {meanwhile}",
            *indented(indented(line for node in self._kept for line in self._keep(node))),
            f"{STEP}{STEP}{load}(ahead);",
            f"{STEP}{STEP}turns[loaded++ % {slots}] = ahead;",
            f"{STEP}{STEP}ahead = Next(ahead);",
            f"{STEP}}}",
            f"{STEP}if (used == loaded) {{",
            f"{STEP}{STEP}break;",
            f"{STEP}}}",
            f"{STEP}{use}(turns[used % {slots}]);",
            "}",
        ]
        if self._reached is not None:
            lines.append(f"ReachChunk({self._reached.chunks.cpp(Side.DEVICE, 1)} - 1);")
        lines += every_slot("WaitFlag")
        for ring in self._kernel.rings if not self._turns.stream.rings else ():
            most = ring.places.name
            lines += [
                f"for (uint32_t left = storeCount < {most} ? storeCount : {most}; left > 0; --left) {{",
                f"{STEP}CrossCoreWaitFlag(RESULT_TAKEN);",
                "}",
            ]
        return method("void", "Process", "", lines)

    def _keep(self, node: Keep) -> list[str]:
        """What stays is replaced when no turn needs it any more."""
        (ahead,) = self._turns.inside((node,), "ahead")
        assert isinstance(ahead, Keep)
        return [
            f"if ({misses(ahead, '0')}) {{",
            f"{STEP}if (loaded > used) {{ // turns in L1 need what is there",
            f"{STEP}{STEP}break;",
            f"{STEP}}}",
            f"{STEP}{_keeper(node)}(ahead);",
            "}",
        ]

    def _keeping(self, node: Keep) -> str:
        (inside,) = self._turns.inside((node,))
        assert isinstance(inside, Keep)
        copies = self._body.kept(inside, "0")[1:-1]
        lines = [*_every(Memory.L1, "WaitFlag"), *(line[len(STEP) :] for line in copies)]
        note = "// Fills what stays: nothing reads the old any more.\n"
        lines += _every(Memory.L1, "SetFlag")
        return note + method("void", _keeper(node), "const Turn &turn", lines)

    def _load(self) -> str:
        if self._turns.stream.rings:
            note = "// What vector cores need of a turn.\n"
            return note + self._handing("Hand", self._turns.stream.loads)
        loads = tuple(node for node in self._turns.stream.loads if node not in self._kept)
        lines = [
            free("WaitFlag", Memory.L1, "turn.slot"),
            *self._body.lines(self._turns.inside(loads)),
            full("SetFlag", Memory.L1, "turn.slot"),
        ]
        return method("void", "Load", "const Turn &turn", lines)

    def _handing(self, name: str, nodes: tuple[Node, ...]) -> str:
        """Part of a turn, which reads what vector cores have written and hands its results to them."""
        lines = [f"CrossCoreWaitFlag({ring.flag});" for ring in rings_of(nodes, Role.INPUT)]
        lines += self._body.lines(self._turns.inside(nodes))
        lines += [f"CrossCoreSetFlag<2, PIPE_FIX>({ring.flag});" for ring in rings_of(nodes, Role.OUTPUT)]
        return method("void", name, "const Turn &turn", lines)

    def _use(self) -> str:
        if self._turns.stream.rings:
            note = "// The rest of a turn, when they have done their part of it.\n"
            return note + self._handing("Resume", self._turns.stream.uses)
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
    lanes = {node.lane for node in flat(nodes) if isinstance(node, Sum)}
    ends = [node.end.cpp() for node in flat(nodes) if isinstance(node, For) and node.var in lanes]
    return ends[0] if ends else "1"


def _keeper(node: Keep) -> str:
    return f"Keep{node.buffer.name[0].upper()}{node.buffer.name[1:]}"


def every_slot(verb: str) -> list[str]:
    """All buffers are free in the beginning and in the end."""
    return [line for memory in (Memory.L1, Memory.L0A, Memory.L0C) for line in _every(memory, verb)]


def _every(memory: Memory, verb: str) -> list[str]:
    head = f"for (uint32_t slot = 0; slot < {SLOTS[memory]}; ++slot) {{"
    return [head, f"{STEP}{free(verb, memory, 'slot')}", "}"]


_REACH = """\
// Waits until a chunk is there, and gives those before it back.
__aicore__ inline void ReachChunk(uint64_t chunk)
{
    for (; reachedChunks <= chunk; ++reachedChunks) {
        if (reachedChunks > 0) {
            CrossCoreSetFlag<2, PIPE_MTE2>(CHUNK_READ);
        }
        CrossCoreWaitFlag(CHUNK_READY);
    }
}
"""
