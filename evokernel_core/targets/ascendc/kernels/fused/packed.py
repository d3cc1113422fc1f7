"""Several whole rows a tile: values of a row are vectors, spread over the columns.

Inputs are dense in the inner rows only, so that a tile ends where those end: cores go through their rows run
by run, and through each run tile by tile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from evokernel_core.compiler.lowering.plan import Plan, PlanInput, PlanOutput
from evokernel_core.compiler.lowering.values import Domain
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES
from evokernel_core.targets.ascendc.ir.builder import whole
from evokernel_core.targets.ascendc.ir.expr import (
    U32,
    U64,
    Constant,
    Expr,
    Int,
    Param,
    Size,
    ceil_div,
    greatest,
    least,
    round_up,
)
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Enumerator, Slice
from evokernel_core.targets.ascendc.ir.nodes import Kernel as IRKernel
from evokernel_core.targets.ascendc.kernels.fused import access
from evokernel_core.targets.ascendc.kernels.fused.base import Kernel
from evokernel_core.targets.ascendc.kernels.fused.lanes_to_one import FLOATS, HALVES
from evokernel_core.targets.ascendc.kernels.fused.nest import Nest
from evokernel_core.targets.ascendc.kernels.fused.over_lanes import OverLanes
from evokernel_core.targets.ascendc.kernels.fused.over_rows import OverRows
from evokernel_core.targets.ascendc.kernels.fused.places import MID, row_of
from evokernel_core.targets.ascendc.kernels.fused.selection import WIDTH, Selector, mode_of_cast
from evokernel_core.targets.ascendc.kernels.fused.settings import Schedule
from evokernel_core.targets.ascendc.kernels.fused.single import resources
from evokernel_core.targets.ascendc.kernels.text import ONE_BYTE, REDUCTION_NAMES, STAGES
from evokernel_core.targets.ascendc.lowering.program import Instruction

_NOTE = "Several whole rows a tile; values of a row are vectors, broadcast over the columns."
_KEYS = ("Add", "Sub", "Mul", "Div", "Max", "Min")


class Packed(Nest):
    """One kernel."""

    def __init__(self, kernel: Kernel, note: str = _NOTE) -> None:
        super().__init__(kernel, note)
        (self._program,) = kernel.programs
        rows = self.storage.row_capacity
        blocks = whole(Buffer("blocks", "float", 4, rows * FLOATS)) if kernel.broadcasts_rows else None
        self._fold = whole(Buffer("fold", "float", 4, rows * WIDTH))
        self._over_rows = OverRows(self.k, self.schedule.spread, blocks)
        self._over_lanes = OverLanes(self.k, self.schedule.spread)

    def build(self) -> IRKernel:
        k, plan = self.k, self.plan
        rows = k.param("rows", Size(plan.rows))
        self._size = k.on_host("columnCount", Size(plan.inner))
        for size in (rows, self._size):
            k.require(size, ">=", 1)
        per_core = k.param("rowsPerCore", ceil_div(rows, self.cores()))
        self._cut(per_core)
        self.loops()
        self.define_lanes()
        self.read_numbers(lambda one: not access.varies(one), lambda _: Int(0))
        self._load_invariants()
        with k.cores("core", ceil_div(rows, per_core)) as core:
            begin = k.let("begin", core * per_core, U64)
            end = k.let("end", least(begin + per_core, rows), U64)
            if plan.outer:
                self._runs(begin, end)
            else:
                self._run(begin, end)
        return k.kernel()

    def _cut(self, per_core: Param) -> None:
        """Fields for how rows lie in a tile, and how many it has."""
        k, size = self.k, self._size
        narrowest = min(ITEM_SIZE[tensor.dtype] for tensor in self.kernel.tensors)
        step = Constant("WIDEST_STEP", BLOCK_BYTES // narrowest, "of the narrowest type in 32 bytes")
        widest = k.on_host("widestPitch", round_up(size, step))
        k.require(widest, "<=", self.tile)
        k.require(size, "<=", Constant("COLUMN_CAPACITY", self.schedule.columns))
        self._columns: Expr = k.param("columns", size, ctype=U32)
        _, item = self.kernel.number
        block = FLOATS if item == ITEM_SIZE["float32"] else HALVES
        self._pitch: Expr = k.param("pitch", round_up(size, block), ctype=U32)
        self._pitches: dict[int, Expr] = {item: self._pitch}
        most = k.on_host("most", least(self.tile // widest, self.storage.row_capacity))
        self._most_rows: Expr = k.param(
            "rowsPerTile", ceil_div(per_core, ceil_div(per_core, most)), ctype=U32
        )
        widths = {ITEM_SIZE[tensor.dtype] for tensor in self.kernel.tensors}
        for width in sorted({*widths, *([2] if self.kernel.passes_bytes else [])} - {item}):
            pitch = round_up(size, BLOCK_BYTES // width)
            self._pitches[width] = k.param(f"pitchOf{width}", pitch, f"of {width} bytes each", ctype=U32)

    # -- tiles --------------------------------------------------------------------------------

    def _runs(self, begin: Expr, end: Expr) -> None:
        """The runs of inner rows that a core has a part of."""
        k = self.k
        first = k.let("firstRun", begin // MID, U64)
        with k.loop("run", (end - 1) // MID - first + 1, U64) as run:
            start = k.let("start", greatest(begin, (first + run) * MID), U64)
            self._run(start, k.let("stop", least(end, (first + run + 1) * MID), U64))

    def _run(self, start: Expr, stop: Expr) -> None:
        """The tiles of a run of rows: load, compute, store."""
        k, plan = self.k, self.plan
        number = k.let("tiles", ceil_div(stop - start, self._most_rows), U64)
        ahead = self.schedule.ahead and bool(plan.outer)
        with k.loop("tile", number, U64, preloaded=ahead) as tile:
            row = k.let("row", start + tile * self._most_rows, U64)
            rows = k.let("rows", least(stop - row, self._most_rows))
            for operand in self.kernel.queued:
                self._load_tile(operand, row, rows)
            self.read_numbers(access.varies, lambda one: row_of(plan, one, row))
            count = k.let("count", rows * self._pitch)
            body = [statement for statement in self._program.body if not self._is_hoisted(statement)]
            self.write(body, self._program, self._on_rows(rows, count))
            for output in plan.outputs:
                self._store_tile(output, row, rows)

    def _load_invariants(self) -> None:
        """Columns that are the same in every row, as instructions take them."""
        for operand in self.kernel.invariants:
            self.load(operand, Int(0), self._columns)
        hoisted = [statement for statement in self._program.body if self._is_hoisted(statement)]
        self.write(hoisted, self._program, self._on_rows(self._most_rows, self._most_rows * self._pitch))

    def _is_hoisted(self, instruction: Instruction) -> bool:
        """Whether an instruction makes what is the same in every tile."""
        if instruction.op == "expand_columns" and instruction.target is not None and instruction.target.name:
            return True
        invariants = {operand.name for operand in self.kernel.invariants}
        return instruction.op == "cast_in" and instruction.sources[0].home in invariants

    # -- copies -------------------------------------------------------------------------------

    def _load_tile(self, operand: PlanInput, row: Expr, rows: Expr) -> None:
        queue, tensor = self.storage.queues[operand.name], self.tensors[operand.name]
        index = row_of(self.plan, operand, row)
        if operand.domain is Domain.ROW:
            self.load(operand, index, rows)
        elif operand.domain is Domain.COLUMN:
            self.load(operand, index * self._columns, self._columns)
        else:
            copy = partial(self.k.load, queue, tensor, index * self._columns)
            if operand.stripe.every > 1:
                copy(self._columns, rows=rows, apart=self._columns * operand.stripe.every)
            else:
                self._copy(operand, copy, rows)

    def _store_tile(self, output: PlanOutput, row: Expr, rows: Expr) -> None:
        queue, tensor = self.storage.queues[output.name], self.tensors[output.name]
        if output.domain is Domain.ROW:
            self.store(output, row, rows)
            return
        offset = row * self._columns

        def store(count: Expr, **how: Expr) -> None:
            self.k.store(tensor, offset, queue, count, **how)

        self._copy(output, store, rows)

    def _copy(self, tensor: PlanInput | PlanOutput, copy: Callable[..., None], rows: Expr) -> None:
        """Rows that fill whole blocks travel as one run; others are padded to a block each."""
        columns, block = self._columns, BLOCK_BYTES // ITEM_SIZE[tensor.dtype]
        is_run = self._decided(lambda number: number % block == 0)
        if is_run:
            copy(rows * columns)
        elif is_run is None:
            with self.k.when(columns % block, "==", 0):
                copy(rows * columns)
            with self.k.otherwise():
                copy(columns, rows=rows, apart=columns)
        else:
            copy(columns, rows=rows, apart=columns)

    def _decided(self, holds: Callable[[int], bool]) -> bool | None:
        """Whether something holds of the number of columns, where that is known."""
        columns = self.plan.inner.constant
        return None if columns is None else holds(columns)

    # -- instructions -------------------------------------------------------------------------

    def _on_rows(self, rows: Expr, count: Expr) -> Selector:
        """What writes the instructions of a tile of so many rows."""
        selector = self.selector(count, rows)
        selector.counts = {**selector.counts, Domain.COLUMN: self._pitch}
        pitch = self._pitch

        def on_rows(key: str, _: Instruction, slices: Sequence[Slice]) -> None:
            to, source, values = slices
            self._over_rows.with_rows(key, to, source, values, rows, pitch)

        def on_columns(key: str, _: Instruction, slices: Sequence[Slice]) -> None:
            to, source, row = slices
            self._over_lanes.with_row(key, to, source, row, rows, pitch)

        selector.special = {
            **{f"{key}Rows": partial(on_rows, key) for key in _KEYS},
            **{f"{key}Columns": partial(on_columns, key) for key in _KEYS},
            "expand_rows": lambda _, slices: self._over_rows.spread(slices[0], slices[1], rows, pitch),
            "expand_columns": lambda _, slices: self._over_lanes.repeat(slices[0], slices[1], rows, pitch),
            **dict.fromkeys(REDUCTION_NAMES, partial(self._reduce_rows, rows)),
            **dict.fromkeys(("cast_in", "cast_out"), partial(self._convert, rows, selector)),
        }
        return selector

    def _reduce_rows(self, rows: Expr, instruction: Instruction, slices: Sequence[Slice]) -> None:
        """Each row of a tile to its number, as the schedule says."""
        name, (to, source), folds = REDUCTION_NAMES[instruction.op], slices, self.storage.folds
        sizes = (rows, self._columns, self._pitch)
        columns = self.plan.inner.constant
        assert folds is not None
        if self.schedule.reduction == "fold":
            self._over_rows.reduce_folded(name, (to, source), sizes, self._fold)
        elif self.schedule.reduction == "standing":
            self._over_rows.reduce_standing(name, (to, source), sizes, self._fold)
        elif self.schedule.reduction == "tile" and columns is not None:
            self._over_rows.reduce_tile(name, (to, source), rows, columns, folds)
        elif self.schedule.reduction == "tile":
            self._over_rows.reduce_tile_of_any(name, (to, source), sizes, folds, self.schedule.tile)
        else:
            self._over_rows.reduce_by_row(name, (to, source), sizes, folds, self.schedule.tile)

    def _convert(
        self, rows: Expr, selector: Selector, instruction: Instruction, slices: Sequence[Slice]
    ) -> None:
        """A conversion; numbers of one byte pass through half."""
        target, source = slices
        mode, count = mode_of_cast(instruction), selector.counts[instruction.domain]
        if instruction.domain is Domain.COLUMN and instruction.detail == "int64":
            count = self._columns  # a copy ends with a whole block, which holds fewer of eight bytes
        stages = [self.storage.places[STAGES["bool"]]] if instruction.detail in ONE_BYTE else []
        for to, taken in zip((*stages, target), (source, *stages), strict=True):
            if instruction.domain is Domain.FULL:
                self._convert_rows(selector, (to, taken), mode, rows)
            else:
                selector.call("Cast", to, taken, mode, count=count)

    def _convert_rows(
        self, selector: Selector, places: tuple[Slice, Slice], mode: Enumerator, rows: Expr
    ) -> None:
        """Rows of types of different width lie at different distances unless they fill their blocks."""
        k, (to, source) = self.k, places
        widths = [place.buffer.item_bytes for place in places]
        one, other = (self._pitches[width] for width in widths)
        blocks = [BLOCK_BYTES // width for width in widths]
        alike = self._decided(lambda n: -(-n // blocks[0]) * blocks[0] == -(-n // blocks[1]) * blocks[1])

        def by_row() -> None:
            with k.loop("line", rows) as line:
                taken = to.behind(line * one), source.behind(line * other)
                selector.call("Cast", *taken, mode, count=least(one, other))

        if alike or one == other:
            selector.call("Cast", to, source, mode, count=rows * one)
        elif alike is None:
            with k.when(one, "==", other):
                selector.call("Cast", to, source, mode, count=rows * one)
            with k.otherwise():
                by_row()
        else:
            by_row()


def build(plan: Plan, schedule: Schedule) -> IRKernel:
    """The kernel of a plan."""
    return Packed(resources(plan, schedule)).build()
