"""The interpreter of a project is found as the tools of the field keep it, from the file upwards."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evokernel_core.capture import interpreter
from evokernel_core.capture.environments import interpreters
from evokernel_core.capture.interpreter import HOW_TO_SET, find_interpreter
from evokernel_core.domain.errors import InterpreterUnavailable
from tests.chinese import in_chinese, left_in_english

_VARIABLES = """VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV CONDA_EXE CONDA_ROOT MAMBA_ROOT_PREFIX PYENV_ROOT
    UV_PROJECT_ENVIRONMENT POETRY_CACHE_DIR POETRY_VIRTUALENVS_PATH"""
PROJECT = "[project]\nname = 'My Model'\n"
POETRY = "[tool.poetry]\nname = 'My Model'\n"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home folder of its own, no environment that is active, nothing on PATH, nothing remembered."""
    for name in _VARIABLES.split():
        monkeypatch.delenv(name, raising=False)
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", str(home / "bin"))
    interpreter.forget()
    yield home
    interpreter.forget()


def environment(folder: Path, body: str = f'exec {sys.executable} "$@"') -> Path:
    """A Python in an environment's folder; by default one with torch."""
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True, exist_ok=True)
    python.write_text(f"#!/bin/sh\n{body}\n")
    python.chmod(0o755)
    return python


def file(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def uv(project: Path, home: Path) -> Path:
    file(project / "pyproject.toml", PROJECT)
    file(project / "uv.lock", "")
    return project / ".venv"


def pixi(project: Path, home: Path) -> Path:
    environment(project / ".pixi" / "envs" / "a-bare-one", "exit 1")
    return project / ".pixi" / "envs" / "default"


def poetry(project: Path, home: Path) -> Path:
    file(project / "pyproject.toml", POETRY)
    digest = hashlib.sha256(os.path.realpath(project).encode()).digest()
    name = f"my_model-{base64.urlsafe_b64encode(digest).decode()[:8]}-py3.11"
    return home / ".cache" / "pypoetry" / "virtualenvs" / name


def poetry_asked(project: Path, home: Path) -> Path:
    file(project / "pyproject.toml", POETRY)
    told = home / "somewhere" / "else"
    file(home / "bin" / "poetry", f'#!/bin/sh\n[ "$*" = "env info -p" ] && echo {told}\n').chmod(0o755)
    return told


def conda_by_name(project: Path, home: Path) -> Path:
    file(project / "environment.yml", "channels: [conda-forge]\nname: 'my-env'  # ours\ndependencies: []\n")
    return home / "miniconda3" / "envs" / "my-env"


def conda_elsewhere(project: Path, home: Path) -> Path:
    file(project / "environment.yaml", "name: my-env\n")
    file(home / ".conda" / "environments.txt", f"/nowhere/other\n{home}/big-disk/my-env\n")
    return home / "big-disk" / "my-env"


def conda_by_prefix(project: Path, home: Path) -> Path:
    file(project / "environment.yml", f"prefix: {home}/big-disk/x\n")
    return home / "big-disk" / "x"


def pyenv(project: Path, home: Path) -> Path:
    file(project / ".python-version", "# ours\n3.11\n")
    environment(home / ".pyenv" / "versions" / "3.11.9", "exit 1")
    return home / ".pyenv" / "versions" / "3.11.10"


def a_plain_one(project: Path, home: Path) -> Path:
    return project / "env"


TOOLS = [uv, pixi, poetry, poetry_asked, conda_by_name, conda_elsewhere, conda_by_prefix, pyenv, a_plain_one]


@pytest.mark.parametrize("tool", TOOLS, ids=[tool.__name__ for tool in TOOLS])
@pytest.mark.parametrize("deep", ["", "src/models/vision"])
def test_each_tools_environment_is_found(
    tool: Callable[[Path, Path], Path], deep: str, tmp_path: Path, home: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    python = environment(tool(project, home))
    (project / deep).mkdir(parents=True, exist_ok=True)
    found = find_interpreter("", project / deep)
    assert found.path == str(python)
    assert str(project) in found.how


def test_the_nearer_one_wins_unless_it_has_no_torch(tmp_path: Path) -> None:
    inner = tmp_path / "project" / "part"
    above = environment(tmp_path / "project" / ".venv")
    near = environment(inner / ".venv")
    assert find_interpreter("", inner).path == str(near)
    environment(inner / ".venv", "exit 1")
    interpreter.forget()
    assert find_interpreter("", inner).path == str(above)


def test_a_folder_that_anyone_writes_ends_the_way_up(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    planted = environment(shared / ".venv")
    (shared / "project").mkdir()
    shared.chmod(0o1777)
    assert str(planted) not in [found.path for found in interpreters(shared / "project")]
    assert str(planted) in [found.path for found in interpreters(shared)], "asked for itself it is meant"


def test_an_active_environment_comes_first_and_condas_base_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = environment(tmp_path / "project" / ".venv")
    active = environment(tmp_path / "active")
    monkeypatch.setenv("CONDA_PREFIX", str(tmp_path / "active"))
    order = [found.path for found in interpreters(tmp_path / "project")]
    assert order[:2] == [str(active), str(own)]
    monkeypatch.setenv("CONDA_DEFAULT_ENV", "base")
    order = [found.path for found in interpreters(tmp_path / "project")]
    assert order[:2] == [str(own), str(active)]
    assert len(set(order)) == len(order), "each once"


def test_the_workspace_is_asked_behind_the_file(tmp_path: Path) -> None:
    workspace = environment(tmp_path / "workspace" / ".venv")
    assert find_interpreter("", tmp_path / "elsewhere", tmp_path / "workspace").path == str(workspace)


def test_what_was_tried_and_what_sets_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = environment(tmp_path / "project" / ".venv", "exit 1")
    monkeypatch.setattr("sys.executable", str(environment(tmp_path / "own", "exit 1")))
    with pytest.raises(InterpreterUnavailable) as error:
        find_interpreter("", tmp_path / "project")
    said = str(error.value)
    assert said.startswith(
        f"No Python with torch was found for {tmp_path / 'project'} (tried {bare} [.venv in "
    )
    assert said.endswith(f"name another one with {HOW_TO_SET}.")
    assert said.count(". ") == 0, "one sentence"


def test_probing_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (".venv", "venv", "env"):
        environment(tmp_path / "project" / name, "exec /bin/sleep 60")
    monkeypatch.setattr(interpreter, "_PROBE_SECONDS", 0.4)
    monkeypatch.setattr(interpreter, "_SEARCH_SECONDS", 0.6)
    monkeypatch.setattr("sys.executable", str(environment(tmp_path / "own", "exit 1")))
    started = time.monotonic()
    with pytest.raises(InterpreterUnavailable, match="not asked for lack of time"):
        find_interpreter("", tmp_path / "project")
    assert time.monotonic() - started < 5


def test_answers_are_remembered_and_a_no_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "asked"
    python = environment(tmp_path / "project" / ".venv", f'echo x >> {log}; exec {sys.executable} "$@"')
    assert find_interpreter("", tmp_path / "project").path == str(python)
    find_interpreter("", tmp_path / "project")
    assert log.read_text().count("x") == 1
    bare = environment(tmp_path / "other" / ".venv", "exit 1")
    monkeypatch.setattr("sys.executable", str(bare))
    with pytest.raises(InterpreterUnavailable):
        find_interpreter("", tmp_path / "other")
    environment(tmp_path / "other" / ".venv")  # torch was installed
    with pytest.raises(InterpreterUnavailable):
        find_interpreter("", tmp_path / "other")
    monkeypatch.setattr(interpreter, "_NO_LASTS_SECONDS", 0.0)
    assert find_interpreter("", tmp_path / "other").path == str(bare)


def test_what_was_tried_is_told_in_chinese(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", str(environment(tmp_path / "own", "exit 1")))
    for number in range(8):
        environment(tmp_path / f"{'a/' * number}.venv", "exit 1")
    with pytest.raises(InterpreterUnavailable) as error:
        find_interpreter("", tmp_path / "a/a/a/a/a/a/a")
    assert "more): install torch" in str(error.value)
    assert left_in_english(error.value.sentence) == ""
    assert " 中的 .venv]" in in_chinese(error.value.sentence)


@pytest.mark.parametrize("how", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_how_an_interpreter_was_found_is_told_in_chinese(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.setenv(how, str(tmp_path / "active"))
    monkeypatch.setenv("CONDA_DEFAULT_ENV", "mine")
    environment(tmp_path / "active", "exit 1")
    for found in interpreters(tmp_path / "project"):
        assert re.search("[\u4e00-\u9fff]", in_chinese(found.how)), found
