"""The memory's file itself: its owner's alone, and left as it is where a newer version wrote it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from evokernel_core import paths
from evokernel_core.domain.errors import StoreError
from evokernel_core.domain.settings import Settings
from evokernel_core.memory.store import Memory
from evokernel_core.synthesis.session import Session


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def modes(folder: Path) -> dict[str, int]:
    return {item.name: mode(item) for item in folder.iterdir()}


def test_nobody_else_reads_the_memory(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with Memory(tmp_path / "new" / "memory.db") as memory:
            memory.forget_everything()
            found = modes(tmp_path / "new")
    finally:
        os.umask(before)
    assert found == {"memory.db": 0o600, "memory.db-wal": 0o600, "memory.db-shm": 0o600}
    assert mode(tmp_path / "new") == 0o700


def test_a_memory_that_others_could_read_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with Memory(path) as first:
        first.forget_everything()
        for item in tmp_path.iterdir():
            item.chmod(0o644)
        with Memory(path) as second:
            second.forget_everything()
            assert set(modes(tmp_path).values()) == {0o600}


def test_the_folders_are_the_persons_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVOKERNEL_HOME", str(tmp_path / "home"))
    assert mode(paths.data_dir()) == mode(paths.cache_dir()) == 0o700
    (tmp_path / "shared").mkdir(mode=0o755)
    monkeypatch.setenv("EVOKERNEL_HOME", str(tmp_path / "shared"))
    assert mode(paths.data_dir()) == 0o755, "a folder that the person made keeps its mode"


def newer(path: Path) -> None:
    """Makes a memory as a later version would: a step that this one does not know, and data in it."""
    Memory(path).close()
    with sqlite3.connect(path) as database:
        database.execute(
            "INSERT INTO _sqlite_migrations (migration_set, name, applied_at)"
            " VALUES ('evokernel', 'm999_later', '2030-01-01')"
        )
        database.execute("CREATE TABLE later (x TEXT)")
    database.close()


def test_a_newer_memory_is_refused_and_not_written(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    newer(path)
    before = path.read_bytes()
    for _ in range(2):
        with pytest.raises(
            StoreError, match=r"newer EvoKernel \(its schema has m999_later\).*EVOKERNEL_HOME"
        ):
            Memory(path)
    assert path.read_bytes() == before


def delete(path: Path) -> None:
    for item in path.parent.glob(f"{path.name}*"):
        item.unlink()


def replace(path: Path) -> None:
    delete(path)
    Memory(path).close()


@pytest.mark.parametrize("lose", [delete, replace])
def test_nothing_is_written_to_a_memory_that_is_gone(lose: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with Memory(path) as memory:
        assert memory.is_there
        lose(path)
        assert not memory.is_there
        with pytest.raises(StoreError, match="was deleted or replaced while it was in use"):
            memory.forget_everything()


@pytest.mark.parametrize("lose", [delete, replace])
def test_a_session_goes_on_with_the_memory_that_is_there(
    lose: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVOKERNEL_HOME", str(tmp_path))
    with Session(Settings(), None) as session:
        first = session.memory
        assert session.memory is first
        lose(paths.memory_path())
        session.memory.forget_everything()
        assert session.memory is not first and session.memory.is_there
