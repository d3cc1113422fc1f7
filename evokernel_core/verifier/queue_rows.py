"""Rows of the queue that are damaged, whatever did it: they are set aside, and the other jobs go on."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping

from structlog import get_logger

from evokernel_core.verifier.unjudged import DAMAGED

log = get_logger(__name__)

_STATES = ("queued", "running", "done")
_PRIORITIES = ("interactive", "background")
_LONGEST = 60
_MOST = 2**53
"""Beyond any count or time in seconds that a queue comes to."""

Check = Callable[[object], bool]


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and 0 <= value < _MOST


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and abs(value) < _MOST


def _one_of(words: tuple[str, ...]) -> Check:
    return lambda value: value in words


_JOB: Mapping[str, Check] = {
    "id": _is_name, "state": _one_of(_STATES), "error": _is_text, "lease": _is_text, "deaths": _is_count,
    "created": _is_number, "updated": _is_number, "user": _is_text, "priority": _one_of(_PRIORITIES),
    "moves": _is_count, "cpu_s_a_day": _is_count,
}  # fmt: skip
_TABLES: Mapping[str, Mapping[str, Check]] = {
    "jobs": _JOB,
    "interests": {
        "job": _is_name, "client": _is_text, "user": _is_text, "priority": _one_of(_PRIORITIES),
        "cpu_s_a_day": _is_count,
    },
    "usage": {"user": _is_text, "day": _is_count, "jobs": _is_count, "cpu_s": _is_number},
}  # fmt: skip
"""What each column holds that the queue computes with; texts of a job are looked at when it is read."""


def as_text(data: bytes) -> str | bytes:
    """A text column; bytes where it holds no UTF-8, so that the query goes on."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def set_aside(connection: sqlite3.Connection) -> int:
    """Takes the rows out that cannot be read, saying so of each, and gives their number.

    A job whose id can be read ends in an error instead, which asking again replaces.
    """
    result = 0
    for table, checks in _TABLES.items():
        rows = connection.execute(f"SELECT rowid, {', '.join(map(_quoted, checks))} FROM {table}").fetchall()
        for row in rows:
            wrong = [name for name, check in checks.items() if not check(row[name])]
            if wrong:
                result += 1
                _take_out(connection, table, row, wrong)
    return result


def _quoted(name: str) -> str:
    return f'"{name}"'


def _take_out(connection: sqlite3.Connection, table: str, row: sqlite3.Row, wrong: list[str]) -> None:
    log.warning(
        "a row of the queue was damaged and is set aside", table=table, columns=wrong,
        values=[ascii(row[name])[:_LONGEST] for name in wrong],
    )  # fmt: skip
    if table == "jobs" and "id" not in wrong:
        connection.execute(
            "UPDATE jobs SET state = 'done', verdict = '', error = ?, lease = '', task = '', source = '',"
            " deaths = 0, moves = 0, created = 0, updated = 0, user = '', priority = 'background',"
            " cpu_s_a_day = 0 WHERE rowid = ?",
            [DAMAGED, row["rowid"]],
        )
        return
    if table == "jobs":
        connection.execute(
            "DELETE FROM interests WHERE job = (SELECT id FROM jobs WHERE rowid = ?)", [row["rowid"]]
        )
    connection.execute(f"DELETE FROM {table} WHERE rowid = ?", [row["rowid"]])


def _refuse(word: str) -> float:
    raise ValueError(word)


def is_object(value: object) -> bool:
    """Whether a column holds the JSON of an object."""
    if not isinstance(value, str):
        return False
    try:
        return isinstance(json.loads(value, parse_constant=_refuse), dict)
    except (ValueError, RecursionError):
        return False
