"""Layers that differ in training and evaluation: guards ask for the mode that was captured."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import pytest
import torch

from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.lowering.opset import fused_ops
from tests.capture.edited import edited_module, runs

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
        ("", "return self.bn(x) @ w", "self.bn.training is True"),
        ("", "y = self.bn(x)\nreturn y @ w", "self.bn.training is True"),
        ("", "return self.bn(x)", "self.bn.training is True"),
        ("", "y = self.bn(x)\nreturn torch.relu(y)", "self.bn.training is True"),
        ("self.eval()", "return self.bn(x) @ w", "self.bn.training is False"),
        ("self.eval()", "return self.drop(x.exp()) @ w", "self.drop.training is False"),
        # what is the same in both modes is not asked
        ("", "return self.norm(x) @ w", ""),
    ],
)
def test_the_mode_is_asked(mode: str, body: str, expected: str, agent: AgentClient, tmp_path: Path) -> None:
    text = MODEL.format(mode=mode or "pass", body=indent(body, " " * 8))
    found = agent.capture(tmp_path / "model.py", text, fused_ops(), "Net.forward")
    (region,) = [item for item in found if item.site is not None and "self." in item.site.original]
    assert region.site is not None
    asked = [guard.condition for guard in region.site.guards if ".training" in guard.condition]
    assert asked == ([expected] if expected else [])


@pytest.mark.parametrize("mode", ["self.train()", "self.eval()"])
def test_the_kernel_runs_in_the_mode_that_was_captured_alone(
    mode: str, agent: AgentClient, tmp_path: Path
) -> None:
    text = MODEL.format(mode=mode, body=" " * 8 + "return self.bn(x).exp() @ w")
    found = agent.capture(tmp_path / "model.py", text, fused_ops(), "Net.forward")
    (region,) = [item for item in found if item.task is not None and "self.bn" in item.source]
    module, plain = edited_module(text, region), edited_module(text)
    net, other, inputs = module.Net(), plain.Net(), plain.get_inputs()
    with torch.no_grad():
        for train in (not net.training, net.training):
            before = runs(module)
            results = [item.train(train)(*inputs) for item in (net, other)]
            torch.testing.assert_close(*results)
            torch.testing.assert_close(dict(net.named_buffers()), dict(other.named_buffers()))
            assert runs(module) - before == (train is (mode == "self.train()"))
