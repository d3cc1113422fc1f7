"""Family pointwise: element-wise graphs with broadcasting, one pass over the data."""

from __future__ import annotations

from evokernel_core.ascendc.families.base import Kernel
from evokernel_core.ascendc.families.programs import whole_program
from evokernel_core.ascendc.families.rows import PACKED_LOOP, packed_rows_method, single_pass
from evokernel_core.ascendc.plan import Plan
from evokernel_core.ascendc.schedule_settings import Form, Schedule

_FLAT_LOOP = """\
const uint64_t begin = GetBlockIdx() * tiling_.elementsPerCore;
const uint64_t run = begin + tiling_.elementsPerCore;
const uint64_t end = run < tiling_.elements ? run : tiling_.elements;
for (uint64_t offset = begin; offset < end; offset += tiling_.tileElements) {
    const uint64_t left = end - offset;
    const uint32_t count = left < tiling_.tileElements ? left : tiling_.tileElements;
    CopyIn(offset, count);
    Compute(count);
    CopyOut(offset, count);
}
"""

_SEGMENT_LOOP = """\
const uint64_t begin = GetBlockIdx() * tiling_.unitsPerCore;
const uint64_t run = begin + tiling_.unitsPerCore;
const uint64_t end = run < tiling_.units ? run : tiling_.units;
for (uint64_t unit = begin; unit < end; ++unit) {
    const uint64_t row = unit / tiling_.segments;
    const uint64_t column = (unit % tiling_.segments) * tiling_.segmentElements;
    const uint64_t left = tiling_.columns - column;
    const uint32_t count = left < tiling_.segmentElements ? left : tiling_.segmentElements;
    CopyIn(row, column, count);
    Compute({row}count);
    CopyOut(row, column, count);
}
"""


def build(plan: Plan, schedule: Schedule) -> Kernel:
    """The kernel of a pointwise plan."""
    kernel = Kernel(plan, schedule, (whole_program(plan, schedule),))
    if schedule.form is Form.FLAT:
        return _flat(kernel)
    if schedule.form is Form.PACKED:
        single_pass(kernel, "uint64_t row, uint32_t rows", PACKED_LOOP)
        kernel.methods.insert(0, packed_rows_method(kernel))
        return kernel
    single_pass(kernel, "uint64_t row, uint64_t column, uint32_t count", _SEGMENT_LOOP)
    return kernel


def _flat(kernel: Kernel) -> Kernel:
    single_pass(kernel, "uint64_t offset, uint32_t count", _FLAT_LOOP)
    return kernel
