"""Calls of accepted kernels, with what undoing them needs."""

from __future__ import annotations

from sqlite_utils import Database

_COLUMNS = {
    "place": str,
    "file": str,
    "name": str,
    "region_id": str,
    "task_id": str,
    "source_id": str,
    "at": float,
    "before": str,
    "created": int,
    "head": str,
    "region": str,
    "standing": str,
}


def apply(db: Database) -> None:
    table = db["placements"]
    table.create(_COLUMNS, pk="place", not_null=set(_COLUMNS))
    table.create_index(["file"])
