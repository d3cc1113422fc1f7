"""The story against ``evokernel verifier serve`` in another process, killed and restarted in the middle."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import define

from tests.server.conftest import eventually
from tests.server.story import PATIENCE_S, SETTINGS, Story, moved

pytestmark = pytest.mark.usefixtures("warm_torch")

TOKEN = "a-token-of-the-test-that-nobody-guesses"
MODEL = """\
import torch


# evokernel: x=f32[1024,1000]
def attend(x):
    return torch.softmax(x * 0.125, dim=-1)
"""


@define
class Service:
    """A verifier in a process of its own."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [Path(sys.executable).with_name("evokernel"), "verifier", "serve", "--data", self.folder]
        environment = {**os.environ, "EVOKERNEL_VERIFIER_TOKEN": TOKEN}
        del environment[
            "VIRTUAL_ENV"
        ]  # its Python is warm for the editor, and closed to the service's sandbox
        self.process = subprocess.Popen([*map(str, command), "--port", str(self.port)], env=environment)
        deadline = time.monotonic() + 60
        while not self.answers():
            assert time.monotonic() < deadline, "the service did not start"
            time.sleep(0.1)

    def answers(self) -> bool:
        try:
            urllib.request.urlopen(f"{self.url}/v1/status", timeout=1)
        except urllib.error.HTTPError:
            return True  # it asks for a token
        except OSError:
            return False
        return True

    def kill(self) -> None:
        assert self.process
        self.process.kill()
        self.process.wait()


@pytest.fixture
def service(tmp_path: Path, home: Path) -> Iterator[Service]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    made = Service(tmp_path / "service", port)
    made.start()
    yield made
    made.kill()


@pytest.mark.thorough
@pytest.mark.timeout(900)
async def test_the_story_with_a_verifier_that_goes_away(
    sessions: Any, workspace: Path, database: Any, service: Service
) -> None:
    path = workspace / "model.py"
    path.write_text(MODEL, "utf-8")
    editor = await sessions.start(
        settings={**SETTINGS, "verifierUrl": service.url},
        environment={"EVOKERNEL_VERIFIER_TOKEN": TOKEN},
    )
    story = Story(editor, database, path)
    await story.open()
    name = await story.generate("torch.softmax")
    assert editor.statuses[-1].verifier.endswith("(remote)")

    await eventually(lambda: ("refine", "running") in database.jobs(), PATIENCE_S)
    service.kill()
    await eventually(lambda: ("refine", "waiting") in database.jobs(), PATIENCE_S)
    await eventually(lambda: editor.statuses[-1].mode == "queued", PATIENCE_S)
    assert "away" in editor.statuses[-1].text
    service.start()
    await story.quiet()
    done = ("ready", "ready_to_review")  # by whether refinement gained meanwhile
    await eventually(lambda: editor.statuses[-1].mode in done, PATIENCE_S)

    used = database.values()
    await story.refine(name, ["Accept"])
    await story.outcome("accepted", 2)
    await story.refine(name, ["Reject"])
    await story.outcome("rejected")
    await story.revert(name)
    await story.outcome("reverted")
    assert editor.texts[story.uri] == MODEL
    assert moved(used, database.values())
    verifiers = {verifier for (verifier,) in database.rows("SELECT DISTINCT verifier FROM verdicts")}
    assert len(verifiers) == 1 and verifiers.pop().endswith("(remote)")
