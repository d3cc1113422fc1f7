"""Results that are objects of a dataclass stay objects of it behind a call."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.domain.region import Region
from evokernel_core.targets.ascendc.target import ASCENDC
from tests.capture.edited import edited_module, edited_text, runs

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
        found = agent.capture(tmp_path / "model.py", text, covered_ops(ASCENDC), "Model.forward", whole=True)
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
def test_a_dataclass_is_made_anew(result: str, text: str, whole: Callable[[str], Region]) -> None:
    source = model(result)
    region = whole(source)
    assert region.task is not None, region.reason
    edited, original = edited_text(source, [region]), source[source.index("        y = x.exp()") :]
    assert text in edited.replace(original, "")
    x = torch.randn(4, 6)
    module = edited_module(source, region)
    other = module.Model()(x)
    assert runs(module)
    one = edited_module(source, region, emulate=False).Model()(x)
    assert repr(one) == repr(other)


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ("return Counted(y)", "The result is a Counted, which its class does not make from its fields alone"),
        ("return Loose(y)", "The result holds a Loose, which a kernel's call cannot make"),
        ("return {y.sum()}", "The result holds a set, which"),
    ],
)
def test_what_a_call_cannot_make(result: str, reason: str, whole: Callable[[str], Region]) -> None:
    region = whole(model(result))
    assert reason in region.reason
