"""Tensors that a function asks about without reading their values, in every layout and type."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch

from evokernel_core.capture.agent.graph.unread import conditions
from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.targets.ascendc.target import ASCENDC
from tests.capture.edited import edited_module, runs
from tests.capture.test_full_graph import executed

FILE = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 6)
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x, y):
        {body}

def get_inputs():
    return [torch.randn(4, 6), torch.randn(4, 6)]
"""
BODIES = (
    "return x.exp().to(y.dtype)",
    "return x.exp().to(self.scale.dtype)",
    "return x.exp().to(self.linear.weight.dtype)",
    "return x[:1].exp().expand(y.shape[0], 6)",
    "x = x.exp()\n        return x * y.shape[0]",
    "return x.exp() * y.dim()",
    "return x.exp() * len(y)",
    "return x.exp() * y.numel()",
    "return x.exp() * (2 if y.shape[0] > 3 else 1)",
    "return x.exp() * (2 if y.is_floating_point() else 1)",
    "return x.exp() * (2 if y.is_contiguous() else 1)",
    "return x.exp() * y.stride(0)",
    "return x.exp() * (2 if y.requires_grad else 1)",
    "return x.exp() * (2 if x.is_contiguous() else 1)",
    "return x.exp() * (2 if x.requires_grad else 1)",
    "return x.exp() * self.scale.shape[0]",
    "return x.exp().to(y)",
    "return x.exp().type_as(self.linear.weight)",
    "return x.exp().sum(0).expand(y.shape)",
    "return torch.zeros_like(y) + x.exp()",
    "return torch.ones(y.shape, dtype=y.dtype) + x.exp()",
)
SHAPES = ((4, 6), (1, 6), (3, 6), (4, 4, 6), (7, 6))
DTYPES = (torch.float32, torch.float16, torch.int64)


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("whole", [False, True], ids=["single", "whole"])
def test_what_is_asked_of_a_tensor(body: str, whole: bool, agent: AgentClient, tmp_path: Path) -> None:
    text = FILE.replace("{body}", body)
    symbol = "Model.forward" if whole else None
    found = agent.capture(tmp_path / "model.py", text, covered_ops(ASCENDC), symbol, whole=whole)
    regions = [region for region in found if region.task]
    if not regions:
        assert found and all(region.reason for region in found)
        return
    edited = edited_module(text, *regions)
    one, other = executed(text)["Model"](), edited.Model()
    other.load_state_dict(one.state_dict())
    for weights in (torch.float32, torch.bfloat16):
        one.to(weights)
        other.to(weights)
        for shape, dtype in itertools.product(SHAPES, DTYPES):
            y = torch.randn(*shape).to(dtype)
            views = [y, y.expand(2, *shape)[0].transpose(0, -1).contiguous().transpose(0, -1)]
            views += [y.clone().requires_grad_()] if y.is_floating_point() else []
            for given in views:
                for x in (torch.randn(4, 6), torch.randn(6, 4).T, torch.randn(4, 6, requires_grad=True)):
                    _assert_same(one, other, x, given)
    assert runs(edited), "no call was the kernel's"


def test_sizes_that_two_unread_tensors_share() -> None:
    x, y, z = (
        {"expression": name, "kind": "tensor", "spec": {"dtype": "float32", "shape": shape}}
        for name, shape in (("x", ["s0"]), ("y", ["s1", "s0"]), ("z", ["s1", 3]))
    )
    asked = list(conditions([y, z], [x], {"s0": 1, "s1": 2}))
    sizes = [text for text in asked if ".shape" in text]
    assert sizes == [
        "y.shape[0] >= 2",
        "y.shape[1] == x.shape[0]",
        "z.shape[0] == y.shape[0]",
        "z.shape[1] == 3",
    ]


def test_a_parameter_whose_size_alone_is_read(agent: AgentClient, tmp_path: Path) -> None:
    text = FILE.replace("{body}", "return x.exp() * self.scale.shape[0] + y")
    (region,) = agent.capture(tmp_path / "model.py", text, covered_ops(ASCENDC), "Model.forward", whole=True)
    one, other = executed(text)["Model"](), edited_module(text, region).Model()
    x, y = torch.randn(4, 6), torch.randn(4, 6)
    for model in (one, other):
        model.scale = torch.nn.Parameter(torch.ones(3))
    with torch.no_grad():
        torch.testing.assert_close(other(x, y), one(x, y))


def _assert_same(one: Any, other: Any, x: torch.Tensor, y: torch.Tensor) -> None:
    with torch.no_grad():
        try:
            wanted = one(x, y)
        except Exception as error:
            with pytest.raises(type(error)):
                other(x, y)
            return
        torch.testing.assert_close(other(x, y), wanted)
