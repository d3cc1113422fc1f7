"""Where buffers lie: which are queues, which share memory with others, and how much all take."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from functools import lru_cache

from evokernel_core.targets.ascendc.ir.lifetimes import lives
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Copy, Get, Instruction, Kernel, Put, accesses


class Use(Enum):
    """Who writes and who reads a buffer: a queue is filled by loads (``input``), emptied by stores
    (``output``), or both (``through``); ``numbers`` are read or written by the scalar unit, unless they have
    stages and are queues, ``scratch`` by instructions alone."""

    INPUT = "input"
    OUTPUT = "output"
    THROUGH = "through"
    NUMBERS = "numbers"
    SCRATCH = "scratch"

    @property
    def is_queue(self) -> bool:
        return self not in (Use.NUMBERS, Use.SCRATCH)


@lru_cache(maxsize=64)
def uses(kernel: Kernel) -> dict[Buffer, Use]:
    """Every buffer's use, in the order of first use: a queue where copies fill or empty it."""
    loaded: set[Buffer] = set()
    stored: set[Buffer] = set()
    for node in kernel.nodes:
        if isinstance(node, Copy):
            (loaded if node.is_load else stored).add(node.slice.buffer)
    by_copies = {(True, False): Use.INPUT, (False, True): Use.OUTPUT, (True, True): Use.THROUGH}
    return {
        buffer: Use.NUMBERS
        if (buffer in numbers(kernel) or buffer.by_events) and buffer.stages == 1
        else by_copies.get((buffer in loaded, buffer in stored), Use.SCRATCH)
        for buffer in kernel.buffers
    }


@lru_cache(maxsize=64)
def numbers(kernel: Kernel) -> frozenset[Buffer]:
    """The buffers that the scalar unit reads or writes."""
    result = (node for node in kernel.nodes if isinstance(node, (Get, Put)))
    return frozenset(child.buffer for node in result for _, child in accesses(node))


def bytes_of(kernel: Kernel) -> int:
    """Bytes of the unified buffer that the kernel takes, all stages together."""
    lies_in = homes(kernel)
    return sum(buffer.stages * buffer.bytes for buffer in kernel.buffers if lies_in[buffer] == buffer)


@lru_cache(maxsize=64)
def homes(kernel: Kernel) -> dict[Buffer, Buffer]:
    """For each buffer the one in whose memory it lies: itself, or a larger one whose life is another. Only
    what the vector unit alone works on may lie so, since it takes its instructions in order."""
    result = {buffer: buffer for buffer in kernel.buffers}
    known, movable = lives(kernel), _on_vectors(kernel)
    guests: dict[Buffer, list[tuple[int, int]]] = {}
    for buffer in sorted(movable, key=lambda node: -node.bytes):
        mine = known[buffer]
        home = next((key for key, others in guests.items() if not _meets(mine, others)), buffer)
        result[buffer] = home
        guests.setdefault(home, []).append(mine)
    return result


def _on_vectors(kernel: Kernel) -> list[Buffer]:
    """The buffers that only vector instructions work on, that nothing clears before and no layout places."""
    elsewhere = {
        child.buffer
        for node in kernel.nodes
        if not isinstance(node, Instruction)
        for _, child in accesses(node)
    }
    fixed = elsewhere.union(kernel.layout)
    return [buffer for buffer in kernel.buffers if buffer not in fixed and not buffer.cleared]


def _meets(life: tuple[int, int], others: Iterable[tuple[int, int]]) -> bool:
    return any(life[0] <= last and first <= life[1] for first, last in others)


def written(kernel: Kernel) -> frozenset[Buffer]:
    """Buffers that an instruction or a load writes."""
    return frozenset(child.buffer for node in kernel.nodes for writes, child in accesses(node) if writes)
