"""The text of what reduces the channels behind a transposed convolution, for pieces with all of them."""

from __future__ import annotations

from evokernel_core.targets.ascendc.kernels.conv_transpose import piece_copies as copies
from evokernel_core.targets.ascendc.kernels.conv_transpose.behind import Behind, needed_bytes
from evokernel_core.targets.ascendc.kernels.conv_transpose.epilogue import (
    REGION,
    ROWS_OF,
    TILE_STEP_TEXT,
    taken,
    turned_parameter,
)
from evokernel_core.targets.ascendc.kernels.conv_transpose.piece_class import ClassKernel
from evokernel_core.targets.ascendc.kernels.conv_transpose.piece_copies import method
from evokernel_core.targets.ascendc.kernels.conv_transpose.piece_instructions import instruction_lines
from evokernel_core.targets.ascendc.kernels.conv_transpose.piece_text import (
    WHOLE,
    EpilogueText,
    tiling_constants,
)
from evokernel_core.targets.ascendc.kernels.conv_transpose.piece_tiling import ShapeFields, shape_fields
from evokernel_core.targets.ascendc.kernels.fused.programs import TileProgram
from evokernel_core.targets.ascendc.lowering.program import camel


def write(problem: Behind, class_name: str, volume: str) -> EpilogueText:
    """The class with the methods of ``epilogue.write``, for pieces with all channels: the steps of its plan.
    ``volume``: the field of the tiling with the outputs of a channel."""
    kernel, source = problem.kernel(), problem.epilogue.source
    once, each = _numbers(kernel)
    program, outputs = kernel.programs[0], kernel.plan.outputs
    parameter = turned_parameter(kernel, source)
    at = ["Place(part);", "const uint32_t rows = tiling_.steps;"]
    from_first = [*at, "constexpr uint64_t step = 0; // and all others"]
    body = [*at, "const uint32_t count = rows * pitch;", *each]
    body += [*copies.receive(kernel.queued), *copies.allocate(outputs)]
    body += instruction_lines(program.body, program.registers, packed=False, rows="pitch")
    body += [*copies.send(outputs), *copies.release(kernel.queued)]
    kernel.public += [
        method("Start", "", once),
        method("Fetch", "const Region &part", [*from_first, *copies.copy_in(kernel, kernel.queued)]),
        method("Take", f"const Region &part, {parameter}", taken(parameter)),
    ]
    kernel.methods += [
        method("Compute", f"const Region &part, {parameter}", body),
        method("CopyOut", "const Region &part", [*from_first, *copies.copy_out(kernel, outputs)]),
    ]
    kernel.methods += [method("Place", "const Region &part", _PLACE), *_folds(program)]
    kernel.methods += [ROWS_OF, WHOLE]
    others = ("BLOCK_BYTES", "FLOATS_PER_BLOCK")  # the cube's part of the kernel has one, tiling.h the other
    text = kernel.constants(others=others) + kernel.class_text(class_name)
    behind = shape_fields(kernel.plan, kernel.schedule)
    shape = ShapeFields(
        ("uint64_t steps", "uint64_t columns", *behind.fields),
        (f"tiling.columns = tiling.{volume};", *behind.assignments),
        behind.symbols,
    )
    constants = tiling_constants(kernel, needed_bytes(problem, kernel))
    return EpilogueText(
        f"{constants}{TILE_STEP_TEXT}", shape, f"{REGION}\n{text}", class_name,
        ", ".join(kernel.used_tensors), tuple(camel(output.name) for output in outputs),
    )  # fmt: skip


_PLACE = (
    "outer = part.row / tiling_.steps;",
    "column = part.column;",
    "lanes = part.columns;",
    "pitch = Whole(lanes, TILE_STEP);",
)


def _numbers(kernel: ClassKernel) -> tuple[list[str], list[str]]:
    """Statements that read single numbers: once, and for each piece."""
    once: list[str] = []
    each: list[str] = []
    for number in kernel.numbers:
        (each if any(number.outer) else once).append(copies.read_number(kernel, number))
    return once, each


def _folds(program: TileProgram) -> list[str]:
    """The methods that bring all steps of a tile together."""
    ops = dict.fromkeys(statement.detail for statement in program.body if statement.op == "fold_steps")
    return [_fold(op) for op in ops]


def _fold(op: str) -> str:
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
