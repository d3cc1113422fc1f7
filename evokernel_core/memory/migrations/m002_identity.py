"""Joins what one task was split into: identities were of names and of the way of the capture, and are of the
mathematics now. Tasks that cannot be read keep theirs."""

from __future__ import annotations

import json
from collections.abc import Mapping

from sqlite_utils import Database

from evokernel_core.domain.admission import read_task
from evokernel_core.memory.rows import Row, UnreadableRow, decoded

_KEYED = ("verdicts", "uses", "evidence", "outcomes")
"""Tables in which a task has at most one row of a kind: of several spellings' rows one stays."""
_FREE = ("attempts", "jobs", "experiences")


def apply(db: Database) -> None:
    for old, new in _renamed(db).items():
        for table in _KEYED:
            db.execute(f"UPDATE OR IGNORE {table} SET task_id = ? WHERE task_id = ?", (new, old))
            db.execute(f"DELETE FROM {table} WHERE task_id = ?", (old,))
        for table in _FREE:
            db.execute(f"UPDATE {table} SET task_id = ? WHERE task_id = ?", (new, old))
        db.execute("UPDATE OR IGNORE tasks SET task_id = ? WHERE task_id = ?", (new, old))
        db.execute("DELETE FROM tasks WHERE task_id = ?", (old,))
        db.execute(
            "UPDATE verdicts SET verdict = json_set(verdict, '$.task_id', ?)"
            " WHERE task_id = ? AND json_valid(verdict)",
            (new, new),
        )


def _renamed(db: Database) -> Mapping[str, str]:
    """The new identity of every task that has another one now."""
    result = {}
    for row in db.table("tasks").rows_where(select="task_id, task"):
        try:
            old, new = _identities(row)
        except UnreadableRow:
            continue
        if old != new:
            result[old] = new
    return result


@decoded
def _identities(row: Row) -> tuple[str, str]:
    return str(row["task_id"]), read_task(json.loads(row["task"])).task_id
