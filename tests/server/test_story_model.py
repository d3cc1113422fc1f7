"""The story with a language model as the proposer, against recorded answers: flawed first, then good."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from evokernel_core.targets.ascendc.source import KERNEL
from tests.server.conftest import eventually
from tests.server.story import PATIENCE_S, SETTINGS, Story, moved
from tests.synthesis.endpoint import RecordedEndpoint, Recording, recording

pytestmark = pytest.mark.usefixtures("warm_torch", "warm_worker")

MODEL = """\
import torch

SECRET_OF_THE_FILE = 42


# evokernel: a=f16[4000037], b=f16[4000037]
def scale_add(a, b):
    return torch.add(a, 2.0 * b)
"""
ANSWERS = ("does_not_compile", "not_json", "wrong_result", "good", "faster")


def doubled_first(name: str) -> Recording:
    """The recorded kernels add twice their second input; a task's inputs come in the order of their use."""
    answer = recording(name)
    if "kernel" in answer:
        launch = "tensors[0], tensors[1]", "tensors[1], tensors[0]"
        files = answer["kernel"]["files"]
        files[KERNEL] = files[KERNEL].replace(*launch)
    return answer


@pytest.mark.timeout(900)
async def test_the_story_with_a_model(sessions: Any, workspace: Path, database: Any) -> None:
    path = workspace / "model.py"
    path.write_text(MODEL, "utf-8")
    with RecordedEndpoint(*map(doubled_first, ANSWERS)) as endpoint:
        model = {"proposer": "llm", "modelUrl": endpoint.url, "model": "recorded"}
        editor = await sessions.start(
            settings={**SETTINGS, **model, "leastGain": 0.0005},
            environment={"EVOKERNEL_API_KEY": "key-of-the-test"},
        )
        story = Story(editor, database, path)
        await story.open()
        shown = await story.act("torch.add", "Show what a model would be asked")
        assert shown["status"] == "shown" and not endpoint.requests
        preview = Path(str(shown["message"]).partition(" is in ")[2].rstrip("."))
        editor.answers = ["Accept"]
        name = await story.generate("torch.add")
        await story.outcome("accepted", 2)  # the draft, and the model's faster one
        reports = [r.message or "" for rs in editor.client.progress_reports.values() for r in rs]
        assert any("attempt 3/6" in words for words in reports)
        used = database.values()
        await story.refine(name, ["Reject"])
        await story.outcome("rejected")
        await story.revert(name)
    assert editor.texts[story.uri] == MODEL
    assert {"accepted", "rejected", "reverted"} <= set(story.kinds())
    assert moved(used, database.values())
    assert json.loads(preview.read_text("utf-8"))["messages"] == endpoint.requests[0]["messages"]
    sent = json.dumps(endpoint.requests)
    assert "SECRET_OF_THE_FILE" not in sent and "key-of-the-test" not in sent
    assert all(headers["authorization"] == "Bearer key-of-the-test" for headers in endpoint.headers)


@pytest.mark.timeout(300)
async def test_cancelling_a_job_closes_the_stream(sessions: Any, workspace: Path, database: Any) -> None:
    path = workspace / "model.py"
    path.write_text(MODEL, "utf-8")
    with RecordedEndpoint(recording("stalled")) as endpoint:
        model = {"proposer": "llm", "modelUrl": endpoint.url, "model": "recorded", "modelProtocol": "chat"}
        editor = await sessions.start(settings={**SETTINGS, **model})
        story = Story(editor, database, path)
        await story.open()
        running = asyncio.create_task(story.act("torch.add", "Generate NPU kernel"))
        await eventually(lambda: endpoint.requests, PATIENCE_S)
        await editor.command("evokernel.cancel", {})
        assert (await running)["status"] == "cancelled"
        assert await asyncio.to_thread(endpoint.left.wait, PATIENCE_S)
    assert database.jobs() == [("generate", "cancelled")]
