"""A memory.db from somewhere else wants the server to die, or what is kept to be another's."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evokernel_core.domain.errors import EvoKernelError, StoreError
from evokernel_core.memory.store import Memory
from tests.attacks import Attack, each

JOB = "INSERT INTO jobs VALUES ('j', '{}', 'queued', '/w/m.py', 'r', 't', '{{', 3, 0, 1.0, 1.0, '')"
TASK = "INSERT INTO tasks VALUES ('t', 'n', 'c', {}, '{{}}')"
COUNT = "WITH RECURSIVE c(state) AS (SELECT 1 UNION ALL SELECT state + 1 FROM c) SELECT * FROM c"
ROWS: dict[str, tuple[str, Callable[[Memory], Any]]] = {
    "job-of-no-kind": (JOB.format("evil"), lambda memory: memory.jobs()),
    "value-of-no-stage": ("INSERT INTO q_values VALUES ('evil', '', 'i', 1.0, 1)", lambda m: m.values()),
    "outcome-of-no-kind": (
        "INSERT INTO outcomes (kind, region_id, task_id, source_id, at, detail)"
        " VALUES ('evil', '', '', '', 1.0, '')",
        lambda memory: memory.outcomes(),
    ),
    "task-of-half-json": (TASK.format("'{'"), lambda memory: memory.tasks()),
    "task-of-bytes": (TASK.format("x'ff00'"), lambda memory: memory.tasks()),
    "task-that-nests": (TASK.format("'" + "[" * 100_000 + "'"), lambda memory: memory.tasks()),
    "task-of-commands": (
        TASK.format("""'{"graph": {"nodes": [{"op": "os.system"}]}}'"""),
        lambda memory: memory.tasks(),
    ),
}
FILES: dict[str, tuple[tuple[str, ...], Callable[[Memory], Any]]] = {
    "trigger": (
        ("CREATE TRIGGER t AFTER INSERT ON jobs BEGIN UPDATE jobs SET file = '/evil/model.py'; END",),
        lambda memory: memory.jobs(),
    ),
    "trigger-with-our-name": (
        (
            "DROP TRIGGER experiences_ai",
            "CREATE TRIGGER experiences_ai AFTER INSERT ON jobs BEGIN DELETE FROM outcomes; END",
        ),
        lambda memory: memory.jobs(),
    ),
    "view-without-end": (("DROP TABLE jobs", f"CREATE VIEW jobs AS {COUNT}"), lambda memory: memory.jobs()),
    "schema-of-no-sql": (
        ("PRAGMA writable_schema = 1", "UPDATE sqlite_master SET sql = 'evil' WHERE name = 'jobs'"),
        lambda memory: memory.jobs(),
    ),
}
REFUSED = "it is refused in a sentence that says what to do"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    Memory(tmp_path / "memory.db").close()
    return tmp_path / "memory.db"


def change(path: Path, *statements: str) -> None:
    database = sqlite3.connect(path)
    for statement in statements:
        database.execute(statement)
    database.commit()
    database.close()


@each(
    [
        Attack(
            name, "an error that nobody expects, or rows of its own", "it is set aside in a sentence", given
        )
        for name, given in ROWS.items()
    ]
)
def test_rows_that_are_not_ours(attack: Attack, path: Path, caplog: pytest.LogCaptureFixture) -> None:
    statement, read = attack.given
    change(path, statement)
    with Memory(path) as memory:
        assert read(memory) == read(memory) == ()
    (record,) = caplog.records
    assert "was set aside" in record.message and len(record.message) < 300


def test_columns_that_are_not_ours(path: Path) -> None:
    """Wants a job to be none by a column more; it is the job that it was."""
    change(path, JOB.format("refine"), "ALTER TABLE jobs ADD COLUMN more")
    with Memory(path) as memory:
        assert [job.id for job in memory.jobs()] == ["j"]


@each(
    [
        Attack(name, "what is written to be another's, or a reader without end", REFUSED, given)
        for name, given in FILES.items()
    ]
)
def test_files_that_are_not_ours(attack: Attack, path: Path) -> None:
    statements, read = attack.given
    change(path, *statements)
    with pytest.raises(EvoKernelError) as refused, Memory(path) as memory:
        read(memory)
    assert str(refused.value).endswith(".") and len(str(refused.value)) < 300


def test_a_pipe_in_the_place_of_the_memory(tmp_path: Path) -> None:
    """Wants the server to wait for a writer that never comes."""
    os.mkfifo(tmp_path / "memory.db")
    with pytest.raises(StoreError, match="is no file"):
        Memory(tmp_path / "memory.db")


def test_a_pipe_in_the_place_of_a_file_with_a_kernel(tmp_path: Path) -> None:
    """Wants a thread of the server for each time that the file changes. What is no file has no text."""
    from evokernel_server.app import _text_of

    os.mkfifo(tmp_path / "model.py")
    (tmp_path / "zero.py").symlink_to("/dev/zero")
    for name in ("model.py", "zero.py"):
        with pytest.raises((OSError, ValueError)):
            _text_of(tmp_path / name)
    (tmp_path / "real.py").write_text("import torch\n")
    (tmp_path / "linked.py").symlink_to(tmp_path / "real.py")
    assert _text_of(tmp_path / "linked.py") == "import torch\n"
