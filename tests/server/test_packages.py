"""Packages beside a file: found, and made whole after a process was killed over them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from evokernel_server.documents.packages import heal, read_installed

from evokernel_core.import_root import import_root

LATER = 3600.0


def package(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "kernel.json").write_text("{}")
    return folder


def test_imports_start_above_the_packages(tmp_path: Path) -> None:
    inner = tmp_path / "models" / "deep"
    inner.mkdir(parents=True)
    (inner / "__init__.py").touch()
    (inner.parent / "__init__.py").touch()
    assert import_root(inner / "model.py") == tmp_path


def test_a_package_that_was_moved_aside_is_put_back(tmp_path: Path) -> None:
    kernels = tmp_path / "evokernel_kernels"
    package(kernels / ".softmax_1-old-abc" / "softmax_1")
    (kernels / ".softmax_1-xyz").mkdir()
    assert heal(tmp_path / "model.py", time.time() + LATER) == ("softmax_1",)
    assert [item.name for item in kernels.iterdir()] == ["softmax_1"]
    assert (kernels / "softmax_1" / "kernel.json").exists()


def test_a_package_in_place_wins(tmp_path: Path) -> None:
    kernels = tmp_path / "evokernel_kernels"
    new = package(kernels / "softmax_1")
    (new / "new").touch()
    package(kernels / ".softmax_1-old-abc" / "softmax_1")
    assert heal(tmp_path / "model.py", time.time() + LATER) == ()
    assert (new / "new").exists()


def test_what_is_being_written_now_is_left_alone(tmp_path: Path) -> None:
    staging = tmp_path / "evokernel_kernels" / ".softmax_1-xyz"
    staging.mkdir(parents=True)
    assert heal(tmp_path / "model.py", time.time()) == ()
    assert staging.exists()


@pytest.mark.parametrize("manifest", [None, "", "[]", "{}", '{"verdict": 7}', '{"verdict": {"gates": []}}'])
def test_a_damaged_package_is_a_missing_one(tmp_path: Path, manifest: str | None) -> None:
    folder = tmp_path / "evokernel_kernels" / "softmax_1"
    folder.mkdir(parents=True)
    if manifest is not None:
        (folder / "kernel.json").write_text(manifest)
    assert read_installed(tmp_path / "model.py", "softmax_1") is None
