"""The unified buffer of a kernel: what is allocated, in which order, and how large it is."""

from __future__ import annotations

from attrs import frozen

from evokernel_core.compiler.lowering.plan import PlanInput, PlanOutput
from evokernel_core.compiler.lowering.values import Domain
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES, LANES
from evokernel_core.targets.ascendc.kernels.fused import banks
from evokernel_core.targets.ascendc.kernels.fused.base import Kernel
from evokernel_core.targets.ascendc.kernels.fused.programs import column_tensors
from evokernel_core.targets.ascendc.kernels.fused.settings import Form
from evokernel_core.targets.ascendc.kernels.text import CPP_TYPE, ONE_BYTE
from evokernel_core.targets.ascendc.lowering.program import camel

FLOATS_PER_BLOCK = 8


@frozen
class Buffer:
    """One InitBuffer: ``number`` buffers of ``elements`` (a C++ expression) of ``cpp_type``.

    ``size`` is the bytes of one of them; ``queue`` tells a queue's buffers from scratch memory.
    """

    name: str
    number: int
    elements: str
    cpp_type: str
    size: int
    queue: bool = False

    @property
    def total(self) -> int:
        return self.number * -(-self.size // BLOCK_BYTES) * BLOCK_BYTES


@frozen
class Layout:
    """The buffers in order; ``shifted`` are the tile registers behind the half turn of the banks."""

    buffers: tuple[Buffer, ...]
    shifted: frozenset[str]

    @property
    def total(self) -> int:
        return sum(buffer.total for buffer in self.buffers)


def layout(kernel: Kernel) -> Layout:
    """Tile tensors first, in two groups that keep tensors read together in different banks."""
    queues = {f"{camel(tile_owner.name)}Local": tile_owner for tile_owner in _tile_owners(kernel)}
    registers = kernel.register_names
    shifted = (
        banks.shifted(banks.conflicts(kernel.programs), [*queues, *registers])
        if kernel.schedule.stagger
        else frozenset()
    )
    first = _group(kernel, [n for n in queues if n not in shifted], registers, shifted, "workBuffer")
    second = _group(kernel, sorted(shifted & set(queues)), registers, shifted, "shiftedBuffer")
    gap = [Buffer("bankShift", 1, "BANK_SHIFT_BYTES", "uint8_t", banks.SHIFT_BYTES)] if shifted else []
    rest = [
        _queue(kernel, queue_owner)
        for queue_owner in kernel.queue_owners
        if queue_owner not in queues.values()
    ]
    return Layout((*first, *gap, *second, *rest, *_scratch(kernel)), shifted)


def _tile_owners(kernel: Kernel) -> list[PlanInput | PlanOutput]:
    """Tile-sized queues whose buffers are whole turns over the banks."""
    return [
        queue_owner
        for queue_owner in kernel.queue_owners
        if queue_owner.domain is Domain.FULL and queue_owner.dtype not in ONE_BYTE
    ]


def _group(
    kernel: Kernel, locals_: list[str], registers: list[str], shifted: frozenset[str], buffer: str
) -> list[Buffer]:
    owners = {f"{camel(tile_owner.name)}Local": tile_owner for tile_owner in _tile_owners(kernel)}
    found = [_queue(kernel, owners[name]) for name in locals_]
    mine = [name for name in registers if (name in shifted) == (buffer == "shiftedBuffer")]
    if mine:
        elements = times(len(mine), "TILE_ELEMENTS")
        cpp_type, item = kernel.number
        found.append(Buffer(buffer, 1, elements, cpp_type, len(mine) * kernel.schedule.tile * item))
    return found


def _queue(kernel: Kernel, tensor: PlanInput | PlanOutput) -> Buffer:
    text, elements = capacity(kernel, tensor.domain)
    number = kernel.buffers_of(tensor)
    size = elements * ITEM_SIZE[tensor.dtype]
    return Buffer(f"{camel(tensor.name)}Queue", number, text, CPP_TYPE[tensor.dtype], size, queue=True)


def capacity(kernel: Kernel, domain: Domain) -> tuple[str, int]:
    """The elements of a tensor of a domain: the constant's name and its value."""
    if domain is Domain.ROW:
        return "ROW_CAPACITY", kernel.row_capacity
    if domain is Domain.COLUMN and kernel.form is Form.CHANNELS:
        return "STEP_CAPACITY", kernel.schedule.rows
    if domain is Domain.COLUMN and kernel.schedule.packed:
        return "COLUMN_CAPACITY", kernel.schedule.columns
    return "TILE_ELEMENTS", kernel.schedule.tile


def _scratch(kernel: Kernel) -> list[Buffer]:
    tile = kernel.schedule.tile
    result = []
    if kernel.masks:
        result.append(
            Buffer("maskBuffer", 1, times(kernel.masks, "MASK_BYTES"), "uint8_t", kernel.masks * tile // 8)
        )
    for stage, cpp_type in kernel.stages.items():
        result.append(Buffer(f"{stage}Buffer", 1, "TILE_ELEMENTS", cpp_type, tile * 2))
    result += _row_scratch(kernel)
    if count := kernel.exchanged:
        most = "MOST_EXCHANGED * MOST_SHARERS"
        result.append(Buffer("exchangeBuffer", 1, most, "float", count * LANES * 4))
    text, elements = capacity(kernel, Domain.COLUMN)
    for name in column_tensors(kernel.programs):
        result.append(Buffer(f"{name}Buffer", 1, text, "float", elements * 4))
    return result


def _row_scratch(kernel: Kernel) -> list[Buffer]:
    rows, found = kernel.row_capacity, []
    in_channels = kernel.form is Form.CHANNELS
    if count := len(kernel.row_names):
        found.append(Buffer("rowBuffer", 1, times(count, "ROW_CAPACITY"), "float", count * rows * 4))
    if count := len(kernel.row_masks):
        size = count * kernel.row_mask_bytes
        found.append(Buffer("rowMaskBuffer", 1, times(count, "ROW_MASK_BYTES"), "uint8_t", size))
    if kernel.schedule.dense:
        found.append(Buffer("laneBuffer", 1, "2 * ROW_CAPACITY", "float", 2 * rows * 4))
    if kernel.broadcasts_rows:
        text, spread = ("STEP_CAPACITY", kernel.schedule.rows) if in_channels else ("ROW_CAPACITY", rows)
        found.append(Buffer("blockBuffer", 1, f"{text} * FLOATS_PER_BLOCK", "float", spread * BLOCK_BYTES))
    if kernel.folds_over_rows:
        found.append(Buffer("foldBuffer", 1, "ROW_CAPACITY * LANES", "float", rows * LANES * 4))
    elif kernel.reduction_names:
        size = (fold(kernel.schedule.tile, 8) + fold(kernel.schedule.tile, 64)) * 4
        found.append(Buffer("foldBuffer", 1, "FOLD_EVEN + FOLD_ODD", "float", size))
    return found


def fold(tile: int, ratio: int) -> int:
    """Floats of one level of block reductions, a multiple of a block."""
    return -(-tile // ratio // 8) * 8


def times(number: int, name: str) -> str:
    return name if number == 1 else f"{number} * {name}"
