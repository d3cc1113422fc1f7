"""What a graph takes op by op on a chip: as it was published, else by the model, with that model's errors."""

from __future__ import annotations

from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import Baseline
from evokernel_core.hardware.accuracy import eager_spread
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.hardware.ascend.eager import eager_us
from evokernel_core.hardware.ascend.measured import measured_eager


def eager_baseline(task: KernelTask, chip: Chip) -> Baseline:
    """Microseconds of torch_npu's own kernels."""
    row = measured_eager(task, chip)
    if row is not None:
        return Baseline(row.us, row.us, row.us, row.source)
    us = eager_us(task, chip)
    low, high = eager_spread(task.op_category)
    return Baseline(us, low * us, high * us)
