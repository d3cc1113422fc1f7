"""Buffers whose lives do not overlap, and so may lie in the same memory.

A buffer lives from its first to its last access in the order of the nodes. One that a loop only goes on to
use lives as long as the loop does; so does one whose first access in a turn does not write it for certain,
since its value may be that of the turn before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import define, field, frozen

from evokernel_core.hardware.ascend.api import api_row
from evokernel_core.targets.ascendc.ir.expr import is_open
from evokernel_core.targets.ascendc.ir.nodes import (
    Atomic,
    Buffer,
    For,
    If,
    Instruction,
    Kernel,
    Node,
    Section,
    accesses,
)


@frozen
class LiveRange:
    """The places of a loop's or a choice's nodes, the end not among them. ``is_certain``: a loop that has a
    turn in every call."""

    start: int
    end: int
    is_loop: bool
    is_certain: bool

    def has(self, place: int) -> bool:
        return self.start <= place < self.end


@define
class _Order:
    """Nodes in the order of the text: the accesses of each buffer by place, whether each writes it without
    reading it, and the blocks of the kernel, inner ones first."""

    count: int = 0
    accesses: dict[Buffer, list[tuple[int, bool]]] = field(factory=dict)
    blocks: list[LiveRange] = field(factory=list)

    def add(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            place = self.count
            self.count += 1
            for buffer, fills in _touched(node):
                self.accesses.setdefault(buffer, []).append((place, fills))
            if isinstance(node, (For, If, Section, Atomic)):
                self._enter(node, place)

    def _enter(self, node: For | If | Section | Atomic, place: int) -> None:
        for body in node.bodies:
            self.add(body)
        if isinstance(node, (For, If)):
            self.blocks.append(LiveRange(place, self.count, isinstance(node, For), _has_a_turn(node)))


def _has_a_turn(node: For | If) -> bool:
    if not isinstance(node, For) or is_open(node.end):
        return False
    return node.end.evaluate({}) >= 1


def _touched(node: Node) -> Iterator[tuple[Buffer, bool]]:
    """The buffers that a node itself works on, with whether it only writes them."""
    found = list(accesses(node))
    adds = isinstance(node, Instruction) and api_row(node.key).reads_dst
    for buffer in dict.fromkeys(node.buffer for _, node in found):
        yield buffer, not adds and all(writes for writes, node in found if node.buffer == buffer)


def lives(kernel: Kernel) -> dict[Buffer, tuple[int, int]]:
    """For each buffer the first and the last node, by place, between which it must keep what it holds."""
    order = _Order()
    order.add(kernel.body)
    return {buffer: _life(value, order.blocks) for buffer, value in order.accesses.items()}


def _life(found: Sequence[tuple[int, bool]], blocks: Sequence[LiveRange]) -> tuple[int, int]:
    first, last = found[0][0], found[-1][0]
    for block in blocks:
        inside = [place for place, _ in found if block.has(place)]
        if not block.is_loop or not inside:
            continue
        if len(inside) < len(found) or not _is_made_in_turn(found, block, blocks):
            first, last = min(first, block.start), max(last, block.end - 1)
    return first, last


def _is_made_in_turn(found: Sequence[tuple[int, bool]], loop: LiveRange, blocks: Sequence[LiveRange]) -> bool:
    """Whether every turn of a loop writes the buffer before it reads it."""
    place, fills = found[0]
    inner = (block for block in blocks if block.has(place) and loop.has(block.start) and block != loop)
    around = (element for element in inner if not element.is_certain)
    return fills and all(node.has(other) for node in around for other, _ in found)
