"""What is made for a moment's work is one person's, and gone with the process, however that ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from evokernel_core import temporary

HOLD = (
    "import sys, time; from evokernel_core import temporary;"
    "kept = temporary.folder('references'); print(kept.name, flush=True); "
)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    temporary.leave()
    yield
    temporary.leave()


def start(rest: str) -> tuple[subprocess.Popen[str], Path]:
    """A process that has made a folder."""
    process = subprocess.Popen([sys.executable, "-c", HOLD + rest], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def inside() -> list[str]:
    shared = temporary.parent()
    assert shared is not None
    return sorted(item.name for item in shared.iterdir())


def end(process: subprocess.Popen[str]) -> None:
    process.wait(timeout=30)
    assert process.stdout is not None
    process.stdout.close()


def test_nobody_else_looks_inside(tmp_path: Path) -> None:
    with temporary.folder("case") as name:
        folder = Path(name)
        assert folder.parent.parent.parent == tmp_path
        for item in (folder, folder.parent, folder.parent.parent):
            assert item.stat().st_mode & 0o777 == 0o700
        assert folder.parent.name.startswith(f"{os.getpid()}-")
    assert not folder.exists()


@pytest.mark.parametrize("rest", ["", "sys.exit(3)", "raise ValueError"])
def test_a_process_that_ends_takes_its_folders_along(rest: str) -> None:
    process, folder = start(rest)
    end(process)
    assert not folder.parent.exists()


def test_what_a_killed_process_left_is_removed_by_the_next() -> None:
    process, folder = start("time.sleep(60)")
    os.kill(process.pid, signal.SIGKILL)
    end(process)
    assert folder.is_dir()
    with temporary.folder("case"):
        assert not folder.parent.exists()


def test_what_a_living_process_uses_stays() -> None:
    process, folder = start("time.sleep(60)")
    try:
        assert temporary.sweep() == 0
        with temporary.folder("case"):
            assert folder.is_dir()
    finally:
        process.kill()
        end(process)
    assert temporary.sweep() == 1
    temporary.leave()
    assert inside() == []


def test_a_worker_that_is_being_killed_is_waited_for() -> None:
    process, folder = start("time.sleep(60)")
    began = time.monotonic()
    process.kill()
    temporary.sweep_after(process.pid, 10.0)
    assert not folder.exists() and time.monotonic() - began < 10.0
    end(process)


def test_only_our_own_parent_is_used(tmp_path: Path) -> None:
    """Another person made a link where ours would be: nothing is written or removed behind it."""
    victim = tmp_path / "victim"
    (victim / "12-x").mkdir(parents=True)
    os.utime(victim / "12-x", (0, 0))
    (tmp_path / f"evokernel-{os.getuid()}").symlink_to(victim)
    with temporary.folder("case") as name:
        assert not Path(name).is_relative_to(victim)
    assert temporary.sweep() == 0
    assert [item.name for item in victim.iterdir()] == ["12-x"]


def test_a_parent_that_others_could_read_is_closed(tmp_path: Path) -> None:
    shared = tmp_path / f"evokernel-{os.getuid()}"
    shared.mkdir(mode=0o755)
    with temporary.folder("case"):
        assert shared.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_was_removed_is_made_again() -> None:
    """As by a cleaner of the temporary directory, while a server goes on."""
    with temporary.folder("case") as name:
        first = Path(name).parent
    shutil.rmtree(first)
    with temporary.folder("case") as name:
        assert Path(name).is_dir()


def test_what_a_killed_build_left_beside_the_others_is_removed(tmp_path: Path) -> None:
    """A compiler killed in mid-build must not fill the cache; one that still works keeps its folder."""
    cache = tmp_path / "kernels"
    (cache / "ready").mkdir(parents=True)
    code = (
        "import sys, time; from pathlib import Path; from evokernel_core import temporary\n"
        f"with temporary.folder_in(Path({str(cache)!r}), 'building') as work:\n"
        "    (work / 'half').touch(); print(work, flush=True); time.sleep(60)\n"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    try:
        places = [Path(process.stdout.readline().strip()) for process in started if process.stdout]
        started[0].kill()
        started[0].wait()
        old = cache / "building-old"
        old.mkdir()
        os.utime(old, (0, 0))
        with temporary.folder_in(cache, "building") as work:
            assert list(work.iterdir()) == []
            assert [place.exists() for place in places] == [False, True]
            assert not old.exists()
        assert sorted(path.name for path in cache.iterdir()) == sorted(["ready", places[1].parent.name])
    finally:
        started[1].kill()
        started[1].wait()
