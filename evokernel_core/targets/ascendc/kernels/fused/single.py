"""Kernels that read every input once, tile by tile: runs of elements, parts of rows, or whole rows."""

from __future__ import annotations

from evokernel_core.compiler.lowering.plan import Plan
from evokernel_core.compiler.lowering.values import Domain
from evokernel_core.targets.ascendc.ir.expr import (
    U64,
    Constant,
    Expr,
    Int,
    Param,
    Size,
    Var,
    ceil_div,
    least,
    round_up,
)
from evokernel_core.targets.ascendc.ir.nodes import Kernel as IRKernel
from evokernel_core.targets.ascendc.kernels.fused import access
from evokernel_core.targets.ascendc.kernels.fused.base import Kernel
from evokernel_core.targets.ascendc.kernels.fused.nest import Nest
from evokernel_core.targets.ascendc.kernels.fused.places import row_of
from evokernel_core.targets.ascendc.kernels.fused.programs import whole_program
from evokernel_core.targets.ascendc.kernels.fused.settings import Form, Schedule
from evokernel_core.targets.ascendc.lowering.program import Instruction

_STEP = Constant("STEP", 128, "elements, so that copies are aligned")
_NOTES = {
    Form.FLAT: "Runs of elements: load, compute, store.",
    Form.SEGMENTS: "Parts of rows: load, compute, store.",
    Form.RESIDENT: "Whole rows, one a tile, which stay in the unified buffer from load to store.",
}


class SinglePass(Nest):
    """One kernel."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel, _NOTES[kernel.form])
        (self._program,) = kernel.programs

    def build(self) -> IRKernel:
        make = {Form.FLAT: self._flat, Form.SEGMENTS: self._segments, Form.RESIDENT: self._whole_rows}
        make[self.schedule.form]()
        return self.k.kernel()

    # -- forms --------------------------------------------------------------------------------

    def _flat(self) -> None:
        """Cores get equal runs, in steps that keep copies aligned; tiles share a run equally."""
        k, plan = self.k, self.plan
        elements = k.param("elements", Size(plan.rows) * Size(plan.inner))
        k.require(elements, ">=", 1)
        per_core = k.param("elementsPerCore", round_up(ceil_div(elements, self.cores()), _STEP))
        tiles = k.on_host("tiles", ceil_div(per_core, self.tile))
        size = k.param("tileElements", round_up(ceil_div(per_core, tiles), _STEP))
        self._begin()
        with k.cores("core", ceil_div(elements, per_core)) as core:
            begin = k.let("begin", core * per_core, U64)
            run = k.let("run", least(elements - begin, per_core), U64)
            with k.loop("tile", ceil_div(run, size), U64) as tile:
                start = k.let("start", tile * size, U64)
                count = k.let("count", least(run - start, size))
                for operand in self.kernel.queued:
                    self.load(operand, begin + start, count)
                self._compute(begin + start, count)

    def _segments(self) -> None:
        """A row is cut into equal segments, small enough that every core gets work."""
        k = self.k
        rows, columns = self.sizes()
        cores = self.cores()
        share = k.on_host("share", round_up(ceil_div(rows * columns, cores), _STEP))
        parts = ceil_div(columns, least(share, self.tile))
        size = k.param("segmentElements", round_up(ceil_div(columns, parts), _STEP))
        segments = k.param("segments", ceil_div(columns, size))
        units = k.param("units", rows * segments)
        self._begin()
        with k.cores("unit", units, run=k.param("unitsPerCore", ceil_div(units, cores))) as unit:
            row = k.let("row", unit // segments, U64)
            column = k.let("column", unit % segments * size, U64)
            count = k.let("count", least(columns - column, size))
            self._row(row, columns, column, count)

    def _whole_rows(self) -> None:
        k = self.k
        rows, columns = self.sizes()
        k.require(columns, "<=", self.tile)
        per_core = k.param("rowsPerCore", ceil_div(rows, self.cores()))
        count = k.let("count", columns)
        self._begin(count)
        with k.cores("row", rows, run=per_core) as row:
            self._row(row, columns, Int(0), count)

    # -- tiles --------------------------------------------------------------------------------

    def _begin(self, columns: Expr | None = None) -> None:
        """What happens once: numbers are read, and inputs that are the same in every row loaded; these have
        so many ``columns``."""
        self.loops()
        self.define_lanes()
        self.read_numbers(lambda one: not access.varies(one), lambda _: Int(0))
        if columns is not None:
            for operand in self.kernel.invariants:
                self.load(operand, Int(0), columns)
            hoisted = [statement for statement in self._program.body if self._is_hoisted(statement)]
            self.write(hoisted, self._program, self.selector(columns, Int(1)))

    def _is_hoisted(self, instruction: Instruction) -> bool:
        """Whether an instruction converts what is the same in every row."""
        invariants = {operand.name for operand in self.kernel.invariants}
        return instruction.op == "cast_in" and instruction.sources[0].home in invariants

    def _row(self, row: Var, columns: Param, column: Expr, count: Expr) -> None:
        """A row, or a part of it."""
        for operand in self.kernel.queued:
            self.load(operand, row_of(self.plan, operand, row) * columns + column, count)
        self.read_numbers(access.varies, lambda one: row_of(self.plan, one, row))
        self._compute(row * columns + column, count)
        for output in self.outputs(Domain.ROW):
            self.store(output, row, Int(1))

    def _compute(self, target: Expr, count: Expr) -> None:
        """Compute a tile, and store it."""
        body = [statement for statement in self._program.body if not self._is_hoisted(statement)]
        self.write(body, self._program, self.selector(count, Int(1)))
        for output in self.outputs(Domain.FULL):
            self.store(output, target, count)


def build(plan: Plan, schedule: Schedule) -> IRKernel:
    """The kernel of a plan."""
    return SinglePass(resources(plan, schedule)).build()


def resources(plan: Plan, schedule: Schedule) -> Kernel:
    """What the kernel of a plan takes."""
    return Kernel(plan, schedule, (whole_program(plan, schedule),))
