"""What a function may ask of a tensor besides its values, dtype and sizes, and gets another answer to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

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
        self.last = None
        self.shift = nn.Parameter(torch.ones(6))

    def forward(self, x):
        return x.exp() * ({factor}) + self.shift

def get_inputs():
    return [torch.randn(4, 6)]
"""


def offset() -> torch.Tensor:
    return torch.randn(25)[1:].view(4, 6)


def marked(name: str, value: Any) -> Callable[[], torch.Tensor]:
    def make() -> torch.Tensor:
        x = torch.randn(4, 6)
        setattr(x, name, value)
        return x

    return make


def with_gradient() -> torch.Tensor:
    x = torch.randn(4, 6, requires_grad=True)
    x.grad = torch.ones(4, 6)
    return x


def computed() -> torch.Tensor:
    with torch.enable_grad():
        return torch.randn(4, 6, requires_grad=True) * 1


def changed() -> torch.Tensor:
    return torch.randn(4, 6).add_(1)


def inferred() -> torch.Tensor:
    with torch.inference_mode():
        return torch.randn(4, 6)


def hooked() -> torch.Tensor:
    x = torch.randn(4, 6, requires_grad=True)
    x.register_hook(lambda gradient: gradient)
    return x


def parameter() -> torch.Tensor:
    return nn.Parameter(torch.randn(4, 6))


QUESTIONS: dict[str, Callable[[], torch.Tensor]] = {
    "x.storage_offset() + 1": offset,
    "2 if torch.Tensor.storage_offset(x) else 1": offset,
    "2 if x._is_view() else 1": offset,
    "2 if x._base is None else 1": offset,
    "2 if x.untyped_storage().nbytes() == 96 else 1": offset,
    "2 if x.storage().size() == 24 else 1": offset,
    "2 if x.data_ptr() % 8 else 1": offset,
    "2 if x._version else 1": changed,
    "2 if x.is_leaf else 1": computed,
    "2 if x.grad_fn is None else 1": computed,
    "2 if x.grad is None else 1": with_gradient,
    "2 if getattr(x, 'grad', None) is None else 1": with_gradient,
    "2 if x._backward_hooks else 1": hooked,
    "2 if x.is_inference() else 1": inferred,
    "2 if torch.is_inference(x) else 1": inferred,
    "2 if isinstance(x, nn.Parameter) else 1": parameter,
    "2 if torch.is_nonzero(torch.tensor(isinstance(x, nn.Parameter))) else 1": parameter,
    "getattr(x, 'factor', 1.0)": marked("factor", 3.0),
    "2 if hasattr(x, 'factor') else 1": marked("factor", 3.0),
    "vars(x).get('factor', 1.0)": marked("factor", 3.0),
    "x.__dict__.get('factor', 1.0)": marked("factor", 3.0),
    "3 if x is self.last else 1": torch.Tensor,
    "3 if id(x) == id(self.last) else 1": torch.Tensor,
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_no_answer_of_the_trace_stands_for_another(question: str, agent: AgentClient, tmp_path: Path) -> None:
    text = FILE.replace("{factor}", question)
    for whole in (False, True):
        captured = agent.capture(tmp_path / "model.py", text, covered_ops(ASCENDC), whole=whole)
        regions = [region for region in captured if region.task]
        assert regions or all(region.reason for region in captured)
        if not regions:
            continue
        one, other = executed(text)["Model"](), edited_module(text, *regions)
        model = other.Model()
        assert all(same(one, model, make) for make in (lambda: torch.randn(4, 6), QUESTIONS[question]))
        assert runs(other), "no call was the kernel's"


def same(one: nn.Module, other: nn.Module, make: Callable[[], torch.Tensor]) -> bool:
    x = make()
    x = torch.randn(4, 6) if x.numel() == 0 else x
    for model in (one, other):
        model.last = x if make is torch.Tensor else None
    with torch.no_grad():
        return torch.allclose(one(x), other(x))
