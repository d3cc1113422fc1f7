"""Layers that learn their sizes from their first call, which stays PyTorch's."""

from __future__ import annotations

from typing import Any

import torch

from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.targets.ascendc.target import ASCENDC
from tests.capture.edited import edited_module, runs

TEXT = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.LazyLinear(6, bias=False), nn.LazyBatchNorm1d()
        self.last = nn.LazyLinear(5)

    def forward(self, x):
        return torch.relu(self.last(self.norm(self.first(x))))

def get_inputs():
    return [torch.randn(4, 3)]
"""


def test_the_first_call_is_left_to_pytorch(agent: Any, tmp_path: Any) -> None:
    found = agent.capture(tmp_path / "model.py", TEXT, covered_ops(ASCENDC), "Model.forward", whole=True)
    (region,) = found
    assert region.task, region.reason
    shapes = {item.expression: len(item.spec.shape) for item in region.task.graph.inputs}
    assert shapes["self.first.weight"] == shapes["self.last.weight"] == 2
    edited = edited_module(TEXT, region)
    model, inputs = edited.Model(), edited.get_inputs()
    with torch.no_grad():
        expected = model(*inputs)
        assert expected.count_nonzero() and not runs(edited)
        result = model(*inputs)
    assert runs(edited) == 1
    torch.testing.assert_close(result, expected)
    assert tuple(model.first.weight.shape) == (6, 3)


def test_single_kernels_ask_too(agent: Any, tmp_path: Any) -> None:
    text = TEXT.replace("self.norm(self.first(x))", "torch.sort(x)[0]")
    found = agent.capture(tmp_path / "model.py", text, covered_ops(ASCENDC))
    (layer,) = [region for region in found if "self.last" in region.source and region.task]
    assert layer.site is not None
    assert any("is_lazy, [*self.last.parameters()" in item.condition for item in layer.site.guards)


def test_a_first_call_that_fails_says_why(capture: Any) -> None:
    found = capture(TEXT.replace("self.first(x)", "self.first(x.view(7, 7))"))
    assert any("view" in region.reason or "shape" in region.reason for region in found)
