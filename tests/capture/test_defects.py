"""A defect of the agent costs one function, and its traceback reaches the log."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from evokernel_core.capture import agent as package
from evokernel_core.capture import client
from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.domain.region import RegionStatus
from evokernel_core.targets.ascendc.target import ASCENDC
from tests import warm

MODEL = """\
import torch


# evokernel: x=f32[8,16]
def good(x):
    return torch.relu(x) * 2.0


# evokernel: x=f32[8,16]
def bad(x):
    return torch.tanh(x) * 3.0
"""
DEFECT = """\
    if absorber.function.qualname == "bad":
        raise IndexError("list index out of range")
"""


@pytest.fixture
def broken_agent(tmp_path: Path) -> Path:
    """A copy of the agent whose growing of regions fails on one function."""
    folder = tmp_path / "agent"
    shutil.copytree(Path(package.__file__).parent, folder)
    path = folder / "regions" / "grow.py"
    text = path.read_text()
    body = text.index(":\n", text.index("def grow(")) + 2
    path.write_text(text[:body] + DEFECT + text[body:])
    return folder


@pytest.mark.parametrize("whole", [False, True])
def test_a_defect_costs_one_function(
    broken_agent: Path,
    tmp_path: Path,
    fusible: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    whole: bool,
) -> None:
    monkeypatch.setattr(client.agent, "__file__", str(broken_agent / "__init__.py"))
    with AgentClient(warm.interpreter()) as found:
        regions = found.capture(tmp_path / "model.py", MODEL, fusible, whole=whole)
    good = [region for region in regions if region.symbol == "good"]
    assert [region.status for region in good] == [RegionStatus.CANDIDATE]
    bad = [region for region in regions if region.symbol == "bad"]
    if whole:  # the program of the function needs no growing
        assert [region.status for region in bad] == [RegionStatus.CANDIDATE]
        return
    (region,) = bad
    assert region.status is RegionStatus.UNSUPPORTED
    assert region.reason.startswith("Line 10 met a defect of EvoKernel while its regions were captured")
    assert "Traceback" in caplog.text


LEVELS = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("levels", torch.tensor([8, 5, 5], dtype=torch.int32))

    def forward(self, x):
        return torch.tanh(x) * (self.levels // 2)

def get_inputs():
    return [torch.randn(64, 3)]
"""


def test_an_operation_on_small_tensors_alone(
    agent: AgentClient, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """They are real ones, whose values the trace may fold."""
    for whole in (False, True):
        regions = agent.capture(
            tmp_path / "model.py", LEVELS, covered_ops(ASCENDC), "Model.forward", whole=whole
        )
        assert any(region.task for region in regions), [region.reason for region in regions]
    assert not caplog.records
