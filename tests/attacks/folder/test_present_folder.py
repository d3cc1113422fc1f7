"""The folder in which a command is started wants its code to run, though the command is not about it."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner
from evokernel_mcp import tools
from evokernel_mcp.access import Access
from evokernel_server.trust import Trust

from evokernel_core.capture import interpreter
from evokernel_core.capture.environments import folder_interpreters
from evokernel_core.cli import first_run_report
from evokernel_core.cli.main import cli
from evokernel_core.domain.errors import EvoKernelError, InterpreterUnavailable
from evokernel_core.synthesis import agent
from evokernel_core.synthesis.worker import Worker
from evokernel_core.targets.ascendc.first_run.first_run_host import NpuHost
from evokernel_core.twin.compiler import detect_compiler
from evokernel_core.verifier import again, service_worker
from tests.attacks import Attack, each
from tests.verifier.service.conftest import make_kernel

__all__ = ["make_kernel"]

ROOT = Path(__file__).parents[3]
STOLEN = "stolen"
_ACTIVE = [
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "CONDA_DEFAULT_ENV",
    "EVOKERNEL_INTERPRETER",
    "UV_PROJECT_ENVIRONMENT",
    "ASCEND_HOME_PATH",
]
ENVIRONMENTS = (
    *(".venv", "venv", "env", ".pixi/envs/default", "conda", "named"),
    *("versions/3.11", "home/miniconda3/envs/mine"),
)


def program(folder: Path, name: str) -> Path:
    """A program that leaves word that it ran; whoever asks it whether it is Python with torch hears yes."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\necho "$0 $*" >> {folder}/{STOLEN}\nexec {sys.executable} "$@"\n')
    path.chmod(0o755)
    return path


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The present folder, with an interpreter wherever one is looked for; a home and a PATH that are not."""
    folder = tmp_path / "hostile"
    for name in ENVIRONMENTS:
        program(folder, f"{name}/bin/python")
    for name in ("python", "python3", "poetry", "g++", "bisheng", "npu-smi"):
        program(folder, name)
        program(folder, f"bin/{name}")
    (folder / "environment.yml").write_text(f"prefix: {folder}/conda\n")
    (folder / ".python-version").write_text("3.11\n")
    (folder / "pyproject.toml").write_text("[tool.poetry]\nname = 'x'\n")
    for name in _ACTIVE:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("EVOKERNEL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.chdir(folder)
    interpreter.forget()
    yield folder
    interpreter.forget()


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A file and a folder that have nothing to do with the present one."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "model.py").write_text("import torch\n\n\n# evokernel: x=f32[8]\ndef f(x):\n    return x + 1\n")
    return folder


class _NoAgent:
    """Takes the place of a torch agent: which interpreter one would start is decided by then."""

    def __init__(self, path: str, **_: object) -> None:
        self.path = path
        raise InterpreterUnavailable("{path} is not started here.", path=path)


@pytest.fixture(autouse=True)
def no_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (agent, again):
        monkeypatch.setattr(module, "AgentClient", _NoAgent)
    monkeypatch.setattr("evokernel_core.capture.client.AgentClient", _NoAgent)
    monkeypatch.setattr(NpuHost, "ask_torch_npu", lambda _: ("", {}))
    monkeypatch.setattr(again, "ConfinedReferences", _NoAgent)
    monkeypatch.setattr("evokernel_core.verifier.confined.ConfinedReferences", _NoAgent)


def called(*words: object) -> str:
    done = CliRunner().invoke(cli, [str(word) for word in words])
    assert done.exception is None or isinstance(done.exception, EvoKernelError | SystemExit), done.exception
    return f"{done.output} {done.exception or ''}"


def _serve(_: Path) -> str:
    with pytest.raises(InterpreterUnavailable) as raised:
        service_worker.local_verifier("twin", "ascend910b1", "")
    return str(raised.value)


COMMANDS: list[tuple[str, Callable[[Path], str]]] = [
    ("doctor", lambda _: called("doctor", "--json")),
    ("doctor-npu", lambda folder: called("doctor", "--npu", "--report", folder / "report.json")),
    ("synth", lambda folder: called("synth", folder / "model.py", "--plan")),
    ("bench", lambda folder: called("bench", folder, "--budget", "1")),
    ("memory-why", lambda _: called("memory", "why", "x")),
    ("observe-list", lambda _: called("observe", "--list")),
    ("report", lambda _: called("report")),
    ("verifier-job", _serve),
]
ATTACKS = [Attack(name, "its Python to be run", "nothing of it is run", run) for name, run in COMMANDS]


@each(ATTACKS)
def test_a_command_about_something_else(attack: Attack, hostile: Path, elsewhere: Path) -> None:
    attack.given(elsewhere)
    assert not (hostile / STOLEN).exists(), (hostile / STOLEN).read_text()


VARIABLES = [
    ("VIRTUAL_ENV", ".venv"),
    ("CONDA_PREFIX", "conda"),
    ("UV_PROJECT_ENVIRONMENT", "named"),
    ("EVOKERNEL_INTERPRETER", ".venv/bin/python"),
    ("EVOKERNEL_INTERPRETER", "./python"),
    ("ASCEND_HOME_PATH", "."),
    ("PATH", ".:/usr/bin:/bin"),
    ("PATH", ":/usr/bin:/bin"),
    ("PATH", "bin:/usr/bin:/bin"),
]


@pytest.mark.parametrize(("name", "value"), VARIABLES, ids=[f"{name}={value}" for name, value in VARIABLES])
@pytest.mark.parametrize("command", ["doctor", "doctor-npu", "synth", "verifier-job"])
def test_a_relative_word_of_the_environment(
    name: str, value: str, command: str, hostile: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wants to be what a variable means in the folder in which a command is started. It names no folder."""
    monkeypatch.setenv(name, value)
    detect_compiler.cache_clear()
    dict(COMMANDS)[command](elsewhere)
    assert not (hostile / STOLEN).exists(), (hostile / STOLEN).read_text()


def test_a_package_that_is_not_ones_own(hostile: Path, make_kernel: Callable[..., tuple[Any, Any]]) -> None:
    """Wants the reference of a package in the present folder to be run by the Python that came with it."""
    from evokernel_core.domain.settings import Settings

    task, source = make_kernel()
    with pytest.raises(InterpreterUnavailable):
        again.verify_again(task, source, Settings(), hostile)
    assert not (hostile / STOLEN).exists()


def test_doctor_names_what_it_does_not_run(hostile: Path) -> None:
    """Wants a look at this machine to be a run of its Python: the path is printed, and run with --trust."""
    here = str(hostile / ".venv" / "bin" / "python")
    assert f"{here} (.venv in {hostile}), which was not run" in called("doctor", "--json")
    assert not (hostile / STOLEN).exists()
    for trust in (["--trust"], ["--trust", hostile]):
        (hostile / STOLEN).unlink(missing_ok=True)
        interpreter.forget()
        assert "which was not run" not in called("doctor", *trust, "--json")
        assert ".venv/bin/python" in (hostile / STOLEN).read_text()


def test_a_typed_interpreter_is_that_file(hostile: Path, elsewhere: Path) -> None:
    """What a person types names a folder: it is run, and no other of the same name beside the file."""
    program(elsewhere, ".venv/bin/python")
    called("synth", elsewhere / "model.py", "--plan", "--interpreter", ".venv/bin/python")
    assert (hostile / STOLEN).is_file()
    assert not (elsewhere / STOLEN).exists()


def test_the_files_own_workspace_may_be_used(hostile: Path, elsewhere: Path) -> None:
    own = program(elsewhere, ".venv/bin/python")
    assert str(own) in called("synth", elsewhere / "model.py", "--plan")
    assert not (hostile / STOLEN).exists()


def test_a_project_that_cannot_be_read_stops_nothing(hostile: Path) -> None:
    """Wants the search to hang or break off by what the files that tools read are."""
    for name in ("environment.yml", "pyproject.toml", ".python-version"):
        (hostile / name).unlink()
        os.mkfifo(hostile / name)
    list(folder_interpreters(hostile))
    for name, text in (
        ("pyproject.toml", "tool = 3\nproject = []\n"),
        ("pyproject.toml", "[tool]\npoetry = 'x'\n"),
        ("pyproject.toml", "a = " + "[" * 100_000),
        ("environment.yml", "prefix: ~nobody-of-that-name/x\n"),
        (".python-version", "3\0.11\n../../x\n"),
    ):
        (hostile / name).unlink()
        (hostile / name).write_text(text)
        assert next(folder_interpreters(hostile)).path == str(hostile / ".venv" / "bin" / "python")
        list(folder_interpreters(hostile))
    assert not (hostile / STOLEN).exists()


class _NoCall(Exception):
    """What a request would have been is known."""


async def test_an_untrusted_package_of_a_coding_agent(
    hostile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wants to be where the worker looks for interpreters from then on, for files that are trusted too."""
    seen: list[str] = []

    async def request(_: Any, __: str, ___: str, params: dict[str, Any]) -> dict[str, Any]:
        seen.append(params["near"])
        raise _NoCall

    monkeypatch.setattr(tools, "working", request)
    trusted = tmp_path / "trusted"
    trusted.mkdir()
    access = Access((hostile, trusted), Trust(folders=(trusted,)), may_write=False)
    for folder in (hostile, trusted):
        with pytest.raises(_NoCall):
            await tools.verify_package(str(folder), cast(Any, None), access)
    assert seen == ["", str(trusted)]
    assert Access((hostile,), Trust(folders=(trusted,)), may_write=False).near == ""


def test_a_worker_keeps_no_folder_that_nobody_trusts(hostile: Path, tmp_path: Path) -> None:
    """Wants to stay the workspace of a session that was opened for something else."""
    worker = Worker(io.StringIO())
    assert worker._open(None).agent.workspace is None
    with pytest.raises(InterpreterUnavailable, match=re.escape(sys.executable)):
        worker._open(None).agent._any()
    assert worker._open(tmp_path).agent.workspace == tmp_path
    assert not (hostile / STOLEN).exists()


_MODULE = re.compile(r'"-m",\s*(?!"pip")\S+')


def test_no_python_of_ours_takes_modules_of_its_folder() -> None:
    """A ``ray.py`` or ``attrs.py`` in the present folder wants to be imported by a process that we start with
    ``-m``, which puts that folder first on its path unless ``-P`` or ``-I`` is said."""
    found = [
        (path, text[max(0, match.start() - 40) : match.end()])
        for folder in (ROOT / "evokernel_core", ROOT / "server")
        for path in folder.rglob("*.py")
        for text in [path.read_text()]
        for match in _MODULE.finditer(text)
    ]
    assert len(found) >= 4
    assert [item for item in found if not re.search(r'"-(P|I)",\s*"-m"', item[1])] == []


@pytest.mark.parametrize("cxx", ["./g++", "bin/g++", "./bin/g++ -O1"])
def test_a_relative_compiler_of_the_environment_counts_for_nothing(
    hostile: Path, monkeypatch: pytest.MonkeyPatch, cxx: str
) -> None:
    monkeypatch.setenv("CXX", cxx)
    detect_compiler.cache_clear()
    try:
        assert str(hostile) not in str(detect_compiler())
    except EvoKernelError:
        pass
    finally:
        detect_compiler.cache_clear()
    assert not (hostile / STOLEN).exists()


@pytest.mark.parametrize("name", ["report.json", "report.txt"])
def test_a_link_where_the_report_goes_is_replaced_and_not_followed(elsewhere: Path, name: str) -> None:
    precious = elsewhere / "precious"
    precious.write_text("precious")
    (elsewhere / name).symlink_to(precious)
    written = first_run_report.write(first_run_report.report([]), elsewhere / "report.json")
    assert precious.read_text() == "precious"
    assert all(path.is_file() and not path.is_symlink() for path in written)
    assert not list(elsewhere.glob(".report*"))
