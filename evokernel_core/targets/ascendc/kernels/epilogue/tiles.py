"""What vector cores do to a tile of a result right after a cube core has computed it.

The family of the result cuts it into regions, rows and columns of a matrix, and hands one after the
other through the workspace. A kernel's class for the vector cores, written here, takes each region: bias,
activation, scaling, residual and casts on the way from the workspace to the outputs, so that the result
itself is never in device memory as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve, frozen

from evokernel_core.compiler.lowering.plan import Plan, PlanInput, PlanOutput
from evokernel_core.compiler.lowering.values import Domain
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Graph, GraphInput, InputKind, Node, ValueRef
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import Dim
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.hardware.ascend.isa import LANES, RESERVED_BYTES
from evokernel_core.targets.ascendc.kernels.fused import access, copies
from evokernel_core.targets.ascendc.kernels.fused.base import Kernel
from evokernel_core.targets.ascendc.kernels.fused.buffers import layout
from evokernel_core.targets.ascendc.kernels.fused.class_text import ClassKernel
from evokernel_core.targets.ascendc.kernels.fused.fused_tiling import ShapeFields
from evokernel_core.targets.ascendc.kernels.fused.programs import whole_program
from evokernel_core.targets.ascendc.kernels.fused.settings import Form, Schedule
from evokernel_core.targets.ascendc.kernels.text import CPP_TYPE, instruction_lines
from evokernel_core.targets.ascendc.lowering.program import camel
from evokernel_core.targets.ascendc.lowering.queues import plan_channels, plan_matrix

_TILE_STEP = 256
"""Tiles are whole repeats, and their masks whole 32-byte blocks."""
_WIDEST_BLOCK = 32
"""Elements of a block in the narrowest type."""


def behind(task: KernelTask, ref: ValueRef) -> KernelTask:
    """The part of a task that reads the value ``ref``, which becomes an input, on the way to the outputs.

    Raises PlanError where nothing is left to do.
    """
    graph = task.graph
    nodes = {node.name: node for node in graph.nodes}
    names: set[str] = set()
    read: set[str] = set()
    waiting = list(graph.outputs)
    while waiting:
        item = waiting.pop()
        if item == ref or item.name not in nodes:
            read.add(item.name)
        elif item.name not in names:
            names.add(item.name)
            waiting.extend(nodes[item.name].operands())
    if not names:
        raise PlanError("Nothing is computed behind the result.")
    inputs = [operand for operand in graph.inputs if operand.kind is InputKind.SCALAR or operand.name in read]
    kept: tuple[Node, ...] = tuple(node for node in graph.nodes if node.name in names)
    part = Graph((*inputs, GraphInput(ref.name, graph.spec(ref))), kept, graph.outputs)
    return evolve(task, graph=part)


def read_epilogue(
    task: KernelTask, ref: ValueRef, rows: tuple[Dim, ...], columns: tuple[Dim, ...], chip: Chip
) -> Epilogue:
    """What a task does with the value ``ref``, a matrix of ``rows`` x ``columns``. Raises PlanError where
    that is not element-wise, and where the matrix is a single column, which is handed over in blocks and not
    dense, as a plan reads one value a row."""
    plan = plan_matrix(behind(task, ref), rows, columns, chip)
    if any(operand.source == ref.name and not operand.inner for operand in plan.inputs):
        raise PlanError("A product of a single column has no epilogue.")
    return Epilogue(plan, ref.name)


def read_channels(
    task: KernelTask,
    ref: ValueRef,
    images: tuple[Dim, ...],
    channels: tuple[Dim, ...],
    pixels: tuple[Dim, ...],
    chip: Chip,
) -> Epilogue:
    """What a task does with the value ``ref`` where it reduces the channels of each pixel. Raises PlanError
    where it does anything else."""
    return Epilogue(plan_channels(behind(task, ref), images, channels, pixels, chip), ref.name)


@frozen
class Epilogue:
    """An element-wise plan over a matrix; the input ``source`` is the result that is handed over."""

    plan: Plan
    source: str

    @property
    def reads_numbers(self) -> bool:
        """Whether the scalar unit reads device memory."""
        return bool(access.as_numbers(self.plan, Form.REGION))

    def kernel(self, rows: int, columns: int, chip: Chip) -> Kernel | None:
        """The kernel for regions of at most ``rows`` x ``columns``, with the largest tiles that help;
        None where not even a row fits the unified buffer."""
        width = -(-columns // _WIDEST_BLOCK) * _WIDEST_BLOCK
        height = -(-rows // 2)
        for buffers in (2, 1):
            schedule = Schedule(
                Form.REGION,
                -(-height * width // _TILE_STEP) * _TILE_STEP,
                buffers,
                rows=-(-height // LANES) * LANES,
                columns=width,
                spread="columns",
            )
            kernel = self._fitted(schedule, chip)
            if kernel is not None and kernel.schedule.tile >= width:
                return kernel
        return None

    def _fitted(self, schedule: Schedule, chip: Chip) -> Kernel | None:
        """The kernel with its tile cut to what fits the unified buffer and the queues."""
        program = whole_program(self.plan, schedule)
        while schedule.tile > 0:
            kernel = Kernel(self.plan, schedule, (program,))
            total = layout(kernel).total
            over = total - (chip.ub_bytes - RESERVED_BYTES)
            if len(kernel.queued) * schedule.buffers > chip.memory.max_queue_buffers:
                return None
            if len(kernel.plan.outputs) * schedule.buffers > chip.memory.max_queue_buffers:
                return None
            if over <= 0:
                return kernel
            share = schedule.tile * over // total
            less = max(share // _TILE_STEP, 1) * _TILE_STEP
            schedule = evolve(schedule, tile=schedule.tile - less)
        return None


# -- text -----------------------------------------------------------------------------------------


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
    waiting = kernel.schedule.ahead and not kernel.public
    # the cube's part of the kernel has the constant of a block too
    return kernel.constants(others=("BLOCK_BYTES",)) + _of_tile(kernel.class_text(class_name), waiting)


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


def _of_tile(text: str, waiting: bool) -> str:
    """Helpers of packed tiles, whose shape here differs from region to region; ``waiting``: one region is
    copied in while another is computed."""
    members = "OpTiling tiling_;\n"
    shape = (
        f"{members}    Region waiting{{}}; // copied in and not yet computed\n    uint32_t tileColumns = 0;\n"
    )
    shape += "    uint32_t tilePitch = 0; // elements from row to row in the unified buffer\n"
    if not waiting:
        shape = shape.replace("    Region waiting{}; // copied in and not yet computed\n", "")
    text = text.replace(members, shape, 1)
    return text.replace("tiling_.columns", "tileColumns").replace("tiling_.pitch", "tilePitch")


def operand_copies(kernel: ClassKernel, source: str, columns: str) -> list[str]:
    """The statements that copy in what the tile ``part`` takes."""
    lines: list[str] = []
    for tensor in kernel.queued:
        stem, cpp_type = camel(tensor.name), CPP_TYPE[tensor.dtype]
        if tensor.source == source:
            start, shape = "part.place", f"RowsOf<{cpp_type}>(part.rows, part.columns, part.columns)"
        else:
            start = access.offset(kernel.plan, tensor, Form.REGION, columns)
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
        start = access.output_offset(kernel.plan, output, Form.REGION, columns)
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
