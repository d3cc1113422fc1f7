"""Kernels name their target and their files; those of before are of two AscendC files. Their texts, and their
ids, stay what they were."""

from __future__ import annotations

from sqlite_utils import Database

COLUMNS = (
    "ALTER TABLE sources ADD COLUMN target TEXT NOT NULL DEFAULT 'ascendc'",
    """ALTER TABLE sources ADD COLUMN names TEXT NOT NULL DEFAULT '["tiling.h", "op_kernel.cpp"]'""",
)


def apply(db: Database) -> None:
    for statement in COLUMNS:
        db.execute(statement)
