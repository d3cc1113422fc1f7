"""Estimates beside verdicts, from which the memory learns how far to trust the next estimate."""

from __future__ import annotations

import json
import math

from evokernel_core.domain.tuning_record import TuningRecord
from evokernel_core.domain.verdict import LatencySource
from evokernel_core.memory.connection import Connection
from evokernel_core.memory.packed import packed, unpacked
from evokernel_core.memory.rows import Row, columns, decoded, number, record, text

_KEY = ("task_id", "source_id", "chip", "verifier")
_SAME = " AND ".join(f"{name} = ?" for name in _KEY)

_LARGEST = 100.0
"""Of a feature: logarithms over ten, and marks."""


class Estimates(Connection):
    """One record for each kernel, chip and verifier: the latest."""

    def record_tuning(self, record: TuningRecord) -> None:
        """Keeps a record in place of an earlier one of the same kernel."""
        row = columns(record)
        row["features"] = packed(json.dumps(dict(record.features)))
        row["source"] = row["source"] or ""
        del row["seq"]  # which the table counts
        with self.transaction():  # not in its old place: the latest come first
            self.delete("estimates", _SAME, tuple(row[name] for name in _KEY))
            self.insert("estimates", row)

    def tuning_records(self, chip: str, verifier: str, limit: int | None = None) -> tuple[TuningRecord, ...]:
        """The latest records of a chip by a verifier, newest first: what another one said, as of modelled
        latencies where this one measures, is about another machine."""
        given = chip, verifier
        rows = self.rows("estimates", "chip = ? AND verifier = ?", given, order_by="seq DESC", limit=limit)
        return self.readable(_record, rows)

    def judges(self, chip: str) -> tuple[str, ...]:
        """The verifiers that have records of a chip, the latest first."""
        sql = "SELECT verifier FROM estimates WHERE chip = ? GROUP BY verifier ORDER BY max(seq) DESC"
        return self.readable(_verifier, self.query(sql, (chip,)))


@decoded
def _record(row: Row) -> TuningRecord:
    features = json.loads(unpacked(row["features"]))
    return record(
        TuningRecord,
        row,
        estimate_us=_microseconds(row, "estimate_us"),
        latency_us=None if row["failure"] else _microseconds(row, "latency_us"),
        features=tuple((str(name), _weight(value)) for name, value in features.items()),
        source=LatencySource(row["source"]) if row["source"] else None,
    )


@decoded
def _verifier(row: Row) -> str:
    return text(row, "verifier")


def _microseconds(row: Row, name: str) -> float:
    us = number(row, name)
    if not 0 < us < math.inf:
        raise ValueError(name)
    return us


def _weight(value: object) -> float:
    if not isinstance(value, (int, float)) or not abs(value) <= _LARGEST:
        raise TypeError("features")
    return float(value)
