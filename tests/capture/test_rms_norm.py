"""RMS norms, which PyTorch computes with writes in place, as regions of single lines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch.nn import functional

from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.domain.region import Region
from evokernel_core.targets.ascendc.target import ASCENDC
from tests.capture.test_full_graph import kernel

TEXT = """
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm({shape}, eps={eps}, elementwise_affine={weighted}, dtype=torch.{dtype})

    def forward(self, x):
        return {body}


def get_inputs():
    return [torch.randn(3, 6, 10, dtype=torch.{dtype})]
"""
Found = Callable[..., Region]


@pytest.fixture
def found(agent: AgentClient, tmp_path: Path) -> Found:
    def run(body: str, shape: str, eps: str, weighted: bool, dtype: str) -> Region:
        text = TEXT.format(body=body, shape=shape, eps=eps, weighted=weighted, dtype=dtype)
        (tmp_path / "model.py").write_text(text)
        (region,) = agent.capture(tmp_path / "model.py", text, covered_ops(ASCENDC))
        return region

    return run


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize(("shape", "eps", "weighted"), [("10", "None", True), ("(6, 10)", "1e-3", False)])
def test_a_norm_alone_is_a_region(found: Found, shape: str, eps: str, weighted: bool, dtype: str) -> None:
    region = found("self.norm(x) * 2", shape, eps, weighted, dtype)
    assert region.task is not None, region.reason
    kind = getattr(torch, dtype)
    x = torch.randn(3, 6, 10, generator=torch.Generator().manual_seed(0)).to(kind)
    weight = torch.arange(1, 11).to(kind)
    sizes = (10,) if weighted else (6, 10)
    given = {"x": x, "self.norm.weight": weight, "self.norm.eps": eps != "None" and float(eps)}
    arguments = [given[item.expression] for item in region.task.graph.inputs]
    wanted = functional.rms_norm(
        x, sizes, weight if weighted else None, None if eps == "None" else float(eps)
    )
    tolerance = 1e-5 if dtype == "float32" else 2e-2
    torch.testing.assert_close(kernel(region.task)(*arguments), wanted * 2, rtol=tolerance, atol=tolerance)
