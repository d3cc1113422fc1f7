"""The schema: what was learned (experiences, values, rewards, statistics, evidence, estimates), what was made
(tasks, sources, attempts, verdicts, uses, placements), what it cost, what a person asked for and decided
(jobs, outcomes). A source names its target and its files, or is of two AscendC files; a title says what it is
made of, or null. The revision counts what was forgotten or changed in experiences: a search in memory reads
them again then."""

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
    created REAL NOT NULL,
    said BLOB
);
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
    seq INTEGER PRIMARY KEY NOT NULL,
    source_id TEXT NOT NULL UNIQUE,
    base INTEGER NOT NULL,
    kernel BLOB NOT NULL,
    target TEXT NOT NULL DEFAULT 'ascendc',
    names TEXT NOT NULL DEFAULT '["tiling.h", "op_kernel.cpp"]'
);
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
CREATE TABLE rewards (
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
);
CREATE TABLE tuning (name TEXT PRIMARY KEY, value REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE spending (
    day TEXT NOT NULL,
    job_id TEXT NOT NULL,
    model TEXT NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    money REAL NOT NULL,
    PRIMARY KEY (day, job_id, model)
) WITHOUT ROWID;
CREATE INDEX spending_job ON spending (job_id);
CREATE TABLE estimates (
    seq INTEGER PRIMARY KEY,
    task_id TEXT NOT NULL,
    source_id TEXT NOT NULL,
    chip TEXT NOT NULL,
    verifier TEXT NOT NULL,
    family TEXT NOT NULL,
    estimate_us REAL NOT NULL,
    failure TEXT NOT NULL,
    features BLOB NOT NULL,
    latency_us REAL,
    source TEXT,
    UNIQUE (task_id, source_id, chip, verifier)
);
CREATE INDEX estimates_latest ON estimates (chip, verifier, seq);
CREATE TABLE placements (
    place TEXT PRIMARY KEY NOT NULL,
    file TEXT NOT NULL,
    name TEXT NOT NULL,
    region_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    source_id TEXT NOT NULL,
    at REAL NOT NULL,
    before TEXT NOT NULL,
    created INTEGER NOT NULL,
    head TEXT NOT NULL,
    region TEXT NOT NULL,
    standing TEXT NOT NULL
);
CREATE INDEX placements_file ON placements (file);
CREATE TABLE revision (n INTEGER NOT NULL);
INSERT INTO revision VALUES (0);
CREATE TRIGGER experiences_forgotten AFTER DELETE ON experiences BEGIN UPDATE revision SET n = n + 1; END;
CREATE TRIGGER experiences_changed AFTER UPDATE ON experiences BEGIN UPDATE revision SET n = n + 1; END;
"""


def apply(db: Database) -> None:
    for statement in TABLES.split(";\n"):  # of which none ends the transaction, as a script would
        db.execute(statement)
    db.table("experiences").enable_fts(
        ["title", "body", "op_category"], fts_version="FTS5", create_triggers=True, tokenize="porter"
    )
