"""Layers that differ in training and evaluation: the replaced code asks for the mode that was captured."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import pytest

from evokernel_core.ascendc.opset import fused_ops
from evokernel_core.capture.client import AgentClient

MODEL = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(6)
        self.drop = nn.Dropout(0.1)
        self.norm = nn.LayerNorm(6)
        {mode}
    def forward(self, x, w):
{body}
def get_inputs():
    return [torch.rand(4, 6), torch.rand(6, 6)]
"""


@pytest.mark.parametrize(
    ("mode", "body", "expected"),
    [
        ("", "return self.bn(x) @ w", "({call} if self.bn.training else self.bn(x))"),
        ("", "y = self.bn(x)\nreturn y @ w", "({call} if self.bn.training else self.bn(x))"),
        ("", "return self.bn(x)", "({call} if self.bn.training else self.bn(x))"),
        ("", "y = self.bn(x)\nreturn torch.relu(y)",
         "if self.bn.training:\n            return {call}\n        y = self.bn(x)\n        "
         "return torch.relu(y)"),
        ("self.eval()", "return self.bn(x) @ w", "({call} if not self.bn.training else self.bn(x))"),
        ("self.eval()", "return self.drop(x.exp()) @ w",
         "({call} if not self.drop.training else self.drop(x.exp()))"),
        # what is the same in both modes is not asked
        ("", "return self.norm(x) @ w", "{call}"),
        ("self.bn = nn.BatchNorm1d(6, track_running_stats=False)", "return self.bn(x) @ w", "{call}"),
    ],
)  # fmt: skip
def test_the_mode_is_asked(mode: str, body: str, expected: str, agent: AgentClient, tmp_path: Path) -> None:
    text = MODEL.format(mode=mode or "pass", body=indent(body, " " * 8))
    found = agent.capture(tmp_path / "model.py", text, fused_ops(), "Net.forward")
    assert expected in [region.replacement for region in found if region.task]
