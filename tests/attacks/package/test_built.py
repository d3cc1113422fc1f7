"""A library in a package wants to be loaded for the one that was built from it."""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import subprocess
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evokernel_core.package.write import render
from evokernel_core.targets.ascendc.package.packaging import build_file
from tests.attacks import Attack, each

pytest.importorskip("torch")
NAME = "softmax_1"
SOURCES = ("op_kernel.cpp", "op_torch.cpp", "tiling.h")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package that was built, as far as its loader looks."""
    (tmp_path / "build").mkdir()
    for name in (*SOURCES, f"build/lib{NAME}.so"):
        (tmp_path / name).write_text(name)
    record(tmp_path)
    return tmp_path


def record(package: Path) -> None:
    """Runs what CMakeLists.txt has run after each build."""
    script = build_file(NAME).partition("[[")[2].partition("]]")[0]
    (package / "build" / "record.cmake").write_text(script)
    library = package / "build" / f"lib{NAME}.so"
    if cmake := shutil.which("cmake"):
        given = [f"-DLIBRARY={library}", f"-DPACKAGE={package}"]
        subprocess.run([cmake, *given, "-P", str(package / "build" / "record.cmake")], check=True)
    else:
        files = (library, *(package / name for name in SOURCES))
        digests = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
        library.with_name(f"{library.name}.built").write_text("\n".join(digests))


@pytest.fixture
def loaded(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The libraries that ``guards.register`` loads on a machine with an NPU."""
    path = tmp_path_factory.mktemp("root") / "guards.py"
    path.write_text(render("guards.py"))
    spec = importlib.util.spec_from_file_location("guards_of_attacks", path)
    assert spec and spec.loader
    guards = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(guards)
    names: list[str] = []
    known = types.SimpleNamespace(evokernel=types.SimpleNamespace(), load_library=names.append)
    monkeypatch.setattr(guards, "torch", types.SimpleNamespace(ops=known))
    monkeypatch.setattr(guards, "ctypes", types.SimpleNamespace(CDLL=lambda name: name))
    monkeypatch.setattr(guards, "ON_NPU", True)
    monkeypatch.setattr(guards, "EMULATED", False)
    monkeypatch.setattr(guards, "_derive", lambda *_: None)  # of a library that is none, nothing is known

    def load(package: Path) -> list[str]:
        guards.register(str(package / "__init__.py"), NAME, "() -> ()", None)
        return names

    return load


def test_the_library_that_was_built_is_loaded(package: Path, loaded: Callable[[Path], list[str]]) -> None:
    """No attack: else the others mean nothing."""
    assert loaded(package) == [str(package / "build" / f"lib{NAME}.so")]


def swap(package: Path) -> None:
    (package / "build" / f"lib{NAME}.so").write_text("another one")


def swap_by_a_link(package: Path) -> None:
    (package / "build" / f"lib{NAME}.so").unlink()
    (package / "other.so").write_text("another one")
    (package / "build" / f"lib{NAME}.so").symlink_to(package / "other.so")


def bring_alone(package: Path) -> None:
    (package / "build" / f"lib{NAME}.so.built").unlink()


def keep_after_a_change(package: Path) -> None:
    (package / "op_kernel.cpp").write_text("made again since")


def empty_the_record(package: Path) -> None:
    (package / "build" / f"lib{NAME}.so.built").write_text("")


NOT = "it is named and not loaded; the original code runs"
PLANTED: list[tuple[str, Callable[[Path], None]]] = [
    ("another-library", swap),
    ("a-link-to-another", swap_by_a_link),
    ("a-library-without-record", bring_alone),
    ("a-library-of-older-files", keep_after_a_change),
    ("an-empty-record", empty_the_record),
]


@each([Attack(name, "its code to run at the import", NOT, plant) for name, plant in PLANTED])
def test_a_library_that_is_not_the_one_that_was_built(
    attack: Attack, package: Path, loaded: Callable[[Path], list[str]]
) -> None:
    attack.given(package)
    with pytest.warns(UserWarning, match="is not what was built"):
        assert loaded(package) == []
