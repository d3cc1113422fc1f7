"""The text of single instructions and of the helper methods that they call."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from evokernel_core.compiler.lowering.integers import INTEGERS
from evokernel_core.compiler.lowering.values import Domain
from evokernel_core.targets.ascendc.lowering.program import Instruction
from evokernel_core.targets.ascendc.lowering.registers import Registers

CPP_TYPE = {
    "float32": "float",
    "float16": "half",
    "bfloat16": "bfloat16_t",
    "bool": "uint8_t",
    "int8": "int8_t",
    "uint8": "uint8_t",
    "int16": "int16_t",
    "int32": "int32_t",
    "int64": "int64_t",
}
STAGES = {"float16": "halfStage", "bool": "halfStage", "bfloat16": "bfloat16Stage"}
"""Tiles in a 16-bit type, through which tensors of one byte and rounded numbers pass."""
ONE_BYTE = frozenset({"int8", "uint8", "bool"})
_BINARY = frozenset({"Add", "Sub", "Mul", "Div", "Max", "Min"})
_SCALAR = frozenset({"Adds", "Muls", "Maxs", "Mins", "LeakyRelu"})
_UNARY = frozenset({"Exp", "Ln", "Sqrt", "Abs", "Relu"})
REDUCTION_NAMES = {"reduce_sum": "Sum", "reduce_max": "Max", "reduce_min": "Min"}


def words_of(text: str) -> frozenset[str]:
    """The names, keywords and numbers that a text holds."""
    return frozenset(re.findall(r"\w+", text))


def instruction_lines(
    instructions: Sequence[Instruction],
    registers: Registers,
    packed: bool,
    rows: str = "",
) -> list[str]:
    """C++ statements, with a comment where a new graph node begins. ``rows`` is the number of row values of a
    tile where the form's own number is not meant."""
    lines: list[str] = []
    origin = ""
    for instruction in instructions:
        if instruction.origin and instruction.origin != origin:
            origin = instruction.origin
            lines.append(f"// {origin}")
        lines.extend(_statement(instruction, registers, packed, rows or ("rows" if packed else "1")))
    return lines


def _statement(instruction: Instruction, registers: Registers, packed: bool, rows: str) -> list[str]:
    sources = [registers.name(source) for source in instruction.sources]
    assert instruction.target is not None
    target = registers.name(instruction.target)
    count = rows if instruction.domain is Domain.ROW else "count"
    if instruction.op in _BINARY:
        return [f"{instruction.op}({target}, {sources[0]}, {sources[1]}, {count});"]
    if instruction.op in _SCALAR:
        return [f"{instruction.op}({target}, {sources[0]}, {number_of(instruction)}, {count});"]
    if instruction.op in _UNARY:
        return [f"{instruction.op}({target}, {sources[0]}, {count});"]
    if instruction.op.endswith(("Rows", "Columns")):
        return [f"{instruction.op}({target}, {sources[0]}, {sources[1]}, rows);"]
    return _SPECIAL[instruction.op](instruction, target, sources, count, packed)


def number_of(instruction: Instruction) -> str:
    """The number that an instruction takes, or what it gives one to."""
    assert instruction.scalar is not None
    return instruction.scalar.cpp()


_Writer = Callable[[Instruction, str, list[str], str, bool], list[str]]


def _duplicate(instruction: Instruction, target: str, _: list[str], count: str, __: bool) -> list[str]:
    return [f"Duplicate({target}, {number_of(instruction)}, {count});"]


def _round(instruction: Instruction, target: str, sources: list[str], count: str, _: bool) -> list[str]:
    return [f"Cast({target}, {sources[0]}, RoundMode::{instruction.detail}, {count});"]


def _compare_scalar(
    instruction: Instruction, target: str, sources: list[str], count: str, _: bool
) -> list[str]:
    mode = f"CMPMODE::{instruction.detail}"
    return [
        f"CompareScalar({target}, {sources[0]}, {number_of(instruction)}, {mode}, WholeRepeats({count}));"
    ]


def _compare(instruction: Instruction, target: str, sources: list[str], count: str, _: bool) -> list[str]:
    return [
        f"Compare({target}, {sources[0]}, {sources[1]}, "
        f"CMPMODE::{instruction.detail}, WholeRepeats({count}));"
    ]


def _select(_: Instruction, target: str, sources: list[str], count: str, __: bool) -> list[str]:
    operands = ", ".join(sources)
    return [f"Select({target}, {operands}, SELMODE::VSEL_TENSOR_TENSOR_MODE, {count});"]


def _select_scalar(
    instruction: Instruction, target: str, sources: list[str], count: str, _: bool
) -> list[str]:
    operands = ", ".join(sources)
    return [
        f"Select({target}, {operands}, {number_of(instruction)}, SELMODE::VSEL_TENSOR_SCALAR_MODE, {count});"
    ]


def _mask_logic(instruction: Instruction, target: str, sources: list[str], count: str, _: bool) -> list[str]:
    words = ", ".join(f"{name}.ReinterpretCast<uint16_t>()" for name in (target, *sources))
    return [f"{instruction.op}({words}, WholeRepeats({count}) / MASK_BITS_PER_WORD);"]


def _rounded(instruction: Instruction, target: str, sources: list[str], count: str, _: bool) -> list[str]:
    stage = STAGES[instruction.detail]
    return [
        f"Cast({stage}, {sources[0]}, RoundMode::CAST_RINT, {count});",
        f"Cast({target}, {stage}, RoundMode::CAST_NONE, {count});",
    ]


def _cast_in(
    instruction: Instruction, target: str, sources: list[str], count: str, packed: bool
) -> list[str]:
    if instruction.detail in ONE_BYTE:
        return [
            _cast(STAGES["bool"], sources[0], "CAST_NONE", count, packed, instruction),
            _cast(target, STAGES["bool"], "CAST_NONE", count, packed, instruction),
        ]
    mode = "CAST_RINT" if instruction.detail in INTEGERS else "CAST_NONE"
    return [_cast(target, sources[0], mode, count, packed, instruction)]


def _cast_out(
    instruction: Instruction, target: str, sources: list[str], count: str, packed: bool
) -> list[str]:
    if instruction.detail in ONE_BYTE:
        return [
            _cast(STAGES["bool"], sources[0], "CAST_RINT", count, packed, instruction),
            _cast(target, STAGES["bool"], "CAST_RINT", count, packed, instruction),
        ]
    return [_cast(target, sources[0], "CAST_RINT", count, packed, instruction)]


def _cast(target: str, source: str, mode: str, count: str, packed: bool, instruction: Instruction) -> str:
    if packed and instruction.domain is Domain.FULL:
        return f"CastRows({target}, {source}, RoundMode::{mode}, rows);"
    if instruction.domain is Domain.COLUMN:
        # a copy ends with a whole block, which holds fewer numbers of eight bytes than a pitch has
        whole = "tiling_.columns" if instruction.detail == "int64" else "tiling_.pitch"
        count = whole if packed else "count"
    return f"Cast({target}, {source}, RoundMode::{mode}, {count});"


def _fold_steps(instruction: Instruction, target: str, sources: list[str], _: str, __: bool) -> list[str]:
    return [f"Fold{instruction.detail}({target}, {sources[0]});"]


def _expand_rows(_: Instruction, target: str, sources: list[str], __: str, ___: bool) -> list[str]:
    return [f"SpreadRows({target}, {sources[0]}, rows);"]


def _expand_columns(_: Instruction, target: str, sources: list[str], __: str, ___: bool) -> list[str]:
    return [f"RepeatColumns({target}, {sources[0]}, rows);"]


_SPECIAL: dict[str, _Writer] = {
    "Duplicate": _duplicate,
    "Round": _round,
    "rounded": _rounded,
    "CompareScalar": _compare_scalar,
    "Compare": _compare,
    "Select": _select,
    "SelectScalar": _select_scalar,
    "And": _mask_logic,
    "Or": _mask_logic,
    "Not": _mask_logic,
    "cast_in": _cast_in,
    "cast_out": _cast_out,
    "fold_steps": _fold_steps,
    "expand_rows": _expand_rows,
    "expand_columns": _expand_columns,
}
