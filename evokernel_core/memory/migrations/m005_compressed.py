"""Kernels compressed, as what differs from one like them; verdicts and payloads of experiences compressed;
and a count of what was forgotten or changed, by which a search in memory knows that it has to read again."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from sqlite_utils import Database

from evokernel_core.memory.migrations.compression import compress
from evokernel_core.memory.migrations.dictionaries import COMMON

BASES, SHORTER, SAVED = 4, 3, 512
"""Latest kernels that a kernel is compared with; a kernel is written as what differs from one of them where
that is so many times shorter, and saves so many bytes."""
COUNTED = (
    "CREATE TABLE revision (n INTEGER NOT NULL)",
    "INSERT INTO revision VALUES (0)",
    "CREATE TRIGGER experiences_forgotten AFTER DELETE ON experiences"
    " BEGIN UPDATE revision SET n = n + 1; END",
    "CREATE TRIGGER experiences_changed AFTER UPDATE ON experiences BEGIN UPDATE revision SET n = n + 1; END",
)
TEXTS = (
    ("tasks", "task", "''"),
    ("verdicts", "verdict", "task_id || source_id"),
    ("experiences", "payload", "body"),
    ("experiences", "features", "''"),
    ("rewards", "shown", "used"),
    ("rewards", "used", "''"),
)
"""Table, column, and what is repeated in it."""
_SOURCES = (
    "SELECT s.* FROM sources s LEFT JOIN attempts a ON a.source_id = s.source_id"
    " GROUP BY s.source_id ORDER BY min(a.seq)"
)


def apply(db: Database) -> None:
    columns = {"seq": int, "source_id": str, "base": int, "kernel": bytes}
    kernels = db.table("kernels").create(columns, pk="seq", not_null=set(columns))
    kernels.insert_all(_kernels(db))
    kernels.create_index(["source_id"], "sources_id", unique=True)
    db.table("sources").drop()
    db.rename_table("kernels", "sources")
    db.register_function(_packed, name="packed")
    # the full-text index does not hold what changes here
    indexing = db.triggers_dict["experiences_au"]
    db.execute("DROP TRIGGER experiences_au")
    for table, column, like in TEXTS:
        db.execute(
            f"UPDATE {table} SET {column} = packed(CAST({column} AS BLOB), CAST({like} AS BLOB))"
            f" WHERE typeof({column}) = 'text'"
        )
    # as long as what they lead to, and of use to forgetting and to lists of everything only
    db.table("rewards").drop_index("rewards_task")
    db.table("experiences").drop_index("experiences_kind")
    for statement in (indexing, *COUNTED):
        db.execute(statement)


def _kernels(db: Database) -> Iterator[dict[str, Any]]:
    """The rows of kernels that can be read."""
    bases: deque[tuple[int, str]] = deque(maxlen=BASES)
    for seq, row in enumerate(db.query(_SOURCES), 1):
        id, *texts = (row[name] for name in ("source_id", "strategy", "tiling_h", "op_kernel_cpp"))
        if not all(isinstance(value, str) for value in (id, *texts)):
            continue
        written = json.dumps(texts)
        base, kernel = _shortest(written, bases)
        if not base:
            bases.appendleft((seq, written))
        yield {"seq": seq, "source_id": id, "base": base, "kernel": kernel}


def _shortest(written: str, bases: Iterable[tuple[int, str]]) -> tuple[int, bytes]:
    """The row that a kernel's text is written against, 0 for none, and the text so written."""
    alone = compress(written, COMMON)
    differences = ((seq, compress(written, text)) for seq, text in bases)
    base, shortest = min(differences, key=lambda one: len(one[1]), default=(0, alone))
    is_much = len(shortest) * SHORTER < len(alone) and len(alone) - len(shortest) > SAVED
    return (base, shortest) if is_much else (0, alone)


def _packed(value: bytes, like: bytes) -> bytes:
    """As it is where it is damaged."""
    try:
        return compress(value.decode(), COMMON + like.decode())
    except UnicodeDecodeError:
        return value
