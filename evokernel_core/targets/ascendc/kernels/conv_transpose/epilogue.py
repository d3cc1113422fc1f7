"""The text of element-wise steps behind a transposed convolution: the class of pieces with 16 channels."""

from __future__ import annotations

from collections.abc import Sequence

from evokernel_core.targets.ascendc.kernels.conv_transpose import piece_copies as copies
from evokernel_core.targets.ascendc.kernels.conv_transpose.behind import TILE_STEP, Behind, needed_bytes
from evokernel_core.targets.ascendc.kernels.conv_transpose.piece_class import ClassKernel
from evokernel_core.targets.ascendc.kernels.conv_transpose.piece_copies import method
from evokernel_core.targets.ascendc.kernels.conv_transpose.piece_text import (
    EpilogueText,
    operand_copies,
    result_copies,
    steps,
    tile_text,
    tiling_constants,
)
from evokernel_core.targets.ascendc.kernels.conv_transpose.piece_tiling import shape_fields
from evokernel_core.targets.ascendc.kernels.text import CPP_TYPE
from evokernel_core.targets.ascendc.lowering.program import camel

TILE_STEP_TEXT = f"constexpr uint32_t TILE_STEP = {TILE_STEP}; // rows of a tile fill blocks of every type\n"
REGION = """\
// Turned results of several channels.
struct Region {
    uint64_t row; // the first channel over all images
    uint64_t column; // the first output of a channel
    uint32_t rows;
    uint32_t columns;
};
"""
ROWS_OF = """\
// Rows in memory, `pitch` elements from one to the next, into rows of a tile.
template <typename T>
__aicore__ inline DataCopyExtParams RowsOf(uint32_t rows, uint32_t columns, uint64_t pitch)
{
    const uint32_t bytes = columns * sizeof(T);
    const uint32_t blocks = Whole(bytes, BLOCK_BYTES) / BLOCK_BYTES;
    const uint32_t apart = Whole(columns, TILE_STEP) * sizeof(T) / BLOCK_BYTES;
    const uint32_t skipped = pitch * sizeof(T) - bytes;
    return {static_cast<uint16_t>(rows), bytes, skipped, apart - blocks, 0};
}

// The same the other way.
template <typename T>
__aicore__ inline DataCopyExtParams RowsTo(uint32_t rows, uint32_t columns, uint64_t pitch)
{
    const DataCopyExtParams copy = RowsOf<T>(rows, columns, pitch);
    return {copy.blockCount, copy.blockLen, copy.dstStride, copy.srcStride, 0};
}
"""


def write(problem: Behind, class_name: str, volume: str) -> EpilogueText:
    """The class with ``Start()`` once, ``Fetch(region)`` for what else a piece takes, and ``Take(region,
    turned)`` when it has been turned. ``volume``: the field of the tiling with the outputs of a channel."""
    columns = f"tiling_.{volume}"
    kernel, source = problem.kernel(), problem.epilogue.source
    once, each = copies.read_numbers(kernel)
    parameter = turned_parameter(kernel, source)
    kernel.public += [
        method("Start", "", once),
        method("Fetch", "const Region &part", operand_copies(kernel, columns)),
        method("Take", f"const Region &part, {parameter}", taken(parameter)),
    ]
    shape: Sequence[str] = ["tileColumns = Whole(part.columns, TILE_STEP);", "tilePitch = tileColumns;"]
    kernel.methods += [
        method("Compute", f"const Region &part, {parameter}", steps(kernel, each, shape)),
        method("CopyOut", "const Region &part", result_copies(kernel, columns)),
        ROWS_OF,
    ]
    behind = shape_fields(kernel.plan, kernel.schedule)
    constants = tiling_constants(kernel, needed_bytes(problem, kernel))
    return EpilogueText(
        f"{constants}{TILE_STEP_TEXT}",
        behind, f"{REGION}\n{tile_text(kernel, class_name)}", class_name,
        ", ".join(kernel.used_tensors), tuple(camel(output.name) for output in kernel.plan.outputs),
    )  # fmt: skip


def taken(parameter: str) -> list[str]:
    """The statements of ``Take``."""
    return [f"Compute(part, {parameter.partition('&')[2]});", "CopyOut(part);"]


def turned_parameter(kernel: ClassKernel, source: str) -> str:
    """The parameter that a turned piece is."""
    item = next(operand for operand in kernel.plan.inputs if operand.source == source)
    return f"const LocalTensor<{CPP_TYPE[item.dtype]}> &{camel(item.name)}Local"
