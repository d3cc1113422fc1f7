"""The text of what vector cores do to a turned piece: copies, instructions, and the class around them."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from evokernel_core.compiler.lowering.plan import PlanInput, PlanOutput
from evokernel_core.compiler.lowering.values import Domain
from evokernel_core.targets.ascendc.kernels.conv_transpose import piece_copies as copies
from evokernel_core.targets.ascendc.kernels.conv_transpose import piece_places as places
from evokernel_core.targets.ascendc.kernels.conv_transpose.piece_class import ClassKernel
from evokernel_core.targets.ascendc.kernels.conv_transpose.piece_instructions import instruction_lines
from evokernel_core.targets.ascendc.kernels.conv_transpose.piece_tiling import ShapeFields
from evokernel_core.targets.ascendc.kernels.fused.settings import Form
from evokernel_core.targets.ascendc.kernels.text import CPP_TYPE
from evokernel_core.targets.ascendc.lowering.program import camel


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

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols that its part of ComputeTiling takes."""
        return self.shape.symbols


def tile_text(kernel: ClassKernel, class_name: str) -> str:
    """The class of a kernel whose tiles differ in shape, behind its constants."""
    kernel.methods.append(WHOLE)
    # the cube's part of the kernel has the constant of a block too
    return kernel.constants(others=("BLOCK_BYTES",)) + _of_tile(kernel.class_text(class_name))


def tiling_constants(kernel: ClassKernel, ub_bytes: int) -> str:
    """What tiling.h says of the tiles; ``ub_bytes``: what all of the kernel takes of the unified buffer."""
    schedule = kernel.schedule
    lines = [
        f"constexpr uint64_t UB_BYTES_NEEDED = {ub_bytes};",
        f"constexpr uint32_t TILE_ELEMENTS = {schedule.tile}; // of a vector core",
        f"constexpr uint32_t ROW_CAPACITY = {kernel.row_capacity};",
        f"constexpr uint32_t COLUMN_CAPACITY = {schedule.columns};",
        "constexpr uint32_t FLOATS_PER_BLOCK = 8;",
    ]
    if schedule.form is Form.CHANNELS:
        lines.append(f"constexpr uint32_t STEP_CAPACITY = {schedule.rows}; // channels, in whole repeats")
    return "\n".join(lines) + "\n"


def _of_tile(text: str) -> str:
    """Helpers of packed tiles, whose shape here differs from piece to piece."""
    members = "OpTiling tiling_;\n"
    shape = f"{members}    uint32_t tileColumns = 0;\n"
    shape += "    uint32_t tilePitch = 0; // elements from row to row in the unified buffer\n"
    text = text.replace(members, shape, 1)
    return text.replace("tiling_.columns", "tileColumns").replace("tiling_.pitch", "tilePitch")


def operand_copies(kernel: ClassKernel, columns: str) -> list[str]:
    """The statements that copy in what the tile ``part`` takes."""
    lines: list[str] = []
    for tensor in kernel.queued:
        stem, cpp_type = camel(tensor.name), CPP_TYPE[tensor.dtype]
        start = places.offset(kernel.plan, tensor, Form.REGION, columns)
        shape = _shape_in(tensor, cpp_type, columns)
        lines += [
            f"LocalTensor<{cpp_type}> {stem}Local = {stem}Queue.AllocTensor<{cpp_type}>();",
            f"DataCopyPad({stem}Local, {stem}Global[{start}],",
            f"    {shape},",
            f"    DataCopyPadExtParams<{cpp_type}>{{false, 0, 0, 0}});",
            f"{stem}Queue.EnQue({stem}Local);",
        ]
    return lines


def _shape_in(plan_input: PlanInput, cpp_type: str, columns: str) -> str:
    if plan_input.domain is Domain.FULL:
        return f"RowsOf<{cpp_type}>(part.rows, part.columns, {columns})"
    elements = "part.rows" if plan_input.domain is Domain.ROW else "part.columns"
    return f"RowsOf<{cpp_type}>(1, {elements}, {elements})"


def result_copies(kernel: ClassKernel, columns: str) -> list[str]:
    """The statements that copy the results of the tile ``part`` out."""
    lines: list[str] = []
    for output in kernel.plan.outputs:
        stem, cpp_type = camel(output.name), CPP_TYPE[output.dtype]
        start = places.output_offset(kernel.plan, output, Form.REGION, columns)
        lines += [
            f"LocalTensor<{cpp_type}> {stem}Local = {stem}Queue.DeQue<{cpp_type}>();",
            f"DataCopyPad({stem}Global[{start}], {stem}Local,",
            f"    RowsTo<{cpp_type}>(part.rows, part.columns, {columns}));",
            f"{stem}Queue.FreeTensor({stem}Local);",
        ]
    return lines


def steps(kernel: ClassKernel, each: Sequence[str], shape: Sequence[str]) -> list[str]:
    """The statements that compute a tile; ``shape``: those that say how its rows lie."""
    outputs: Sequence[PlanOutput] = kernel.plan.outputs
    program = kernel.programs[0]
    lines = ["const uint32_t rows = part.rows;", *shape]
    lines += [*each, *copies.receive(kernel.queued), *copies.allocate(outputs)]
    if _needs_count(kernel):
        lines.append("const uint32_t count = rows * tilePitch;")
    lines += instruction_lines(program.body, program.registers, packed=True)
    return [*lines, *copies.send(outputs), *copies.release(kernel.queued)]


_WHOLE_TILE_HELPERS = frozenset({"expand_rows", "expand_columns", "cast_in", "cast_out"})


def _needs_count(kernel: ClassKernel) -> bool:
    """Whether some instruction of a packed tile runs over all of it at once."""
    return kernel.passes_bytes or any(
        statement.domain is Domain.FULL
        and statement.op not in _WHOLE_TILE_HELPERS
        and not statement.op.endswith(("Rows", "Columns"))
        and not statement.op.startswith("reduce_")
        for statement in kernel.programs[0].body
    )


WHOLE = """\
__aicore__ inline uint32_t Whole(uint32_t value, uint32_t unit)
{
    return (value + unit - 1) / unit * unit;
}
"""
