"""Family columnwise: reductions over leading or middle dimensions; the lanes behind them are kept.

A unit of work is a run of lanes of one outer iteration. Its steps are read one after another, and
every reduction accumulates lane by lane; so no lane ever meets another, and a value after a
reduction is a tensor as long as a tile. With a further reduction, or full outputs, the steps are
read once more.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define, frozen

from evokernel_core.compiler.lowering.plan import Plan, PlanInput
from evokernel_core.compiler.lowering.values import Domain, Operand, Value
from evokernel_core.targets.ascendc.ir.expr import Expr
from evokernel_core.targets.ascendc.ir.floats import Literal, float_var
from evokernel_core.targets.ascendc.kernels.fused import copies, loops
from evokernel_core.targets.ascendc.kernels.fused.base import Kernel
from evokernel_core.targets.ascendc.kernels.fused.copies import method
from evokernel_core.targets.ascendc.kernels.fused.pairs import Levels
from evokernel_core.targets.ascendc.kernels.fused.passes import COMBINE, IDENTITY, needed_now
from evokernel_core.targets.ascendc.kernels.fused.programs import TileProgram, finish
from evokernel_core.targets.ascendc.kernels.fused.settings import Schedule
from evokernel_core.targets.ascendc.kernels.text import instruction_lines
from evokernel_core.targets.ascendc.lowering.program import Lowerer, Virtual, camel, used_inputs

_POSITION = "uint64_t outer, uint64_t step, uint64_t column, uint32_t count"
_UNIT = "uint64_t outer, uint64_t column, uint32_t count"


@define
class LaneLowerer(Lowerer):
    """Row values are tensors whose lanes lie beside those of the tile: nothing is ever spread."""

    def scalar(self, operand: Operand) -> Expr | None:
        operand = self.plain(operand)
        if isinstance(operand, Value) and operand.op == "load" and not self.inputs[operand.index].inner:
            return float_var(f"{camel(self.inputs[operand.index].name)}Value")
        return super().scalar(operand)

    def at(self, operand: Operand, domain: Domain) -> Virtual:
        scalar = self.scalar(operand)
        if scalar is not None:
            return self._fill(scalar, domain)
        assert isinstance(operand, Value)
        return self.tensor(operand)

    def _usable_scalar(self, operand: Operand, domain: Domain) -> Expr | None:
        return self.scalar(operand)

    def _narrow(self, operand: Operand) -> Virtual | None:
        return None

    def _mask(self, value: Operand, domain: Domain) -> Virtual:
        assert isinstance(value, Value)
        return self.tensor(value)


@frozen
class _Pass:
    """One reading of the steps: what it computes, and the row tensors that it accumulates into."""

    program: TileProgram
    starts: tuple[tuple[str, Literal], ...]
    number: int


def build(plan: Plan, schedule: Schedule) -> Kernel:
    """The kernel of a columnwise plan."""
    lowerer = LaneLowerer(plan, packed=True, eager=schedule.eager_rounding)
    levels = Levels(())
    depth = max(levels.of(value) for value in plan.reductions)
    steps = [_reducing_pass(plan, lowerer, levels, level) for level in range(1, depth + 1)]
    lowerer.forget_tile()
    full = [output.value for output in plan.outputs if output.domain is Domain.FULL]
    lowerer.lower([output.value for output in plan.outputs])
    final = finish(lowerer, used_inputs(plan, needed_now(full)), plan.outputs, split=True)
    kernel = Kernel(plan, schedule, (*(step.program for step in steps), final))
    _write(kernel, steps, final)
    return kernel


def _reducing_pass(plan: Plan, lowerer: LaneLowerer, levels: Levels, level: int) -> _Pass:
    lowerer.forget_tile()
    here = [value for value in plan.reductions if levels.of(value) == level]
    roots = [value.args[0] for value in here]
    lowerer.lower(roots)
    starts = []
    for value in here:
        source = lowerer.at(value.args[0], Domain.FULL)
        total = lowerer.hold(value)
        running = lowerer.virtual(Domain.FULL, name=total.name)
        lowerer.origin = value.origin
        lowerer.emit(COMBINE[value.op], running, running, source)
        starts.append((total.name, IDENTITY[value.op]))
    program = finish(lowerer, used_inputs(plan, needed_now(roots)), (), split=True)
    return _Pass(program, tuple(starts), level)


# -- text -----------------------------------------------------------------------------------------


def _write(kernel: Kernel, steps: Sequence[_Pass], final: TileProgram) -> None:
    once, unit, step = numbers(kernel)
    for part in steps:
        _reducing_methods(kernel, part, step)
    calls = [f"Reduce{part.number}(outer, column, count);" for part in steps]
    calls += _final_methods(kernel, final, step)
    loads = []
    if kernel.held:
        kernel.methods.append(method("LoadLanes", _UNIT, copies.copy_in(kernel, kernel.held)))
        loads = ["LoadLanes(outer, column, count);"]
        loads += [line.partition(" ")[2] for line in copies.receive(kernel.held)]
    lines = [
        "const uint64_t outer = unit / tiling_.chunks;",
        "const uint64_t column = unit % tiling_.chunks * tiling_.chunkElements;",
        "const uint64_t left = tiling_.columns - column;",
        "const uint32_t count = left < tiling_.chunkElements ? left : tiling_.chunkElements;",
        *unit,
        *loads,
        *calls,
        *copies.release(kernel.held),
    ]
    kernel.methods.append(method("Unit", "uint64_t unit", lines))
    loop = ["for (uint64_t unit = begin; unit < end; ++unit) {", "    Unit(unit);", "}"]
    kernel.process += [*loops.core_range("units", "unitsPerCore"), *once, *loop]


def numbers(kernel: Kernel) -> tuple[list[str], list[str], list[str]]:
    """Statements that read single numbers: once, for each unit, for each step."""
    once: list[str] = []
    unit: list[str] = []
    step: list[str] = []
    for number in kernel.numbers:
        line = copies.read_number(kernel, number)
        (step if number.mid else unit if any(number.outer) else once).append(line)
    return once, unit, step


def _tile_inputs(kernel: Kernel, program: TileProgram) -> list[PlanInput]:
    return [
        operand for operand in program.inputs if operand in kernel.queued and operand.domain is not Domain.ROW
    ]


def _copy_in(kernel: Kernel, program: TileProgram) -> str:
    """The name of the method that fetches one step of these inputs."""
    inputs = _tile_inputs(kernel, program)
    name = "Load" + "".join(map(copies.capital, inputs))
    text = method(name, _POSITION, copies.copy_in(kernel, inputs))
    if text not in kernel.methods:
        kernel.methods.append(text)
    return name


def _loop(kernel: Kernel, program: TileProgram, work: str) -> list[str]:
    """The steps of one unit, with the next one under way where there are two buffers."""
    load = _copy_in(kernel, program)
    if not kernel.schedule.ahead:
        return [
            "for (uint64_t step = 0; step < tiling_.steps; ++step) {",
            f"    {load}(outer, step, column, count);",
            f"    {work}",
            "}",
        ]
    return [
        f"{load}(outer, 0, column, count);",
        "for (uint64_t step = 0; step < tiling_.steps; ++step) {",
        "    if (step + 1 < tiling_.steps) { // travels while this step is computed",
        f"        {load}(outer, step + 1, column, count);",
        "    }",
        f"    {work}",
        "}",
    ]


def _lines(items: Sequence[object], program: TileProgram) -> list[str]:
    return instruction_lines(items, program.registers, packed=False, rows="count")  # type: ignore[arg-type]


def _reducing_methods(kernel: Kernel, part: _Pass, numbers: list[str]) -> None:
    program = part.program
    inputs = _tile_inputs(kernel, program)
    accumulate = [*numbers, *copies.receive(inputs), *_lines(program.body, program), *copies.release(inputs)]
    name = f"Accumulate{part.number}"
    kernel.methods.append(method(name, _POSITION, accumulate))
    lines = [f"Duplicate({target}, {start.cpp()}, count);" for target, start in part.starts]
    lines = [*_lines(program.prologue, program), *lines]
    lines += _loop(kernel, program, f"{name}(outer, step, column, count);")
    kernel.methods.append(method(f"Reduce{part.number}", _UNIT, lines))


def _final_methods(kernel: Kernel, final: TileProgram, numbers: list[str]) -> list[str]:
    """The methods that write the outputs; the calls that run them for a unit."""
    rows = [output for output in kernel.plan.outputs if output.domain is Domain.ROW]
    full = [output for output in kernel.plan.outputs if output.domain is Domain.FULL]
    lines = [*copies.allocate(rows), *_lines(final.prologue, final), *copies.send(rows)]
    if rows:
        kernel.methods.append(method("CopyOutLanes", _UNIT, copies.copy_out(kernel, rows)))
        lines.append("CopyOutLanes(outer, column, count);")
    if full:
        inputs = _tile_inputs(kernel, final)
        body = [*numbers, *copies.receive(inputs), *copies.allocate(full), *_lines(final.body, final)]
        body += [*copies.send(full), *copies.release(inputs), "CopyOut(outer, step, column, count);"]
        kernel.methods.append(method("CopyOut", _POSITION, copies.copy_out(kernel, full)))
        kernel.methods.append(method("Write", _POSITION, body))
        lines += _loop(kernel, final, "Write(outer, step, column, count);")
    kernel.methods.append(method("Finish", _UNIT, lines))
    return ["Finish(outer, column, count);"]
