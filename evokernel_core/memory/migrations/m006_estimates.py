"""What estimates said of schedules beside what their verdicts gave, the failed ones too."""

from __future__ import annotations

from sqlite_utils import Database

_COLUMNS = {
    "task_id": str,
    "source_id": str,
    "chip": str,
    "verifier": str,
    "family": str,
    "estimate_us": float,
    "failure": str,
    "features": bytes,
}


def apply(db: Database) -> None:
    table = db["estimates"]
    table.create(
        {"seq": int, **_COLUMNS, "latency_us": float, "source": str}, pk="seq", not_null=set(_COLUMNS)
    )
    table.create_index(["task_id", "source_id", "chip", "verifier"], unique=True)
    table.create_index(["chip", "verifier", "seq"])
