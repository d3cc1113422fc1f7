"""Family piecewise: reductions over rows whose columns lie in pieces, as in batch and group norm.

A row has several pieces, apart from each other in memory or each with numbers of its own (the weight
of a channel). Each core takes whole rows, or in the form of shared rows (shared.py) part of each; each
pass reads all of these tiles of all pieces of a row.
"""

from __future__ import annotations

from collections.abc import Sequence

from evokernel_core.compiler.lowering.plan import PlanInput
from evokernel_core.compiler.lowering.values import Domain
from evokernel_core.targets.ascendc.kernels.fused import copies
from evokernel_core.targets.ascendc.kernels.fused.base import Kernel
from evokernel_core.targets.ascendc.kernels.fused.copies import method
from evokernel_core.targets.ascendc.kernels.fused.passes import Pass, starting_lines
from evokernel_core.targets.ascendc.kernels.fused.programs import TileProgram
from evokernel_core.targets.ascendc.kernels.fused.settings import Form
from evokernel_core.targets.ascendc.kernels.text import instruction_lines, words_of
from evokernel_core.targets.ascendc.lowering.program import camel

_TILE = "uint64_t row, uint64_t tile"
_NAMES = {
    "piece": "const uint64_t piece = tile / tilesPerPiece;",
    "column": "const uint64_t column = tile % tilesPerPiece * tiling_.tileElements;",
    "count": "const uint32_t count = left < tiling_.tileElements ? left : tiling_.tileElements;",
}


def numbers(kernel: Kernel) -> tuple[list[str], list[str], list[str]]:
    """Statements that read single numbers: once, for each row, for each piece."""
    once: list[str] = []
    row: list[str] = []
    piece: list[str] = []
    for number in kernel.numbers:
        line = copies.read_number(kernel, number)
        (piece if number.mid else row if any(number.outer) else once).append(line)
    return once, row, piece


def _positions(lines: Sequence[str]) -> list[str]:
    """The definitions of those of piece, column and count that the lines use, then the lines."""
    words = words_of("\n".join(lines))
    count = "count" in words
    result = [_NAMES["piece"]] if "piece" in words else []
    if count or "column" in words:
        result.append(_NAMES["column"])
    if count:
        result += ["const uint64_t left = tiling_.columns - column;", _NAMES["count"]]
    if result:
        result.insert(0, "const uint64_t tilesPerPiece = tiling_.tiles / tiling_.pieces;")
    return [*result, *lines]


def _queued(kernel: Kernel, program: TileProgram) -> list[PlanInput]:
    return [operand for operand in program.inputs if operand in kernel.queued]


def _loop(kernel: Kernel, program: TileProgram, work: str) -> list[str]:
    """All tiles of a row, with the next one under way where there are two buffers."""
    inputs = _queued(kernel, program)
    load = "Load" + "".join(camel(operand.name)[:1].upper() + camel(operand.name)[1:] for operand in inputs)
    text = method(load, _TILE, _positions(copies.copy_in(kernel, inputs)))
    if text not in kernel.methods:
        kernel.methods.append(text)
    first, end = ("firstTile", "endTile") if kernel.form is Form.SHARED else ("0", "tiling_.tiles")
    tiles = f"for (uint64_t tile = {first}; tile < {end}; ++tile) {{"
    if not kernel.schedule.ahead:
        return [tiles, f"    {load}(row, tile);", f"    {work}", "}"]
    return [
        f"{load}(row, {first});",
        tiles,
        f"    if (tile + 1 < {end}) {{ // travels while this tile is computed",
        f"        {load}(row, tile + 1);",
        "    }",
        f"    {work}",
        "}",
    ]


def reducing_methods(kernel: Kernel, step: Pass, numbers: list[str], ending: list[str]) -> None:
    """The methods that take a row through a pass; ``ending`` turns lanes into values of the row."""
    program = step.program
    inputs = _queued(kernel, program)
    body = instruction_lines(program.body, program.registers, packed=False)
    accumulate = _positions([*_used(numbers, body), *copies.receive(inputs), *body, *copies.release(inputs)])
    kernel.methods.append(method(f"Accumulate{step.number}", _TILE, accumulate))
    lines = instruction_lines(program.prologue, program.registers, packed=False, declare=False)
    lines += starting_lines(step)
    lines += _loop(kernel, program, f"Accumulate{step.number}(row, tile);")
    kernel.methods.append(method(f"Reduce{step.number}", "uint64_t row", [*lines, *ending]))


def lanes() -> list[str]:
    """Statements that define how many lanes of the accumulators are in use."""
    return [
        "const uint64_t columns = tiling_.columns;",
        "const uint32_t lanes = columns < tiling_.tileElements ? columns : tiling_.tileElements;",
    ]


def _used(numbers: list[str], body: Sequence[str]) -> list[str]:
    """Those of the statements whose number the body uses."""
    text = "\n".join(body)
    return [line for line in numbers if line.partition(" ")[0] in text]


def one_store(lines: Sequence[str]) -> list[str]:
    """The stores of values that all cores of a row know, by the first of them alone."""
    result: list[str] = []
    for line in lines:
        starts = line.startswith("DataCopyPad(")
        inside = starts or line.startswith("    ")
        result += ["if (share == 0) {"] * starts + [f"    {line}" if inside else line]
        result += ["}"] * (inside and line.endswith(");"))
    return result


def final_methods(kernel: Kernel, final: TileProgram, numbers: list[str]) -> list[str]:
    """The methods that write the outputs; the calls that run them for a row."""
    rows = [output for output in kernel.plan.outputs if output.domain is Domain.ROW]
    full = [output for output in kernel.plan.outputs if output.domain is Domain.FULL]
    lines = copies.allocate(rows)
    lines += instruction_lines(final.prologue, final.registers, packed=False, declare=False)
    lines += copies.send(rows)
    if rows:
        stores = copies.copy_out(kernel, rows)
        if kernel.form is Form.SHARED:
            stores = one_store(stores)
        kernel.methods.append(method("CopyOutRow", "uint64_t row", stores))
        lines.append("CopyOutRow(row);")
    if full:
        inputs = _queued(kernel, final)
        body = instruction_lines(final.body, final.registers, packed=False)
        compute = [*_used(numbers, body), *copies.receive(inputs), *copies.allocate(full), *body]
        compute += [*copies.send(full), *copies.release(inputs)]
        kernel.methods.append(method("Compute", _TILE, _positions(compute)))
        kernel.methods.append(method("CopyOut", _TILE, _positions(copies.copy_out(kernel, full))))
        lines += _loop(kernel, final, "Write(row, tile);")
        kernel.methods.append(method("Write", _TILE, ["Compute(row, tile);", "CopyOut(row, tile);"]))
    kernel.methods.append(method("Finish", "uint64_t row", lines))
    return ["Finish(row);"]
