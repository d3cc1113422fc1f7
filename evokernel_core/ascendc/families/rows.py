"""Tiles of whole rows, and the load-compute-store pass that all one-pass forms share."""

from __future__ import annotations

from evokernel_core.ascendc.families.base import Kernel, method
from evokernel_core.ascendc.families.text import instruction_lines
from evokernel_core.ascendc.lowering import Domain
from evokernel_core.ascendc.lowering_program import Instruction
from evokernel_core.ascendc.schedule_settings import Form

PACKED_LOOP = """\
const uint64_t begin = GetBlockIdx() * tiling_.rowsPerCore;
const uint64_t run = begin + tiling_.rowsPerCore;
const uint64_t end = run < tiling_.rows ? run : tiling_.rows;
uint64_t row = begin;
while (row < end) {
    const uint32_t rows = RowsOfTile(row, end);
    CopyIn(row, rows);
    Compute({row}rows);
    CopyOut(row, rows);
    row += rows;
}
"""

RESIDENT_LOOP = """\
const uint64_t begin = GetBlockIdx() * tiling_.rowsPerCore;
const uint64_t run = begin + tiling_.rowsPerCore;
const uint64_t end = run < tiling_.rows ? run : tiling_.rows;
for (uint64_t row = begin; row < end; ++row) {
    CopyIn(row, tiling_.columns);
    Compute({row}tiling_.columns);
    CopyOut(row, tiling_.columns);
}
"""


def packed_rows_method(kernel: Kernel) -> str:
    """The method that says how many rows the tile at a row has."""
    lines = [
        "uint64_t rows = end - row < tiling_.rowsPerTile ? end - row : tiling_.rowsPerTile;",
    ]
    if kernel.plan.outer:
        lines += [
            "// Inputs are dense in the inner rows only: a tile ends where they end.",
            "const uint64_t innerRows = tiling_.mid - row % tiling_.mid;",
            "rows = rows < innerRows ? rows : innerRows;",
        ]
    lines.append("return static_cast<uint32_t>(rows);")
    return method("RowsOfTile", "uint64_t row, uint64_t end", lines).replace("void", "uint32_t", 1)


def single_pass(kernel: Kernel, parameters: str, loop: str) -> None:
    """CopyIn, Compute and CopyOut for kernels that read every input once."""
    program, plan = kernel.programs[0], kernel.plan
    once, each = kernel.read_numbers()
    invariants = {item.name for item in kernel.invariants}
    hoisted = [item for item in program.body if _is_hoisted(item, invariants)]
    body = [item for item in program.body if not _is_hoisted(item, invariants)]
    lines = [*each, *kernel.receive(kernel.queued), *kernel.allocate_outputs(plan.outputs)]
    if kernel.schedule.packed and _needs_count(kernel):
        lines.append("const uint32_t count = rows * tiling_.pitch;")
    lines += instruction_lines(body, program.registers, kernel.schedule.packed)
    lines += [*kernel.send(plan.outputs), *kernel.release(kernel.queued)]
    size = "uint32_t rows" if kernel.schedule.packed else "uint32_t count"
    kernel.methods += [
        kernel.copy_in("CopyIn", kernel.queued, parameters),
        method("Compute", f"uint64_t row, {size}" if each else size, lines),
        kernel.copy_out(parameters, plan.outputs),
    ]
    converted = instruction_lines(hoisted, program.registers, kernel.schedule.packed)
    if kernel.form is Form.RESIDENT:
        converted = [line.replace(", count)", ", tiling_.columns)") for line in converted]
    kernel.process += [*once, *kernel.load_invariants(), *converted]
    kernel.process += loop.replace("{row}", "row, " if each else "").splitlines()
    kernel.process += kernel.free_invariants()


def _is_hoisted(item: Instruction, invariants: set[str]) -> bool:
    return item.op == "cast_in" and item.sources[0].home in invariants


def _needs_count(kernel: Kernel) -> bool:
    """Whether some instruction of a packed tile runs over all of it at once."""
    helpers = {"expand_rows", "expand_columns", "cast_in", "cast_out"}
    return (
        any(
            item.domain is Domain.FULL and item.op not in helpers and not item.op.startswith("reduce_")
            for item in kernel.programs[0].body
        )
        or kernel.bools
    )
