"""Family scan: running sums, products, maxima, minima and log-sum-exps along any dimension.

Scans whose elements are neighbours in memory are transposed in the unified buffer, so that pieces of a row
become the lanes of vectors; scans along other dimensions are lanes as they lie.
"""

from __future__ import annotations

from evokernel_core.compiler.ops import SCAN, categories
from evokernel_core.compiler.problems.scan import Scan, read_scan
from evokernel_core.targets.ascendc.ir.nodes import Kernel
from evokernel_core.targets.ascendc.kernels.built import form_of
from evokernel_core.targets.ascendc.kernels.candidates import SearchingFamily, on_any_chip
from evokernel_core.targets.ascendc.kernels.scan.columns import Columns
from evokernel_core.targets.ascendc.kernels.scan.scan_rows import Rows
from evokernel_core.targets.ascendc.kernels.scan.scan_schedule import (
    ScanSchedule,
    neighbours,
    starts,
    strategy_of,
    why_illegal,
)


def build(scan: Scan, schedule: ScanSchedule) -> Kernel:
    """The kernel of a legal schedule."""
    return (Rows if scan.in_rows else Columns)(scan, schedule).kernel()


_FORM = form_of(build, why_illegal)
FAMILY = SearchingFamily(
    name="scan",
    ops=categories(SCAN),
    read=on_any_chip(read_scan),
    starts=starts,
    steps=lambda scan, schedule, sizes, chip: neighbours(scan, schedule),
    refusal=_FORM.refusal,
    rough=_FORM.rough,
    cost_us=_FORM.cost_us,
    schedule_of=ScanSchedule.of,
    strategy_of=strategy_of,
    text_of=lambda scan, schedule, task, name: _FORM.build(scan, schedule),
)
