"""Estimates beside verdicts, from which the memory learns how far to trust the next estimate."""

from __future__ import annotations

import json
import math

from evokernel_core.domain.tuning_record import TuningRecord
from evokernel_core.domain.verdict import LatencySource
from evokernel_core.memory.connection import Connection
from evokernel_core.memory.packed import packed, unpacked
from evokernel_core.memory.rows import Row, decoded, number, text, whole

_KEY = ("task_id", "source_id", "chip", "source")
_SAME = " AND ".join(f"{name} = ?" for name in _KEY)


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
            "features": packed(json.dumps(dict(record.features))),
        }
        key = tuple(row[name] for name in _KEY)
        with self.transaction():
            known = self.rows("estimates", _SAME, key, select="seq", limit=1)
            if known:
                self.update("estimates", known[0]["seq"], row)
            else:
                self.insert("estimates", row)

    def tuning_records(self, chip: str, limit: int | None = None) -> tuple[TuningRecord, ...]:
        """The latest records of a chip, newest first, all of the newest one's source: who verifies on a chip
        asks about measured latencies, whatever the twin modelled before."""
        same = "chip = ? AND source = (SELECT source FROM estimates WHERE chip = ? ORDER BY seq DESC LIMIT 1)"
        rows = self.rows("estimates", same, (chip, chip), order_by="seq DESC", limit=limit)
        return self.readable(_record, rows)


@decoded
def _record(row: Row) -> TuningRecord:
    features = json.loads(unpacked(row["features"]))
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
        seq=whole(row, "seq"),
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
