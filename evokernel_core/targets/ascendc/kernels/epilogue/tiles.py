"""What vector cores do to a tile of a result right after a cube core has computed it.

The family of the result cuts it into regions, rows and columns of a matrix, and hands one after the
other through the workspace. A kernel's class for the vector cores, written here, takes each region: bias,
activation, scaling, residual and casts on the way from the workspace to the outputs, so that the result
itself is never in device memory as a whole.
"""

from __future__ import annotations

from attrs import evolve, frozen

from evokernel_core.compiler.lowering.plan import Plan
from evokernel_core.compiler.problems.reading import behind
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import ValueRef
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import Dim
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.hardware.ascend.isa import LANES, RESERVED_BYTES
from evokernel_core.targets.ascendc.kernels.fused import access
from evokernel_core.targets.ascendc.kernels.fused.base import Kernel
from evokernel_core.targets.ascendc.kernels.fused.buffers import layout
from evokernel_core.targets.ascendc.kernels.fused.programs import whole_program
from evokernel_core.targets.ascendc.kernels.fused.settings import Form, Schedule
from evokernel_core.targets.ascendc.lowering.queues import plan_channels, plan_matrix

_TILE_STEP = 256
"""Tiles are whole repeats, and their masks whole 32-byte blocks."""
_WIDEST_BLOCK = 32
"""Elements of a block in the narrowest type."""


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
