"""Attributes that calls set and no __init__ makes."""

from __future__ import annotations

from typing import Any

import pytest

from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.targets.ascendc.target import ASCENDC
from tests.capture.test_full_graph import X, assert_same_model, model

REVERSIBLE = """
class Scaler(nn.Module):
    def forward(self, x, back=False):
        if back:
            return x * self.spread + self.mean
        self.mean = x.mean(1, keepdim=True)
        self.spread = torch.sqrt(x.var(1, keepdim=True) + 1e-5)
        return (x - self.mean) / self.spread

class Model(nn.Module):"""


def test_statistics_that_each_call_sets(agent: Any, tmp_path: Any) -> None:
    forward = "y = self.linear(self.scaler(x))\nreturn self.scaler(y, back=True)"
    text = model("self.scaler, self.linear = Scaler(), nn.Linear(6, 6)", forward, X)
    text = text.replace("\nclass Model(nn.Module):", REVERSIBLE)
    found = agent.capture(tmp_path / "model.py", text, covered_ops(ASCENDC), "Model.forward", whole=True)
    assert_same_model(text, found[0])
    assert found[0].site is not None
    assert "self.scaler.spread = result_" in found[0].site.template


@pytest.mark.parametrize(
    "forward",
    [
        "if not hasattr(self, 'kept'):\n    self.kept = x\n    return x\nself.kept = x.sin()\nreturn x * 2",
        "self.kept = x.sin() if self.kept is None else x.exp()\nreturn self.kept * 2",
        "self.kept = x.sin() if self.kept is None else self.kept * x\nreturn self.kept * 2",
        "if self.kept is None:\n    self.kept = x.sin()\nreturn self.kept * x",
        "try:\n    self.one\n    self.one = x.exp()\nexcept AttributeError:\n    self.one = x\nreturn x * 2",
    ],
)
def test_what_the_first_call_alone_sets(forward: str, agent: Any, tmp_path: Any) -> None:
    init = "self.a = 1" if "hasattr" in forward else "self.kept = None"
    text = model(init, forward, X)
    found = agent.capture(tmp_path / "model.py", text, covered_ops(ASCENDC), "Model.forward", whole=True)
    reasons = [item.reason for item in found if item.task is None]
    assert any("The first call sets self." in reason for reason in reasons), reasons
