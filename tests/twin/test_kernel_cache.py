"""What is kept of compiled kernels, with several writers and a killed one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from evokernel_core.twin import kernel_cache


@pytest.fixture(autouse=True)
def _forgotten() -> None:
    kernel_cache._bytes_in.cache_clear()


def make(cache: Path, twin: str, count: int, nbytes: int = 1000) -> list[Path]:
    """Kernels of a twin, the first the least recently used."""
    folders = [cache / twin / f"{number:024x}" for number in range(count)]
    for number, folder in enumerate(folders):
        folder.mkdir(parents=True)
        (folder / "kernel.so").write_bytes(b"0" * nbytes)
        os.utime(folder, (number, number))
    return folders


def left(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.glob("*/*") if path.is_dir())


def test_the_least_recently_used_of_all_twins_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_cache, "MAX_BYTES", 8000)
    old, new = make(tmp_path, "old", 6), make(tmp_path, "new", 6)
    os.utime(old[0])
    kernel_cache.evict(tmp_path)
    kept = [path for path in (*old, *new) if path.exists()]
    assert len(kept) == 6
    assert old[0] in kept
    assert new[5] in kept
    assert old[1] not in kept


def test_as_many_as_one_likes_stay_where_they_take_little(tmp_path: Path) -> None:
    make(tmp_path, "twin", 3000, 1)
    kernel_cache.evict(tmp_path)
    assert len(left(tmp_path)) == 3000


@pytest.mark.parametrize(
    ("size", "name", "looks"), [(10, "10", True), (10, "11", False), (1 << 20, "11", True)]
)
def test_a_look_is_taken_now_and_then_and_after_each_large_kernel(
    size: int, name: str, looks: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[Path] = []
    monkeypatch.setattr(kernel_cache, "evict", looked.append)
    folder = tmp_path / "twin" / name.zfill(24)
    folder.mkdir(parents=True)
    (folder / "kernel.so").write_bytes(b"0" * size)
    kernel_cache.added(folder)
    assert looked == ([tmp_path] if looks else [])


def test_what_another_process_is_building_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_cache, "MAX_BYTES", 0)
    make(tmp_path, "twin", 2)
    (tmp_path / "twin" / "building-x").mkdir()
    kernel_cache.evict(tmp_path)
    assert left(tmp_path) == ["building-x"]


@pytest.mark.parametrize("seen", ["before", "behind"])
def test_another_process_may_evict_at_the_same_time(
    seen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that was listed is gone before, or after, its files are looked at."""
    folders = make(tmp_path, "twin", 3)
    bytes_in = kernel_cache._bytes_in

    def meanwhile(folder: str) -> int:
        if seen == "before":
            shutil.rmtree(folders[1], ignore_errors=True)
        found = bytes_in(folder)
        shutil.rmtree(folders[1], ignore_errors=True)
        return found

    monkeypatch.setattr(kernel_cache, "MAX_BYTES", 1)
    monkeypatch.setattr(kernel_cache, "_bytes_in", meanwhile)
    kernel_cache.evict(tmp_path)
    assert left(tmp_path) == []


def test_several_homes_share_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVOKERNEL_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("EVOKERNEL_KERNELS_DIR", raising=False)
    assert kernel_cache.kernels_dir() == tmp_path / "home" / "cache" / "kernels"
    monkeypatch.setenv("EVOKERNEL_KERNELS_DIR", str(tmp_path / "shared"))
    assert kernel_cache.kernels_dir() == tmp_path / "shared"
