"""The agent's process: what hangs, dies or has no torch gives one sentence, and the next call works."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import venv
from pathlib import Path

import psutil
import pytest

from evokernel_core.capture import interpreter
from evokernel_core.capture.client import AgentClient
from evokernel_core.capture.interpreter import find_interpreter
from evokernel_core.domain.errors import AgentFailed, InterpreterUnavailable
from tests.tables import few

GOOD = "import torch\n\n# evokernel: x=f32[4]\ndef f(x):\n    return x.exp()\n"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return tmp_path / "model.py"


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """An interpreter without torch."""
    venv.create(tmp_path / "bare", with_pip=False)
    return tmp_path / "bare" / "bin" / "python"


def test_a_hanging_file_is_stopped_with_its_children(model: Path, fusible: dict[str, str]) -> None:
    with AgentClient(sys.executable, timeout_s=60) as agent:
        agent.capture(model, GOOD, fusible)
        agent.timeout_s = 3
        text = (
            "import torch, subprocess\n"
            f"child = subprocess.Popen(['sleep', '600'])\nopen({str(model)!r}, 'w').write(str(child.pid))\n"
            "while True: pass\n"
        )
        started = time.monotonic()
        with pytest.raises(AgentFailed, match="did not finish capture in 3 s and was stopped"):
            agent.capture(model, text, fusible)
        assert time.monotonic() - started < 10
        child = int(model.read_text())
        assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE
        agent.timeout_s = 60
        assert agent.capture(model, GOOD, fusible)[0].task


@pytest.mark.parametrize(
    ("line", "message"),
    [("import os; os._exit(3)", "exit status 3"), ("import os; os.kill(os.getpid(), 11)", "SIGSEGV")],
)
def test_a_dying_agent_is_replaced(agent: AgentClient, model: Path, fusible: dict[str, str],
                                   line: str, message: str) -> None:  # fmt: skip
    with pytest.raises(AgentFailed, match=f"{message}.*twice in a row"):
        agent.capture(model, f"import torch\n{line}\n", fusible)
    assert agent.capture(model, GOOD, fusible)[0].task


def test_an_agent_that_is_killed_between_calls_is_replaced(agent: AgentClient) -> None:
    agent.ping()
    assert agent._channel
    os.kill(agent._channel.pid, signal.SIGKILL)
    time.sleep(0.2)
    assert agent.ping()["torch"]


@few("times", [1, 3], keep=(0,))
def test_an_idle_agent_that_is_killed_is_not_missed(times: int) -> None:
    """Its watcher is a moment behind: the next call may still take it for alive."""
    with AgentClient(sys.executable) as agent:
        for _ in range(times):
            agent.ping()
            assert agent._channel
            (inner,) = psutil.Process(agent._channel.pid).children()
            inner.kill()
            assert agent.ping()["torch"]


def test_an_agent_that_is_killed_once_in_a_call_is_started_again_silently(
    agent: AgentClient, model: Path, fusible: dict[str, str]
) -> None:
    mark = model.with_suffix(".mark")
    killed = (
        "import os, signal\n"
        f"if not os.path.exists({str(mark)!r}):\n"
        f"    open({str(mark)!r}, 'w').close()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert agent.capture(model, killed + GOOD, fusible)[0].task
    assert mark.exists()


def test_the_channel_survives_a_write_to_its_descriptors(
    agent: AgentClient, model: Path, fusible: dict[str, str]
) -> None:
    text = GOOD.replace("import torch", "import torch, os\nfor fd in (0, 1): os.close(fd)")
    assert agent.capture(model, text, fusible)[0].task
    assert agent.capture(model, GOOD + "\n", fusible)[0].task


def test_captures_are_remembered(agent: AgentClient, model: Path, fusible: dict[str, str]) -> None:
    marks = model.with_suffix(".marks")
    text = f"open({str(marks)!r}, 'a').write('x')\n{GOOD}"
    assert agent.capture(model, text, fusible) == agent.capture(model, text, fusible)
    assert marks.read_text() == "x"


def test_changed_modules_of_the_project_are_read_again(
    agent: AgentClient, model: Path, fusible: dict[str, str]
) -> None:
    helper = model.with_name("helper_of_model.py")
    text = (
        "import torch\nfrom helper_of_model import size\n\ndef f(x):\n    return x.exp()\n\n"
        "def get_inputs():\n    return [torch.rand(size, 4)]\n"
    )
    for size in (8, 16):
        helper.write_text(f"size = {size}\n")
        (region,) = agent.capture(model, text + f"# {size}\n", fusible)
        assert region.task
        assert region.task.sizes["s0"] == size


def test_a_file_may_be_called_like_a_library(
    agent: AgentClient, model: Path, fusible: dict[str, str]
) -> None:
    for name in ("random.py", "types.py"):
        assert agent.capture(model.with_name(name), GOOD, fusible)[0].task
    assert agent.ping()["torch"]


def test_secrets_do_not_reach_the_users_code(
    model: Path, fusible: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVOKERNEL_API_KEY", "secret")
    text = GOOD.replace("import torch", "import os, torch\nassert 'EVOKERNEL_API_KEY' not in os.environ")
    with AgentClient(sys.executable) as agent:
        assert agent.capture(model, text, fusible)[0].task


def test_no_torch_in_the_interpreter(bare: Path, model: Path, fusible: dict[str, str]) -> None:
    with AgentClient(str(bare)) as agent, pytest.raises(InterpreterUnavailable, match="install torch"):
        agent.capture(model, GOOD, fusible)


TORCHES = {
    "too old": (
        "__version__ = '2.4.1+cpu'",
        r"has torch 2\.4\.1\+cpu, and .* 2\.5 and newer: install a newer torch",
    ),
    "far too old": ("__version__ = '1.13.1'", "install a newer torch or set another interpreter"),
    "without a version": ("", "has torch of no version"),
    "broken": ("raise OSError('libcudart.so.12: cannot open')", r"cannot import torch \(OSError: libcudart"),
    "without a library": (
        "import a_library_that_is_absent",
        r"cannot import torch .*a_library_that_is_absent",
    ),
}


@pytest.mark.parametrize("name", TORCHES)
def test_a_torch_that_the_agent_does_not_work_with_is_named(
    name: str, bare: Path, model: Path, fusible: dict[str, str]
) -> None:
    text, message = TORCHES[name]
    (packages,) = bare.parent.parent.glob("lib/python*/site-packages")
    (packages / "torch.py").write_text(text)
    with AgentClient(str(bare)) as agent:
        for call in (agent.ping, lambda: agent.capture(model, GOOD, fusible)):
            with pytest.raises(InterpreterUnavailable, match=message) as refused:
                call()
            assert str(refused.value).startswith(f"The interpreter {bare} ")


@pytest.mark.parametrize("version", ["2.5.0", "2.14.1+cu130", "2.15.0a0+gitabc", "3.0"])
def test_newer_versions_are_not_refused(version: str, bare: Path) -> None:
    (packages,) = bare.parent.parent.glob("lib/python*/site-packages")
    (packages / "torch.py").write_text(f"__version__ = {version!r}")
    with AgentClient(str(bare)) as agent:
        assert agent.ping()["torch"] == version


def test_no_interpreter_at_the_path(tmp_path: Path) -> None:
    absent = AgentClient(str(tmp_path / "absent"))
    with pytest.raises(InterpreterUnavailable, match="could not be started"):
        absent.ping()


def test_closing_twice_is_harmless() -> None:
    agent = AgentClient(sys.executable)
    agent.close()
    agent.close()


def test_the_setting_comes_first(tmp_path: Path, bare: Path) -> None:
    interpreter.forget()
    assert find_interpreter(sys.executable, tmp_path).how == "setting"
    with pytest.raises(InterpreterUnavailable, match="has no torch"):
        find_interpreter(str(bare), tmp_path)
    for path in (str(tmp_path / "absent"), "/bin/true"):
        with pytest.raises(InterpreterUnavailable, match="does not run Python"):
            find_interpreter(path, tmp_path)


def test_the_workspace_is_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    script = tmp_path / ".venv" / "bin" / "python"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    script.chmod(0o755)
    interpreter.forget()
    found = find_interpreter("", tmp_path)
    assert found.path == str(script)
    assert found.how == f".venv in {tmp_path}"


def test_one_without_torch_is_passed_over(
    tmp_path: Path, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", str(bare.parent.parent))
    monkeypatch.setenv("PATH", str(bare.parent))
    interpreter.forget()
    found = find_interpreter("", tmp_path)
    assert found.how == "EvoKernel's own interpreter"


def test_the_client_does_not_import_torch() -> None:
    code = "import sys, evokernel_core.capture.client as _; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_agent_runs_from_a_copy_of_its_folder(tmp_path: Path) -> None:
    """It needs nothing of this distribution, so it runs in an interpreter that lacks it."""
    from evokernel_core.capture import agent

    copy = shutil.copytree(Path(agent.__file__).parent, tmp_path / "elsewhere")
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    frame = b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
    done = subprocess.run([sys.executable, "-I", str(copy)], input=frame, capture_output=True, check=True)
    assert b'"torch"' in done.stdout
