"""What vector cores do to the results of a transposed convolution while they turn them into rows.

A piece, rows of 16 channels, lies in the unified buffer when it has been turned: the element-wise steps
behind the convolution run on it there, before it is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from attrs import frozen

from evokernel_core.ascendc.kernels.epilogue.cost import Cost, cost_of
from evokernel_core.ascendc.kernels.epilogue.tiles import (
    WHOLE,
    Epilogue,
    EpilogueText,
    operand_copies,
    result_copies,
    steps,
    tile_text,
    tiling_constants,
)
from evokernel_core.ascendc.kernels.fused import access, copies
from evokernel_core.ascendc.kernels.fused import steps as channels
from evokernel_core.ascendc.kernels.fused.base import Kernel
from evokernel_core.ascendc.kernels.fused.columnwise import numbers
from evokernel_core.ascendc.kernels.fused.copies import method
from evokernel_core.ascendc.kernels.fused.programs import whole_program
from evokernel_core.ascendc.kernels.fused.settings import Form, Schedule
from evokernel_core.ascendc.kernels.fused.tiling import ShapeFields, shape_fields
from evokernel_core.ascendc.kernels.text import CPP_TYPE, instruction_lines
from evokernel_core.ascendc.lowering.program import camel
from evokernel_core.ascendc.lowering.values import Domain
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.twin.chip import Chip
from evokernel_core.twin.isa import LANES, RESERVED_BYTES

CHANNELS = 16
"""Rows of a piece."""
ROW_BYTES = 32 * 1024
"""Of the input in the unified buffer, one of two slots."""
TILE_STEP = 32
"""Rows of a tile are whole multiples of so many elements: 32-byte blocks of every type."""
_MOST_OUTPUTS = 512
_MOST_REDUCED = 128
_LEAST_REDUCED = 32
"""Outputs of a channel in a piece that has all channels: copies of fewer cost as much as those of more."""
_FEW_OUTPUTS = 128
"""Pieces this small are not worth operands that are fetched ahead."""
_MOST_EVENTS = 4
"""Buffers of queues in one direction: the other ids of events are set by hand."""


@frozen
class Behind:
    """The steps, and the most outputs of a channel in a piece: whole blocks of every type."""

    epilogue: Epilogue
    outputs: int
    buffers: int
    dtype: str
    chip: Chip
    fractals: int = 1
    """Of 16 channels in a piece: those of all channels where the steps reduce them."""
    row_bytes: int = ROW_BYTES
    phases: int = 1
    """Pieces that are loaded together, of which the largest numbers become one."""

    @property
    def reduces_channels(self) -> bool:
        return self.epilogue.plan.family == "columnwise"

    @property
    def turn_bytes(self) -> int:
        """A piece before or after it is turned."""
        return self.fractals * CHANNELS * self.outputs * ITEM_SIZE[self.dtype]

    def kernel(self) -> Kernel:
        return _channels_kernel(self) if self.reduces_channels else _kernel(self)

    @cached_property
    def cost(self) -> Cost:
        """What a piece costs the vector cores, which each schedule's estimate asks for."""
        return cost_of(self.kernel(), self.epilogue.source, self.chip)


def fitted(epilogue: Epilogue, dtype: str, phases: int, chip: Chip) -> Behind:
    """The largest pieces that fit the unified buffer, of so many ``phases`` at a time. Raises PlanError where
    none does."""
    _require_source(epilogue)
    few, row_bytes = (TILE_STEP, ROW_BYTES // 2) if phases > 1 else (_FEW_OUTPUTS, ROW_BYTES)
    for buffers, least in ((2, few), (1, TILE_STEP)):
        for outputs in range(_MOST_OUTPUTS, least - 1, -TILE_STEP):
            found = Behind(epilogue, outputs, buffers, dtype, chip, 1, row_bytes, phases)
            if _fits(found):
                return found
    raise PlanError("What follows the convolution takes more than the unified buffer of a vector core.")


def fitted_channels(epilogue: Epilogue, channels: int, dtype: str, phases: int, chip: Chip) -> Behind:
    """The largest pieces with all ``channels`` that fit the unified buffer. Raises PlanError where pieces
    would be too narrow to be copied well."""
    _require_source(epilogue)
    fractals = -(-channels // CHANNELS)
    if channels > _MOST_REDUCED:
        raise PlanError(f"Of {channels} channels, few pixels at a time fit the unified buffer.")
    for outputs in range(_MOST_OUTPUTS, _LEAST_REDUCED - 1, -TILE_STEP):
        for buffers in (2, 1):
            found = Behind(epilogue, outputs, buffers, dtype, chip, fractals, ROW_BYTES // 2, phases)
            if _fits(found):
                return found
    raise PlanError("What reduces the channels of the convolution does not fit the unified buffer.")


def _require_source(epilogue: Epilogue) -> None:
    sources = [item for item in epilogue.plan.inputs if item.source == epilogue.source]
    if len(sources) != 1 or sources[0].domain is not Domain.FULL:
        raise PlanError("What follows the convolution does not take its result as it is.")
    of_steps = (item for item in epilogue.plan.inputs if item.mid and not item.inner)
    if epilogue.plan.family == "columnwise" and any(item.dtype != "float32" for item in of_steps):
        raise PlanError("Numbers of channels are taken in float32 behind a convolution.")


def _fits(found: Behind) -> bool:
    kernel = found.kernel()
    queues = max(len(kernel.queued), len(kernel.plan.outputs)) * found.buffers
    return queues <= _MOST_EVENTS and needed_bytes(found, kernel) <= found.chip.ub_bytes - RESERVED_BYTES


def needed_bytes(found: Behind, kernel: Kernel) -> int:
    """Of the unified buffer: two slots of the input, two of results and one of a turned piece."""
    return kernel.layout.total + 2 * found.row_bytes + (2 * found.phases + 1) * found.turn_bytes


def _kernel(found: Behind) -> Kernel:
    schedule = Schedule(
        Form.REGION,
        CHANNELS * found.outputs,
        found.buffers,
        rows=LANES,
        columns=found.outputs,
        spread="columns",
    )
    plan = found.epilogue.plan
    return Kernel(plan, schedule, (whole_program(plan, schedule),), handed=found.epilogue.source)


def _channels_kernel(found: Behind) -> Kernel:
    rows = found.fractals * CHANNELS
    schedule = Schedule(
        Form.CHANNELS,
        rows * found.outputs,
        found.buffers,
        rows=-(-rows // LANES) * LANES,
        columns=found.outputs,
        spread="columns",
        whole=True,
    )
    plan = found.epilogue.plan
    program = channels.whole_program(plan, channels.ChannelLowerer(plan, True, False))
    return Kernel(plan, schedule, (program,), accumulators=1, handed=found.epilogue.source)


_TILE_STEP_TEXT = f"constexpr uint32_t TILE_STEP = {TILE_STEP}; // rows of a tile fill blocks of every type\n"
_REGION = """\
// Turned results of several channels.
struct Region {
    uint64_t row; // the first channel over all images
    uint64_t column; // the first output of a channel
    uint32_t rows;
    uint32_t columns;
};
"""
_ROWS_OF = """\
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


def write(found: Behind, class_name: str, columns: str) -> EpilogueText:
    """The class behind the convolution; see ``_write_steps``."""
    return (_write_channels if found.reduces_channels else _write_steps)(found, class_name, columns)


def _write_channels(found: Behind, class_name: str, columns: str) -> EpilogueText:
    """The class with the same methods, whose pieces have all channels: the steps of its plan."""
    kernel, source = found.kernel(), found.epilogue.source
    once, each, _ = numbers(kernel)
    program, outputs = kernel.programs[0], kernel.plan.outputs
    parameter = _local(kernel, source)
    at = ["Place(part);", "const uint32_t rows = tiling_.steps;"]
    from_first = [*at, "constexpr uint64_t step = 0; // and all others"]
    body = [*at, "const uint32_t count = rows * pitch;", *each]
    body += [*copies.receive(kernel.queued), *copies.allocate(outputs)]
    body += instruction_lines(program.body, program.registers, packed=False, rows="pitch")
    body += [*copies.send(outputs), *copies.release(kernel.queued)]
    kernel.public += [
        method("Start", "", once),
        method("Fetch", "const Region &part", [*from_first, *_channel_copies(kernel)]),
        method("Take", f"const Region &part, {parameter}", _taken(parameter)),
    ]
    kernel.methods += [
        method("Compute", f"const Region &part, {parameter}", body),
        method("CopyOut", "const Region &part", [*from_first, *_channel_results(kernel)]),
    ]
    kernel.methods += [method("Place", "const Region &part", _PLACE), *channels.whole_folds(program)]
    kernel.methods += [_ROWS_OF, WHOLE]
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
        f"{constants}{_TILE_STEP_TEXT}", shape, f"{_REGION}\n{text}", class_name,
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


def _taken(parameter: str) -> list[str]:
    return [f"Compute(part, {parameter.partition('&')[2]});", "CopyOut(part);"]


def _local(kernel: Kernel, source: str) -> str:
    """The parameter that a turned piece is."""
    item = next(item for item in kernel.plan.inputs if item.source == source)
    return f"const LocalTensor<{CPP_TYPE[item.dtype]}> &{camel(item.name)}Local"


def _write_steps(found: Behind, class_name: str, columns: str) -> EpilogueText:
    """The class with ``Start()`` once, ``Fetch(region)`` for what else a piece takes, and ``Take(region,
    turned)`` when it has been turned. ``columns``: what the tiling calls the outputs of a channel."""
    kernel, source = found.kernel(), found.epilogue.source
    once, each = copies.read_numbers(kernel)
    parameter = _local(kernel, source)
    kernel.public += [
        method("Start", "", once),
        method("Fetch", "const Region &part", operand_copies(kernel, source, columns)),
        method("Take", f"const Region &part, {parameter}", _taken(parameter)),
    ]
    shape: Sequence[str] = ["tileColumns = Whole(part.columns, TILE_STEP);", "tilePitch = tileColumns;"]
    kernel.methods += [
        method("Compute", f"const Region &part, {parameter}", steps(kernel, each, shape)),
        method("CopyOut", "const Region &part", result_copies(kernel, columns)),
        _ROWS_OF,
    ]
    behind = shape_fields(kernel.plan, kernel.schedule)
    constants = tiling_constants(kernel, needed_bytes(found, kernel))
    return EpilogueText(
        f"{constants}{_TILE_STEP_TEXT}",
        behind, f"{_REGION}\n{tile_text(kernel, class_name)}", class_name,
        ", ".join(kernel.used_tensors), tuple(camel(item.name) for item in kernel.plan.outputs),
    )  # fmt: skip
