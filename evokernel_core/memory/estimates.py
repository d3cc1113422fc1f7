"""Estimates beside verdicts, from which the memory learns how far to trust the next estimate."""

from __future__ import annotations

import json
import math

from evokernel_core.domain.tuning_record import TuningRecord
from evokernel_core.domain.verdict import LatencySource
from evokernel_core.memory.connection import Connection
from evokernel_core.memory.rows import Row, decoded, number, text

_CHANGING = ("estimate_us", "latency_us", "failure", "features")
"""What a later record of the same kernel replaces."""


class Estimates(Connection):
    """One record for each kernel, chip and source of latencies: the latest."""

    def record_tuning(self, record: TuningRecord) -> None:
        """Keeps a record in place of an earlier one of the same kernel."""
        row = {
            "task_id": record.task_id,
            "source_id": record.source_id,
            "chip": record.chip,
            "source": record.source.value,
            "family": record.family,
            "estimate_us": record.estimate_us,
            "latency_us": record.latency_us,
            "failure": record.failure,
            "features": json.dumps(dict(record.features)),
        }
        changed = ", ".join(f"{name} = excluded.{name}" for name in _CHANGING)
        self.insert(
            "estimates", row, f"ON CONFLICT (task_id, source_id, chip, source) DO UPDATE SET {changed}"
        )

    def tuning_records(self, chip: str, limit: int = -1) -> tuple[TuningRecord, ...]:
        """The latest records of a chip, newest first, all of the newest one's source: who verifies on a chip
        asks about measured latencies, whatever the twin modelled before."""
        newest = "SELECT source FROM estimates WHERE chip = ? ORDER BY seq DESC LIMIT 1"
        rows = self.rows(
            f"SELECT * FROM estimates WHERE chip = ? AND source = ({newest}) ORDER BY seq DESC LIMIT ?",
            (chip, chip, limit),
        )
        return self.readable(_record, rows)


@decoded
def _record(row: Row) -> TuningRecord:
    features = json.loads(text(row, "features"))
    return TuningRecord(
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
