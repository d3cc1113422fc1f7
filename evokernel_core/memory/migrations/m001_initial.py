"""The first schema: what was learned (experiences, values, statistics, evidence), what was made
(tasks, sources, attempts, verdicts, uses) and what a person asked for and decided (jobs, outcomes)."""

from __future__ import annotations

from sqlite_utils import Database

TABLES = """
CREATE TABLE experiences (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    op_category TEXT NOT NULL,
    task_id TEXT NOT NULL,
    bottleneck TEXT NOT NULL,
    payload TEXT NOT NULL,
    features TEXT NOT NULL,
    created REAL NOT NULL
);
CREATE INDEX experiences_kind ON experiences (kind, op_category);
CREATE TABLE q_values (
    stage TEXT NOT NULL,
    op_category TEXT NOT NULL,
    item TEXT NOT NULL,
    q REAL NOT NULL,
    n INTEGER NOT NULL,
    PRIMARY KEY (stage, op_category, item)
) WITHOUT ROWID;
CREATE TABLE statistics (
    name TEXT PRIMARY KEY,
    count INTEGER NOT NULL,
    mean REAL NOT NULL,
    m2 REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE evidence (
    rule TEXT NOT NULL,
    task_id TEXT NOT NULL,
    PRIMARY KEY (rule, task_id)
) WITHOUT ROWID;
CREATE TABLE tasks (
    task_id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    op_category TEXT NOT NULL,
    task TEXT NOT NULL,
    features TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE sources (
    source_id TEXT PRIMARY KEY,
    tiling_h TEXT NOT NULL,
    op_kernel_cpp TEXT NOT NULL,
    strategy TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE attempts (
    seq INTEGER PRIMARY KEY,
    job_id TEXT NOT NULL,
    n INTEGER NOT NULL,
    task_id TEXT NOT NULL,
    source_id TEXT NOT NULL,
    parent TEXT NOT NULL,
    stage TEXT NOT NULL,
    proposer TEXT NOT NULL,
    verifier TEXT NOT NULL,
    chip TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    feasible INTEGER NOT NULL,
    reward REAL NOT NULL,
    feedback TEXT NOT NULL,
    created REAL NOT NULL,
    UNIQUE (job_id, n)
);
CREATE INDEX attempts_task ON attempts (task_id, source_id);
CREATE TABLE verdicts (
    task_id TEXT NOT NULL,
    source_id TEXT NOT NULL,
    verifier TEXT NOT NULL,
    chip TEXT NOT NULL,
    feasible INTEGER NOT NULL,
    latency_us REAL,
    latency_source TEXT NOT NULL,
    verdict TEXT NOT NULL,
    created REAL NOT NULL,
    PRIMARY KEY (task_id, source_id, verifier, chip)
) WITHOUT ROWID;
CREATE TABLE uses (
    task_id TEXT NOT NULL,
    source_id TEXT NOT NULL,
    stage TEXT NOT NULL,
    item TEXT NOT NULL,
    PRIMARY KEY (task_id, source_id, stage, item)
) WITHOUT ROWID;
CREATE TABLE outcomes (
    seq INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    region_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    source_id TEXT NOT NULL,
    at REAL NOT NULL,
    detail TEXT NOT NULL,
    UNIQUE (kind, region_id, task_id, source_id, at, detail)
);
CREATE TABLE jobs (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    file TEXT NOT NULL,
    region_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    region TEXT NOT NULL,
    budget INTEGER NOT NULL,
    spent INTEGER NOT NULL,
    created REAL NOT NULL,
    updated REAL NOT NULL,
    reason TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX jobs_state ON jobs (state, created);
"""


def apply(db: Database) -> None:
    db.executescript(TABLES)
    db.table("experiences").enable_fts(
        ["title", "body", "op_category"], fts_version="FTS5", create_triggers=True, tokenize="porter"
    )
