"""Layers whose initial values are drawn until they lie in a range."""

from __future__ import annotations

from typing import Any

import torch

from evokernel_core.ascendc.families.registry import covered_ops

TEXT = """
import torch
from torch import nn
from torch.nn.init import trunc_normal_

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(7, 6))
        self.linear = nn.Linear(6, 6)
        trunc_normal_(self.table, std=0.02)
        nn.init.trunc_normal_(self.linear.weight, std=0.02, a=-0.04, b=0.04)

    def forward(self, x):
        return torch.relu(self.linear(x)) + self.table

def get_inputs():
    return [torch.randn(7, 6)]
"""


def test_truncated_normal_values(agent: Any, tmp_path: Any) -> None:
    (region,) = agent.capture(tmp_path / "model.py", TEXT, covered_ops(), "Model.forward", whole=True)
    assert region.task, region.reason
    drawn = torch.nn.init.trunc_normal_(torch.empty(1000))
    assert drawn.abs().max() <= 2 and drawn.abs().mean() < 0.9
