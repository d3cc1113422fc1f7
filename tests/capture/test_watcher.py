"""The torch agent ends with the process that asked it, however that ends, and not earlier."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from evokernel_core.capture import agent
from evokernel_core.capture.client import AgentClient
from evokernel_core.lifeline import lifeline

GONE_S = 5.0
"""What was started must be gone so many seconds after its parent was killed."""
WATCHER = Path(agent.__file__).with_name("watcher.py")

PARENT = """
import sys
from pathlib import Path
from evokernel_core.capture.client import AgentClient
AgentClient(sys.executable, timeout_s=600).capture(Path(sys.argv[1]), None, {})
"""
LOOPS = {
    "that holds the interpreter's lock": "import itertools\nsum(itertools.count())\n",
    "in Python": "while True: pass\n",
    "in another program": "import subprocess\nsubprocess.run(['sleep', '600'])\n",
}


def eventually(reached: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if reached():
            return True
        time.sleep(0.05)
    return reached()


def live(processes: list[psutil.Process]) -> list[psutil.Process]:
    return [one for one in processes if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.parametrize("loop", LOOPS)
def test_a_capture_ends_with_its_killed_parent(loop: str, tmp_path: Path) -> None:
    model, mark = tmp_path / "model.py", tmp_path / "mark"
    model.write_text(f"import torch\nopen({str(mark)!r}, 'w').close()\n{LOOPS[loop]}")
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(model)])
    assert eventually(mark.exists, 120)
    time.sleep(0.3)
    family = psutil.Process(parent.pid).children(recursive=True)
    assert len(family) >= 2
    parent.kill()
    parent.wait()
    assert eventually(lambda: not live(family), GONE_S), live(family)


def test_an_agent_outlives_the_thread_that_started_it() -> None:
    with AgentClient(sys.executable) as client:
        thread = threading.Thread(target=client.ping)
        thread.start()
        thread.join()
        assert client._channel
        pid = client._channel.pid
        time.sleep(0.5)
        assert client.ping()["torch"]
        assert client._channel.pid == pid


def test_an_agent_ends_with_its_killed_watcher() -> None:
    with AgentClient(sys.executable) as client:
        client.ping()
        assert client._channel
        family = psutil.Process(client._channel.pid).children(recursive=True)
        assert family
        os.kill(client._channel.pid, 9)
        assert eventually(lambda: not live(family), GONE_S)


@pytest.mark.parametrize(("code", "status"), [("exit 0", 0), ("exit 9", 9), ("kill -KILL $$", -9)])
def test_a_watched_program_ends_as_it_ends(code: str, status: int) -> None:
    with lifeline() as line:
        command = [sys.executable, "-I", "-S", str(WATCHER), "/bin/sh", "-c", code]
        done = subprocess.run(command, stdin=line, check=False, timeout=30, start_new_session=True)
        assert done.returncode == status


def test_the_group_of_a_watched_program_ends_with_its_lifeline() -> None:
    with lifeline() as line:
        command = [sys.executable, "-I", "-S", str(WATCHER), "/bin/sh", "-c", "sleep 600 & sleep 600"]
        watched = subprocess.Popen(command, stdin=line, start_new_session=True)
        process = psutil.Process(watched.pid)
        assert eventually(lambda: len(process.children(recursive=True)) == 3, 20)
        family = process.children(recursive=True)
    assert watched.wait(GONE_S) == -9
    assert eventually(lambda: not live(family), GONE_S)
