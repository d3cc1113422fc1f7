"""Layers whose initial values are drawn until they lie in a range, and distributions that check theirs."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.targets.ascendc.target import ASCENDC
from tests.capture.test_full_graph import assert_same_model

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


DISTRIBUTIONS = """
import torch
from torch import nn
from torch.distributions import Bernoulli, Categorical, Independent, Normal, kl_divergence

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor, self.logstd = nn.Linear(6, 4), nn.Parameter(torch.zeros(1, 4))

    def forward(self, x, chosen, action):
        logits = self.actor(x)
        choice, normal = Categorical(logits=logits), Normal(logits, self.logstd.expand_as(logits).exp())
        both = Independent(normal, 1).log_prob(action) + kl_divergence(normal, Normal(0.0, 1.0)).sum(1)
        flips = Bernoulli(logits=logits).log_prob((action > 0).float()).sum(-1)
        return choice.log_prob(chosen), choice.entropy(), both, flips

def get_inputs():
    return [torch.randn(7, 6), torch.randint(0, 4, (7,)), torch.randn(7, 4)]
"""
DIAGONALS = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x, tall, cube):
        similar = (x @ x.t()).exp()
        similar.fill_diagonal_(float("-inf"))
        cube = cube.sin().fill_diagonal_(3.0)
        return similar, (tall * 2).fill_diagonal_(1.0, wrap=True), tall.exp().fill_diagonal_(1.0), cube

def get_inputs():
    return [torch.randn(5, 3), torch.randn(11, 3), torch.randn(4, 4, 4)]
"""


@pytest.mark.parametrize("text", [DISTRIBUTIONS, DIAGONALS])
def test_what_asks_for_no_values_is_computed(text: str, agent: Any, tmp_path: Any) -> None:
    torch.distributions.Distribution.set_default_validate_args(True)  # torch.compile switches it off
    (region,) = agent.capture(tmp_path / "model.py", text, covered_ops(ASCENDC), "Model.forward", whole=True)
    assert_same_model(text, region)
    assert torch.distributions.Distribution._validate_args


def test_truncated_normal_values(agent: Any, tmp_path: Any) -> None:
    (region,) = agent.capture(tmp_path / "model.py", TEXT, covered_ops(ASCENDC), "Model.forward", whole=True)
    assert region.task, region.reason
    drawn = torch.nn.init.trunc_normal_(torch.empty(1000))
    assert drawn.abs().max() <= 2 and drawn.abs().mean() < 0.9
