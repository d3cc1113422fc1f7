"""What a graph takes op by op on a chip: as it was published, else by the model, with that model's errors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from attrs import frozen

from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import Baseline
from evokernel_core.hardware.accuracy import eager_spread
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.hardware.ascend.eager import eager_us


def eager_baseline(task: KernelTask, chip: Chip) -> Baseline:
    """Microseconds of torch_npu's own kernels."""
    row = measured_eager(task, chip)
    if row is not None:
        return Baseline(row.us, row.us, row.us, row.source)
    us = eager_us(task, chip)
    low, high = eager_spread(task.op_category)
    return Baseline(us, low * us, high * us)


CATALOGUE = Path(__file__).parent / "measured.json"


@frozen
class MeasuredEager:
    """Microseconds of a graph op by op, and the published row that says so."""

    us: float
    source: str


def measured_eager(task: KernelTask, chip: Chip) -> MeasuredEager | None:
    """What was published of the very graph, sizes included, on the chip."""
    row = _catalogue().get(chip.name, {}).get(task.task_id)
    return row and MeasuredEager(*row)


@lru_cache(maxsize=1)
def _catalogue() -> Mapping[str, Mapping[str, tuple[float, str]]]:
    data: Mapping[str, Mapping[str, tuple[float, str]]] = json.loads(CATALOGUE.read_text("utf-8"))
    return data
