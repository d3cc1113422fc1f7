"""The whole story with nothing in between: a real client's messages, the real worker, torch agent, schedule
proposer, twin and memory, over one of the example models."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests import warm
from tests.server.story import PATIENCE_S, SETTINGS, Story, moved

pytestmark = pytest.mark.usefixtures("warm_torch")

EXAMPLE = Path(__file__).parents[2] / "examples" / "transformer_block.py"
SAME_RESULTS = """
import importlib.util, sys, torch
def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
old, new = load(sys.argv[1], "old"), load(sys.argv[2], "new")
torch.manual_seed(0); before = old.TransformerBlock(*old.get_init_inputs()).eval()
torch.manual_seed(0); after = new.TransformerBlock(*new.get_init_inputs()).eval()
inputs = old.get_inputs()
with torch.no_grad():
    torch.testing.assert_close(after(*inputs), before(*inputs))
    exported = torch.export.export(after, tuple(inputs), strict=False)
assert any("evokernel" in str(node.target) for node in exported.graph.nodes)
"""


@pytest.mark.timeout(900)
async def test_the_story_on_an_example(sessions: Any, workspace: Path, database: Any, tmp_path: Path) -> None:
    path, original = workspace / EXAMPLE.name, tmp_path / EXAMPLE.name
    gated = "F.silu(self.gate(x)) * self.up(x)"  # with more to fuse, so that its gain is beyond the error
    more = "F.silu(self.gate(x)) * torch.sigmoid(self.up(x)) * 2.0"
    original.write_text(EXAMPLE.read_text("utf-8").replace(gated, more), "utf-8")
    shutil.copy(original, path)
    story = Story(await sessions.start(settings={**SETTINGS, "budget": 4}), database, path)
    labels = await story.open()
    operators = [label for label in labels if "torch_npu" in label]
    assert all("torch_npu.npu_rms_norm" in label for label in operators)
    assert all(re.match(r"⚡ [\d.]+x  [\d.,]+ µs est\.", label) for label in labels if "µs" in label)

    kept = await story.generate("torch.softmax(scores")
    (reports,) = story.editor.client.progress_reports.values()
    assert any("attempt 1/4" in (report.message or "") for report in reports)
    await story.quiet()
    used = database.values()
    await story.refine(kept, ["Review"])
    place = {"uri": story.uri, "name": kept}
    assert (await story.editor.command("evokernel.review", place))["status"] == "shown"
    assert (await story.editor.command("evokernel.apply", place))["status"] == "applied"
    await story.outcome("accepted", 2)
    assert {"shown", "opened_diff"} <= set(story.kinds())
    assert moved(used, database.values())

    turned_down = await story.generate("F.silu(self.gate(x))")
    await story.quiet()
    used = database.values()
    await story.refine(turned_down, ["Reject"])
    await story.outcome("rejected")
    await story.outcome("accepted", 3)
    assert moved(used, database.values())

    path.write_text(story.editor.texts[story.uri], "utf-8")
    subprocess.run(
        [warm.interpreter(), "-c", SAME_RESULTS, str(original), str(path)],
        check=True, cwd=workspace, timeout=PATIENCE_S, env={**os.environ, "EVOKERNEL_EMULATE": "1"},
    )  # fmt: skip

    used = database.values()
    await story.revert(kept)
    await story.revert(turned_down)
    assert story.editor.texts[story.uri] == original.read_text("utf-8")
    await story.outcome("reverted", 2)
    assert moved(used, database.values())
