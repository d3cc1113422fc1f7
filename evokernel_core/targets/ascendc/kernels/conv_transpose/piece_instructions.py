"""The text of single instructions."""

from __future__ import annotations

from collections.abc import Sequence

from evokernel_core.compiler.lowering.integers import INTEGERS
from evokernel_core.compiler.lowering.values import Domain
from evokernel_core.targets.ascendc.kernels.text import ONE_BYTE, STAGES
from evokernel_core.targets.ascendc.lowering.program import Instruction
from evokernel_core.targets.ascendc.lowering.registers import Registers

_SAME = "{op}({to}, {sources}, {count});"
_WITH_NUMBER = "{op}({to}, {sources}, {number}, {count});"
_OF_BITS = "{op}({words}, WholeRepeats({count}) / MASK_BITS_PER_WORD);"
_STATEMENTS: dict[str, str] = {
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Max", "Min", "Exp", "Ln", "Sqrt", "Abs", "Relu"), _SAME),
    **dict.fromkeys(("Adds", "Muls", "Maxs", "Mins", "LeakyRelu"), _WITH_NUMBER),
    **dict.fromkeys(("And", "Or", "Not"), _OF_BITS),
    "Duplicate": "Duplicate({to}, {number}, {count});",
    "Round": "Cast({to}, {sources}, RoundMode::{detail}, {count});",
    "Compare": "Compare({to}, {sources}, CMPMODE::{detail}, WholeRepeats({count}));",
    "CompareScalar": "CompareScalar({to}, {sources}, {number}, CMPMODE::{detail}, WholeRepeats({count}));",
    "Select": "Select({to}, {sources}, SELMODE::VSEL_TENSOR_TENSOR_MODE, {count});",
    "SelectScalar": "Select({to}, {sources}, {number}, SELMODE::VSEL_TENSOR_SCALAR_MODE, {count});",
    "fold_steps": "Fold{detail}({to}, {sources});",
    "expand_rows": "SpreadRows({to}, {sources}, rows);",
    "expand_columns": "RepeatColumns({to}, {sources}, rows);",
}
"""The C++ of instructions that are one statement."""


def instruction_lines(
    instructions: Sequence[Instruction], registers: Registers, *, packed: bool
) -> list[str]:
    """C++ statements, with a comment where a new graph node begins."""
    lines: list[str] = []
    origin = ""
    for instruction in instructions:
        if instruction.origin and instruction.origin != origin:
            origin = instruction.origin
            lines.append(f"// {origin}")
        lines.extend(_statement(instruction, registers, packed))
    return lines


def _statement(instruction: Instruction, registers: Registers, packed: bool) -> list[str]:
    sources = [registers.name(source) for source in instruction.sources]
    assert instruction.target is not None
    to, op = registers.name(instruction.target), instruction.op
    count = ("rows" if packed else "pitch") if instruction.domain is Domain.ROW else "count"
    if op.endswith(("Rows", "Columns")):
        return [f"{op}({to}, {sources[0]}, {sources[1]}, rows);"]
    if op == "rounded":
        stage = STAGES[instruction.detail]
        return [
            f"Cast({stage}, {sources[0]}, RoundMode::CAST_RINT, {count});",
            f"Cast({to}, {stage}, RoundMode::CAST_NONE, {count});",
        ]
    if op in ("cast_in", "cast_out"):
        return _conversion(instruction, to, sources[0], count, packed)
    number = instruction.scalar.cpp() if instruction.scalar is not None else ""
    words = ", ".join(f"{name}.ReinterpretCast<uint16_t>()" for name in (to, *sources))
    parts = {"op": op, "to": to, "sources": ", ".join(sources), "number": number, "words": words}
    return [_STATEMENTS[op].format(**parts, count=count, detail=instruction.detail)]


def _conversion(instruction: Instruction, to: str, source: str, count: str, packed: bool) -> list[str]:
    """Numbers of one byte pass through half."""
    is_exact = instruction.op == "cast_in" and instruction.detail not in INTEGERS
    mode = "CAST_NONE" if is_exact else "CAST_RINT"
    if instruction.detail not in ONE_BYTE:
        return [_cast(to, source, mode, count, packed, instruction)]
    stage, first = STAGES["bool"], "CAST_NONE" if instruction.op == "cast_in" else "CAST_RINT"
    return [
        _cast(stage, source, first, count, packed, instruction),
        _cast(to, stage, "CAST_NONE", count, packed, instruction),
    ]


def _cast(target: str, source: str, mode: str, count: str, packed: bool, instruction: Instruction) -> str:
    if packed and instruction.domain is Domain.FULL:
        return f"CastRows({target}, {source}, RoundMode::{mode}, rows);"
    if instruction.domain is Domain.COLUMN:
        # a copy ends with a whole block, which holds fewer numbers of eight bytes than a pitch has
        whole = "tileColumns" if instruction.detail == "int64" else "tilePitch"
        count = whole if packed else "count"
    return f"Cast({target}, {source}, RoundMode::{mode}, {count});"
