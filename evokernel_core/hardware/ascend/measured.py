"""Published times of eager PyTorch on real chips, by what was computed.

``measured.json`` has for each chip and task (``KernelTask.task_id``) the microseconds and the row that they
come from; ``benchmarks/eager.py --catalogue`` writes it from a file of published rows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from attrs import frozen

from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip import Chip

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
