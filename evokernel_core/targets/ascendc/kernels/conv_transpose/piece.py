"""The text of what vector cores do to a turned piece, of 16 channels or of all: the class of piece.jinja."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from attrs import frozen

from evokernel_core.compiler.lowering.integers import INTEGERS
from evokernel_core.compiler.lowering.plan import Plan, PlanInput, PlanOutput
from evokernel_core.compiler.lowering.values import Domain
from evokernel_core.compiler.shapes.sizes import names_in
from evokernel_core.hardware.ascend.isa import LANES
from evokernel_core.targets.ascendc.kernels.conv_transpose import piece_places as places
from evokernel_core.targets.ascendc.kernels.conv_transpose.behind import TILE_STEP, Behind, needed_bytes
from evokernel_core.targets.ascendc.kernels.fused import access
from evokernel_core.targets.ascendc.kernels.fused.banks import SHIFT_BYTES
from evokernel_core.targets.ascendc.kernels.fused.base import Kernel
from evokernel_core.targets.ascendc.kernels.fused.buffers import Buffer, capacity, layout, times
from evokernel_core.targets.ascendc.kernels.fused.programs import column_tensors
from evokernel_core.targets.ascendc.kernels.fused.settings import Form, Schedule
from evokernel_core.targets.ascendc.kernels.rendering import render
from evokernel_core.targets.ascendc.kernels.text import CPP_TYPE, ONE_BYTE, STAGES
from evokernel_core.targets.ascendc.lowering.program import Instruction, camel, size_field
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


@frozen
class ShapeFields:
    """``fields`` of OpTiling, the ``assignments`` that set them, and the ``symbols`` that these take."""

    fields: tuple[str, ...]
    assignments: tuple[str, ...]
    symbols: frozenset[str]


def shape_fields(plan: Plan, schedule: Schedule) -> ShapeFields:
    """Further fields and what sets them: loops, sizes used as numbers, run-time numbers."""
    fields: list[str] = []
    lines: list[str] = []
    used: list[frozenset[str]] = []
    if schedule.form is Form.CHANNELS:
        fields += ["uint64_t steps", "uint64_t columns"]
        lines.append("tiling.columns = tiling.volume;")
        lines.append(f"tiling.steps = static_cast<uint64_t>({plan.mid.cpp()});")
        used.append(plan.mid.symbols)
    elif plan.outer:
        fields.append("uint64_t mid")
        lines.append(f"tiling.mid = static_cast<uint64_t>({plan.mid.cpp()});")
        used.append(plan.mid.symbols)
    first = 1 if plan.leading.is_one else 0
    for axis, loop in enumerate(plan.outer[first:], first):
        fields.append(f"uint64_t outer{axis}")
        lines.append(f"tiling.outer{axis} = static_cast<uint64_t>({loop.cpp()});")
        used.append(loop.symbols)
    for expression in dict.fromkeys(value.detail for value in plan.values() if value.op == "size"):
        fields.append(f"float {size_field(expression)}")
        lines.append(f"tiling.{size_field(expression)} = static_cast<float>({expression});")
        used.append(names_in(expression))
    asked = {value.detail for value in plan.values() if value.op == "scalar"}
    for position, name in enumerate(plan.scalars):
        if name in asked:
            fields.append(f"float {camel(name)}Scalar")
            lines.append(f"tiling.{camel(name)}Scalar = scalars[{position}];")
    return ShapeFields(tuple(fields), tuple(lines), frozenset().union(*used))


_REGION = """\
// Turned results of several channels.
struct Region {
    uint64_t row; // the first channel over all images
    uint64_t column; // the first output of a channel
    uint32_t rows;
    uint32_t columns;
};
"""
_SHAPES = {
    (Form.REGION, Domain.FULL): "part.rows, part.columns, tiling_.volume",
    (Form.REGION, Domain.ROW): "1, part.rows, part.rows",
    (Form.REGION, Domain.COLUMN): "1, part.columns, part.columns",
    (Form.CHANNELS, Domain.FULL): "rows, lanes, tiling_.columns",
    (Form.CHANNELS, Domain.ROW): "1, lanes, lanes",
    (Form.CHANNELS, Domain.COLUMN): "1, rows, rows",
}
"""Rows, columns and the distance of rows in memory of a tensor's part."""


@frozen
class EpilogueText:
    """What the templates of a result's family put around it: ``shape``, what it adds to OpTiling, the
    constants of tiling.h and of the kernel, and the class with its ``arguments``."""

    constants: str
    shape: ShapeFields
    kernel: str
    class_name: str
    arguments: str
    outputs: tuple[str, ...]


@frozen
class _Tensor:
    """A tensor under the name of its locals and queue, and where a piece of it begins in device memory."""

    stem: str
    ctype: str
    address: str
    start: str = ""
    shape: str = ""
    buffers: int = 1


def write(problem: Behind, class_name: str) -> EpilogueText:
    """The class with ``Start()`` once, ``Fetch(region)`` for what else a piece takes, and ``Take(region,
    turned)`` when it has been turned."""
    kernel = problem.kernel()
    addresses = list(dict.fromkeys(tensor.address for tensor in map(_tensor, kernel.tensors)))
    text = _class(kernel, problem.epilogue.source, class_name, addresses)
    return EpilogueText(
        "".join(f"constexpr {line}\n" for line in _of_tiling(problem, kernel)),
        shape_fields(kernel.plan, kernel.schedule),
        f"{_REGION}\n{_constants(kernel, text)}{text}",
        class_name,
        ", ".join(addresses),
        tuple(camel(output.name) for output in kernel.plan.outputs),
    )


def _of_tiling(problem: Behind, kernel: Kernel) -> Iterator[str]:
    """The constants of tiling.h."""
    schedule = kernel.schedule
    yield f"uint64_t UB_BYTES_NEEDED = {needed_bytes(problem, kernel)};"
    yield f"uint32_t TILE_ELEMENTS = {schedule.tile}; // of a vector core"
    yield f"uint32_t ROW_CAPACITY = {kernel.row_capacity};"
    yield f"uint32_t COLUMN_CAPACITY = {schedule.columns};"
    yield "uint32_t FLOATS_PER_BLOCK = 8;"
    if schedule.form is Form.CHANNELS:
        yield f"uint32_t STEP_CAPACITY = {schedule.rows}; // channels, in whole repeats"
    yield f"uint32_t TILE_STEP = {TILE_STEP}; // rows of a tile fill blocks of every type"


def _constants(kernel: Kernel, text: str) -> str:
    """Those of the class that tiling.h does not have, nor the cube's part of the kernel."""
    buffers = kernel.schedule.buffers
    note = " // the next tile is copied while this one is computed" if buffers == 2 else ""
    known = {
        "LANES": f"uint32_t LANES = {LANES}; // float32 elements of one repeat",
        "BLOCKS_PER_REPEAT": "uint8_t BLOCKS_PER_REPEAT = 8;",
        "MASK_BYTES": "uint32_t MASK_BYTES = TILE_ELEMENTS / 8; // one bit an element",
        "ROW_MASK_BYTES": f"uint32_t ROW_MASK_BYTES = {kernel.row_mask_bytes};",
        "MASK_BITS_PER_WORD": "uint32_t MASK_BITS_PER_WORD = 16;",
        "BANK_SHIFT_BYTES": f"uint32_t BANK_SHIFT_BYTES = {SHIFT_BYTES};",
        "INFINITE": "float INFINITE = __builtin_inff();",
    }
    words = frozenset(re.findall(r"\w+", text))
    lines = [f"int32_t BUFFER_NUM = {buffers};{note}", *(known[name] for name in known if name in words)]
    return "".join(f"constexpr {line}\n" for line in lines)


def _class(kernel: Kernel, source: str, name: str, addresses: list[str]) -> str:
    program, in_channels = kernel.programs[0], kernel.form is Form.CHANNELS
    once, each = _numbers(kernel)
    columns = column_tensors(kernel.programs)
    floats = [*kernel.register_names, *kernel.row_names, *columns]
    return render(
        "conv_transpose/piece",
        name=name,
        channels=in_channels,
        pitch="pitch" if in_channels else "tilePitch",
        addresses=addresses,
        tensors=[_tensor(tensor) for tensor in kernel.tensors],
        taken=_tensor(next(operand for operand in kernel.plan.inputs if operand.source == source)),
        queued=[_placed(kernel, operand) for operand in kernel.queued],
        made=[_placed(kernel, output) for output in kernel.plan.outputs],
        numbers=[camel(number.name) for number in kernel.numbers],
        once=once,
        each=each,
        needs_count=not in_channels and _needs_count(kernel),
        instructions=instruction_lines(program.body, program.registers, packed=not in_channels),
        folds=dict.fromkeys(statement.detail for statement in program.body if statement.op == "fold_steps"),
        buffers=layout(kernel).buffers,
        buffer_size=lambda buffer: _size(kernel, buffer),
        times=times,
        registers=_registers(kernel),
        floats=[*floats, *(["blocks"] if kernel.broadcasts_rows else [])],
        masks=[f"mask{number}" for number in range(kernel.masks)],
        row_names=kernel.row_names,
        row_masks=kernel.row_masks,
        columns=columns,
        column_capacity=capacity(kernel, Domain.COLUMN)[0],
        stages=kernel.stages,
        compares=kernel.compares,
        works=kernel.work > 0,
        narrow=kernel.narrow_ops,
        broadcasts_rows=kernel.broadcasts_rows,
        expands_rows=kernel.calls("expand_rows"),
        expands_columns=kernel.calls("expand_columns"),
        casts_rows=not in_channels and _casts(kernel),
    )


def _tensor(tensor: PlanInput | PlanOutput) -> _Tensor:
    source = tensor.source if isinstance(tensor, PlanInput) else tensor.name
    return _Tensor(camel(tensor.name), CPP_TYPE[tensor.dtype], camel(source))


def _placed(kernel: Kernel, tensor: PlanInput | PlanOutput) -> _Tensor:
    """The same with the place and shape of a piece's part of it."""
    known, plan, form = _tensor(tensor), kernel.plan, kernel.form
    if isinstance(tensor, PlanInput):
        start = places.offset(plan, tensor, form)
    else:
        start = places.output_offset(plan, tensor, form)
    shape = _SHAPES[form, tensor.domain]
    return _Tensor(known.stem, known.ctype, known.address, start, shape, kernel.buffers_of(tensor))


def _numbers(kernel: Kernel) -> tuple[list[str], list[str]]:
    """Statements that read single numbers: those read once, and those read for each piece."""
    once: list[str] = []
    each: list[str] = []
    for number in kernel.numbers:
        value = places.read_number(kernel.plan, number, kernel.form)
        (each if access.varies(number) else once).append(f"{camel(number.name)}Value = {value};")
    return once, each


def _size(kernel: Kernel, buffer: Buffer) -> str:
    """What InitBuffer is told of a buffer's size."""
    size = f"({buffer.elements})" if " + " in buffer.elements else buffer.elements
    if buffer.cpp_type != "uint8_t":
        size += f" * sizeof({buffer.cpp_type})"
    number = "BUFFER_NUM" if buffer.number == kernel.schedule.buffers else str(buffer.number)
    return f"{number}, {size}" if buffer.queue else size


def _registers(kernel: Kernel) -> list[tuple[str, list[str]]]:
    """The buffers of tile registers, with the names of those that each has."""
    shifted = layout(kernel).shifted
    groups: dict[str, list[str]] = {"workBuffer": [], "shiftedBuffer": []}
    for name in kernel.register_names:
        groups["shiftedBuffer" if name in shifted else "workBuffer"].append(name)
    return [(buffer, names) for buffer, names in groups.items() if names]


def _casts(kernel: Kernel) -> bool:
    """Whether whole tiles are converted."""
    return any(
        instruction.op in ("cast_in", "cast_out") and instruction.domain is Domain.FULL
        for program in kernel.programs
        for instruction in program.instructions
    )


_WHOLE_TILE_HELPERS = frozenset({"expand_rows", "expand_columns", "cast_in", "cast_out"})


def _needs_count(kernel: Kernel) -> bool:
    """Whether some instruction of a packed tile runs over all of it at once."""
    return kernel.passes_bytes or any(
        statement.domain is Domain.FULL
        and statement.op not in _WHOLE_TILE_HELPERS
        and not statement.op.endswith(("Rows", "Columns"))
        and not statement.op.startswith("reduce_")
        for statement in kernel.programs[0].body
    )
