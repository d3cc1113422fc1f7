"""AscendC from the kernel IR: a class with Init, Process, CopyIn, Compute and CopyOut, and its tiling.

Queues follow from who writes and reads a buffer; a tile's consecutive loads, instructions and stores become
methods, whose parameters are what they use and do not define.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from textwrap import indent
from types import MappingProxyType

from attrs import frozen

from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.api import api_row
from evokernel_core.targets.ascendc.ir import allocation
from evokernel_core.targets.ascendc.ir.allocation import Use
from evokernel_core.targets.ascendc.ir.expr import U32, CallExpr, Expr, Function, Int, Param, Side, Var
from evokernel_core.targets.ascendc.ir.handing import with_waits
from evokernel_core.targets.ascendc.ir.nodes import (
    LANES,
    Assign,
    Atomic,
    Await,
    Buffer,
    Clear,
    Converted,
    Copy,
    Difference,
    Enumerator,
    Fence,
    Fields,
    For,
    Get,
    If,
    Instruction,
    InverseRoot,
    Kept,
    Kernel,
    Let,
    Node,
    Number,
    Operand,
    Put,
    Ratio,
    Region,
    Ring,
    Routine,
    Runs,
    Section,
    Signal,
    Slice,
    SliceList,
    Tensor,
    TensorList,
    Told,
    accesses,
    flat,
)
from evokernel_core.targets.ascendc.ir.steps import (
    Block,
    Part,
    Round,
    Step,
    StepKind,
    ahead,
    body_parts,
    is_one_step,
    nodes_of,
    rounds,
)
from evokernel_core.targets.ascendc.kernels.family import StageText
from evokernel_core.targets.ascendc.kernels.rendering import class_name, parameters_of
from evokernel_core.targets.ascendc.kernels.stage import facts_of_vectors
from evokernel_core.targets.ascendc.print.statements import (
    RING_FLAGS,
    STEP,
    call_lines,
    comment,
    converted,
    flag,
    framed,
    free_variables,
    function,
    in_lines,
    indented,
    let,
    method,
    needed,
    turns,
    wrapped,
)
from evokernel_core.targets.ascendc.print.tiling import compute, refusal, settings

_IN_SETUP = {
    StepKind.LOAD: "Fetch",
    StepKind.COMPUTE: "Prepare",
    StepKind.SCALAR: "Prepare",
    StepKind.STORE: "Finish",
}
_IN_TILES = {
    StepKind.LOAD: "CopyIn",
    StepKind.COMPUTE: "Compute",
    StepKind.SCALAR: "Compute",
    StepKind.STORE: "CopyOut",
}
_CLASSES = {
    Use.INPUT: "TQue<TPosition::VECIN, {}>",
    Use.OUTPUT: "TQue<TPosition::VECOUT, {}>",
    Use.THROUGH: "TQueBind<TPosition::VECIN, TPosition::VECOUT, {}>",
    Use.NUMBERS: "TBuf<TPosition::VECCALC>",
    Use.SCRATCH: "TBuf<TPosition::VECCALC>",
}


def stage_text(kernel: Kernel, task: KernelTask, name: str) -> StageText:
    """The kernel's two texts under a name in snake case; its tensors are the task's."""
    tiles = kernel.tiles.most_cores.cpp(Side.HOST, 1)
    blocks = [f"tiling.blockDim = static_cast<uint32_t>({tiles} < coreNum ? {tiles} : coreNum);"]
    for node, own in kernel.workspaces:
        size = f"{own.cpp(Side.HOST, 2)} * sizeof({node.ctype})"
        blocks.append(f"tiling.workspaceBytes = tiling.blockDim * {size};")
    for node, elements in kernel.common:
        blocks.append(f"tiling.workspaceBytes = {elements.cpp(Side.HOST, 2)} * sizeof({node.ctype});")
    taken = f"constexpr uint64_t UB_BYTES_NEEDED = {allocation.bytes_of(kernel)};"
    checks = refusal("ubBytes < UB_BYTES_NEEDED")
    tiling, computing, text = (
        in_lines(part)
        for part in (
            settings(kernel, [taken]),
            compute(kernel, task, checks=checks, blocks=blocks),
            f"{vector_class(kernel, class_name(name))}\n{_entry(kernel, task, name)}",
        )
    )
    return StageText(tiling, computing, text, f"{name}_kernel", facts_of_vectors(kernel))


def vector_class(kernel: Kernel, name: str) -> str:
    """The class of a kernel's vector cores under a name, behind its numbers."""
    return _VectorPrinter(kernel, name).text()


def arguments_of(kernel: Kernel) -> str:
    """What Init of a kernel's class is given beside the tiling and the pipe."""
    return ", ".join(address for _, address in addresses_of(kernel))


def addresses_of(kernel: Kernel) -> Iterator[tuple[str, str]]:
    """Init's parameter for each address, and what is passed: parts of the workspace begin at ``own``."""
    for tensor in kernel.tensors:
        tensors = tensor.tensors if isinstance(tensor, TensorList) else (tensor,)
        yield from ((one.name, one.address) for one in tensors)
    yield from ((ring.name, f"own + tiling.{ring.name}Offset") for ring in kernel.rings)


def _entry(kernel: Kernel, task: KernelTask, name: str) -> str:
    parameters = parameters_of(task, kernel.results)
    cores = "__mix__(0, 1)" if kernel.meets else "__vector__"  # cores meet in a mixed launch only
    return f"""\
extern "C" __global__ {cores} void {name}_kernel(
    {parameters}, GM_ADDR workspace, OpTiling tiling)
{{
    TPipe pipe;
    {class_name(name)} op;
    op.Init({arguments_of(kernel)}, tiling, &pipe);
    op.Process();
}}
"""


@frozen
class _Phase:
    """A step of a tile or of the setup that becomes a method; ``transfers``: whether it owns what queues
    hand over, which a section inside another step does not."""

    name: str
    body: tuple[Node, ...]
    note: str = ""
    transfers: bool = True


class _VectorPrinter:
    """The class of one kernel."""

    def __init__(self, kernel: Kernel, name: str) -> None:
        self._kernel = kernel
        self._name = name
        self._uses = allocation.uses(kernel)
        self._homes = allocation.homes(kernel)
        self._order = {var: place for place, var in enumerate(kernel.variables())}
        self._methods: list[str] = []
        self._sections: dict[int, tuple[Block, str]] = {}  # by identity, with their calls
        self._used: Counter[str] = Counter()
        self._kept: dict[Buffer, None] = {}  # held by a body, between its steps
        self._fetched: set[Buffer] = set()  # queues that are filled again before they are read
        self._held: frozenset[Buffer] = frozenset()  # of them those of the step that is written
        self._routines: dict[str, tuple[Node, ...]] = {}  # by their names
        self._calls: dict[int, str] = {}  # of sections inside steps, by their identity

    def text(self) -> str:
        """The class, behind its numbers and flags."""
        process = self._process()
        functions = [function(item) for item in self._functions()]
        name = self._name
        return f"""\
{self._numbers()}// {wrapped(self._kernel.note, "// ")}
class {name} {{
public:
    __aicore__ inline {name}() {{}}
{indent(self._init(), STEP)}
{indent(process, STEP)}
private:
{indent(chr(10).join([*self._methods, *functions]), STEP)}
{indent(self._members(), STEP)}}};
"""

    def _numbers(self) -> str:
        lines = [
            f"constexpr float {number.name} = {_float(number.value)};{comment(number.note)}\n"
            for number in self._kernel.numbers()
        ]
        if any(isinstance(node, For) and node.ring is not None for node in self._kernel.nodes):
            lines.append(RING_FLAGS)
        return "".join([*lines, "\n"] if lines else [])

    # -- Init and members -----------------------------------------------------------------------

    def _init(self) -> str:
        lines = ["tiling_ = tiling;"]
        for part in (*self._kernel.tensors, *self._kernel.rings):
            if isinstance(part, TensorList):
                pairs = [(f"{part.name}[{place}]", one.name) for place, one in enumerate(part.tensors)]
            else:
                pairs = [(_global(part), part.name)]
            own = part.own if isinstance(part, Tensor) else None
            behind = f" + GetBlockIdx() * {own.cpp(Side.DEVICE, 2)}" if own is not None else ""
            lines += [
                f"{place}.SetGlobalBuffer(reinterpret_cast<__gm__ {part.ctype} *>({address}){behind});"
                for place, address in pairs
            ]
            if part.bypass_l2:
                lines += [
                    f"{place}.SetL2CacheHint(CacheMode::CACHE_MODE_DISABLE); // L2 is left to others"
                    for place, _ in pairs
                ]
        for buffer, use in self._uses.items():
            size = f"{buffer.elements.cpp(Side.DEVICE, 2)} * sizeof({buffer.ctype})"
            if not use.is_queue:
                if self._homes[buffer] == buffer:
                    lines.append(f"pipe->InitBuffer({buffer.name}Buffer, {size});")
            else:
                lines.append(f"pipe->InitBuffer({buffer.name}Queue, {buffer.stages}, {size});")
        for buffer, use in self._uses.items():
            if not use.is_queue and not buffer.idle:
                home = self._homes[buffer]
                note = "" if home == buffer else comment("while nothing else lies there")
                lines.append(f"{buffer.name} = {home.name}Buffer.Get<{buffer.ctype}>();{note}")
        for buffer in self._uses:
            if buffer.cleared:
                words = buffer.bytes // 4
                lines.append(f"Duplicate({buffer.name}.ReinterpretCast<int32_t>(), 0, {words});")
        parameters = ", ".join(f"GM_ADDR {parameter}" for parameter, _ in addresses_of(self._kernel))
        return method("void", "Init", f"{parameters}, const OpTiling &tiling, TPipe *pipe", lines)

    def _members(self) -> str:
        lines = ["OpTiling tiling_;"]
        for buffer, use in self._uses.items():
            if self._homes[buffer] != buffer:
                continue
            suffix = "Queue" if use.is_queue else "Buffer"
            depth = buffer.stages if buffer in self._fetched else 1
            lines.append(f"{_CLASSES[use].format(depth)} {buffer.name}{suffix};")
        for part in (*self._kernel.tensors, *self._kernel.rings):
            many = f"{part.name}[{len(part.tensors)}]" if isinstance(part, TensorList) else _global(part)
            lines.append(f"GlobalTensor<{part.ctype}> {many};")
        lines += [
            f"LocalTensor<{buffer.ctype}> {buffer.name};"
            for buffer, use in self._uses.items()
            if not buffer.idle and (not use.is_queue or buffer in self._kept)
        ]
        lines += [
            f"{state.ctype} {state.name} = {state.first};{comment(state.note)}"
            for state in self._kernel.states()
        ]
        if any(isinstance(node, Instruction) and Kept() in node.operands for node in self._kernel.nodes):
            lines.append(f"uint64_t {Kept().name} = 0; // elements that were picked last")
        return "\n".join(lines) + "\n"

    def _functions(self) -> list[Function]:
        result = dict.fromkeys(
            expression.function
            for expression in self._kernel.expressions()
            if isinstance(expression, CallExpr)
        )
        return list(result)

    # -- steps ----------------------------------------------------------------------------------

    def _process(self) -> str:
        """Process: the setup, and the tiles of a core."""
        parts = with_waits(body_parts(self._kernel), self._uses)
        return method("void", "Process", "", self._body(parts, _IN_SETUP))

    def _body(
        self,
        parts: Sequence[Part],
        names: Mapping[StepKind, str],
        instead: Mapping[int, list[str]] = MappingProxyType({}),
    ) -> list[str]:
        """The parts of a body; between them it hands over the buffers that no step hands over alone.
        ``instead``: the lines of parts that are written already, by their places."""
        found = list(rounds(parts, self._uses))
        lines: list[str] = []
        for place, part in enumerate(parts):
            held = frozenset(
                node.buffer
                for node in found
                for side in (node.fills, node.takes)
                if place in side and not (node.is_whole and is_one_step(side, parts))
            )
            self._kept.update(dict.fromkeys(sorted(held, key=lambda entry: entry.name)))
            whole = [node for node in found if node.is_whole]
            lines += [line for part in whole for line in _taken_around(part, place, parts)]
            lines += instead[place] if place in instead else self._part(part, held, names)
            lines += [line for part in whole for line in _given_around(part, place, parts)]
        return lines

    def _part(self, part: Part, held: frozenset[Buffer], names: Mapping[StepKind, str]) -> list[str]:
        if isinstance(part, (Let, Assign)):
            return self._lines(part)
        waits = _waits(part)
        if isinstance(part, Block):
            return [*waits, *self._block(part)]
        if part.is_plain:
            return [*waits, *(line for node in part.nodes for line in self._lines(node))]
        section = part.nodes[0]
        if len(part.nodes) == 1 and isinstance(section, Section) and section.routine is None:
            return [*waits, self._called(_Phase(section.name, section.body, section.note), held)]
        return [*waits, self._called(_Phase(self._numbered(names[part.kind]), part.nodes), held)]

    def _block(self, part: Block) -> list[str]:
        place = len(self._methods)
        before = self._sections.get(id(part.node))
        if before is not None and before[0].bodies == part.bodies:  # it waits for the same again
            return [before[1]]
        if isinstance(part.node, For):
            load = ahead(part.bodies[0], self._uses)
            if load is not None and part.node.so_long is None:
                return self._fetching_loop(part.node, part.bodies[0], load)
            chain = self._preloaded(part.bodies[0])
            if chain:
                return self._preloading_loop(part.node, part.bodies[0], chain)
        inner = [self._body(body, _IN_TILES) for body in part.bodies]
        if isinstance(part.node, Section):
            phase = _Phase(part.node.name, part.node.body, part.node.note)
            call = self._method_call(phase, [], inner[0], place)
            self._sections[id(part.node)] = part, call
            return [call]
        return framed(part.node, inner)

    def _fetching_loop(self, node: For, parts: Sequence[Part], load: int) -> list[str]:
        """A loop that loads for its next turn before it computes: a core issues instructions in order, and a
        copy that waits behind those of a whole tile comes too late."""
        call = self._load_call(parts, load)
        name, (first, end, _) = node.var.name, turns(node)
        begin = [f"if ({first} < {end}) {{", f"{STEP}{_called_with(call, name, first)}", "}"]
        return [*begin, *self._turns_that_fetch(node, parts, load, call)]

    def _load_call(self, parts: Sequence[Part], load: int, around: Sequence[Part] = ()) -> str:
        """The call of the method that loads for a turn, with the local constants of the body that it takes,
        and those of the body ``around``."""
        step = parts[load]
        assert isinstance(step, Step)
        lets = [part for part in (*around, *parts[:load]) if isinstance(part, Let)]
        phase = _Phase(self._numbered(_IN_TILES[StepKind.LOAD]), (*needed(lets, step.nodes), *step.nodes))
        self._fetched.update(_buffers_of(step.nodes))
        return self._called(phase, frozenset())

    def _turns_that_fetch(
        self, node: For, parts: Sequence[Part], load: int, call: str, last: Sequence[str] = ()
    ) -> list[str]:
        """The turns of a loop, each of which loads for the next one; the ``last`` one does these."""
        step = parts[load]
        name, (_, end, step_over) = node.var.name, turns(node)
        following = f"{name} + {step_over}"
        fetch = [
            f"if ({following} < {end}) {{ // travels while this turn is computed",
            f"{STEP}{_called_with(call, name, following)}",
            *(["} else {", *indented(last)] if last else []),
            "}",
        ]
        working = [part for part in parts if part is not step and not isinstance(part, Let)]
        others = [node for part in working for node in nodes_of(part)]
        kept = needed([part for part in parts if isinstance(part, Let)], others)
        unused: dict[int, list[str]] = {
            place: [] for place, part in enumerate(parts) if isinstance(part, Let) and part not in kept
        }
        return framed(node, [self._body(parts, _IN_TILES, {**unused, load: fetch})])

    def _preloaded(self, parts: Sequence[Part]) -> list[int]:
        """The places of the preloaded loops in a body whose turns load ahead."""
        return [
            place
            for place, part in enumerate(parts)
            if isinstance(part, Block)
            and isinstance(part.node, For)
            and part.node.preloaded
            and ahead(part.bodies[0], self._uses) is not None
        ]

    def _preloading_loop(self, node: For, parts: Sequence[Part], chain: Sequence[int]) -> list[str]:
        """A loop around preloaded ones: the last turn of each of them loads for the first one of the next,
        which is that of the next turn behind the last."""
        found: list[tuple[Block, int, str]] = []
        for place in chain:
            inner = parts[place]
            assert isinstance(inner, Block)
            load = ahead(inner.bodies[0], self._uses)
            assert load is not None
            found.append((inner, load, self._load_call(inner.bodies[0], load, parts[:place])))
        name, (first, last, step) = node.var.name, turns(node)
        end = f"{name}End"
        firsts = [_called_with(call, _loop_of(inner).var.name, "0") for inner, _, call in found]

        def load_for(turn: str) -> list[str]:
            return [f"if ({turn} < {end}) {{", f"{STEP}{_called_with(firsts[0], name, turn)}", "}"]

        behind = [*([call] for call in firsts[1:]), load_for(f"{name} + {step}")]
        instead = {
            place: self._turns_that_fetch(_loop_of(inner), inner.bodies[0], load, call, after)
            for place, (inner, load, call), after in zip(chain, found, behind, strict=True)
        }
        head = [f"const {node.var.ctype} {end} = {last};", *load_for(first)]
        return [*head, *framed(node, [self._body(parts, _IN_TILES, instead)], end)]

    def _numbered(self, name: str) -> str:
        self._used[name] += 1
        return name + (str(self._used[name]) if self._used[name] > 1 else "")

    def _called(self, phase: _Phase, held: frozenset[Buffer]) -> str:
        """The call of a step, whose method is kept. It takes and gives all buffers but those that are held
        around it; a section inside another step works on those of that step."""
        place = len(self._methods)  # what it calls is written behind it
        around, self._held = self._held, held
        queued = [node for node in _buffers_of(phase.body) if self._uses[node].is_queue and node not in held]
        lines = self._statements(phase.body, queued if phase.transfers else ())
        self._held = around
        return self._method_call(phase, () if phase.transfers else queued, lines, place)

    def _statements(self, body: Sequence[Node], queued: Sequence[Buffer]) -> list[str]:
        """The nodes of a step. Each queue's buffer is taken in front of the first that works on it and given
        on behind the last, so that no unit waits for another longer than it must: new buffers are those that
        the step fills, others come as the step before left them; what was filled goes on, what was used up
        becomes free. Queues order copies with the vector unit, in whose place the scalar unit works on some:
        it waits for it, and it for the scalar unit."""
        touched = [_buffers_of((node,)) for node in body]
        first = {tensor: next(i for i, found in enumerate(touched) if tensor in found) for tensor in queued}
        last = {tensor: max(i for i, found in enumerate(touched) if tensor in found) for tensor in queued}
        numbers = {node.source.buffer for node in flat(body) if isinstance(node, Get)}
        numbers |= {node.target.buffer for node in flat(body) if isinstance(node, Put)}
        lines: list[str] = []
        for place, node in enumerate(body):
            begun = [tensor for tensor in queued if first[tensor] == place]
            ended = [tensor for tensor in queued if last[tensor] == place]
            lines += [f"LocalTensor<{node.ctype}> {_taking(node, self._fills(body, node))}" for node in begun]
            lines += _wait("V_S") if numbers & {*begun} else []
            lines += self._lines(node)
            lines += _wait("S_V") if numbers & {*ended} else []
            lines += [_giving(node, self._fills(body, node)) for node in ended]
        return lines

    def _method_call(self, phase: _Phase, queued: Sequence[Buffer], lines: Sequence[str], place: int) -> str:
        """The call of a method, which is kept at its place: it is given buffers and variables."""
        free = sorted(free_variables(phase.body), key=self._order.__getitem__)
        given = [(f"LocalTensor<{tensor.ctype}>", tensor.name) for tensor in queued]
        given += [(var.ctype, var.name) for var in free]
        parameters = ", ".join(f"{ctype} {name}" for ctype, name in given)
        note = f"// {wrapped(phase.note, '// ')}\n" if phase.note else ""
        self._methods.insert(place, note + method("void", phase.name, parameters, lines))
        return f"{phase.name}({', '.join(name for _, name in given)});"

    def _fills(self, body: Sequence[Node], buffer: Buffer) -> bool:
        """Whether a step makes a queue's tensor: loads for one that they fill, instructions for others."""
        by_load = self._uses[buffer] in (Use.INPUT, Use.THROUGH)
        return any(
            writes and child.buffer == buffer and isinstance(node, Copy) is by_load
            for node in flat(body)
            for writes, child in accesses(node)
        )

    # -- statements -----------------------------------------------------------------------------

    def _lines(self, node: Node) -> list[str]:
        match node:
            case Let() if node.var.ctype == LANES:
                return [f"uint64_t {node.var.name}[1] = {{{node.value.cpp()}}};"]
            case Let() | Assign():
                return let(node)
            case Get() | Put() | Fence() | Await() | Signal():
                return _scalar(node)
            case For() | If() | Atomic():
                bodies = [[line for one in body for line in self._lines(one)] for body in node.bodies]
                return framed(node, bodies)
            case Section():
                remark = [f"// {node.remark}"] if node.remark else []
                return [*remark, self._section_call(node)]
        assert isinstance(node, (Copy, Clear, Instruction))
        return self._work(node)

    def _section_call(self, node: Section) -> str:
        """The call of a section's method inside a step."""
        if node.routine is not None:
            return self._routine_call(node, node.routine)
        if id(node) not in self._calls:
            phase = _Phase(node.name, node.body, node.note, transfers=False)
            self._calls[id(node)] = self._called(phase, self._held)
        return self._calls[id(node)]

    def _routine_call(self, node: Section, routine: Routine) -> str:
        """The call of a method with parameters, which is written for the first section of its name."""
        known = self._routines.get(node.name)
        if known is not None and known != routine.body:
            raise ValueError(f"Two routines are called {node.name}.")
        if known is None:
            self._routines[node.name] = routine.body
            given = [(f"const LocalTensor<{place.ctype}> &", place.buffer.name) for place in routine.places]
            given += [(f"{var.ctype} ", var.name) for var in routine.numbers]
            lines = [line for one in routine.body for line in self._lines(one)]
            parameters = ", ".join(f"{ctype}{name}" for ctype, name in given)
            note = f"// {wrapped(node.note, '// ')}\n" if node.note else ""
            self._methods.append(note + method("void", node.name, parameters, lines))
        arguments = (*map(_slice, routine.arguments), *(value.cpp() for value in routine.values))
        return f"{node.name}({', '.join(arguments)});"

    def _work(self, node: Copy | Clear | Instruction) -> list[str]:
        if isinstance(node, Clear):
            return _clear(node, self._uses[node.target.buffer])
        return _copy(node) if isinstance(node, Copy) else _instruction(node)


def _loop_of(block: Block) -> For:
    assert isinstance(block.node, For)
    return block.node


def _scalar(node: Get | Put | Fence | Await | Signal) -> list[str]:
    """What the scalar unit does itself."""
    match node:
        case Get():
            read = f"{node.source.buffer.name}.GetValue({node.source.offset.cpp()})"
            ctype = node.var.ctype
            read = read if ctype == node.source.ctype else f"static_cast<{ctype}>({read})"
            return [f"const {ctype} {node.var.name} = {read};"]
        case Put():
            return [f"{node.target.buffer.name}.SetValue({node.target.offset.cpp()}, {node.value.cpp()});"]
        case Await() | Signal():
            return [flag(node)]
    if node.unit == "CORES":
        return ["SyncAll();"]
    if "_" in node.unit:
        return _wait(node.unit)
    return [f"PipeBarrier<PIPE_{'ALL' if node.unit == 'ALL' else 'MTE3'}>();"]


def _waits(part: Step | Block) -> list[str]:
    """Each unit that a part waits for says when it is done; ids of events with the scalar unit are not
    those of queues."""
    return [line for event in part.waits for line in _wait(event)]


def _wait(event: str) -> list[str]:
    is_own = "S" in event.split("_")
    number = "0" if is_own else f"GetTPipePtr()->FetchEventID(HardEvent::{event})"
    return [f"{verb}Flag<HardEvent::{event}>({number});" for verb in ("Set", "Wait")]


def _clear(node: Clear, use: Use) -> list[str]:
    """Zeros that wait for what lay there to be stored, and for which the load waits: queues order copies with
    the vector unit only where it works on their buffers."""
    stored = _wait("MTE3_V") if use is Use.THROUGH else []
    return [*stored, *_instruction(node.instruction), *_wait("V_MTE2")]


def _taken_around(round_: Round, place: int, parts: Sequence[Part]) -> Iterator[str]:
    """What a body takes of a queue in front of a part."""
    for side, fills in ((round_.fills, True), (round_.takes, False)):
        if place == side[0] and not is_one_step(side, parts):
            yield _taking(round_.buffer, fills)


def _given_around(round_: Round, place: int, parts: Sequence[Part]) -> Iterator[str]:
    """What a body gives to a queue behind a part."""
    for side, fills in ((round_.fills, True), (round_.takes, False)):
        if place == side[-1] and not is_one_step(side, parts):
            yield _giving(round_.buffer, fills)


def _taking(buffer: Buffer, fills: bool) -> str:
    return f"{buffer.name} = {buffer.name}Queue.{'AllocTensor' if fills else 'DeQue'}<{buffer.ctype}>();"


def _giving(buffer: Buffer, fills: bool) -> str:
    return f"{buffer.name}Queue.{'EnQue' if fills else 'FreeTensor'}({buffer.name});"


def _called_with(call: str, name: str, value: str) -> str:
    """A call whose argument of a name is another value."""
    function, _, arguments = call.removesuffix(");").partition("(")
    given = (value if part == name else part for part in arguments.split(", "))
    return f"{function}({', '.join(given)});"


def _buffers_of(nodes: Iterable[Node]) -> list[Buffer]:
    result = (child.buffer for node in flat(nodes) for _, child in accesses(node))
    return list(dict.fromkeys(result))


def _copy(node: Copy) -> list[str]:
    """DataCopyPad takes any length; lines of several rows are gaps apart."""
    ctype = node.slice.ctype
    length = f"static_cast<uint32_t>({node.count.cpp(Side.DEVICE, 2)} * sizeof({ctype}))"
    rows, gap, blocks = "1", "0", "0"
    if node.rows != Int(1):
        rows = f"static_cast<uint16_t>({node.rows.cpp()})"
        gap = f"static_cast<uint32_t>({(node.apart - node.count).cpp(Side.DEVICE, 2)} * sizeof({ctype}))"
        blocks = converted(node.skipped_blocks, U32)
    region, place = _region(node.region), _slice(node.slice)
    if not node.is_load:
        run = f"DataCopyExtParams{{{rows}, {length}, {blocks}, {gap}, 0}}"
        return call_lines("DataCopyPad", [f"{region}, {place}", run])
    run = f"DataCopyExtParams{{{rows}, {length}, {gap}, {blocks}, 0}}"
    padding = f"DataCopyPadExtParams<{ctype}>{{false, 0, 0, 0}}"
    if node.zeros != Int(0) or node.before != Int(0):
        value = _filler(node.filler, ctype)
        sides = ", ".join(
            "0" if choice == Int(0) else converted(choice, "uint8_t") for choice in (node.before, node.zeros)
        )
        padding = f"DataCopyPadExtParams<{ctype}>{{true, {sides}, {value}}}"
    return call_lines("DataCopyPad", [f"{place}, {region}", run, padding])


def _filler(value: Number | Expr | None, ctype: str) -> str:
    if isinstance(value, Expr):
        return converted(value, ctype)
    return _in_type(value, ctype) if value else "0"


def _instruction(node: Instruction) -> list[str]:
    lists = [operand for operand in node.operands if isinstance(operand, SliceList)]
    structures = [
        operand for operand in node.operands if isinstance(operand, Fields) and not operand.is_short
    ]
    template = f"<{node.template}>" if node.template else ""
    operands = ", ".join(map(_operand, node.operands))
    call = f"{node.former or api_row(node.key).name}{template}({operands});"
    note = [f"// {node.note}"] if node.note else []
    given = (line for structure in structures for line in _fields(structure))
    runs = [operand for operand in node.operands if isinstance(operand, Runs)]
    lengths = (_lengths(run) for run in runs)
    told = (f"GetMrgSortResult({', '.join(one.name for one in run.told)});" for run in runs if run.told)
    return [*note, *_lists(lists), *given, *lengths, call, *told]


def _lengths(runs: Runs) -> str:
    return f"const uint16_t lengths[] = {{{', '.join(converted(one, 'uint16_t') for one in runs.lengths)}}};"


def _runs(runs: Runs) -> str:
    """The lists of an instruction that merges runs, and what it does with them."""
    places = ", ".join(map(_slice, runs.slices))
    stops = "true" if runs.told else "false"
    count = converted((Int(1) << runs.count) - 1, "uint16_t")
    taking = f"lengths, {stops}, {count}, {converted(runs.times, 'uint16_t')}"
    return f"MrgSortSrcList<{runs.slices[0].ctype}>({places}), MrgSort4Info({taking})"


def _lists(lists: Sequence[SliceList]) -> list[str]:
    """Arrays of slices; those over the same numbers are filled together."""
    lines = [f"LocalTensor<{list_.slice.ctype}> {list_.name}[{list_.count.cpp()}];" for list_ in lists]
    for (var, count), run in groupby(lists, lambda list_: (list_.var, list_.count)):
        filled = [f"{STEP}{node.name}[{var.name}] = {_slice(node.slice)};" for node in run]
        head = f"for ({var.ctype} {var.name} = 0; {var.name} < {count.cpp()}; ++{var.name}) {{"
        lines += [head, *filled, "}"]
    return lines


def _fields(fields: Fields) -> list[str]:
    name = _structure(fields)
    assigned = [
        f"{name}.{key} = {converted(value, fields.types[key])};"
        if key in fields.types
        else f"{name}.{key} = {value.cpp()};"
        for key, value in fields.values.items()
    ]
    return [f"{fields.struct} {name};", *assigned]


def _short(fields: Fields) -> str:
    values = (
        value.cpp() if _is_constant(value) else converted(value, fields.types[name])
        for name, value in fields.values.items()
    )
    return f"{fields.struct}{{{', '.join(values)}}}"


def _structure(fields: Fields) -> str:
    return "params"


def _operand(operand: Operand) -> str:
    match operand:
        case Slice():
            return _slice(operand)
        case SliceList() | Enumerator() | Number() | Kept() | Told():
            return operand.name
        case Fields():
            return _short(operand) if operand.is_short else _structure(operand)
        case Ratio() | Difference() | InverseRoot():
            return _computed(operand)
        case Expr():
            return operand.cpp()
    return _value(operand)


def _value(node: Converted | Runs) -> str:
    if isinstance(node, Runs):
        return _runs(node)
    value = node.value
    if isinstance(value, Number):
        return _in_type(value, node.ctype)
    if isinstance(value, Int) and node.ctype == U32:
        return f"{value.value}U"
    return converted(value, node.ctype)


def _in_type(value: Number, ctype: str) -> str:
    return value.name if ctype == "float" else f"static_cast<{ctype}>({value.name})"


def _computed(node: Ratio | Difference | InverseRoot) -> str:
    """A float that is computed of integers."""
    match node:
        case InverseRoot():
            return f"tiling_.{node.name}"
        case Ratio():
            return f"{converted(node.over, 'float')} / {converted(node.under, 'float')}"
    left, right = (f"static_cast<int64_t>({side.cpp()})" for side in (node.left, node.right))
    return f"static_cast<float>({left} - {right})"


def _is_constant(value: Expr) -> bool:
    return not any(isinstance(node, (Var, Param)) for node in value.walk())


def _float(value: float) -> str:
    sign = "-" if value < 0 else ""
    return f"{sign}__builtin_inff()" if math.isinf(value) else f"{value!r}f"


def _slice(slice_: Slice) -> str:
    offset = slice_.offset.cpp()
    place = slice_.buffer.name if offset == "0" else f"{slice_.buffer.name}[{offset}]"
    return f"{place}.ReinterpretCast<{slice_.read_as}>()" if slice_.read_as else place


def _region(region: Region) -> str:
    tensor = region.tensor
    if isinstance(tensor, TensorList):
        assert region.index is not None
        return f"{tensor.name}[{region.index.cpp()}][{region.offset.cpp()}]"
    return f"{_global(tensor)}[{region.offset.cpp()}]"


def _global(tensor: Tensor | Ring) -> str:
    return tensor.handle
