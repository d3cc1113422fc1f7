"""From a plan and a schedule to a kernel of tiles, and to what it takes."""

from __future__ import annotations

from collections.abc import Hashable

from evokernel_core.compiler.lowering.plan import Plan
from evokernel_core.targets.ascendc.ir.nodes import Kernel as IRKernel
from evokernel_core.targets.ascendc.kernels.fused import (
    columnwise,
    lanes,
    packed,
    single,
    step_tiles,
    steps,
)
from evokernel_core.targets.ascendc.kernels.fused.base import Kernel
from evokernel_core.targets.ascendc.kernels.fused.pieces import Pieces
from evokernel_core.targets.ascendc.kernels.fused.settings import Form, Schedule
from evokernel_core.targets.ascendc.kernels.fused.shares import Shares
from evokernel_core.targets.ascendc.kernels.fused.streamed import Streamed

_FORMS = {
    Form.PACKED: (single.resources, packed.build),
    Form.STREAM: (Streamed.resources, Streamed.kernel_of),
    Form.LANES: (columnwise.resources, lanes.build),
    Form.STEPS: (steps.resources, step_tiles.build),
    Form.PIECES: (Pieces.resources, Pieces.kernel_of),
    Form.SHARED: (Shares.resources, Shares.kernel_of),
    **dict.fromkeys((Form.FLAT, Form.SEGMENTS, Form.RESIDENT), (single.resources, single.build)),
}
"""For each form what gives what a kernel takes, and what builds it."""


def build(planned: Plan, schedule: Schedule) -> Kernel:
    """What the kernel of a plan takes under a schedule: its programs, registers and buffers."""
    return _FORMS[schedule.form][0](planned, schedule)


def made(planned: Plan, schedule: Schedule) -> IRKernel:
    """The kernel of a plan under a schedule."""
    return _FORMS[schedule.form][1](planned, schedule)


def structure(planned: Plan, schedule: Schedule) -> Hashable:
    """What tells the kernels of schedules apart."""
    return made(planned, schedule).structure
