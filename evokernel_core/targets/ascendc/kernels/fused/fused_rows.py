"""Packed rows: several whole rows a tile, which are loaded, computed and stored once."""

from __future__ import annotations

from evokernel_core.compiler.lowering.plan import Plan
from evokernel_core.compiler.lowering.values import Domain
from evokernel_core.targets.ascendc.kernels.fused import copies, loops
from evokernel_core.targets.ascendc.kernels.fused.base import Kernel
from evokernel_core.targets.ascendc.kernels.fused.copies import method
from evokernel_core.targets.ascendc.kernels.fused.programs import whole_program
from evokernel_core.targets.ascendc.kernels.fused.settings import Schedule
from evokernel_core.targets.ascendc.kernels.text import instruction_lines
from evokernel_core.targets.ascendc.lowering.program import Instruction

_WHOLE_TILE_HELPERS = frozenset({"expand_rows", "expand_columns", "cast_in", "cast_out"})


def build(plan: Plan, schedule: Schedule) -> Kernel:
    """The kernel of a plan: CopyIn, Compute, CopyOut and the loop over tiles."""
    program = whole_program(plan, schedule)
    kernel = Kernel(plan, schedule, (program,))
    once, each = copies.read_numbers(kernel)
    invariants = {invariant.name for invariant in kernel.invariants}
    hoisted = [statement for statement in program.body if _is_hoisted(statement, invariants)]
    body = [statement for statement in program.body if not _is_hoisted(statement, invariants)]
    lines = [*each, *copies.receive(kernel.queued), *copies.allocate(plan.outputs)]
    if needs_count(kernel):
        lines.append("const uint32_t count = rows * tiling_.pitch;")
    lines += instruction_lines(body, program.registers, packed=True)
    lines += [*copies.send(plan.outputs), *copies.release(kernel.queued)]
    position = "uint64_t row, uint32_t rows"
    kernel.methods += [
        _rows_at(kernel),
        method("CopyIn", position, copies.copy_in(kernel, kernel.queued)),
        method("Compute", position if each else "uint32_t rows", lines),
        method("CopyOut", position, copies.copy_out(kernel, plan.outputs)),
    ]
    converted = instruction_lines(hoisted, program.registers, packed=True)
    converted = [line.replace(", rows)", ", tiling_.rowsPerTile)") for line in converted]
    kernel.process += [*loops.core_range("rows", "rowsPerCore"), *once]
    kernel.process += [*copies.load_invariants(kernel), *converted]
    given = "row, rows" if each else "rows"
    kernel.process += loops.measured(schedule.ahead, "row", "rows", "RowsAt", given)
    kernel.process += copies.release(kernel.invariants)
    return kernel


def _rows_at(kernel: Kernel) -> str:
    lines = ["const uint64_t left = end - row;"]
    if kernel.plan.outer:
        lines = [
            "// Inputs are dense in the inner rows only: a tile ends where they end.",
            "const uint64_t innerRows = tiling_.mid - row % tiling_.mid;",
            "const uint64_t left = end - row < innerRows ? end - row : innerRows;",
        ]
    lines.append("return left < tiling_.rowsPerTile ? left : tiling_.rowsPerTile;")
    return method("RowsAt", "uint64_t row, uint64_t end", lines, result="uint32_t")


def _is_hoisted(instruction: Instruction, invariants: set[str]) -> bool:
    if instruction.op == "expand_columns" and instruction.target is not None and instruction.target.name:
        return True
    return instruction.op == "cast_in" and instruction.sources[0].home in invariants


def needs_count(kernel: Kernel) -> bool:
    """Whether some instruction of a packed tile runs over all of it at once."""
    return kernel.passes_bytes or any(
        statement.domain is Domain.FULL
        and statement.op not in _WHOLE_TILE_HELPERS
        and not statement.op.endswith(("Rows", "Columns"))
        and not statement.op.startswith("reduce_")
        for statement in kernel.programs[0].body
    )
