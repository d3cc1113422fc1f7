"""A review with nothing in between: the real worker, torch agent, proposer, twin and memory."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.server.story import SETTINGS, Story
from tests.server.test_reviewing import asked

pytestmark = pytest.mark.usefixtures("warm_torch", "warm_worker")

EXAMPLE = Path(__file__).parents[2] / "examples" / "transformer_block.py"
CODE = "torch.softmax(scores"


@pytest.mark.timeout(900)
async def test_a_review_of_an_examples_kernel(sessions: Any, workspace: Path, database: Any) -> None:
    path = workspace / EXAMPLE.name
    shutil.copy(EXAMPLE, path)
    settings = {**SETTINGS, "refineInBackground": False, "editAtOnce": True}
    story = Story(await sessions.start(settings=settings), database, path)
    await story.open()
    editor, uri = story.editor, story.uri
    action = await editor.action(uri, editor.line_of(uri, CODE), "Generate NPU kernel")
    resolved = await editor.client.code_action_resolve_async(action)
    place = {"uri": uri, "regionId": resolved.command.arguments[0]["regionId"]}
    editor.refuse_edits = True
    await asked(editor, "generate", place)
    editor.refuse_edits = False
    assert editor.texts[uri] == EXAMPLE.read_text("utf-8")

    review = (await asked(editor, "review", place))["review"]
    kernel = review["kernel"]
    assert review["line"] == editor.line_of(uri, CODE)
    assert {
        "name": "scores",
        "condition": "is float32 of s0 x s1 x s2 x s3 (4 x 8 x 256 x 256 when it was captured).",
    } in review["guards"]
    assert [gate["status"] for gate in kernel["gates"]] == ["passed"] * 4
    assert "s0=4, s1=8, s2=256, s3=256" in kernel["gates"][2]["detail"]
    assert 0 < kernel["error"]["abs"] < 1e-4 and 0 < kernel["error"]["rel"] < 1e-4
    assert kernel["boundUs"] < kernel["us"] < kernel["baselineUs"]
    assert kernel["inputs"][0] == {"name": "scores", "dtype": "float32", "shape": [4, 8, 256, 256]}
    assert 0 < max(kernel["pipes"].values()) <= 1
    assert any(item.startswith("Bottleneck (estimated): ") for item in review["why"])
    assert all(file["after"] and not file["before"] for file in review["files"])
    assert not (workspace / "evokernel_kernels" / review["name"]).exists()

    page = Path((await asked(editor, "timeline", place))["path"])
    assert "<!doctype html>" in page.read_text("utf-8").lower()
    assert '"kernel":' in page.read_text("utf-8")

    applied = await asked(editor, "generate", place)
    assert applied["status"] == "applied", applied
    assert editor.texts[uri] == review["after"]
    installed = {"uri": uri, "name": applied["name"]}
    assert applied["name"] == review["name"]
    (only, *_) = (await asked(editor, "variants", installed))["variants"]
    assert only["installed"] and only["best"]
    assert (await asked(editor, "timeline", installed))["path"] == str(page)
