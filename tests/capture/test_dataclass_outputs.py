"""Results that are objects of a dataclass stay objects of it behind a call."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from evokernel_core.ascendc.families.registry import covered_ops
from evokernel_core.capture.client import AgentClient
from evokernel_core.capture.edit import plan_edit
from evokernel_core.domain.region import Region
from tests.capture.test_full_graph import executed, kernel

HEAD = """
import torch
from collections import OrderedDict
from dataclasses import dataclass, fields
from torch import nn

class Outputs(OrderedDict):
    def __post_init__(self):
        for item in fields(self):
            if getattr(self, item.name) is not None:
                self[item.name] = getattr(self, item.name)

@dataclass
class Masked(Outputs):
    loss: torch.Tensor | None = None
    logits: torch.Tensor | None = None
    states: tuple | None = None

@dataclass
class Pair:
    left: torch.Tensor
    right: torch.Tensor
    name: str = "pair"
    scale: float = 1.0

@dataclass
class Counted:
    value: torch.Tensor
    def __post_init__(self):
        self.value = self.value + 1

class Loose:
    def __init__(self, value):
        self.value = value
"""


@pytest.fixture
def whole(agent: AgentClient, tmp_path: Path) -> Callable[[str], Region]:
    def capture(text: str) -> Region:
        found = agent.capture(tmp_path / "model.py", text, covered_ops(), "Model.forward", whole=True)
        return next(
            region for region in found if region.span.line >= text[: text.find("forward")].count("\n")
        )

    return capture


def model(result: str) -> str:
    return (
        f"{HEAD}\nclass Model(nn.Module):\n    def forward(self, x):\n        y = x.exp()\n"
        f"        {result}\n\ndef get_inputs():\n    return [torch.randn(4, 6)]\n"
    )


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("return Masked(logits=y * 2, states=(y, y.sum()))", "Masked(logits="),
        ("return Pair(y, y.sin(), scale=2.0)", "scale=2.0)"),
        ("return [Pair(y, right=y.sin()), {'all': Pair(y.cos(), y.sin(), 'b')}]", "name='b')}]"),
        ("half = Pair(y, y.sin())\n        return half.left + half.right", "return "),
    ],
)
def test_a_dataclass_is_made_anew(
    result: str, text: str, whole: Callable[[str], Region], monkeypatch: Any
) -> None:
    monkeypatch.setitem(sys.modules, "model", ModuleType("model"))  # where dataclasses look themselves up
    source = model(result)
    region = whole(source)
    assert region.task is not None, region.reason
    edited = plan_edit(source, region, "k").replace("import evokernel_kernels.k  # noqa: F401", "")
    assert text in edited
    edited = edited.replace("torch.ops.evokernel.k(", "kernel_k(")
    x = torch.randn(4, 6)
    one = executed(source)["Model"]()(x)
    other = executed(edited, kernel_k=kernel(region.task))["Model"]()(x)
    assert repr(one) == repr(other)


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ("return Counted(y)", "The result is a Counted that its class does not make from its fields alone"),
        ("return Loose(y)", "The result holds a Loose, which a kernel's call cannot make"),
        ("return {y.sum()}", "The result holds a set, which"),
    ],
)
def test_what_a_call_cannot_make(result: str, reason: str, whole: Callable[[str], Region]) -> None:
    region = whole(model(result))
    assert reason in region.reason
