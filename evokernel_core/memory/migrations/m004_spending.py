"""What models cost, by day and job: budgets hold over processes and restarts."""

from __future__ import annotations

from sqlite_utils import Database


def apply(db: Database) -> None:
    db.execute(
        """CREATE TABLE spending (
    day TEXT NOT NULL,
    job_id TEXT NOT NULL,
    model TEXT NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    money REAL NOT NULL,
    PRIMARY KEY (day, job_id, model)
) WITHOUT ROWID"""
    )
    db.execute("CREATE INDEX spending_job ON spending (job_id)")
