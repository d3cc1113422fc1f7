"""Lengths that layers compute with fractions, one from another."""

from __future__ import annotations

from typing import Any

from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.targets.ascendc.target import ASCENDC
from tests.capture.test_full_graph import assert_same_model

TEXT = """
import math
import torch
import torch.nn.functional as F
from torch import nn

class Padded(nn.Module):
    def __init__(self, width, kernel, stride):
        super().__init__()
        self.conv, self.kernel, self.stride = nn.Conv1d(width, width, kernel, stride), kernel, stride

    def forward(self, x):
        total = self.kernel - self.stride
        frames = (x.shape[-1] - self.kernel + total) / self.stride + 1
        ideal = (math.ceil(frames) - 1) * self.stride + self.kernel - total
        return self.conv(F.pad(x, (total, ideal - x.shape[-1]), "reflect"))

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        shapes = [(7, 1), (4, 2), (3, 1), (8, 4), (3, 1), (5, 2)]
        self.layers = nn.Sequential(*[layer for shape in shapes for layer in (Padded(4, *shape), nn.ELU())])

    def forward(self, x):
        return self.layers(x)

def get_inputs():
    return [torch.randn(2, 4, 101)]
"""


def test_lengths_of_lengths_are_numbers(agent: Any, tmp_path: Any) -> None:
    (region,) = agent.capture(tmp_path / "model.py", TEXT, covered_ops(ASCENDC), "Model.forward", whole=True)
    assert region.task is not None, region.reason
    assert [symbol.size for symbol in region.task.symbols] == [2]
    assert_same_model(TEXT, region)


def test_a_length_computed_once_stays_a_symbol(agent: Any, tmp_path: Any) -> None:
    text = TEXT.replace("[(7, 1), (4, 2), (3, 1), (8, 4), (3, 1), (5, 2)]", "[(4, 2)]")
    (region,) = agent.capture(tmp_path / "model.py", text, covered_ops(ASCENDC), "Model.forward", whole=True)
    assert region.task is not None, region.reason
    assert_same_model(text, region)
