"""Family scan: running sums, products, maxima, minima and log-sum-exps along any dimension.

Scans whose elements are neighbours in memory are transposed in the unified buffer, so that pieces of a row
become the lanes of vectors; scans along other dimensions are lanes as they lie.
"""

from __future__ import annotations

from evokernel_core.compiler.ops import SCAN, categories
from evokernel_core.compiler.problems.scan import Scan, read_scan
from evokernel_core.targets.ascendc.ir.nodes import Kernel
from evokernel_core.targets.ascendc.kernels.built import variant_of
from evokernel_core.targets.ascendc.kernels.candidates import SearchingFamily, on_any_chip
from evokernel_core.targets.ascendc.kernels.scan import scan_schedule as schedules
from evokernel_core.targets.ascendc.kernels.scan.columns import Columns
from evokernel_core.targets.ascendc.kernels.scan.scan_rows import ScanRows
from evokernel_core.targets.ascendc.kernels.scan.scan_schedule import ScanSchedule


def build(scan: Scan, schedule: ScanSchedule) -> Kernel:
    """The kernel of a legal schedule."""
    return (ScanRows if scan.in_rows else Columns)(scan, schedule).kernel()


FAMILY = SearchingFamily(
    variant=variant_of(build, schedules.why_illegal),
    name="scan",
    ops=categories(SCAN),
    read=on_any_chip(read_scan),
    schedule_of=ScanSchedule.of,
    starts=schedules.starts,
    notes=schedules.notes,
    cell=schedules.cell,
    steps=schedules.steps,
)
