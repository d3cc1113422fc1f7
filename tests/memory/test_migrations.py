"""What a new memory becomes, and one of a preview."""

from __future__ import annotations

import ast
import itertools
import json
import multiprocessing
import os
import signal
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from sqlite_utils import Database

from evokernel_core.domain.errors import StoreError
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.serial import dumps
from evokernel_core.memory import connection
from evokernel_core.memory.migrations import m010_targets
from evokernel_core.memory.migrations.apply import OF_PREVIEWS, SCHEMA
from evokernel_core.memory.packed import packed
from evokernel_core.memory.store import Memory


def steps_of(path: Path) -> list[str]:
    with sqlite3.connect(path) as database:
        return [name for (name,) in database.execute("SELECT name FROM _sqlite_migrations ORDER BY id")]


def test_a_new_memory_is_as_the_last_preview_left_one(tmp_path: Path) -> None:
    """So that either version opens the other's."""
    Memory(tmp_path / "memory.db").close()
    assert steps_of(tmp_path / "memory.db") == [*OF_PREVIEWS, SCHEMA]


@pytest.mark.parametrize("count", [1, 5, 9])
def test_a_memory_of_an_earlier_preview_is_refused_and_not_written(tmp_path: Path, count: int) -> None:
    path = tmp_path / "memory.db"
    Memory(path).close()
    with sqlite3.connect(path) as database:
        database.execute("DELETE FROM _sqlite_migrations WHERE id > ?", (count,))
    database.close()
    before = path.read_bytes()
    for _ in range(2):
        with pytest.raises(StoreError, match=r"is of an early preview.*move the file aside"):
            Memory(path)
    assert path.read_bytes() == before


def put(database: Database, table: str, **row: object) -> None:
    marks = ", ".join("?" for _ in row)
    database.execute(
        f"INSERT OR IGNORE INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values())
    )


def earlier_memory(path: Path, sources: Iterable[KernelSource]) -> None:
    """A memory with kernels of before they named their target: texts without names, all but one as
    differences."""
    Memory(path).close()
    database = Database(sqlite3.connect(path), execute_plugins=False)
    texts = [json.dumps([dumps(source.strategy), *source.files.values()]) for source in sources]
    rows = [(0, packed(text), number) for number, text in enumerate(texts[:1], 1)]
    rows += [(1, packed(text, texts[0]), number) for number, text in enumerate(texts[1:], 2)]
    for (base, kernel, seq), source in zip(rows, sources, strict=True):
        put(database, "sources", seq=seq, source_id=source.source_id, base=base, kernel=kernel)
    database.conn.commit()
    database.close()


def killed_at(path: Path, statement: int) -> bool:
    """Opens a memory in a process that is killed before it runs its SQL statement of that number; False where
    it ran fewer and ended by itself."""
    process = multiprocessing.get_context("fork").Process(target=_open_until, args=(path, statement))
    process.start()
    process.join(60)
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


def _open_until(path: Path, statement: int) -> None:
    run = itertools.count(1)
    connect = connection._database

    def traced(raw: sqlite3.Connection) -> Database:
        raw.set_trace_callback(lambda _: next(run) == statement and os.kill(os.getpid(), signal.SIGKILL))
        return connect(raw)

    connection._database = traced
    Memory(path).close()


def test_a_kill_while_a_memory_is_made_leaves_one_that_works(
    tmp_path: Path, make_source: Callable[..., KernelSource]
) -> None:
    """Before every statement of the opening that makes it."""
    source = make_source("kernel\n" * 50)
    for statement in itertools.count(1):
        path = tmp_path / f"killed{statement}.db"
        is_killed = killed_at(path, statement)
        with Memory(path) as memory:
            memory.record_candidate(source)
            assert memory.source(source.source_id) == source
            assert memory.experiences() == ()
        if not is_killed:
            break
    assert statement > m010_targets.TABLES.count(";\n"), "it was killed within the schema too"


def test_kernels_of_before_and_of_today_stand_side_by_side(
    tmp_path: Path, make_source: Callable[..., KernelSource]
) -> None:
    sources = [make_source(f"kernel {number}\n" * 50) for number in range(3)]
    earlier_memory(tmp_path / "memory.db", sources)
    python = KernelSource("triton", {"kernel.py": "kernel 2\n" * 50, "more.py": ""}, sources[0].strategy)
    with Memory(tmp_path / "memory.db") as memory:
        newer = make_source("kernel 9\n" * 50)
        for source in (python, newer, sources[1]):
            memory.record_candidate(source)
        assert [memory.source(item.source_id) for item in (*sources, newer, python)] == [
            *sources,
            newer,
            python,
        ]
        found = memory.source(python.source_id)
        assert found is not None and list(found.files) == ["kernel.py", "more.py"]
        for names in ('["a"]', '["tiling.h", "../x"]', "{", "3", '["tiling.h", 3]'):
            memory.execute("UPDATE sources SET names = ? WHERE source_id = ?", (names, newer.source_id))
            assert memory.source(newer.source_id) is None, "a damaged row is set aside"
        assert memory.source(sources[0].source_id) == sources[0]


def test_the_step_means_the_same_whatever_becomes_of_the_code() -> None:
    tree = ast.parse(Path(m010_targets.__file__).read_text())
    imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not any(name.startswith("evokernel") for name in imported)
