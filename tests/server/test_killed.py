"""The server is killed at random moments of a job: nothing that a person saw is lost, and work goes on."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("scripted")

LATEST_S = 0.9
"""A whole story takes about this long after the command is sent."""


def whole_packages(workspace: Path) -> bool:
    """Every package that Python could import is complete."""
    folders = [p for p in workspace.glob("evokernel_kernels/*") if p.is_dir() and p.name.isidentifier()]
    for folder in folders:
        manifest = json.loads((folder / "kernel.json").read_text())
        assert manifest["verdict"]["latency"], folder
        assert (folder / "op_kernel.cpp").read_text().endswith("\n")
    return True


async def generate_and_kill(editor: Any, path: Path, after_s: float, eventually: Any) -> str:
    """Asks for a kernel and kills the server a moment later; gives the text that the editor then has."""
    uri = editor.open(path)
    await eventually(lambda: editor.hints(uri))
    action = await editor.action(uri, editor.line_of(uri, "torch.softmax"), "Generate NPU kernel")
    asking = asyncio.ensure_future(editor.run(action))
    await asyncio.sleep(after_s)
    os.kill(editor.client._server.pid, signal.SIGKILL)
    await editor.client._server.wait()
    await asyncio.gather(asking, return_exceptions=True)
    return str(editor.texts[uri])


async def is_in_place(editor: Any, uri: str) -> bool:
    """Accepts the kernel once it is ready; whether its call is in the text."""
    called = "evokernel_kernels" in editor.texts[uri]
    if not called and await editor.labels(uri, "⚡ ready "):
        place = (await editor.command("evokernel.status"))["pending"][0]
        await editor.command("evokernel.apply", {"uri": uri, "regionId": place["regionId"]})
    return called


def state_of(database: Any, path: Path) -> tuple[list[str], int]:
    """The states of a file's generate jobs, and how often its kernel was recorded as accepted."""
    jobs = database.rows(
        "SELECT id, state FROM jobs WHERE file = ? AND kind = 'generate' ORDER BY created", str(path)
    )
    first = database.rows(
        "SELECT count(*) FROM outcomes o, jobs j WHERE o.kind = 'accepted' AND j.file = ?"
        " AND j.kind = 'generate' AND o.region_id LIKE j.region_id || '%' AND o.at >= j.created"
        " AND o.region_id = ?",
        str(path),
        key_of(database, path),
    )
    return [state for _, state in jobs], first[0][0]


def key_of(database: Any, path: Path) -> str:
    from evokernel_core.domain.placement import place_key

    found = database.rows("SELECT region_id FROM jobs WHERE file = ?", str(path))
    return place_key(path, found[0][0]) if found else ""


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kills", [5, pytest.param(50, marks=pytest.mark.thorough)])
async def test_killed_at_random_moments(
    kills: int, sessions: Any, workspace: Path, database: Any, eventually: Any
) -> None:
    rng = random.Random(20)
    model = (workspace / "model.py").read_text("utf-8")
    environment = {"SCRIPT_PAUSE_S": "0.03"}
    editor = await sessions.start(environment=environment)
    for number in range(kills):
        path = workspace / f"model_{number}.py"
        path.write_text(model, "utf-8")
        text = await generate_and_kill(editor, path, rng.uniform(0.0, LATEST_S), eventually)
        await sessions.stop(editor)
        assert whole_packages(workspace)
        asked = state_of(database, path)[0]

        path.write_text(text, "utf-8")
        editor = await sessions.start(environment=environment)
        editor.answers = ["Dismiss"] * 5
        uri = editor.open(path)
        if not asked:
            assert "evokernel_kernels" not in text, "an edit was made for a job that was never saved"
            continue
        await eventually(lambda e=editor, u=uri: is_in_place(e, u))
        await eventually(lambda p=path: state_of(database, p)[0] == ["done"])
        await eventually(lambda p=path: state_of(database, p)[1] >= 1)
        assert whole_packages(workspace)
    accepted = database.rows("SELECT region_id, source_id, count(*) FROM outcomes WHERE kind = 'accepted'"
                             " GROUP BY region_id, source_id HAVING count(*) > 1")  # fmt: skip
    assert not accepted, "an acceptance was recorded twice"
