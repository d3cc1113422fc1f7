"""The kernel of a resizing: rows as they lie in memory where columns stay, else eight planes at a time, whose
rows are weighed one by one or phase by phase."""

from __future__ import annotations

from evokernel_core.compiler.problems.resize import IDENTITY, Resize
from evokernel_core.targets.ascendc.ir.nodes import Kernel
from evokernel_core.targets.ascendc.kernels.resize.phased import Phased
from evokernel_core.targets.ascendc.kernels.resize.planes import Planes
from evokernel_core.targets.ascendc.kernels.resize.resize_common import ResizeSchedule
from evokernel_core.targets.ascendc.kernels.resize.resize_rows import ResizeRows


def is_rows_only(problem: Resize) -> bool:
    """Whether columns stay as they are."""
    return problem.columns.kind == IDENTITY


def _form(problem: Resize, schedule: ResizeSchedule) -> ResizeRows | Planes:
    if is_rows_only(problem):
        return ResizeRows(problem, schedule)
    return (Phased if schedule.phased else Planes)(problem, schedule)


def least_bytes(problem: Resize, schedule: ResizeSchedule) -> int:
    """Bytes of the buffers that cannot share memory, for which no kernel must be built."""
    return sum(item.bytes * item.stages for item in _form(problem, schedule).lasting())


def build(problem: Resize, schedule: ResizeSchedule) -> Kernel:
    """The kernel of a legal schedule."""
    return _form(problem, schedule).kernel()
