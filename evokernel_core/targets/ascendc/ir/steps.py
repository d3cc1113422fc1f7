"""The steps of a kernel, and which of them hand buffers over: what queues are filled and emptied by.

Consecutive loads, instructions or stores are one step. Loops and sections that mix them are blocks of steps:
pipelines, in which one turn's tile is loaded while another's is computed. Of a queue's buffer a step that
fills it hands it over to the step that uses it; where several steps or a deeper block fill or use it, the
block around them holds it meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from itertools import groupby

from attrs import frozen

from evokernel_core.targets.ascendc.ir import allocation
from evokernel_core.targets.ascendc.ir.allocation import Use
from evokernel_core.targets.ascendc.ir.expr import State
from evokernel_core.targets.ascendc.ir.nodes import (
    LANES,
    Assign,
    Atomic,
    Await,
    Buffer,
    Clear,
    Copy,
    Fence,
    For,
    Get,
    If,
    Instruction,
    Kernel,
    Let,
    Node,
    Put,
    Section,
    Signal,
    accesses,
    expressions_of,
    flat,
)


class StepKind(Enum):
    """What a step does; a ``LET``, or an assignment, is none, and a ``BLOCK`` has steps of several kinds."""

    LET = "let"
    LOAD = "load"
    COMPUTE = "compute"
    STORE = "store"
    SCALAR = "scalar"
    BLOCK = "block"


@frozen
class Step:
    """Consecutive nodes of one kind. ``waits``: the hand-overs between units in front of it (handing.py)."""

    kind: StepKind
    nodes: tuple[Node, ...]
    waits: tuple[str, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether it is no method: it makes a local constant that steps behind it see, or only waits."""
        waits = all(isinstance(node, (*_WAITS, If)) for node in flat(self.nodes))
        return isinstance(self.nodes[0], Get) or waits


@frozen
class Block:
    """A loop, a section, a choice or atomic stores with the parts of its body, or of its two bodies."""

    node: For | Section | If | Atomic
    bodies: tuple[tuple[Part, ...], ...]
    waits: tuple[str, ...] = ()


Part = Let | Assign | Step | Block


@frozen
class Round:
    """One filling of a buffer among the parts of a body: the places of those that fill it, and of those that
    use it. ``is_whole``: whether there are both; otherwise the block around holds the buffer."""

    buffer: Buffer
    fills: tuple[int, ...]
    takes: tuple[int, ...]

    @property
    def is_whole(self) -> bool:
        return bool(self.fills and self.takes)


def kind_of(node: Node) -> StepKind:
    """What a node does, with all that is in it."""
    if isinstance(node, Let):
        return StepKind.COMPUTE if node.var.ctype == LANES else StepKind.LET
    if isinstance(node, Assign):
        return StepKind.LET
    if isinstance(node, For) and node.one_load:
        return StepKind.LOAD
    inner = [child for child in flat((node,)) if isinstance(child, _WORK)]
    kinds = {_own_kind(element) for element in inner} or {StepKind.COMPUTE}
    is_tiles = isinstance(node, For) and node.cores
    return StepKind.BLOCK if is_tiles or len(kinds) > 1 else kinds.pop()


_WAITS = (Fence, Await, Signal)
_WORK = (Copy, Clear, Instruction, Get, Put, *_WAITS)


def _own_kind(node: Copy | Clear | Instruction | Get | Put | Fence | Await | Signal) -> StepKind:
    match node:
        case Copy():
            return StepKind.LOAD if node.is_load else StepKind.STORE
        case Clear():
            return StepKind.LOAD
        case Await() | Signal(unit="MTE2"):
            return StepKind.LOAD
        case Fence() | Signal():
            return StepKind.STORE
        case Get() | Put():
            return StepKind.SCALAR
    return StepKind.COMPUTE


def parts_of(nodes: Sequence[Node]) -> tuple[Part, ...]:
    """The local constants, steps and blocks of a body."""
    problems: list[Part] = []
    for kind, run in groupby(nodes, kind_of):
        if kind is StepKind.SCALAR:
            for is_get, part in groupby(run, lambda node: isinstance(node, Get)):
                nodes = tuple(part)
                problems += [Step(kind, (node,)) for node in nodes] if is_get else [Step(kind, nodes)]
        elif kind is StepKind.BLOCK or kind is StepKind.LET:
            problems += [_alone(node) for node in run]
        else:
            problems.append(Step(kind, tuple(run)))
    return tuple(problems)


def _alone(node: Node) -> Part:
    if isinstance(node, (Let, Assign)):
        return node
    assert isinstance(node, (For, Section, If, Atomic))
    return Block(node, tuple(map(parts_of, node.bodies)))


def rounds(parts: Sequence[Part], used: Mapping[Buffer, Use]) -> Iterator[Round]:
    """Every round of the queues' buffers among the parts of a body. A part with rounds of its own has no
    place in those around it."""
    touched = [list(_touched(part, used)) for part in parts]
    for buffer in dict.fromkeys(node for found in touched for node, _ in found):
        fills: list[int] = []
        takes: list[int] = []
        for place, found in enumerate(touched):
            does = {fills_it for node, fills_it in found if node == buffer}
            if len(does) == 2 or (does == {True} and takes):
                yield from _closed(buffer, fills, takes)
                fills, takes = [], []
            if len(does) == 1:
                (fills if True in does else takes).append(place)
        yield from _closed(buffer, fills, takes)


def _closed(buffer: Buffer, fills: list[int], takes: list[int]) -> Iterator[Round]:
    if fills or takes:
        yield Round(buffer, tuple(fills), tuple(takes))


def _touched(part: Part, used: Mapping[Buffer, Use]) -> Iterator[tuple[Buffer, bool]]:
    """The queues' buffers that the steps of a part touch, with whether they fill them."""
    match part:
        case Step():
            result = [(child.buffer, writes) for node in flat(part.nodes) for writes, child in accesses(node)]
            for buffer in dict.fromkeys(node for node, _ in result):
                if used[buffer].is_queue:
                    filling = (
                        (StepKind.COMPUTE, StepKind.SCALAR)
                        if used[buffer] is Use.OUTPUT
                        else (StepKind.LOAD,)
                    )
                    yield buffer, part.kind in filling and (buffer, True) in result
        case Block():
            for body in part.bodies:
                for inner in body:
                    yield from _touched(inner, used)


def is_one_step(places: Sequence[int], parts: Sequence[Part]) -> bool:
    """Whether the parts at those places are a single step, which hands buffers over by itself."""
    return len(places) == 1 and isinstance(parts[places[0]], Step)


def mixed(kernel: Kernel, used: Mapping[Buffer, Use]) -> frozenset[Buffer]:
    """Queues' buffers that the scalar unit reads or writes, but not in a step that takes and gives them by
    itself, or that instructions work on, too."""
    mine = {number for number in allocation.numbers(kernel) if used[number].is_queue}
    others = (node for node in kernel.nodes if isinstance(node, (Instruction, Clear)))
    touched = {child.buffer for node in others for _, child in accesses(node)}
    return frozenset(mine & touched).union(_held(body_parts(kernel), used, mine))


def _held(parts: Sequence[Part], used: Mapping[Buffer, Use], among: set[Buffer]) -> Iterator[Buffer]:
    for round_ in rounds(parts, used):
        for side in (round_.fills, round_.takes):
            steps = [parts[place] for place in side]
            plain = any(isinstance(step, Step) and step.is_plain for step in steps)
            if round_.buffer in among and (plain or not (round_.is_whole and is_one_step(side, parts))):
                yield round_.buffer
    for part in parts:
        if isinstance(part, Block):
            for body in part.bodies:
                yield from _held(body, used, among)


def pipelines(kernel: Kernel) -> tuple[tuple[For, Node], ...]:
    """Every loop whose turns hand loaded buffers over, with the node that begins the loads: in one turn a
    part of the body fills what another part uses."""
    return tuple(_pipelines(body_parts(kernel), allocation.uses(kernel), None))


@lru_cache(maxsize=64)
def body_parts(kernel: Kernel) -> tuple[Part, ...]:
    """The parts of a kernel's whole body."""
    return parts_of(kernel.body)


def _pipelines(
    parts: Sequence[Part], used: Mapping[Buffer, Use], loop: For | None
) -> Iterator[tuple[For, Node]]:
    """``loop``: the one around the parts, sections and choices between them left aside."""
    loaded = (Use.INPUT, Use.THROUGH)
    filled = [
        round_.fills[0] for round_ in rounds(parts, used) if round_.is_whole and used[round_.buffer] in loaded
    ]
    if loop is not None and filled:
        first = parts[min(filled)]
        assert isinstance(first, (Step, Block))
        yield loop, first.nodes[0] if isinstance(first, Step) else first.node
    for part in parts:
        if isinstance(part, Block):
            inner = part.node if isinstance(part.node, For) else loop
            for body in part.bodies:
                yield from _pipelines(body, used, inner)


def hand_overs(kernel: Kernel) -> tuple[Node, ...]:
    """The nodes that begin to fill a queue's buffer, which is handed over each time that they run."""
    return tuple(_hand_overs(body_parts(kernel), allocation.uses(kernel)))


def _hand_overs(parts: Sequence[Part], used: Mapping[Buffer, Use]) -> Iterator[Node]:
    for round_ in rounds(parts, used):
        if round_.is_whole:
            first = parts[round_.fills[0]]
            assert isinstance(first, (Step, Block))
            yield first.nodes[0] if isinstance(first, Step) else first.node
    for part in parts:
        if isinstance(part, Block):
            for body in part.bodies:
                yield from _hand_overs(body, used)


def ahead(parts: Sequence[Part], used: Mapping[Buffer, Use]) -> int | None:
    """The place of the load among the parts of a loop's body that may begin while the turn before is
    computed: the only one, of buffers with a stage for both turns, which it hands over by itself. Where no
    instruction works on what is stored as it was loaded, copies queue up without it."""
    loads = [place for place, part in enumerate(parts) if _is_load(part)]
    if len(loads) != 1:
        return None
    (place,) = loads
    others = [part for part in parts if part is not parts[place]]
    own = _states_made((parts[place],))
    numbers = any(isinstance(part, Step) and part.is_plain for part in parts[:place])
    if (
        numbers
        or _states_read(parts[: place + 1]) & _states_made(others)
        or _states_read(others) & own
        or any(not used[buffer].is_queue for buffer in _buffers(parts[place]))
    ):
        return None  # what is read on the way to the load is what a turn of its own must bring
    read = {node.source.buffer for node in flat(nodes_of(parts[place])) if isinstance(node, Get)}
    working = (node for part in others for node in flat(nodes_of(part)))
    if any(writes and child.buffer in read for node in working for writes, child in accesses(node)):
        return None
    clears = any(isinstance(node, Clear) for node in flat(nodes_of(parts[place])))
    takes = (Use.INPUT, Use.THROUGH) if read or clears else (Use.INPUT,)
    filled = [round_ for round_ in rounds(parts, used) if place in round_.fills]
    by_itself = (node.is_whole and node.fills == (place,) for node in filled)
    inputs = (used[node.buffer] in takes and node.buffer.stages > 1 for node in filled)
    return place if filled and all(by_itself) and all(inputs) else None


def _states_read(parts: Sequence[Part]) -> set[State]:
    nodes = (node for part in parts for node in flat(nodes_of(part)))
    expressions = (child for node in nodes for child in expressions_of(node))
    return {node for whole in expressions for node in whole.walk() if isinstance(node, State)}


def _states_made(parts: Sequence[Part]) -> set[State]:
    nodes = [node for part in parts for node in flat(nodes_of(part))]
    told = {child.state for node in nodes if isinstance(node, Instruction) for child in node.told}
    return told | {node.state for node in nodes if isinstance(node, Assign)}


def nodes_of(part: Part) -> tuple[Node, ...]:
    """The nodes that a part consists of."""
    return part.nodes if isinstance(part, Step) else (part.node,) if isinstance(part, Block) else (part,)


def _is_load(part: Part) -> bool:
    return isinstance(part, Step) and part.kind is StepKind.LOAD


def _buffers(part: Part) -> Iterator[Buffer]:
    """Those that a step's copies fill or empty."""
    for node in flat(nodes_of(part)):
        if isinstance(node, Copy):
            yield node.slice.buffer
        elif isinstance(node, Clear):
            yield node.target.buffer


def unmatched(kernel: Kernel, used: Mapping[Buffer, Use]) -> Iterator[Buffer]:
    """Buffers that some step uses before any fills them, or that one fills and none uses."""
    yield from _unmatched(body_parts(kernel), used, frozenset())


def _unmatched(
    parts: Sequence[Part], used: Mapping[Buffer, Use], held: frozenset[Buffer]
) -> Iterator[Buffer]:
    found = list(rounds(parts, used))
    yield from (node.buffer for node in found if not node.is_whole and node.buffer not in held)
    for place, part in enumerate(parts):
        if isinstance(part, Block):
            around = frozenset(node.buffer for node in found if place in (*node.fills, *node.takes))
            for body in part.bodies:
                yield from _unmatched(body, used, around)
