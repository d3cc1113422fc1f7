"""The memory of a kernel in the IR: its tensors in device memory, and a slice for each register."""

from __future__ import annotations

from collections.abc import Iterator

from evokernel_core.compiler.lowering.plan import PlanInput, PlanOutput
from evokernel_core.compiler.lowering.values import Domain
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.targets.ascendc.ir.builder import Builder, at, whole
from evokernel_core.targets.ascendc.ir.expr import Constant, Expr
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Slice, Tensor
from evokernel_core.targets.ascendc.kernels.fused.banks import SHIFT_BYTES
from evokernel_core.targets.ascendc.kernels.fused.base import Kernel
from evokernel_core.targets.ascendc.kernels.fused.buffers import capacity, fold, layout
from evokernel_core.targets.ascendc.kernels.fused.programs import column_tensors, rows_read_whole
from evokernel_core.targets.ascendc.kernels.text import CPP_TYPE
from evokernel_core.targets.ascendc.lowering.program import camel

_GAP = Buffer("bankShift", "uint8_t", 1, Constant("BANK_SHIFT_BYTES", SHIFT_BYTES), idle=True)
"""What lies behind it is half a turn of the bank groups further."""


def tensors_of(k: Builder, kernel: Kernel) -> dict[str, Tensor]:
    """Every tensor in device memory by the name that the plan gives it."""
    results = [camel(output.name) for output in kernel.plan.outputs]
    found: dict[str, Tensor] = {}
    for tensor in kernel.tensors:
        is_input = isinstance(tensor, PlanInput)
        address = camel(tensor.source if isinstance(tensor, PlanInput) else tensor.name)
        if is_input and address in results:
            address = f"{address}Input"
        bypass = kernel.schedule.bypass_l2 and tensor.domain is Domain.FULL
        new, suffix = (k.input, "In") if is_input else (k.output, "Out")
        name, item = f"{camel(tensor.name)}{suffix}", ITEM_SIZE[tensor.dtype]
        found[tensor.name] = new(name, address, CPP_TYPE[tensor.dtype], item, bypass_l2=bypass)
    return found


class Storage:
    """The buffers of a kernel, which lie as its layout says. ``places`` has a slice for each register."""

    def __init__(self, k: Builder, kernel: Kernel) -> None:
        self._kernel = kernel
        self.tile = Constant("TILE_ELEMENTS", kernel.schedule.tile)
        self.row_capacity = Constant("ROW_CAPACITY", kernel.row_capacity)
        self.queues = {owner.name: self._queue(owner) for owner in kernel.queue_owners}
        self.places: dict[str, Slice] = {
            f"{camel(name)}Local": whole(buffer) for name, buffer in self.queues.items()
        }
        self.places |= {name: whole(Buffer(name, "float", 4, self.tile)) for name in kernel.register_names}
        self.places |= dict(self._scratch())
        self.folds = self._folds()
        k.lay_out(*self._layout())

    def _queue(self, owner: PlanInput | PlanOutput) -> Buffer:
        elements, _ = self._capacity(owner.domain)
        size, stages = ITEM_SIZE[owner.dtype], self._kernel.buffers_of(owner)
        return Buffer(f"{camel(owner.name)}Local", CPP_TYPE[owner.dtype], size, elements, stages)

    def _capacity(self, domain: Domain) -> tuple[Expr, int]:
        name, elements = capacity(self._kernel, domain)
        known: dict[str, Expr] = {"TILE_ELEMENTS": self.tile, "ROW_CAPACITY": self.row_capacity}
        return known.get(name, Constant(name, elements)), elements

    def _scratch(self) -> Iterator[tuple[str, Slice]]:
        """Masks, rows, columns in float32, and tiles of 16 bits."""
        kernel, tile = self._kernel, self.tile
        for name in (f"mask{number}" for number in range(kernel.masks)):
            yield name, whole(Buffer(name, "uint8_t", 1, tile // 8))
        for stage, ctype in kernel.stages.items():
            yield stage, whole(Buffer(stage, ctype, 2, tile))
        read_whole = rows_read_whole(kernel.programs) if kernel.schedule.packed else []
        together = Buffer("rowValues", "float", 4, self.row_capacity * len(read_whole))
        for name in kernel.row_names:
            if name in read_whole:  # side by side, so that one instruction defines all of them
                yield name, at(together, self.row_capacity * read_whole.index(name))
            else:
                yield name, whole(Buffer(name, "float", 4, self.row_capacity))
        for name in kernel.row_masks:
            bits = Constant("ROW_MASK_BYTES", kernel.row_mask_bytes)
            yield name, whole(Buffer(name, "uint8_t", 1, bits))
        for name in column_tensors(kernel.programs):
            yield name, whole(Buffer(name, "float", 4, self._capacity(Domain.COLUMN)[0]))

    def _folds(self) -> tuple[Slice, Slice] | None:
        """Where blocks become numbers: those of every other level."""
        if not self._kernel.reduction_names:
            return None
        sizes = (Constant(f"FOLD_{name}", fold(self._kernel.schedule.tile, ratio)) for name, ratio in _LEVELS)
        even, odd = (Buffer(f"fold{size.name[5:].capitalize()}", "float", 4, size) for size in sizes)
        return at(even, 0), at(odd, 0)

    def _layout(self) -> Iterator[Buffer]:
        """Tile tensors in two groups, whose first tensors lie half a turn of the banks apart."""
        kernel, placed = self._kernel, layout(self._kernel)
        queues = {f"{camel(owner.name)}Queue": owner.name for owner in kernel.queue_owners}
        groups = {"workBuffer": False, "shiftedBuffer": True}
        for buffer in placed.buffers:
            if buffer.name in queues:
                yield self.queues[queues[buffer.name]]
            elif buffer.name == _GAP.name:
                yield _GAP
            elif buffer.name in groups:
                for name in kernel.register_names:
                    if (name in placed.shifted) == groups[buffer.name]:
                        yield self.places[name].buffer


_LEVELS = (("EVEN", 8), ("ODD", 64))
