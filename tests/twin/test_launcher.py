"""The launcher without a twin: built once, and as able as the twin's own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from evokernel_core.twin.build import prepare
from evokernel_core.twin.launcher import prepare_launcher
from evokernel_core.verifier.sandbox import probe, sandbox_prefix


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which nothing is built yet."""
    monkeypatch.setenv("EVOKERNEL_TWIN_DIR", str(tmp_path / "twins"))
    return tmp_path / "twins"


def test_the_launcher_is_built_alone_and_once(alone: Path) -> None:
    built = prepare_launcher()
    assert [path.name for path in built.folder.iterdir()] == ["evokernel-launcher"]
    assert built.folder.is_relative_to(alone.resolve())
    before = built.launcher.stat().st_mtime_ns
    assert prepare_launcher() == built and built.launcher.stat().st_mtime_ns == before


def test_it_confines_as_the_twins_does(tmp_path: Path) -> None:
    built = prepare_launcher()
    assert probe(built.launcher) == probe(prepare().launcher)
    secret = tmp_path / "secret"
    secret.write_text("x")
    shown = {}
    for folders in ([], [tmp_path]):
        command = [*sandbox_prefix(built, folders, []), "/bin/cat", str(secret)]
        shown[bool(folders)] = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    assert shown == {True: "x", False: "" if probe(built.launcher).landlock_abi else "x"}
