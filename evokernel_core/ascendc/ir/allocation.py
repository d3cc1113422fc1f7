"""Where the buffers of a kernel lie: which are queues, in which direction, and how much memory all take."""

from __future__ import annotations

from enum import Enum
from functools import lru_cache

from evokernel_core.ascendc.ir.nodes import Buffer, Copy, Kernel, accesses
from evokernel_core.twin.chip import Chip


class Use(Enum):
    """Who writes and who reads a buffer; the value is the class of AscendC that it is printed as."""

    INPUT = "TQue<TPosition::VECIN, 1>"
    OUTPUT = "TQue<TPosition::VECOUT, 1>"
    THROUGH = "TQueBind<TPosition::VECIN, TPosition::VECOUT, 1>"
    SCRATCH = "TBuf<TPosition::VECCALC>"


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
        buffer: by_copies.get((buffer in loaded, buffer in stored), Use.SCRATCH) for buffer in kernel.buffers
    }


def bytes_of(kernel: Kernel) -> int:
    """Bytes of the unified buffer that the kernel takes, all stages together."""
    return sum(buffer.stages * buffer.bytes for buffer in kernel.buffers)


def written(kernel: Kernel) -> frozenset[Buffer]:
    """Buffers that an instruction or a load writes."""
    return frozenset(item.buffer for node in kernel.nodes for writes, item in accesses(node) if writes)


def fits(kernel: Kernel, chip: Chip) -> bool:
    """Whether the buffers fit the unified buffer."""
    return bytes_of(kernel) <= chip.ub_bytes
