"""Kernels that read every input once: the tiles of each form, and load, compute, store."""

from __future__ import annotations

from collections.abc import Sequence

from evokernel_core.compiler.lowering.values import Domain
from evokernel_core.targets.ascendc.kernels.fused import copies, loops
from evokernel_core.targets.ascendc.kernels.fused.base import Kernel
from evokernel_core.targets.ascendc.kernels.fused.copies import method
from evokernel_core.targets.ascendc.kernels.fused.settings import Form
from evokernel_core.targets.ascendc.kernels.text import instruction_lines, words_of
from evokernel_core.targets.ascendc.lowering.program import Instruction

_WHOLE_TILE_HELPERS = frozenset({"expand_rows", "expand_columns", "cast_in", "cast_out"})
_SEGMENT = {
    "row": "const uint64_t row = unit / tiling_.segments;",
    "column": "const uint64_t column = unit % tiling_.segments * tiling_.segmentElements;",
    "count": "const uint32_t count = SegmentAt(column);",
}


def single_pass(kernel: Kernel) -> Kernel:
    """Write CopyIn, Compute, CopyOut and the loop over tiles for the kernel's form."""
    program, plan = kernel.programs[0], kernel.plan
    once, each = copies.read_numbers(kernel)
    invariants = {invariant.name for invariant in kernel.invariants}
    hoisted = [statement for statement in program.body if _is_hoisted(statement, invariants)]
    body = [statement for statement in program.body if not _is_hoisted(statement, invariants)]
    lines = [*each, *copies.receive(kernel.queued), *copies.allocate(plan.outputs)]
    if kernel.schedule.packed and needs_count(kernel):
        lines.append("const uint32_t count = rows * tiling_.pitch;")
    lines += instruction_lines(body, program.registers, kernel.schedule.packed)
    lines += [*copies.send(plan.outputs), *copies.release(kernel.queued)]
    kernel.methods += _tile_methods(kernel)
    _add(kernel, "CopyIn", copies.copy_in(kernel, kernel.queued))
    _add(kernel, "Compute", lines, bool(each))
    _add(kernel, "CopyOut", copies.copy_out(kernel, plan.outputs))
    converted = instruction_lines(hoisted, program.registers, kernel.schedule.packed)
    if kernel.form is Form.RESIDENT:
        converted = [line.replace(", count)", ", tiling_.columns)") for line in converted]
    converted = [line.replace(", rows)", ", tiling_.rowsPerTile)") for line in converted]
    kernel.process += [*_core_range(kernel), *once, *copies.load_invariants(kernel), *converted]
    kernel.process += [*_loop(kernel, bool(each)), *copies.release(kernel.invariants)]
    return kernel


def _core_range(kernel: Kernel) -> list[str]:
    if kernel.form is Form.FLAT:
        return loops.core_range("elements", "elementsPerCore")
    if kernel.form is Form.SEGMENTS:
        return loops.core_range("units", "unitsPerCore")
    return loops.core_range("rows", "rowsPerCore")


def _loop(kernel: Kernel, reads_row: bool) -> list[str]:
    """``reads_row``: Compute reads single numbers that depend on the row."""
    ahead = kernel.schedule.ahead
    if kernel.form is Form.FLAT:
        return loops.measured(ahead, "offset", "count", "TileAt", "count")
    if kernel.form is Form.PACKED:
        return loops.measured(ahead, "row", "rows", "RowsAt", "row, rows" if reads_row else "rows")
    position = "unit" if kernel.form is Form.SEGMENTS else "row"
    named = kernel.form is Form.SEGMENTS or reads_row
    return loops.counted(ahead, position, position if named else "")


def _add(kernel: Kernel, name: str, lines: Sequence[str], reads_row: bool = False) -> None:
    """A method with the parameters and the local names that its form gives it."""
    if kernel.form is Form.FLAT:
        parameters = "uint32_t count" if name == "Compute" else "uint64_t offset, uint32_t count"
    elif kernel.form is Form.PACKED:
        parameters = "uint64_t row, uint32_t rows" if name != "Compute" or reads_row else "uint32_t rows"
    elif kernel.form is Form.SEGMENTS:
        parameters, lines = "uint64_t unit", [*_segment_names(lines), *lines]
    else:
        parameters = "uint64_t row" if name != "Compute" or reads_row else ""
        count = "const uint32_t count = tiling_.columns;"
        lines = [count, *lines] if "count" in words_of("\n".join(lines)) else lines
    kernel.methods.append(method(name, parameters, lines))


def _segment_names(lines: Sequence[str]) -> list[str]:
    """The definitions of those of row, column and count that the lines use."""
    words = words_of("\n".join(lines))
    count = "count" in words
    wanted = {"row": "row" in words, "column": count or "column" in words, "count": count}
    return [text for name, text in _SEGMENT.items() if wanted[name]]


def _tile_methods(kernel: Kernel) -> list[str]:
    """The methods that measure tiles."""
    if kernel.form is Form.FLAT:
        lines = [
            "const uint64_t left = end - offset;",
            "return left < tiling_.tileElements ? left : tiling_.tileElements;",
        ]
        return [_measure("TileAt", "uint64_t offset, uint64_t end", lines)]
    if kernel.form is Form.SEGMENTS:
        lines = [
            "const uint64_t left = tiling_.columns - column;",
            "return left < tiling_.segmentElements ? left : tiling_.segmentElements;",
        ]
        return [_measure("SegmentAt", "uint64_t column", lines)]
    return [_rows_at(kernel)] if kernel.form is Form.PACKED else []


def _rows_at(kernel: Kernel) -> str:
    lines = ["const uint64_t left = end - row;"]
    if kernel.plan.outer:
        lines = [
            "// Inputs are dense in the inner rows only: a tile ends where they end.",
            "const uint64_t innerRows = tiling_.mid - row % tiling_.mid;",
            "const uint64_t left = end - row < innerRows ? end - row : innerRows;",
        ]
    lines.append("return left < tiling_.rowsPerTile ? left : tiling_.rowsPerTile;")
    return _measure("RowsAt", "uint64_t row, uint64_t end", lines)


def _measure(name: str, parameters: str, lines: Sequence[str]) -> str:
    return method(name, parameters, lines).replace("void", "uint32_t", 1)


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
