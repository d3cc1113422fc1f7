"""Rows longer than the unified buffer: one pass over a row for each level of reductions.

A pass keeps one partial result in every lane of an accumulator tile, so that the slow reduction
runs once a row and long sums lose no precision. Two reductions that belong together may share one
pass, see pairs.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import define, field, frozen

from evokernel_core.compiler.lowering.plan import Plan, PlanInput
from evokernel_core.compiler.lowering.values import Domain, Operand, Value, needed
from evokernel_core.targets.ascendc.kernels.fused import copies, loops
from evokernel_core.targets.ascendc.kernels.fused.base import Kernel
from evokernel_core.targets.ascendc.kernels.fused.copies import method
from evokernel_core.targets.ascendc.kernels.fused.pairs import Levels, Pair, online_pairs
from evokernel_core.targets.ascendc.kernels.fused.programs import TileProgram, finish
from evokernel_core.targets.ascendc.kernels.fused.settings import Schedule
from evokernel_core.targets.ascendc.kernels.text import REDUCTION_NAMES, instruction_lines
from evokernel_core.targets.ascendc.lowering.program import Lowerer, used_inputs

IDENTITY = {"reduce_sum": "0.0f", "reduce_prod": "1.0f", "reduce_max": "-INFINITE", "reduce_min": "INFINITE"}
COMBINE = {"reduce_sum": "Add", "reduce_prod": "Mul", "reduce_max": "Max", "reduce_min": "Min"}
LOWEST = "-3.40282347e38f"
"""The start of an online maximum, or the least that is subtracted where others read the maximum as well:
finite, because infinity less infinity is not a number."""


@frozen
class Accumulation:
    """One reduction of a pass: its row tensor, its accumulator and the pair it belongs to."""

    value: Value
    row: str
    accumulator: str


def _row_of(accumulation: Accumulation) -> str:
    return accumulation.row


@define
class Pass:
    program: TileProgram
    accumulations: tuple[Accumulation, ...]
    pairs: tuple[Pair, ...]
    number: int

    def pair_of(self, accumulation: Accumulation) -> Pair | None:
        """The pair whose second reduction this is."""
        return next((pair for pair in self.pairs if pair.total is accumulation.value), None)

    def start_of(self, accumulation: Accumulation) -> str:
        """What an accumulator holds before the first tile."""
        pair = next((pair for pair in self.pairs if pair.first is accumulation.value), None)
        is_finite = pair is not None and not pair.is_moments and not pair.is_exposed
        return LOWEST if is_finite else IDENTITY[accumulation.value.op]

    def first_of(self, pair: Pair) -> Accumulation:
        return next(accumulation for accumulation in self.accumulations if accumulation.value is pair.first)


def build_stream(plan: Plan, schedule: Schedule) -> Kernel:
    """The kernel that streams rows through the unified buffer."""
    kernel, steps, final = in_passes(plan, schedule, Lowerer(plan, False, schedule.eager_rounding))
    _write(kernel, steps, final)
    return kernel


def in_passes(plan: Plan, schedule: Schedule, lowerer: Lowerer) -> tuple[Kernel, list[Pass], TileProgram]:
    """A kernel without text, the passes that reduce, and the program that writes the outputs."""
    pairs = online_pairs(plan) if schedule.online else ()
    levels = Levels(pairs)
    depth = max(levels.of(value) for value in plan.reductions)
    steps = [reducing_pass(plan, lowerer, levels, pairs, level) for level in range(1, depth + 1)]
    final = final_pass(plan, lowerer)
    programs = (*(step.program for step in steps), final)
    accumulators = max(len(step.accumulations) for step in steps)
    return Kernel(plan, schedule, programs, accumulators), steps, final


def reducing_pass(plan: Plan, lowerer: Lowerer, levels: Levels, pairs: tuple[Pair, ...], level: int) -> Pass:
    lowerer.forget_tile()
    here = [value for value in plan.reductions if levels.of(value) == level]
    mine = tuple(pair for pair in pairs if pair.total in here)
    paired = {pair.first.index for pair in mine} | {pair.total.index for pair in mine}
    plain = [value for value in here if value.index not in paired]
    roots = [value.args[0] for value in plain] + [pair.source for pair in mine]
    lowerer.lower(roots)
    accumulations: list[Accumulation] = []
    for value in plain:
        _accumulate(lowerer, value, accumulations)
    for pair in mine:
        accumulate = _accumulate_moments if pair.is_moments else _accumulate_online
        accumulate(lowerer, pair, accumulations)
    program = finish(lowerer, used_inputs(plan, needed_now(roots)), (), split=True)
    return Pass(program, tuple(accumulations), mine, level)


def _accumulate(lowerer: Lowerer, value: Value, accumulations: list[Accumulation]) -> None:
    source = lowerer.at(value.args[0], Domain.FULL)
    name = f"accumulator{len(accumulations)}"
    accumulator = lowerer.virtual(Domain.FULL, name=name)
    lowerer.origin = value.origin
    lowerer.emit(COMBINE[value.op], accumulator, accumulator, source)
    accumulations.append(Accumulation(value, lowerer.hold(value).name, name))


def _accumulate_online(lowerer: Lowerer, pair: Pair, accumulations: list[Accumulation]) -> None:
    source = lowerer.at(pair.source, Domain.FULL)
    names = [f"accumulator{len(accumulations) + i}" for i in range(2)]
    largest, total = (lowerer.virtual(Domain.FULL, name=name) for name in names)
    lowerer.origin = pair.total.origin
    grown = lowerer.emit("Max", lowerer.virtual(Domain.FULL), largest, source)
    finite = grown
    if pair.is_exposed:
        finite = lowerer.emit("Maxs", lowerer.virtual(Domain.FULL), grown, scalar=LOWEST)
    lowerer.emit("Sub", largest, largest, finite)
    lowerer.emit("Exp", largest, largest)
    lowerer.emit("Mul", total, total, largest)
    shifted = lowerer.emit("Sub", lowerer.virtual(Domain.FULL), source, finite)
    term = lowerer.emit("Exp", lowerer.virtual(Domain.FULL), shifted)
    lowerer.emit("Add", total, total, term)
    lowerer.emit("Adds", largest, grown, scalar="0.0f")
    accumulations.append(Accumulation(pair.first, lowerer.hold(pair.first).name, names[0]))
    accumulations.append(Accumulation(pair.total, lowerer.hold(pair.total).name, names[1]))


def _accumulate_moments(lowerer: Lowerer, pair: Pair, accumulations: list[Accumulation]) -> None:
    """Sums of the source less a number that the row's first tile gives, and of its squares."""
    source = lowerer.at(pair.source, Domain.FULL)
    lowerer.origin = pair.total.origin
    rows = [lowerer.hold(value) for value in (pair.first, pair.total)]
    names = [f"accumulator{len(accumulations) + i}" for i in range(2)]
    running, squares = (lowerer.virtual(Domain.FULL, name=name) for name in names)
    apart = lowerer.shifted(source, rows, running)
    lowerer.emit("Add", running, running, apart)
    square = lowerer.emit("Mul", lowerer.virtual(Domain.FULL), apart, apart)
    lowerer.emit("Add", squares, squares, square)
    for value, row, name in zip((pair.first, pair.total), rows, names, strict=True):
        accumulations.append(Accumulation(value, row.name, name))


def final_pass(plan: Plan, lowerer: Lowerer) -> TileProgram:
    lowerer.forget_tile()
    full = [output.value for output in plan.outputs if output.domain is Domain.FULL]
    lowerer.lower([output.value for output in plan.outputs])
    return finish(lowerer, used_inputs(plan, needed_now(full)), plan.outputs, split=True)


def needed_now(roots: Sequence[Operand]) -> tuple[Value, ...]:
    """The values that the roots need without going through a reduction."""
    return needed(roots, lambda value: value.domain is Domain.ROW)


# -- text -----------------------------------------------------------------------------------------

_ALIGNED_ELEMENTS = 128
"""Elements of 256 bytes in the narrowest float type: tiles that start there are copied faster."""


@define
class _Writer:
    """Writes the methods of a streaming kernel; ``known`` are the CopyIn methods by their inputs."""

    kernel: Kernel
    known: dict[tuple[str, ...], str] = field(factory=dict)

    def copy_in(self, inputs: Sequence[PlanInput]) -> str:
        """The name of the method that loads these inputs, written when it is first needed."""
        queued = tuple(operand for operand in inputs if operand in self.kernel.queued)
        key = tuple(tensor.name for tensor in queued)
        if key not in self.known:
            self.known[key] = f"CopyIn{len(self.known) + 1}" if self.known else "CopyIn"
            parameters = "uint64_t row, uint64_t column, uint32_t count"
            self.kernel.methods.append(
                method(self.known[key], parameters, copies.copy_in(self.kernel, queued))
            )
        return self.known[key]

    def tiles(self, copy_in: str, work: Sequence[str], following: str) -> list[str]:
        """The loop over a row's tiles; ``following`` fetches what comes after the row's last tile."""
        if not self.kernel.schedule.ahead:
            return [
                "for (uint64_t column = 0; column < tiling_.columns;) {",
                "    const uint32_t count = TileAt(row, column);",
                f"    {copy_in}(row, column, count);",
                *(f"    {line}" for line in work),
                "    column += count;",
                "}",
            ]
        return [
            "uint32_t count = TileAt(row, 0); // already on its way",
            "for (uint64_t column = 0; column < tiling_.columns;) {",
            "    const uint64_t next = column + count;",
            "    const uint32_t nextCount = next < tiling_.columns ? TileAt(row, next) : 0;",
            "    if (nextCount > 0) {",
            f"        {copy_in}(row, next, nextCount);",
            "    }",
            *(f"    {line}" for line in work),
            "    column = next;",
            "    count = nextCount;",
            "}",
            *following.splitlines(),
        ]


def _write(kernel: Kernel, steps: Sequence[Pass], final: TileProgram) -> None:
    once, each = copies.read_numbers(kernel)
    writer = _Writer(kernel)
    kernel.methods.append(_tile_at(kernel))
    programs = [step.program for step in steps]
    full = any(output.domain is Domain.FULL for output in kernel.plan.outputs)
    fetches = [writer.copy_in(program.inputs) for program in (*programs, *([final] if full else []))]
    next_row = f"if (row + 1 < end) {{\n    {fetches[0]}(row + 1, 0, TileAt(row + 1, 0));\n}}"
    following = [f"{name}(row, 0, TileAt(row, 0));" for name in fetches[1:]] + [next_row]
    for step, copy_in, after in zip(steps, fetches, following, strict=False):
        _reducing_methods(writer, step, copy_in, after)
    last = "WriteRow" if full else "WriteResult"
    _final_methods(writer, final, fetches[-1], following[-1], last)
    calls = [*each, *(f"Reduce{step.number}(row, end);" for step in steps), f"{last}(row, end);"]
    first = [f"{fetches[0]}(begin, 0, TileAt(begin, 0));"] if kernel.schedule.ahead else []
    loop = ["for (uint64_t row = begin; row < end; ++row) {", *(f"    {line}" for line in calls), "}"]
    kernel.process += [*loops.core_range("rows", "rowsPerCore"), *once, *first, *loop]


def _tile_at(kernel: Kernel) -> str:
    """The method that gives the length of the tile at a column."""
    columns = kernel.plan.inner.constant
    lines = ["const uint64_t left = tiling_.columns - column;"]
    if columns is not None and columns % _ALIGNED_ELEMENTS == 0:
        lines.append("return left < TILE_ELEMENTS ? left : TILE_ELEMENTS;")
    else:
        lines += [
            "// Copies are faster from aligned addresses: a shorter first tile aligns the others.",
            "const uint64_t skew = column == 0 ? row * tiling_.columns % ALIGNED_ELEMENTS : 0;",
            "const uint64_t most = TILE_ELEMENTS - skew;",
            "return left < most ? left : most;",
        ]
    return method("TileAt", "uint64_t row, uint64_t column", lines).replace("void", "uint32_t", 1)


def _reducing_methods(writer: _Writer, step: Pass, copy_in: str, following: str) -> None:
    kernel, program = writer.kernel, step.program
    queued = [operand for operand in program.inputs if operand in kernel.queued]
    body = instruction_lines(program.body, program.registers, packed=False)
    accumulate = [*copies.receive(queued), *body, *copies.release(queued)]
    kernel.methods.append(method(f"Accumulate{step.number}", "uint32_t count", accumulate))
    lines = instruction_lines(program.prologue, program.registers, packed=False, declare=False)
    lines += starting_lines(step)
    lines += writer.tiles(copy_in, [f"Accumulate{step.number}(count);"], following)
    lines += ["const uint32_t lanes = tiling_.columns < TILE_ELEMENTS ? tiling_.columns : TILE_ELEMENTS;"]
    lines += combine_lines(step, "tiling_.columns")
    kernel.methods.append(method(f"Reduce{step.number}", "uint64_t row, uint64_t end", lines))


def starting_lines(step: Pass) -> list[str]:
    """Set the accumulators, all of their lanes, before a row's first tile."""
    lines = [
        f"Duplicate({accumulation.accumulator}, {step.start_of(accumulation)}, TILE_ELEMENTS);"
        for accumulation in step.accumulations
    ]
    shifts = (statement.scalar for statement in step.program.body if statement.op == "shift")
    return lines + [f"{shift}Known = false;" for shift in shifts]


def combine_lines(
    step: Pass, elements: str, place: Callable[[Accumulation], str] = _row_of, *, is_part: bool = False
) -> list[str]:
    """Reduce the lanes of the accumulators to one value at ``place``, for ``elements`` (a C++ expression)
    elements that they took; ``is_part`` of a row, whose other parts may be finite where this one is not."""
    lines: list[str] = []
    for accumulation in step.accumulations:
        pair, to = step.pair_of(accumulation), place(accumulation)
        if pair is not None and not pair.is_moments:
            largest = step.first_of(pair)
            top = f"{place(largest)}.GetValue(0)"
            if is_part and pair.is_exposed:
                lines.append(f"const float {largest.row}Part = {top};")
                top = f"({largest.row}Part < {LOWEST} ? {LOWEST} : {largest.row}Part)"
            lines += [
                "// Bring the lanes' sums to the common maximum.",
                f"Adds({largest.accumulator}, {largest.accumulator}, -{top}, lanes);",
                f"Exp({largest.accumulator}, {largest.accumulator}, lanes);",
                f"Mul({accumulation.accumulator}, {accumulation.accumulator}, {largest.accumulator}, lanes);",
            ]
        lines.append(f"{REDUCTION_NAMES[accumulation.value.op]}Row({to}, {accumulation.accumulator}, lanes);")
        if pair is not None and pair.is_moments:
            first, shift = place(step.first_of(pair)), f"{accumulation.row}Shift"
            lines += [
                "// From sums around the shift to the sum and to squares around the mean.",
                f"const float {accumulation.row}Elements = static_cast<float>({elements});",
                f"Axpy({to}, {first}, -{first}.GetValue(0) / {accumulation.row}Elements, 1);",
                f"Abs({to}, {to}, 1); // rounding may leave it below zero",
                f"Adds({first}, {first}, {shift} * {accumulation.row}Elements, 1);",
            ]
    return lines


def _final_methods(writer: _Writer, final: TileProgram, copy_in: str, following: str, name: str) -> None:
    kernel = writer.kernel
    rows = [output for output in kernel.plan.outputs if output.domain is Domain.ROW]
    full = [output for output in kernel.plan.outputs if output.domain is Domain.FULL]
    lines = copies.allocate(rows)
    lines += instruction_lines(final.prologue, final.registers, packed=False, declare=False)
    lines += copies.send(rows)
    if rows:
        kernel.methods.append(method("CopyOutRow", "uint64_t row", copies.copy_out(kernel, rows)))
        lines.append("CopyOutRow(row);")
    if full:
        queued = [operand for operand in final.inputs if operand in kernel.queued]
        body = instruction_lines(final.body, final.registers, packed=False)
        compute = [*copies.receive(queued), *copies.allocate(full), *body]
        compute += [*copies.send(full), *copies.release(queued)]
        parameters = "uint64_t row, uint64_t column, uint32_t count"
        kernel.methods.append(method("Compute", "uint32_t count", compute))
        kernel.methods.append(method("CopyOut", parameters, copies.copy_out(kernel, full)))
        lines += writer.tiles(copy_in, ["Compute(count);", "CopyOut(row, column, count);"], following)
    kernel.methods.append(method(name, "uint64_t row, uint64_t end", lines))
