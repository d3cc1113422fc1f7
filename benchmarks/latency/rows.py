"""Published measurements: rows of a JSON-lines file, one kernel timed on one chip each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import field, frozen

from evokernel_core.hardware.ascend.chip import Chip, load_chip

SHORT_US = 30.0


@frozen
class Row:
    """One measurement. ``value`` is in ``unit``; ``data`` is the whole row as published."""

    id: str
    series: str
    value: float
    unit: str
    metric: str
    tier: str
    chip: Chip
    data: Mapping[str, Any] = field(hash=False)

    @property
    def is_short(self) -> bool:
        """Whether the launch is a large part of it."""
        return self.unit == "us" and self.value < SHORT_US

    @property
    def kernel_side(self) -> bool:
        """Whether the clock ran on the core, so that the launch is not part of the figure."""
        return "aic_time" in self.metric or "aiv_time" in self.metric


def read_rows(path: Path) -> tuple[Row, ...]:
    """The rows of a file. Raises OSError or ValueError where it cannot be read."""
    lines = (json.loads(line) for line in path.read_text().splitlines() if line.strip())
    return tuple(_row(data) for data in lines)


def _row(data: Mapping[str, Any]) -> Row:
    return Row(
        id=str(data["id"]),
        series=str(data["series"]),
        value=float(data["value"]),
        unit=str(data["unit"]),
        metric=str(data["metric"]),
        tier=str(data["tier"]),
        chip=load_chip(chip_name(str(data["chip"]))),
        data=data,
    )


def chip_name(words: str) -> str:
    """The chip that a source's words mean: by name, else by its number of cube cores, else the 910B1."""
    for number in "4321":
        if f"910B{number}" in words:
            return f"ascend910b{number}"
    return "ascend910b3" if "20 AIC" in words else "ascend910b1"
