"""What PyTorch makes of a model, as a script, a trace or a copy, it makes of the edited model too."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.targets.ascendc.target import ASCENDC
from tests import warm
from tests.capture import export_ways
from tests.capture.conftest import FUSIBLE
from tests.capture.edited import write_edited
from tests.capture.test_meaning import apart

HEAD = """
from typing import Dict, List, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.norm = nn.BatchNorm1d(8)
        self.weight = nn.Parameter(torch.linspace(0.5, 1.5, 8))
        self.register_buffer("table", torch.linspace(1.0, 2.0, 8))
        self.scale, self.count, self.act = 0.5, 2, nn.GELU()

    def forward(self, x):
        {body}


def get_inputs():
    return [torch.randn(6, 8)]
"""
MODELS = {
    "an expression": (False, "return torch.exp(x) * 2 + 1"),
    "statements": (False, "y = torch.exp(x) * 2\ny = y + self.weight\nz = torch.tanh(y)\nreturn z.flip(0)"),
    "an operand that is computed": (False, "y = torch.relu(self.fc(x)) * 2\nreturn y.flip(1)"),
    "two operands that are computed": (False, "return F.silu(self.fc(x)) * self.fc(x.flip(0))"),
    "statements with a computed operand": (
        False,
        "k = float(x.size(1))\ny = torch.exp(self.fc(x) / k)\nz = torch.tanh(y) + 1\nreturn z.flip(0)",
    ),
    "settings": (False, "return self.act(x) * self.scale * self.count"),
    "a buffer": (False, "return torch.exp(x) * self.table + self.weight"),
    "a loop": (False, "for i in range(self.count):\n    x = torch.exp(x * 0.1) + 1\nreturn x"),
    "a program": (True, "return self.norm(torch.relu(self.fc(x)))"),
    "a program with settings": (True, "y = self.act(self.fc(x)) * self.scale\nreturn y + self.weight"),
    "a program of two results": (True, "y = torch.relu(self.fc(x))\nreturn y, y.sum(-1)"),
}


MORE = {"two operands that are computed", "a buffer", "a loop", "a program"}
"""Like others of the table."""


@pytest.fixture(scope="module")
def agent() -> Iterator[AgentClient]:
    with AgentClient(warm.interpreter(), evaluation=True) as client:
        yield client


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.thorough] * (name in MORE)) for name in MODELS]
)
def test_what_pytorch_makes_of_the_model_it_makes_of_the_edited_one(
    name: str, agent: AgentClient, tmp_path: Path
) -> None:
    """In each way, without and with gradients, where kernels can run and where not."""
    whole, body = MODELS[name]
    text = HEAD.replace("{body}", body.replace("\n", "\n        "))
    found = agent.capture(
        tmp_path / "model.py", text, covered_ops(ASCENDC) if whole else FUSIBLE, whole=whole
    )
    regions = apart(found)
    assert regions, [region.reason for region in found]
    write_edited(tmp_path, text, regions)
    (tmp_path / "original.py").write_text(text)
    shutil.copy(str(export_ways.__file__), tmp_path / "ways.py")
    for where, ways in (("emulated", export_ways.WAYS), ("unbuilt", export_ways.WITHOUT_NPU)):
        assert made(tmp_path, where) == {way: ["", ""] for way in ways}, where


def made(folder: Path, where: str) -> dict[str, list[str]]:
    code = f"import sys; sys.argv.append({where!r}); import ways; ways.main()"
    environment = {"PATH": "/usr/bin:/bin", "EVOKERNEL_EMULATE": str(int(where == "emulated"))}
    done = warm.run(code, folder, environment)
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
    return found
