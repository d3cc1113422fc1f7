"""Joins what one task was split into: identities were of names and of the way of the capture, and are of the
mathematics now. Tasks that cannot be read keep theirs."""

from __future__ import annotations

import json
from collections.abc import Mapping

from sqlite_utils import Database

from evokernel_core.memory.migrations.identities import identity_of

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
    renamed = {}
    for row in db.table("tasks").rows_where(select="task_id, task"):
        old, new = str(row["task_id"]), _identity(row["task"])
        if new not in ("", old):
            renamed[old] = new
    return renamed


def _identity(task: object) -> str:
    """Empty for what is no task's JSON."""
    try:
        return identity_of(json.loads(str(task)))
    except (ValueError, TypeError, LookupError, AttributeError, SyntaxError, RecursionError):
        return ""
