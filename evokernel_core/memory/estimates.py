"""Estimates beside verdicts, from which the memory learns how far to trust the next estimate."""

from __future__ import annotations

import json
import math

from evokernel_core.domain.sample import Sample
from evokernel_core.domain.verdict import LatencySource
from evokernel_core.memory.connection import Connection
from evokernel_core.memory.rows import Row, decoded, number, text

_CHANGING = ("estimate_us", "latency_us", "failure", "features")
"""What a later sample of the same kernel replaces."""


class Estimates(Connection):
    """One sample for each kernel, chip and source of latencies: the latest."""

    def record_sample(self, sample: Sample) -> None:
        """Keeps a sample in place of an earlier one of the same kernel."""
        row = {
            "task_id": sample.task_id,
            "source_id": sample.source_id,
            "chip": sample.chip,
            "source": sample.source.value,
            "family": sample.family,
            "estimate_us": sample.estimate_us,
            "latency_us": sample.latency_us,
            "failure": sample.failure,
            "features": json.dumps(dict(sample.features)),
        }
        changed = ", ".join(f"{name} = excluded.{name}" for name in _CHANGING)
        self.insert(
            "estimates", row, f"ON CONFLICT (task_id, source_id, chip, source) DO UPDATE SET {changed}"
        )

    def samples(self, chip: str, limit: int = -1) -> tuple[Sample, ...]:
        """The latest samples of a chip, newest first, all of the newest one's source: who verifies on a chip
        asks about measured latencies, whatever the twin modelled before."""
        newest = "SELECT source FROM estimates WHERE chip = ? ORDER BY seq DESC LIMIT 1"
        rows = self.rows(
            f"SELECT * FROM estimates WHERE chip = ? AND source = ({newest}) ORDER BY seq DESC LIMIT ?",
            (chip, chip, limit),
        )
        return self.readable(_sample, rows)


@decoded
def _sample(row: Row) -> Sample:
    features = json.loads(text(row, "features"))
    return Sample(
        task_id=text(row, "task_id"),
        source_id=text(row, "source_id"),
        chip=text(row, "chip"),
        source=LatencySource(row["source"]),
        family=text(row, "family"),
        estimate_us=_microseconds(row, "estimate_us"),
        latency_us=None if row["failure"] else _microseconds(row, "latency_us"),
        features=tuple((str(name), _weight(value)) for name, value in features.items()),
        failure=text(row, "failure"),
    )


def _microseconds(row: Row, name: str) -> float:
    us = number(row, name)
    if not 0 < us < math.inf:
        raise ValueError(name)
    return us


def _weight(value: object) -> float:
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        raise TypeError("features")
    return float(value)
