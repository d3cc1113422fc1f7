"""Reductions over leading or middle dimensions with several steps a tile, for runs of lanes too short to
fill one.

A tile holds a run of lanes of several steps, one below another. A reduction keeps a partial result for
every place of a tile, so that its instructions are as long as the tile; at the end of a pass the places of
a lane are folded together. Where a tile has room for all the steps of its lanes, they are read once. What
a lane comes to is read by the steps of a tile in turn, with a repeat stride of 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from attrs import define

from evokernel_core.compiler.lowering.plan import Plan, PlanInput, PlanOutput
from evokernel_core.compiler.lowering.values import REDUCTIONS, Domain, Operand, Value, needed
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.api import most_of
from evokernel_core.targets.ascendc.ir.expr import Expr
from evokernel_core.targets.ascendc.kernels.fused import copies, loops
from evokernel_core.targets.ascendc.kernels.fused.base import Kernel
from evokernel_core.targets.ascendc.kernels.fused.buffers import FLOATS_PER_BLOCK
from evokernel_core.targets.ascendc.kernels.fused.columnwise import LaneLowerer, numbers
from evokernel_core.targets.ascendc.kernels.fused.copies import method
from evokernel_core.targets.ascendc.kernels.fused.passes import COMBINE, Accumulation, Pass, in_passes
from evokernel_core.targets.ascendc.kernels.fused.programs import TileProgram, finish
from evokernel_core.targets.ascendc.kernels.fused.settings import Schedule
from evokernel_core.targets.ascendc.kernels.text import instruction_lines
from evokernel_core.targets.ascendc.lowering.program import Instruction, Lowerer, Virtual, used_inputs

MOST_STEPS = most_of("Add", "repeatTime")
"""Repeats of one instruction, which takes a repeat a step."""
_TILE = "uint64_t step, uint32_t rows"

_ROWS_AT = """\
// How many steps the tile that begins at a step has.
__aicore__ inline uint32_t RowsAt(uint64_t step)
{
    const uint64_t left = tiling_.steps - step;
    return left < tiling_.stepsPerTile ? left : tiling_.stepsPerTile;
}
"""


@define
class StepLowerer(LaneLowerer):
    """Values of a lane are tensors of one step, which the steps of a tile read in turn."""

    row_suffix: ClassVar[str] = "Columns"

    def at(self, operand: Operand, domain: Domain) -> Virtual:
        tensor = LaneLowerer.at(self, operand, domain)
        if domain is Domain.ROW or tensor.domain is not Domain.ROW:
            return tensor
        if tensor.index not in self._spread:
            self._spread[tensor.index] = self._spread_row(tensor)
        return self._spread[tensor.index]

    def _narrow(self, operand: Operand) -> Virtual | None:
        operand = self.plain(operand)
        if not isinstance(operand, Value) or operand.domain is not Domain.ROW or self.scalar(operand):
            return None
        return self.tensor(operand)

    def _mask(self, value: Operand, domain: Domain) -> Virtual:
        return Lowerer._mask(self, value, domain)

    def shifted(self, source: Virtual, rows: Sequence[Virtual], running: Virtual) -> Virtual:
        shift = self.virtual(Domain.ROW, name=f"{rows[1].name}Shift")
        held = (source, running, *rows)  # both rows are filled at the end of the pass, whoever reads them
        self.instructions.append(Instruction("lane_shift", shift, held, origin=self.origin))
        return self.emit("SubColumns", self.virtual(Domain.FULL), source, shift)

    def _spread_row(self, row: Virtual) -> Virtual:
        return self.emit("expand_columns", self.virtual(Domain.FULL), row)


@define
class WholeLowerer(StepLowerer):
    """All steps of a lane are in the tile: what they come to is known without another pass."""

    def _make(self, value: Value) -> Virtual:
        if value.op not in REDUCTIONS:
            return StepLowerer._make(self, value)
        source = self.at(value.args[0], Domain.FULL)
        return self.emit("fold_steps", self._new(Domain.ROW, value), source, detail=COMBINE[value.op])


@define
class ChannelLowerer(WholeLowerer):
    """Steps are the channels of a result: a number for each of them lies in the unified buffer and is taken
    by all lanes of its step."""

    column_suffix: ClassVar[str] = "Rows"

    def scalar(self, operand: Operand) -> Expr | None:
        return None if self._of_steps(operand) else WholeLowerer.scalar(self, operand)

    def at(self, operand: Operand, domain: Domain) -> Virtual:
        tensor = WholeLowerer.at(self, operand, domain)
        if tensor.domain is not Domain.COLUMN:
            return tensor
        if tensor.index not in self._spread:
            self._spread[tensor.index] = self.emit("expand_rows", self.virtual(Domain.FULL), tensor)
        return self._spread[tensor.index]

    def _narrow(self, operand: Operand) -> Virtual | None:
        operand = self.plain(operand)
        if isinstance(operand, Value) and self._of_steps(operand):
            return self.tensor(operand)
        return WholeLowerer._narrow(self, operand)

    def _of_steps(self, operand: Operand) -> bool:
        operand = self.plain(operand)
        if not isinstance(operand, Value) or operand.op != "load":
            return False
        return self.inputs[operand.index].mid and not self.inputs[operand.index].inner


def refusal(plan: Plan) -> str | None:
    """Why the steps of a plan cannot lie one below another."""
    if any(operand.mid and not operand.inner for operand in plan.inputs):
        return "A number for each step would differ inside a tile."
    tensors: tuple[PlanInput | PlanOutput, ...] = (*plan.inputs, *plan.outputs)
    widths = {ITEM_SIZE[tensor.dtype] for tensor in tensors if tensor.domain is Domain.FULL}
    if len(widths) != 1 or max(widths) > ITEM_SIZE["float32"]:
        return "Steps of tensors of several widths do not lie equally far apart."
    wider = (
        ITEM_SIZE[operand.dtype] > max(widths) for operand in plan.inputs if operand.domain is Domain.ROW
    )
    return "A copy of wider lanes does not fill the distance between steps." if any(wider) else None


def lanes_per_block(plan: Plan) -> int:
    """Lanes in whole blocks of every tensor that has steps: the distance of steps is a multiple of it."""
    narrow = min(ITEM_SIZE[operand.dtype] for operand in plan.inputs if operand.domain is Domain.FULL)
    return FLOATS_PER_BLOCK * ITEM_SIZE["float32"] // narrow


def build(plan: Plan, schedule: Schedule) -> Kernel:
    """The kernel whose tiles have several steps."""
    if schedule.whole:
        return _build_whole(plan, schedule)
    kernel, steps, final = in_passes(plan, schedule, StepLowerer(plan, True, schedule.eager_rounding))
    once, unit, _ = numbers(kernel)
    kernel.methods.append(_ROWS_AT)
    calls = [_reducing_methods(kernel, part) for part in steps]
    calls.append(_final_methods(kernel, final))
    loads = []
    if kernel.held:
        kernel.methods.append(method("LoadLanes", "", copies.copy_in(kernel, kernel.held)))
        loads = ["LoadLanes();", *(line.partition(" ")[2] for line in copies.receive(kernel.held))]
    lines = [
        *_PLACE,
        *unit,
        *loads,
        *calls,
        *copies.release(kernel.held),
    ]
    kernel.methods.append(method("Unit", "uint64_t unit", lines))
    loop = ["for (uint64_t unit = begin; unit < end; ++unit) {", "    Unit(unit);", "}"]
    kernel.process += [*loops.core_range("units", "unitsPerCore"), *once, *loop]
    return kernel


def whole_program(plan: Plan, lowerer: WholeLowerer) -> TileProgram:
    """All of the plan as one program over a tile with all steps."""
    roots = [output.value for output in plan.outputs]
    lowerer.lower(roots)
    return finish(lowerer, used_inputs(plan, needed(roots)), plan.outputs)


def _build_whole(plan: Plan, schedule: Schedule) -> Kernel:
    """The kernel whose tiles have all steps of their lanes."""
    program = whole_program(plan, WholeLowerer(plan, True, schedule.eager_rounding))
    kernel = Kernel(plan, schedule, (program,), accumulators=1)
    once, unit, _ = numbers(kernel)
    inputs = [operand for operand in program.inputs if operand in kernel.queued]
    at_unit = ["Place(unit);", "const uint32_t rows = tiling_.steps;"]
    body = [*at_unit, "const uint32_t count = rows * pitch;", *unit]
    body += [*copies.receive(inputs), *copies.allocate(plan.outputs), *_lines(program.body, program)]
    body += [*copies.send(plan.outputs), *copies.release(inputs)]
    from_first = [*at_unit, "constexpr uint64_t step = 0; // and all others"]
    out = copies.copy_out(kernel, plan.outputs)
    kernel.methods += [
        method("Place", "uint64_t unit", _PLACE),
        method("CopyIn", "uint64_t unit", [*from_first, *copies.copy_in(kernel, inputs)]),
        *whole_folds(program),
        method("Compute", "uint64_t unit", body),
        method("CopyOut", "uint64_t unit", [*_used(from_first, out), *out]),
    ]
    loop = loops.counted(schedule.ahead, "unit", "unit")
    kernel.process += [*loops.core_range("units", "unitsPerCore"), *once, *loop]
    return kernel


def _used(declarations: list[str], lines: list[str]) -> list[str]:
    """The first declaration, and those whose names the lines mention."""
    text = " ".join(lines)
    return [declarations[0], *(line for line in declarations[1:] if line.split(" = ")[0].split()[-1] in text)]


_PLACE = [
    "outer = unit / tiling_.chunks;",
    "column = unit % tiling_.chunks * tiling_.chunkElements;",
    "const uint64_t left = tiling_.columns - column;",
    "lanes = left < tiling_.chunkElements ? left : tiling_.chunkElements;",
    "pitch = (lanes + LANES_PER_BLOCK - 1) / LANES_PER_BLOCK * LANES_PER_BLOCK;",
]


def whole_folds(program: TileProgram) -> list[str]:
    """The methods that bring all steps of a tile together."""
    ops = dict.fromkeys(statement.detail for statement in program.body if statement.op == "fold_steps")
    return [_whole_fold(op) for op in ops]


def _whole_fold(op: str) -> str:
    """The method that brings all steps together and leaves them as they are."""
    return f"""\
// {op} the steps of a tile, which stay as they are: one half to the other, until one is left.
__aicore__ inline void Fold{op}(const LocalTensor<float> &dst, const LocalTensor<float> &src)
{{
    uint32_t rows = tiling_.steps / 2;
    if (rows == 0) {{
        Adds(dst, src, 0.0f, pitch);
        return;
    }}
    {op}(accumulator0, src, src[(tiling_.steps - rows) * pitch], rows * pitch);
    if (tiling_.steps % 2 > 0) {{ // the one in the middle
        {op}(accumulator0, accumulator0, src[rows * pitch], pitch);
    }}
    while (rows > 1) {{
        const uint32_t half = rows / 2;
        {op}(accumulator0, accumulator0, accumulator0[(rows - half) * pitch], half * pitch);
        rows -= half;
    }}
    Adds(dst, accumulator0, 0.0f, pitch);
}}
"""


# -- text -----------------------------------------------------------------------------------------


def _lines(items: Sequence[object], program: TileProgram) -> list[str]:
    return instruction_lines(items, program.registers, packed=False, rows="pitch")  # type: ignore[arg-type]


def _tile_inputs(kernel: Kernel, program: TileProgram) -> list[PlanInput]:
    return [
        operand for operand in program.inputs if operand in kernel.queued and operand.domain is not Domain.ROW
    ]


def _loop(kernel: Kernel, program: TileProgram, work: str) -> list[str]:
    """The tiles of one unit, with the next one under way where there are two buffers."""
    inputs = _tile_inputs(kernel, program)
    load = "Load" + "".join(map(copies.capital, inputs))
    text = method(load, _TILE, copies.copy_in(kernel, inputs))
    if text not in kernel.methods:
        kernel.methods.append(text)
    head = "for (uint64_t step = 0; step < tiling_.steps; step += tiling_.stepsPerTile) {"
    if not kernel.schedule.ahead:
        return [head, f"    {load}(step, RowsAt(step));", f"    {work}(step, RowsAt(step));", "}"]
    return [
        f"{load}(0, RowsAt(0));",
        head,
        "    const uint64_t next = step + tiling_.stepsPerTile;",
        "    if (next < tiling_.steps) { // travels while this tile is computed",
        f"        {load}(next, RowsAt(next));",
        "    }",
        f"    {work}(step, RowsAt(step));",
        "}",
    ]


def _reducing_methods(kernel: Kernel, part: Pass) -> str:
    """The methods of a pass that reduces; the call that runs it for a unit."""
    program = part.program
    inputs = _tile_inputs(kernel, program)
    body = ["const uint32_t count = rows * pitch;", *copies.receive(inputs), *_lines(program.body, program)]
    kernel.methods.append(method(f"Accumulate{part.number}", _TILE, [*body, *copies.release(inputs)]))
    lines = _lines(program.prologue, program)
    for accumulation in part.accumulations:
        lines.append(
            f"Duplicate({accumulation.accumulator}, {part.start_of(accumulation).cpp()}, RowsAt(0) * pitch);"
        )
    lines += _loop(kernel, program, f"Accumulate{part.number}")
    for accumulation in part.accumulations:
        lines += _combine(kernel, part, accumulation)
    kernel.methods.append(method(f"Reduce{part.number}", "", lines))
    return f"Reduce{part.number}();"


def _combine(kernel: Kernel, part: Pass, accumulation: Accumulation) -> list[str]:
    """Statements that bring the places of each lane together."""
    op, pair = COMBINE[accumulation.value.op], part.pair_of(accumulation)
    is_read_again = any(other.first is accumulation.value and not other.is_moments for other in part.pairs)
    name, fold = (f"{op}OfSteps", _kept_fold) if is_read_again else (f"Fold{op}", _fold)
    text = fold(name, op)
    if text not in kernel.methods:
        kernel.methods.append(text)
    lines = [f"{name}({accumulation.row}, {accumulation.accumulator});"]
    if pair is None:
        return lines
    first, sums = part.first_of(pair), accumulation.accumulator
    if not pair.is_moments:
        rescaled = [
            "// Bring the sums of a lane to its maximum.",
            f"SubColumns({first.accumulator}, {first.accumulator}, {first.row}, RowsAt(0));",
            f"Exp({first.accumulator}, {first.accumulator}, RowsAt(0) * pitch);",
            f"Mul({sums}, {sums}, {first.accumulator}, RowsAt(0) * pitch);",
        ]
        return [*rescaled, *lines]
    return [
        *lines,
        "// From sums around the shift to the sum and to squares around the mean.",
        f"const float {accumulation.row}Steps = static_cast<float>(tiling_.steps);",
        f"Mul({first.accumulator}, {first.row}, {first.row}, pitch);",
        f"Axpy({accumulation.row}, {first.accumulator}, -1.0f / {accumulation.row}Steps, pitch);",
        f"Abs({accumulation.row}, {accumulation.row}, pitch); // rounding may leave it below zero",
        f"Axpy({first.row}, {accumulation.row}Shift, {accumulation.row}Steps, pitch);",
    ]


def _fold(name: str, op: str) -> str:
    """The method that brings the places of a lane together."""
    return f"""\
// {op} the steps of a tile, one half to the other, until one is left.
__aicore__ inline void {name}(const LocalTensor<float> &dst, const LocalTensor<float> &src)
{{
    for (uint32_t rows = RowsAt(0); rows > 1;) {{
        const uint32_t half = rows / 2;
        {op}(src, src, src[(rows - half) * pitch], half * pitch);
        rows -= half;
    }}
    Adds(dst, src, 0.0f, pitch);
}}
"""


def _kept_fold(name: str, op: str) -> str:
    """The same for what is read once more."""
    return f"""\
// {op} the steps of a tile, which stay as they are.
__aicore__ inline void {name}(const LocalTensor<float> &dst, const LocalTensor<float> &src)
{{
    Adds(dst, src, 0.0f, pitch);
    for (uint32_t row = 1; row < RowsAt(0); ++row) {{
        {op}(dst, dst, src[row * pitch], pitch);
    }}
}}
"""


def _final_methods(kernel: Kernel, final: TileProgram) -> str:
    """The methods that write the outputs; the call that runs them for a unit."""
    rows = [output for output in kernel.plan.outputs if output.domain is Domain.ROW]
    full = [output for output in kernel.plan.outputs if output.domain is Domain.FULL]
    lines = [*copies.allocate(rows), *_lines(final.prologue, final), *copies.send(rows)]
    if rows:
        kernel.methods.append(method("CopyOutLanes", "", copies.copy_out(kernel, rows)))
        lines.append("CopyOutLanes();")
    if full:
        inputs = _tile_inputs(kernel, final)
        body = ["const uint32_t count = rows * pitch;"]
        body += [*copies.receive(inputs), *copies.allocate(full), *_lines(final.body, final)]
        body += [*copies.send(full), *copies.release(inputs), "CopyOut(step, rows);"]
        kernel.methods.append(method("CopyOut", _TILE, copies.copy_out(kernel, full)))
        kernel.methods.append(method("Write", _TILE, body))
        lines += _loop(kernel, final, "Write")
    kernel.methods.append(method("Finish", "", lines))
    return "Finish();"
