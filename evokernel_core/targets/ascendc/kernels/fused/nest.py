"""What all loop nests over tiles share: tensors, buffers, fields of the tiling, copies and instructions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from evokernel_core.compiler.lowering.plan import PlanInput, PlanOutput
from evokernel_core.compiler.lowering.values import Domain
from evokernel_core.compiler.ops import FLOATS
from evokernel_core.compiler.shapes.sizes import extent
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.targets.ascendc.ir.builder import Builder, at, whole
from evokernel_core.targets.ascendc.ir.expr import (
    Constant,
    CoreCount,
    Expr,
    Param,
    Size,
    State,
    least,
)
from evokernel_core.targets.ascendc.ir.floats import FLOAT, Arithmetic, AsFloat, CallScalar, Literal
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Element, Slice, Tensor
from evokernel_core.targets.ascendc.kernels.fused.banks import SHIFT_BYTES
from evokernel_core.targets.ascendc.kernels.fused.base import Kernel
from evokernel_core.targets.ascendc.kernels.fused.buffers import capacity, fold, layout
from evokernel_core.targets.ascendc.kernels.fused.lanes_to_one import reduce_lanes
from evokernel_core.targets.ascendc.kernels.fused.programs import TileProgram, column_tensors, rows_read_whole
from evokernel_core.targets.ascendc.kernels.fused.selection import Selector
from evokernel_core.targets.ascendc.kernels.fused.settings import IN_LANES, IN_PIECES
from evokernel_core.targets.ascendc.kernels.text import CPP_TYPE, REDUCTION_NAMES
from evokernel_core.targets.ascendc.lowering.program import Instruction, camel, size_field

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
        number = kernel.number
        self.places |= {name: whole(Buffer(name, *number, self.tile)) for name in kernel.register_names}
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


class Nest:
    """A kernel under construction. ``note`` says what it does."""

    def __init__(self, kernel: Kernel, note: str) -> None:
        self.kernel, self.plan, self.schedule = kernel, kernel.plan, kernel.schedule
        self.k = Builder(note)
        self.tensors = tensors_of(self.k, kernel)
        self.storage = Storage(self.k, kernel)
        self.tile = self.storage.tile

    # -- tiling -------------------------------------------------------------------------------

    def sizes(self) -> tuple[Param, Param]:
        """Fields for the rows and the columns, of which a call has some."""
        k, plan = self.k, self.plan
        rows, columns = k.param("rows", Size(plan.rows)), k.param("columns", Size(plan.inner))
        for size in (rows, columns):
            k.require(size, ">=", 1)
        return rows, columns

    def cores(self) -> Expr:
        """How many cores share the work."""
        if not self.schedule.cores:
            return CoreCount()
        return self.k.on_host("cores", least(CoreCount(), Constant("MOST_CORES", self.schedule.cores)))

    def loops(self) -> None:
        """Fields for the loops of the plan, and for sizes and numbers of the call that instructions take."""
        k, plan = self.k, self.plan
        if plan.outer and self.schedule.form not in IN_LANES | IN_PIECES:
            k.param("mid", Size(plan.mid))
        first = 1 if plan.leading.is_one else 0
        for axis, loop in enumerate(plan.outer[first:], first):
            k.param(f"outer{axis}", Size(loop))
        self.numbers_of_call()

    def numbers_of_call(self) -> None:
        """Fields for sizes and numbers of the call that instructions take."""
        k, values = self.k, self.plan.values()
        for expression in dict.fromkeys(value.detail for value in values if value.op == "size"):
            k.param(size_field(expression), Size(extent(expression)), ctype=FLOAT)
        asked = {value.detail for value in values if value.op == "scalar"}
        for position, name in enumerate(self.plan.scalars):
            if name in asked:
                k.param(f"{camel(name)}Scalar", CallScalar(position), ctype=FLOAT)

    # -- data ---------------------------------------------------------------------------------

    def read_numbers(self, chosen: Callable[[PlanInput], bool], place: Callable[[PlanInput], Expr]) -> None:
        """Those of the single numbers that are ``chosen``, from their places."""
        for number in self.kernel.numbers:
            if chosen(number):
                self.read(number, place(number))

    def read(self, operand: PlanInput, offset: Expr) -> None:
        """A number that the scalar unit reads, as a local constant."""
        number: Expr = Element(self.tensors[operand.name], offset)
        if operand.dtype not in FLOATS:
            number = AsFloat(number)
        self.k.let(f"{camel(operand.name)}Value", number, FLOAT)

    def queued(self, program: TileProgram) -> list[PlanInput]:
        """The inputs of a program that are loaded tile by tile."""
        return [operand for operand in program.inputs if operand in self.kernel.queued]

    def load(self, operand: PlanInput, offset: Expr, count: Expr) -> None:
        """A run of an input."""
        self.k.load(self.storage.queues[operand.name], self.tensors[operand.name], offset, count)

    def store(self, output: PlanOutput, offset: Expr, count: Expr) -> None:
        """A run of an output."""
        self.k.store(self.tensors[output.name], offset, self.storage.queues[output.name], count)

    def outputs(self, domain: Domain) -> list[PlanOutput]:
        return [output for output in self.plan.outputs if output.domain is domain]

    # -- instructions -------------------------------------------------------------------------

    def define_lanes(self) -> None:
        """Zeros where instructions read whole repeats or blocks, behind what a short tile writes."""
        kernel = self.kernel
        names = [*kernel.work_names, *column_tensors(kernel.programs)] if kernel.compares else []
        read = (*names, *rows_read_whole(kernel.programs))
        for buffer in dict.fromkeys(self.place(name).buffer for name in read):
            size = buffer.elements
            self.selector(size, size).call("Duplicate", whole(buffer), Literal(0.0), count=size)

    def place(self, register: str) -> Slice:
        """Where a register lies."""
        return self.storage.places[register]

    def selector(self, count: Expr, rows: Expr, tile: Expr | None = None) -> Selector:
        """What writes instructions on ``count`` elements of a tile, and on ``rows`` values of rows. ``tile``:
        its number in a row, of which the first gives numbers to shift others by."""
        counts = {Domain.FULL: count, Domain.COLUMN: count, Domain.ROW: rows}
        selector = Selector(self.k, self.storage.places, counts)
        reduce = partial(self._reduce, count)
        selector.special = {**dict.fromkeys(REDUCTION_NAMES, reduce)}
        if tile is not None:
            selector.special = {**selector.special, "shift": partial(self._shift, count, tile)}
        return selector

    def write(self, items: Iterable[Instruction], program: TileProgram, selector: Selector) -> None:
        """Instructions of a program."""
        selector.write(items, program.registers)

    def _reduce(self, count: Expr, instruction: Instruction, slices: Sequence[Slice]) -> None:
        self.reduce(REDUCTION_NAMES[instruction.op], slices[0], slices[1], count)

    def reduce(self, name: str, to: Slice, source: Slice, count: Expr) -> None:
        """Lanes to one number."""
        folds = self.storage.folds
        assert folds is not None
        reduce_lanes(self.k, name, to, source, count, folds, self.schedule.tile)

    def _shift(self, count: Expr, tile: Expr, instruction: Instruction, slices: Sequence[Slice]) -> None:
        """The mean of a row's first tile: what is near zero sums without loss."""
        row, source, _ = slices
        assert isinstance(instruction.scalar, State)
        with self.k.when(tile, "==", 0):
            self.reduce("Sum", row, source, count)
            total = self.k.get(f"{instruction.scalar.name}ed", row, 0, FLOAT)
            self.k.assign(instruction.scalar, Arithmetic("/", total, AsFloat(count)))
