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

from evokernel_core.ascendc.ir.allocation import Use
from evokernel_core.ascendc.ir.nodes import (
    LANES,
    Buffer,
    Copy,
    For,
    If,
    Instruction,
    Kernel,
    Let,
    Node,
    Section,
    accesses,
    flat,
)


class Kind(Enum):
    """What a step does; a ``LET`` is none, and a ``BLOCK`` has steps of several kinds."""

    LET = "let"
    LOAD = "load"
    COMPUTE = "compute"
    STORE = "store"
    BLOCK = "block"


@frozen
class Step:
    """Consecutive nodes of one kind."""

    kind: Kind
    nodes: tuple[Node, ...]


@frozen
class Block:
    """A loop, a section or a choice with the parts of its body, or of its two bodies."""

    node: For | Section | If
    bodies: tuple[tuple[Part, ...], ...]


Part = Let | Step | Block


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


def kind_of(node: Node) -> Kind:
    """What a node does, with all that is in it."""
    if isinstance(node, Let):
        return Kind.COMPUTE if node.var.ctype == LANES else Kind.LET
    inner = [item for item in flat((node,)) if isinstance(item, (Copy, Instruction))]
    kinds = {_own_kind(item) for item in inner} or {Kind.COMPUTE}
    is_tiles = isinstance(node, For) and node.cores
    return Kind.BLOCK if is_tiles or len(kinds) > 1 else kinds.pop()


def _own_kind(node: Copy | Instruction) -> Kind:
    if isinstance(node, Copy):
        return Kind.LOAD if node.is_load else Kind.STORE
    return Kind.COMPUTE


def parts_of(nodes: Sequence[Node]) -> tuple[Part, ...]:
    """The local constants, steps and blocks of a body."""
    found: list[Part] = []
    for kind, run in groupby(nodes, kind_of):
        if kind is Kind.BLOCK or kind is Kind.LET:
            found += [_alone(node) for node in run]
        else:
            found.append(Step(kind, tuple(run)))
    return tuple(found)


def _alone(node: Node) -> Part:
    if isinstance(node, Let):
        return node
    assert isinstance(node, (For, Section, If))
    return Block(node, tuple(map(parts_of, node.bodies)))


def rounds(parts: Sequence[Part], used: Mapping[Buffer, Use]) -> Iterator[Round]:
    """Every round of the queues' buffers among the parts of a body. A part with rounds of its own has no
    place in those around it."""
    touched = [list(_touched(part, used)) for part in parts]
    for buffer in dict.fromkeys(item for found in touched for item, _ in found):
        fills: list[int] = []
        takes: list[int] = []
        for place, found in enumerate(touched):
            does = {fills_it for item, fills_it in found if item == buffer}
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
            found = [(item.buffer, writes) for node in flat(part.nodes) for writes, item in accesses(node)]
            for buffer in dict.fromkeys(item for item, _ in found):
                if used[buffer] is not Use.SCRATCH:
                    filling = Kind.COMPUTE if used[buffer] is Use.OUTPUT else Kind.LOAD
                    yield buffer, part.kind is filling and (buffer, True) in found
        case Block():
            for body in part.bodies:
                for inner in body:
                    yield from _touched(inner, used)


def is_one_step(places: Sequence[int], parts: Sequence[Part]) -> bool:
    """Whether the parts at those places are a single step, which hands buffers over by itself."""
    return len(places) == 1 and isinstance(parts[places[0]], Step)


def pipelines(kernel: Kernel) -> tuple[For, ...]:
    """Every loop whose turns hand buffers over: those that load in steps of their own."""
    return tuple(_pipelines(body_parts(kernel)))


@lru_cache(maxsize=64)
def body_parts(kernel: Kernel) -> tuple[Part, ...]:
    """The parts of a kernel's whole body."""
    return parts_of(kernel.body)


def _pipelines(parts: Sequence[Part]) -> Iterator[For]:
    for part in parts:
        if isinstance(part, Block):
            own = [item for body in part.bodies for item in body]
            if isinstance(part.node, For) and any(map(_is_load, own)):
                yield part.node
            yield from _pipelines(own)


def ahead(parts: Sequence[Part], used: Mapping[Buffer, Use]) -> int | None:
    """The place of the load among the parts of a loop's body that may begin while the turn before is
    computed: the only one, of buffers with a stage for both turns, which it hands over by itself."""
    loads = [place for place, part in enumerate(parts) if _is_load(part)]
    if len(loads) != 1:
        return None
    (place,) = loads
    filled = [item for item in rounds(parts, used) if place in item.fills]
    by_itself = (item.is_whole and item.fills == (place,) for item in filled)
    inputs = (used[item.buffer] is Use.INPUT and item.buffer.stages > 1 for item in filled)
    return place if filled and all(by_itself) and all(inputs) else None


def _is_load(part: Part) -> bool:
    return isinstance(part, Step) and part.kind is Kind.LOAD


def unmatched(kernel: Kernel, used: Mapping[Buffer, Use]) -> Iterator[Buffer]:
    """Buffers that some step uses before any fills them, or that one fills and none uses."""
    yield from _unmatched(body_parts(kernel), used, frozenset())


def _unmatched(
    parts: Sequence[Part], used: Mapping[Buffer, Use], held: frozenset[Buffer]
) -> Iterator[Buffer]:
    found = list(rounds(parts, used))
    yield from (item.buffer for item in found if not item.is_whole and item.buffer not in held)
    for place, part in enumerate(parts):
        if isinstance(part, Block):
            around = frozenset(item.buffer for item in found if place in (*item.fills, *item.takes))
            for body in part.bodies:
                yield from _unmatched(body, used, around)
