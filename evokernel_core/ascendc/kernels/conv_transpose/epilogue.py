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
    Epilogue,
    EpilogueText,
    operand_copies,
    result_copies,
    steps,
    tile_text,
    tiling_constants,
)
from evokernel_core.ascendc.kernels.fused import copies
from evokernel_core.ascendc.kernels.fused.base import Kernel
from evokernel_core.ascendc.kernels.fused.copies import method
from evokernel_core.ascendc.kernels.fused.programs import whole_program
from evokernel_core.ascendc.kernels.fused.settings import Form, Schedule
from evokernel_core.ascendc.kernels.fused.tiling import shape_fields
from evokernel_core.ascendc.kernels.text import CPP_TYPE
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

    @property
    def turn_bytes(self) -> int:
        """A piece before or after it is turned."""
        return CHANNELS * self.outputs * ITEM_SIZE[self.dtype]

    def kernel(self) -> Kernel:
        return _kernel(self.epilogue, self.outputs, self.buffers)

    @cached_property
    def cost(self) -> Cost:
        """What a piece costs the vector cores, which each schedule's estimate asks for."""
        return cost_of(self.kernel(), self.epilogue.source, self.chip)


def fitted(epilogue: Epilogue, dtype: str, chip: Chip) -> Behind:
    """The largest pieces that fit the unified buffer. Raises PlanError where none does."""
    sources = [item for item in epilogue.plan.inputs if item.source == epilogue.source]
    if len(sources) != 1 or sources[0].domain is not Domain.FULL:
        raise PlanError("What follows the convolution does not take its result as it is.")
    for buffers, least in ((2, _FEW_OUTPUTS), (1, TILE_STEP)):
        for outputs in range(_MOST_OUTPUTS, least - 1, -TILE_STEP):
            found = Behind(epilogue, outputs, buffers, dtype, chip)
            kernel = found.kernel()
            queues = max(len(kernel.queued), len(kernel.plan.outputs)) * buffers
            if queues <= _MOST_EVENTS and needed_bytes(found, kernel) <= chip.ub_bytes - RESERVED_BYTES:
                return found
    raise PlanError("What follows the convolution takes more than the unified buffer of a vector core.")


def needed_bytes(found: Behind, kernel: Kernel) -> int:
    """Of the unified buffer: two slots of the input, two of results and one of a turned piece."""
    return kernel.layout.total + 2 * ROW_BYTES + 3 * found.turn_bytes


def _kernel(epilogue: Epilogue, outputs: int, buffers: int) -> Kernel:
    schedule = Schedule(
        Form.REGION,
        CHANNELS * outputs,
        buffers,
        rows=LANES,
        columns=outputs,
        spread="columns",
    )
    return Kernel(epilogue.plan, schedule, (whole_program(epilogue.plan, schedule),), handed=epilogue.source)


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
    """The class with ``Start()`` once, ``Fetch(region)`` for what else a piece takes, and ``Take(region,
    turned)`` when it has been turned. ``columns``: what the tiling calls the outputs of a channel."""
    kernel, source = found.kernel(), found.epilogue.source
    once, each = copies.read_numbers(kernel)
    cpp_type = CPP_TYPE[found.dtype]
    item = next(item for item in kernel.plan.inputs if item.source == source)
    local = f"{camel(item.name)}Local"
    kernel.public += [
        method("Start", "", once),
        method("Fetch", "const Region &part", operand_copies(kernel, source, columns)),
        method(
            "Take",
            f"const Region &part, const LocalTensor<{cpp_type}> &{local}",
            [f"Compute(part, {local});", "CopyOut(part);"],
        ),
    ]
    shape: Sequence[str] = ["tileColumns = Whole(part.columns, TILE_STEP);", "tilePitch = tileColumns;"]
    kernel.methods += [
        method(
            "Compute",
            f"const Region &part, const LocalTensor<{cpp_type}> &{local}",
            steps(kernel, each, shape),
        ),
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
