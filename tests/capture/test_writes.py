"""Calls that write into the tensors they are given: the package that takes their place writes them too."""

from __future__ import annotations

from pathlib import Path

import pytest

from evokernel_core.capture.client import AgentClient
from evokernel_core.capture.edit import plan_edit
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.domain.verdict import Verdict
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.package.write import placed
from evokernel_core.targets.ascendc.author import initial, write
from evokernel_core.targets.ascendc.target import ASCENDC
from evokernel_core.targets.packages import write_package
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
STATE = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.hidden = torch.randn(4, 6)
        self.linear = nn.Linear(10, 6)

    @torch.no_grad()
    def forward(self, x, first):
        {body}


def get_inputs():
    return [torch.randn(4, 4), torch.randn(4, 6)]
"""
STATE_BODIES = {
    "a tensor that the call then replaces": """self.hidden.copy_(first)
        self.hidden = torch.tanh(self.linear(torch.cat((x, self.hidden), 1)))
        return self.hidden * 2""",
    "a tensor that the call has read before": """y = self.linear(torch.cat((x, self.hidden), 1))
        self.hidden.copy_(first)
        return y * 2 + self.hidden""",
}
COMPARE_STATES = """
import torch
import os, before, evokernel_kernels, model
one, other = before.Model(), model.Model()
for _ in range(2):
    olds = [item.hidden for item in (one, other)]
    given = before.get_inputs()
    torch.testing.assert_close(other(*given), one(*given))
    torch.testing.assert_close(olds[1], olds[0])
    torch.testing.assert_close(olds[1], given[1])
    torch.testing.assert_close(other.hidden, one.hidden)
    assert (other.hidden is olds[1]) == (one.hidden is olds[0])
emulated = int(os.environ["EVOKERNEL_EMULATE"])
assert sum(evokernel_kernels.calls().values()) == 2 * emulated
given = before.get_inputs()[0]
torch.testing.assert_close(other(given, other.hidden), one(given, one.hidden))  # copies itself
assert sum(evokernel_kernels.calls().values()) == 2 * emulated
print("fine")
"""
MEMORY = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("hidden", torch.ones(4, 6))
        self.alias = self.hidden

    @torch.no_grad()
    def forward(self, x):
        self.hidden.copy_(x * 2)
        return self.{read}.relu() + x


def get_inputs():
    return [torch.randn(4, 6)]
"""
COMPARE_MEMORY = """
import torch
import os, before, evokernel_kernels, model
emulated = int(os.environ["EVOKERNEL_EMULATE"])
one, other = before.Model(), model.Model()
x = before.get_inputs()[0]
torch.testing.assert_close(other(x), one(x))
torch.testing.assert_close(other.hidden, one.hidden)
assert sum(evokernel_kernels.calls().values()) == emulated
torch.testing.assert_close(other(other.hidden), one(one.hidden))  # the argument is written, too
torch.testing.assert_close(other.hidden, one.hidden)
one.alias, other.alias = torch.full((4, 6), 3.0), torch.full((4, 6), 3.0)
torch.testing.assert_close(other(x), one(x))
torch.testing.assert_close(other.hidden, one.hidden)
print("fine")
"""
BODIES = {
    "one tensor and no other result": "x[i] = v\n        return x",
    "two tensors": "x[1:4] += v[:3]\n        v.relu_()",
    "a tensor and a result": "x.mul_(2.0)\n        return x.sum(1)",
}


@pytest.mark.parametrize("name", BODIES)
def test_the_package_writes_what_the_call_wrote(name: str, agent: AgentClient, tmp_path: Path) -> None:
    assert_same(MODEL.format(body=BODIES[name]), COMPARE, agent, tmp_path)


@pytest.mark.parametrize("name", STATE_BODIES)
def test_an_input_is_copied_as_it_is(name: str, agent: AgentClient, tmp_path: Path) -> None:
    """Whoever holds the tensor sees the copy, also where the call puts another in its place."""
    assert_same(STATE.format(body=STATE_BODIES[name]), COMPARE_STATES, agent, tmp_path)


@pytest.mark.parametrize("read", ["hidden", "alias"])
def test_memory_that_others_share_is_asked_for(read: str, agent: AgentClient, tmp_path: Path) -> None:
    """A buffer that is written may be the argument of a later call, or no longer be what an alias names."""
    assert_same(MEMORY.format(read=read), COMPARE_MEMORY, agent, tmp_path)


@pytest.mark.parametrize(
    "body",
    [
        "self.hidden.copy_(first)\n        return self.hidden",
        "self.hidden.copy_(first)\n        first.mul_(2)\n        return torch.cat((x, first), 1)",
    ],
)
def test_a_copy_that_a_statement_behind_the_call_is_not(
    body: str, agent: AgentClient, tmp_path: Path
) -> None:
    text = STATE.format(body=body)
    found = agent.capture(tmp_path / "model.py", text, covered_ops(ASCENDC), "Model.forward", whole=True)
    reasons = [item.reason for item in found if item.task is None]
    assert any("A value that is not computed is copied into self.hidden" in reason for reason in reasons)


def assert_same(text: str, compare: str, agent: AgentClient, tmp_path: Path) -> None:
    """The edited file does what the file did, with the package's kernel and without."""
    (tmp_path / "model.py").write_text(text)
    (found,) = agent.capture(tmp_path / "model.py", text, covered_ops(ASCENDC), whole=True)
    assert found.task is not None, found.reason
    chip = load_chip("ascend910b1")
    source = write(found.task, initial(found.task, chip), chip)
    verdict = Verdict(found.task.task_id, source.source_id, "t", ())
    kernel = write_package(tmp_path, found.task, placed(found), source, verdict).name
    (tmp_path / "before.py").write_text(text)
    (tmp_path / "model.py").write_text(plan_edit(text, found, kernel))
    test = tmp_path / "evokernel_kernels" / kernel / "test_op.py"
    for script, emulate in ((compare, "0"), (compare, "1"), (warm.pytest_of(test), "0")):
        words = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "EVOKERNEL_EMULATE": emulate}
        run = warm.run(script, tmp_path, words)
        assert run.returncode == 0, run.stdout + run.stderr
