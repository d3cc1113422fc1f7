"""Functions that a capture replaces by its own: a guard asks for what programs have, so that kernels run."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.targets.ascendc.target import ASCENDC
from tests.capture.edited import edited_module, runs

HEAD = """
import torch
import torch.utils.checkpoint as cp
from torch import nn
from torch.utils.checkpoint import checkpoint


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.Sequential(nn.Sigmoid(), nn.LayerNorm(6))
        self.checkpointing = False

    def forward(self, x):
        x = torch.relu(x) * 2
        return {result}


def get_inputs():
    return [torch.randn(4, 6)]
"""
RESULTS = (
    "checkpoint(self.act, x, use_reentrant=False) if self.checkpointing and self.training else self.act(x)",
    "checkpoint(self.act, x, use_reentrant=False)",
    "cp.checkpoint(self.act, x, use_reentrant=False)",
    "torch.utils.checkpoint.checkpoint(self.act, x, use_reentrant=False)",
    "self.act.to(x.device)(x)",
)


@pytest.mark.parametrize("result", RESULTS)
def test_a_kernel_runs_whatever_the_capture_replaced(agent: AgentClient, tmp_path: Path, result: str) -> None:
    text = HEAD.format(result=result)
    regions = agent.capture(tmp_path / "model.py", text, covered_ops(ASCENDC), whole=True)
    module = edited_module(text, *(region for region in regions if region.task))
    model = module.Model().eval()
    with torch.no_grad():
        model(torch.randn(4, 6))
    assert runs(module), [str(region.reason) for region in regions]
