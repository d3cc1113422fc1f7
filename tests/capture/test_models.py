"""Models as people write them: one region for the whole forward, and an edit that computes the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.domain.region import Region
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.author import check
from evokernel_core.targets.ascendc.target import ASCENDC
from tests import warm
from tests.capture.edited import edited_module, runs
from tests.capture.test_full_graph import model

FOLDER = Path(__file__).parent / "models"
X = "torch.randn(4, 6)"


@pytest.fixture
def whole(agent: AgentClient, tmp_path: Path) -> Callable[[str], tuple[Region, ...]]:
    def capture(text: str) -> tuple[Region, ...]:
        return agent.capture(tmp_path / "model.py", text, covered_ops(ASCENDC), whole=True)

    return capture


@pytest.mark.parametrize(
    "name",
    [
        *("llama_gqa", "roberta_positions"),
        *(pytest.param(name, marks=pytest.mark.thorough) for name in ("gpt_bf16", "t5", "unet")),
    ],
)
def test_whole_models(name: str, whole: Callable[[str], tuple[Region, ...]]) -> None:
    text = (FOLDER / f"{name}.py").read_text()
    (region,) = [item for item in whole(text) if item.task is not None]
    assert region.task is not None
    check(region.task, load_chip("ascend910b1"))
    torch.manual_seed(0)
    first, other = edited_module(text), edited_module(text, region)
    one, two = (getattr(module, region.symbol.split(".")[0])() for module in (first, other))
    two.load_state_dict(one.state_dict())
    inputs = first.get_inputs()
    tolerance = 3e-2 if name == "gpt_bf16" else 1e-4
    with torch.no_grad():
        results = [item(**inputs) if isinstance(inputs, dict) else item(*inputs) for item in (one, two)]
    assert runs(other) == 1
    torch.testing.assert_close(results[1], results[0], rtol=tolerance, atol=tolerance)


def test_an_error_that_the_code_catches_leaves_nothing(whole: Callable[[str], tuple[Region, ...]]) -> None:
    forward = "try:\n    y = x.view(7, -1)\nexcept RuntimeError:\n    y = x.view(4, -1)\nreturn y.exp()"
    (region,) = whole(model("self.a = 1", forward, X))[-1:]
    assert region.task is not None and [node.op for node in region.task.graph.nodes] == ["aten.exp.default"]


BUILT = {
    "by the first call": (
        "self.mask = None",
        "if self.mask is None:\n    self.mask = torch.ones(6, 6).tril()\nreturn x @ self.mask",
        "first call sets self.mask",
    ),
    "in a dictionary of the module": (
        "self.kept = {}",
        "if 'm' not in self.kept:\n    self.kept['m'] = x.new_ones(6)\nreturn x * self.kept['m']",
        "first call sets self.kept['m']",
    ),
    "in a list of the file": ("self.a = 1", "SEEN.append(x.shape)\nreturn x.exp()", "changes SEEN"),
}


@pytest.mark.parametrize("name", BUILT)
def test_what_a_call_builds_is_not_taken_for_granted(
    name: str, whole: Callable[[str], tuple[Region, ...]]
) -> None:
    init, forward, reason = BUILT[name]
    found = whole("SEEN = []\n" + model(init, forward, X))
    reasons = [item.reason for item in found if item.task is None and item.symbol == "Model.forward"]
    assert any(reason in item for item in reasons), reasons


TWO = """
import torch
from torch import nn

class First(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        return torch.relu(x * 2 + 1) * 2

class Second(First):
    def forward(self, x):
        return torch.relu(x * 2 + 1) * 2

if __name__ == "__main__":
    one, other = First(), Second()
    one(torch.randn(4, 16))
    other(torch.randn(4, 16))
"""


def test_a_program_with_two_models_has_a_kernel_for_each(tmp_path: Path) -> None:
    """What puts the second one into evaluation is no change that the first one has made."""
    with AgentClient(warm.interpreter(), evaluation=True) as client:
        regions = client.capture(tmp_path / "model.py", TWO, covered_ops(ASCENDC), whole=True)
    assert {region.symbol for region in regions if region.task} == {"First.forward", "Second.forward"}
    assert not [region.reason for region in regions if region.task is None]
    edited = edited_module(TWO, *regions)
    with torch.no_grad():
        for kind in (edited.First, edited.Second):
            before = runs(edited)
            kind().eval()(torch.randn(4, 16))
            assert runs(edited) == before + 1
