"""Whatever a person did to a package is still there after another took its place."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from evokernel_core.domain.errors import UsageError
from evokernel_core.package.backup import back_up_changed
from evokernel_core.package.integrity import MANIFEST, sealed
from evokernel_core.package.write import place_package

NAME = "softmax_3f9a1c2b"
FILES = {"op_kernel.cpp": "kernel", "tiling.h": "tiling"}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return place_package(tmp_path, NAME, {**FILES, MANIFEST: sealed({"name": NAME}, FILES)})


def untouched(folder: Path) -> None:
    """As it was written."""


def built(folder: Path) -> None:
    for made in ("build", "__pycache__"):
        (folder / made).mkdir()
        (folder / made / "x").write_text("made")


def edited(folder: Path) -> None:
    (folder / "op_kernel.cpp").write_text("mine")


def removed(folder: Path) -> None:
    (folder / "tiling.h").unlink()


def added(folder: Path) -> None:
    (folder / "notes.md").write_text("mine")


def without_manifest(folder: Path) -> None:
    (folder / MANIFEST).unlink()


def damaged(folder: Path) -> None:
    (folder / MANIFEST).write_text("[")


def emptied(folder: Path) -> None:
    shutil.rmtree(folder)
    built(folder_made(folder))


def folder_made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def gone(folder: Path) -> None:
    shutil.rmtree(folder)


def contents(folder: Path) -> dict[str, str]:
    return {item.name: item.read_text() for item in folder.iterdir() if item.is_file()}


@pytest.mark.parametrize("change", [untouched, built, emptied, gone])
def test_there_is_no_backup_where_nothing_would_be_lost(
    change: Callable[[Path], None], package: Path
) -> None:
    change(package)
    assert back_up_changed(package) is None
    assert not (package.parent / ".changed").exists()


@pytest.mark.parametrize("change", [edited, removed, added, without_manifest, damaged])
def test_each_version_of_a_person_is_backed_up(change: Callable[[Path], None], package: Path) -> None:
    change(package)
    before = contents(package)
    copies = [back_up_changed(package) for _ in range(3)]
    assert [copy and copy.name for copy in copies] == [NAME, f"{NAME}-2", f"{NAME}-3"]
    for copy in copies:
        assert copy is not None and contents(copy) == before and contents(package) == before


def test_a_folder_that_leads_elsewhere_takes_nothing(package: Path, tmp_path: Path) -> None:
    edited(package)
    (package.parent / ".changed").symlink_to(tmp_path, target_is_directory=True)
    with pytest.raises(UsageError, match="was changed by hand and cannot be backed up"):
        back_up_changed(package)
    assert (package / "op_kernel.cpp").read_text() == "mine"
