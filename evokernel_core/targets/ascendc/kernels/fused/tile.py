"""From a plan and a schedule to a kernel of tiles, before and as text."""

from __future__ import annotations

from collections.abc import Hashable

from evokernel_core.compiler.lowering.plan import Plan
from evokernel_core.targets.ascendc.ir.nodes import Kernel as IRKernel
from evokernel_core.targets.ascendc.kernels.family import KernelFacts, StageText
from evokernel_core.targets.ascendc.kernels.fused import (
    columnwise,
    fused_rows,
    lanes,
    packed,
    pieces,
    shares,
    single,
    step_tiles,
    steps,
    streamed,
)
from evokernel_core.targets.ascendc.kernels.fused.base import Kernel
from evokernel_core.targets.ascendc.kernels.fused.fused_tiling import tiling_texts
from evokernel_core.targets.ascendc.kernels.fused.settings import Form, Schedule

_SINGLE = (Form.FLAT, Form.SEGMENTS, Form.RESIDENT)
_TAKEN = {
    Form.PACKED: fused_rows.build,
    Form.STREAM: streamed.resources,
    Form.LANES: columnwise.resources,
    Form.STEPS: steps.resources,
    Form.PIECES: pieces.resources,
    Form.SHARED: shares.resources,
    **dict.fromkeys(_SINGLE, single.resources),
}
_IN_IR = {
    Form.STREAM: streamed.build,
    Form.LANES: lanes.build,
    Form.SHARED: shares.build,
    Form.PACKED: packed.build,
    Form.STEPS: step_tiles.build,
    Form.PIECES: pieces.build,
    **dict.fromkeys(_SINGLE, single.build),
}
"""The forms whose kernels are built in the IR; the others are text."""


def build(planned: Plan, schedule: Schedule) -> Kernel:
    """What the kernel of a plan takes under a schedule; of a form that is text, before it is put together."""
    return _TAKEN[schedule.form](planned, schedule)


def made(planned: Plan, schedule: Schedule, name: str) -> StageText | IRKernel:
    """The kernel of a plan under a schedule, under a name in snake case where it is text."""
    if schedule.form in _IN_IR:
        return _IN_IR[schedule.form](planned, schedule)
    kernel = build(planned, schedule)
    return StageText(*tiling_texts(kernel), kernel.text(name), f"{name}_kernel", _facts(kernel))


def structure(planned: Plan, schedule: Schedule) -> Hashable:
    """What tells the kernels of schedules apart."""
    kernel = made(planned, schedule, "kernel")
    return kernel if isinstance(kernel, StageText) else kernel.structure


def _facts(kernel: Kernel) -> KernelFacts:
    """Cores that share a row tell each other what they found, through the workspace."""
    shared = kernel.exchanged > 0
    return KernelFacts(waits_for_all=shared, uses_workspace=shared, reads_numbers=bool(kernel.numbers))
