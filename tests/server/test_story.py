"""The whole story with nothing in between: a real client's messages, the real worker, torch agent, schedule
proposer, twin and memory, over one of the example models."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evokernel_core.ascendc.emit.package import read_package, write_package
from evokernel_core.memory.store import Memory

EXAMPLES = Path(__file__).parents[2] / "examples"
PATIENCE_S = 240.0
SETTINGS = {"budget": 6, "leastGain": 0.002, "pauseS": 0.3}
"""Few attempts and small gains: the story is the server's, the schedules' quality is tested elsewhere."""

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
torch.testing.assert_close(after(*inputs), before(*inputs))
exported = torch.export.export(after, tuple(inputs), strict=False)
assert any("evokernel" in str(node.target) for node in exported.graph.nodes)
"""


@pytest.mark.timeout(900)
async def test_the_story_on_an_example(
    sessions: Any, workspace: Path, database: Any, eventually: Any
) -> None:
    path = workspace / "transformer_block.py"
    shutil.copy(EXAMPLES / path.name, path)
    editor = await sessions.start(settings=SETTINGS)

    async def generate(words: str) -> dict[str, Any]:
        action = await editor.action(uri, editor.line_of(uri, words), "Generate NPU kernel")
        answer = await editor.run(action)
        assert answer["status"] == "applied", answer
        assert f"torch.ops.evokernel.{answer['name']}(" in editor.texts[uri]
        return dict(answer)

    uri = editor.open(path)
    hints = await eventually(lambda: editor.hints(uri), PATIENCE_S)
    assert all("modelled (bound" in hint.label for hint in hints)

    async def refine(name: str) -> None:
        """The background's first refinement ends; a slower package comes back, as by a checkout; again."""
        await eventually(lambda: {state for _, state in database.jobs()} == {"done"}, PATIENCE_S)
        bring_back_the_slowest(database, workspace, name)
        action = await editor.action(uri, editor.line_of(uri, f"ops.evokernel.{name}"), "Refine")
        assert (await editor.run(action))["status"] == "queued"

    kept = await generate("torch.softmax(scores")
    reports = [r for reports in editor.client.progress_reports.values() for r in reports]
    assert any("attempt 1/6" in (report.message or "") for report in reports)
    editor.answers = ["Show diff", "Apply"]
    used = database.values()
    await refine(kept["name"])
    await eventually(lambda: not editor.answers, PATIENCE_S)
    await eventually(lambda: len(accepted(database)) == 2, PATIENCE_S)
    kinds = [kind for kind, _ in database.outcomes()]
    assert kinds[0] == "accepted" and {"shown", "opened_diff"} <= set(kinds)
    assert changed(used, database.values())

    turned_down = await generate("F.silu(self.gate(x))")
    editor.answers = ["Reject"]
    await refine(turned_down["name"])
    await eventually(lambda: "rejected" in dict(database.outcomes()), PATIENCE_S)
    assert len(accepted(database)) == 3

    path.write_text(editor.texts[uri], "utf-8")
    subprocess.run(
        [sys.executable, "-c", SAME_RESULTS, str(EXAMPLES / path.name), str(path)],
        check=True, cwd=workspace, timeout=PATIENCE_S,
    )  # fmt: skip

    before = database.values()
    for name in (kept["name"], turned_down["name"]):
        action = await editor.action(uri, editor.line_of(uri, f"ops.evokernel.{name}"), "Revert kernel")
        assert (await editor.run(action))["status"] == "reverted"
    assert editor.texts[uri] == (EXAMPLES / path.name).read_text("utf-8")
    assert [kind for kind, _ in database.outcomes()].count("reverted") == 2
    assert changed(before, database.values())


def bring_back_the_slowest(database: Any, workspace: Path, name: str) -> None:
    """Puts the slowest verified kernel of a package's task into its place."""
    folder = workspace / "evokernel_kernels" / name
    task, _, _ = read_package(folder)
    with Memory(database.path) as memory:
        feasible = [item for item in memory.candidates(task.task_id) if item.verdict.latency]
    slowest = max(feasible, key=lambda item: item.verdict.latency.us if item.verdict.latency else 0.0)
    write_package(workspace, name, task, slowest.source, slowest.verdict)


def accepted(database: Any) -> list[str]:
    return [kind for kind, _ in database.outcomes() if kind == "accepted"]


def changed(before: dict[str, float], after: dict[str, float]) -> bool:
    """Whether any value that was there has moved."""
    return any(after[item] != q for item, q in before.items())
