"""The log of rewards, of which values and statistics are a fold. Values from before it begin it; statistics
begin anew, since they were about another centre."""

from __future__ import annotations

from sqlite_utils import Database

STATEMENTS = (
    """CREATE TABLE rewards (
    seq INTEGER PRIMARY KEY,
    stage TEXT NOT NULL,
    op_category TEXT NOT NULL,
    effect TEXT NOT NULL,
    cause TEXT NOT NULL,
    task_id TEXT NOT NULL,
    source_id TEXT NOT NULL,
    raw REAL NOT NULL,
    scale TEXT NOT NULL,
    reward REAL NOT NULL,
    count INTEGER NOT NULL,
    mean REAL NOT NULL,
    m2 REAL NOT NULL,
    trials INTEGER NOT NULL,
    used TEXT NOT NULL,
    shown TEXT NOT NULL,
    at REAL NOT NULL
)""",
    "CREATE INDEX rewards_task ON rewards (task_id, source_id)",
    "CREATE TABLE tuning (name TEXT PRIMARY KEY, value REAL NOT NULL) WITHOUT ROWID",
    "UPDATE q_values SET q = max(-1, min(1, q)) WHERE typeof(q) IN ('real', 'integer')",
    # each value by itself: an item may have one over all categories and others in each
    """INSERT INTO rewards (stage, op_category, effect, cause, task_id, source_id, raw, scale, reward, count,
    mean, m2, trials, used, shown, at)
SELECT stage, op_category, 'merge', 'before the log', '', '', q, '', q, 0, 0, 0, n, json_array(item), '[]', 0
FROM q_values WHERE typeof(q) IN ('real', 'integer') AND typeof(n) = 'integer' AND typeof(item) = 'text'""",
    "DELETE FROM statistics",
)


def apply(db: Database) -> None:
    for statement in STATEMENTS:
        db.execute(statement)
