"""The text of what reduces the channels behind a transposed convolution, for pieces with all of them."""

from __future__ import annotations

from evokernel_core.ascendc.kernels.conv_transpose.behind import Behind, needed_bytes
from evokernel_core.ascendc.kernels.conv_transpose.epilogue import (
    REGION,
    ROWS_OF,
    TILE_STEP_TEXT,
    taken,
    turned_parameter,
)
from evokernel_core.ascendc.kernels.epilogue.tiles import WHOLE, EpilogueText, tiling_constants
from evokernel_core.ascendc.kernels.fused import access, copies
from evokernel_core.ascendc.kernels.fused.base import Kernel
from evokernel_core.ascendc.kernels.fused.columnwise import numbers
from evokernel_core.ascendc.kernels.fused.copies import method
from evokernel_core.ascendc.kernels.fused.steps import whole_folds
from evokernel_core.ascendc.kernels.fused.tiling import ShapeFields, shape_fields
from evokernel_core.ascendc.kernels.text import CPP_TYPE, instruction_lines
from evokernel_core.ascendc.lowering.program import camel
from evokernel_core.ascendc.lowering.values import Domain


def write(found: Behind, class_name: str, columns: str) -> EpilogueText:
    """The class with the same methods, whose pieces have all channels: the steps of its plan."""
    kernel, source = found.kernel(), found.epilogue.source
    once, each, _ = numbers(kernel)
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
        method("Fetch", "const Region &part", [*from_first, *_channel_copies(kernel)]),
        method("Take", f"const Region &part, {parameter}", taken(parameter)),
    ]
    kernel.methods += [
        method("Compute", f"const Region &part, {parameter}", body),
        method("CopyOut", "const Region &part", [*from_first, *_channel_results(kernel)]),
    ]
    kernel.methods += [method("Place", "const Region &part", _PLACE), *whole_folds(program)]
    kernel.methods += [ROWS_OF, WHOLE]
    others = ("BLOCK_BYTES", "FLOATS_PER_BLOCK")  # the cube's part of the kernel has one, tiling.h the other
    text = kernel.constants(others=others) + kernel.class_text(class_name)
    behind = shape_fields(kernel.plan, kernel.schedule)
    shape = ShapeFields(
        ("uint64_t steps", "uint64_t columns", *behind.fields),
        (f"tiling.columns = {columns.replace('tiling_', 'tiling')};", *behind.assignments),
        behind.symbols,
    )
    constants = tiling_constants(kernel, needed_bytes(found, kernel))
    return EpilogueText(
        f"{constants}{TILE_STEP_TEXT}", shape, f"{REGION}\n{text}", class_name,
        ", ".join(kernel.used_tensors), tuple(camel(item.name) for item in outputs),
    )  # fmt: skip


_PLACE = (
    "outer = part.row / tiling_.steps;",
    "column = part.column;",
    "lanes = part.columns;",
    "pitch = Whole(lanes, TILE_STEP);",
)


def _channel_copies(kernel: Kernel) -> list[str]:
    """The statements that copy in what a piece with all channels takes."""
    lines: list[str] = []
    for item in kernel.queued:
        stem, cpp_type = camel(item.name), CPP_TYPE[item.dtype]
        start = access.offset(kernel.plan, item, kernel.form)
        lines += [
            f"LocalTensor<{cpp_type}> {stem}Local = {stem}Queue.AllocTensor<{cpp_type}>();",
            f"DataCopyPad({stem}Local, {stem}Global[{start}],",
            f"    RowsOf<{cpp_type}>({_extent_of(item.domain)}),",
            f"    DataCopyPadExtParams<{cpp_type}>{{false, 0, 0, 0}});",
            f"{stem}Queue.EnQue({stem}Local);",
        ]
    return lines


def _channel_results(kernel: Kernel) -> list[str]:
    """The statements that copy its results out."""
    lines: list[str] = []
    for item in kernel.plan.outputs:
        stem, cpp_type = camel(item.name), CPP_TYPE[item.dtype]
        start = access.output_offset(kernel.plan, item, kernel.form)
        lines += [
            f"LocalTensor<{cpp_type}> {stem}Local = {stem}Queue.DeQue<{cpp_type}>();",
            f"DataCopyPad({stem}Global[{start}], {stem}Local,",
            f"    RowsTo<{cpp_type}>({_extent_of(item.domain)}));",
            f"{stem}Queue.FreeTensor({stem}Local);",
        ]
    return lines


def _extent_of(domain: Domain) -> str:
    """Rows, columns and the distance of rows in memory of a tensor's part in a piece with all channels."""
    if domain is Domain.FULL:
        return "rows, lanes, tiling_.columns"
    return "1, lanes, lanes" if domain is Domain.ROW else "1, rows, rows"
