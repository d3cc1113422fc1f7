"""Calls that write into the tensors they are given: the package that takes their place writes them too."""

from __future__ import annotations

from pathlib import Path

import pytest

from evokernel_core.ascendc.author import initial, write
from evokernel_core.ascendc.kernels.registry import covered_ops
from evokernel_core.ascendc.print.package import placed, write_package
from evokernel_core.capture.client import AgentClient
from evokernel_core.capture.edit import plan_edit
from evokernel_core.domain.verdict import Verdict
from evokernel_core.twin.chip import load_chip
from tests import warm

MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, i, v):
        {body}


def get_inputs():
    return [torch.randn(9, 6), torch.randperm(9)[:5], torch.randn(5, 6)]
"""
COMPARE = """
import torch
import os, before, evokernel_kernels, model
torch.manual_seed(0)
given = before.get_inputs()
mine = [value.clone() for value in given]
first, second = before.Model()(*given), model.Model()(*mine)
torch.testing.assert_close(mine, given)
torch.testing.assert_close(second, first)
assert (second is mine[0]) == (first is given[0])
assert sum(evokernel_kernels.calls().values()) == int(os.environ["EVOKERNEL_EMULATE"])
print("fine")
"""
BODIES = {
    "one tensor and no other result": "x[i] = v\n        return x",
    "two tensors": "x[1:4] += v[:3]\n        v.relu_()",
    "a tensor and a result": "x.mul_(2.0)\n        return x.sum(1)",
}


@pytest.mark.parametrize("name", BODIES)
def test_the_package_writes_what_the_call_wrote(name: str, agent: AgentClient, tmp_path: Path) -> None:
    text = MODEL.format(body=BODIES[name])
    (tmp_path / "model.py").write_text(text)
    (found,) = agent.capture(tmp_path / "model.py", text, covered_ops(), whole=True)
    assert found.task is not None, found.reason
    chip = load_chip("ascend910b1")
    source = write(found.task, initial(found.task, chip), chip)
    verdict = Verdict(found.task.task_id, source.source_id, "t", ())
    kernel = write_package(tmp_path, found.task, placed(found), source, verdict).name
    (tmp_path / "before.py").write_text(text)
    (tmp_path / "model.py").write_text(plan_edit(text, found, kernel))
    test = tmp_path / "evokernel_kernels" / kernel / "test_op.py"
    for script, emulate in ((COMPARE, "0"), (COMPARE, "1"), (warm.pytest_of(test), "0")):
        words = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "EVOKERNEL_EMULATE": emulate}
        run = warm.run(script, tmp_path, words)
        assert run.returncode == 0, run.stdout + run.stderr
