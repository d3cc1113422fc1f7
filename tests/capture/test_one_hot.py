"""One-hot encodings stay what they are in a graph: PyTorch takes no class below 0 or beyond the last one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from evokernel_core.capture.client import AgentClient, CaptureWay
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.domain.eager import DRAWS
from evokernel_core.domain.region import Region
from evokernel_core.targets.ascendc.target import ASCENDC

HEAD = "import torch\nimport torch.nn.functional as F\n\n\n"
BODIES = {
    "plain": ("i=i64[8]", "F.one_hot(i, 5).float() * 2"),
    "nested": ("i=i64[4,3], x=f32[4,3,6]", "(F.one_hot(i, num_classes=6) * x).sum(-1)"),
    "codebook": ("i=i64[8], w=f32[7,4]", "F.one_hot(i, w.shape[0]).float() @ w"),
}
INDICES = {"negative_index", "index_out_of_range"}


def capture(agent: AgentClient, path: Path, text: str, whole: bool) -> Region:
    path.write_text(text)
    (region,) = agent.capture(path, text, covered_ops(ASCENDC), whole=whole)
    return region


def function(shapes: str, body: str) -> str:
    names = ", ".join(part.split("=")[0].strip() for part in shapes.split("], "))
    return f"{HEAD}# evokernel: {shapes}\ndef f({names}):\n    return {body}\n"


@pytest.mark.parametrize("whole", [True, False], ids=["program", "part"])
@pytest.mark.parametrize("name", BODIES)
def test_code_and_graph_refuse_the_same_classes(
    agent: AgentClient, tmp_path: Path, name: str, whole: bool
) -> None:
    text = function(*BODIES[name])
    region = capture(agent, tmp_path / "model.py", text, whole)
    assert region.task is not None, region.reason
    ops = [node.op for node in region.task.graph.nodes]
    assert "aten.one_hot.default" in ops
    assert not {"aten.arange.start_step", "aten.eq.Tensor"} & set(ops)
    found = agent.compare(region, text, (CaptureWay(covered_ops(ASCENDC), whole),))
    assert not found.difference
    assert not found.uncompared
    assert set(found.compared) >= INDICES
    assert set(found.compared) <= set(DRAWS)


@pytest.mark.parametrize("whole", [True, False], ids=["program", "part"])
def test_a_number_of_classes_that_the_values_decide_is_refused(
    agent: AgentClient, tmp_path: Path, whole: bool
) -> None:
    region = capture(agent, tmp_path / "model.py", function("i=i64[8]", "F.one_hot(i).float() * 2"), whole)
    assert region.task is None
    assert "depends on the values of a tensor" in str(region.reason)


def test_indices_that_pytorch_refuses_have_no_graph(agent: AgentClient, tmp_path: Path) -> None:
    text = function("i=i32[8]", "F.one_hot(i, 5).float() * 2")
    first, *others = agent.capture(tmp_path / "model.py", text, covered_ops(ASCENDC), whole=True)
    assert first.task is None
    assert "one_hot" in str(first.reason)
    assert not any("one_hot" in node.op for item in others if item.task for node in item.task.graph.nodes)


def test_classes_that_are_computed_are_in_range_in_a_reference(agent: AgentClient, tmp_path: Path) -> None:
    """Where the classes are no input, integers are tried that make some which there are."""
    region = capture(agent, tmp_path / "model.py", function("i=i64[8]", "F.one_hot(i + 1, 3) * 2.0"), True)
    task: Any = region.task
    assert task is not None, region.reason
    case = agent.reference(task, task.sizes, 0, "normal", tmp_path / "case")
    result = torch.frombuffer(bytearray(case.outputs[0].read_bytes()), dtype=torch.float32).reshape(-1, 3)
    assert result.sum(-1).tolist() == [2.0] * 8
