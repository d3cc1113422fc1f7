"""Batch norm in training mode: the region computes new running statistics, the call writes them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve

from evokernel_core.capture.client import AgentClient
from evokernel_core.capture.edit import plan_edit, revert_edit
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.domain.region import Region, RegionStatus
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
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, x):
        {body}


def get_inputs():
    return [torch.randn({shape})]
"""


@pytest.fixture
def region(agent: AgentClient, tmp_path: Path) -> Callable[..., Region]:
    def run(init: str, body: str, shape: str = "4, 6, 5, 7") -> Region:
        text = MODEL.format(init=init, body=body, shape=shape)
        (tmp_path / "model.py").write_text(text)
        (found,) = agent.capture(tmp_path / "model.py", text, covered_ops(ASCENDC), whole=True)
        return found

    return run


def test_statistics_are_outputs_and_the_counter_is_passed(region: Callable[..., Region]) -> None:
    found = region("self.bn = nn.BatchNorm2d(6)", "return torch.relu(self.bn(x))")
    assert found.task is not None
    graph = found.task.graph
    assert [(item.expression, item.output, item.step) for item in graph.updates] == [
        ("self.bn.running_mean", 1, 0),
        ("self.bn.running_var", 2, 0),
        ("self.bn.num_batches_tracked", None, 1),
    ]
    assert (graph.returned, len(graph.outputs)) == (1, 3)
    read = {operand.name for operand in graph.inputs}
    assert [update.name for update in graph.updates if update.name not in read] == ["bn_num_batches_tracked"]


def test_evaluation_and_untracked_batch_norm_change_nothing(region: Callable[..., Region]) -> None:
    for init in (
        "self.bn = nn.BatchNorm1d(6).eval()",
        "self.bn = nn.BatchNorm1d(6, track_running_stats=False)",
    ):
        found = region(init, "return self.bn(x)", "4, 6")
        assert found.task is not None
        assert not found.task.graph.updates
        assert len(found.task.graph.outputs) == 1


def test_a_shared_module_is_updated_twice_in_turn(region: Callable[..., Region]) -> None:
    found = region("self.bn = nn.BatchNorm1d(6)", "return self.bn(torch.relu(self.bn(x)))", "4, 6")
    assert found.task is not None
    updates = found.task.graph.updates
    assert [(item.expression, item.step) for item in updates] == [
        ("self.bn.running_mean", 0),
        ("self.bn.running_var", 0),
        ("self.bn.num_batches_tracked", 2),
    ]


REFUSED = [
    ("self.bn = nn.BatchNorm1d(6, momentum=None)", "return self.bn(x)", "momentum=None"),
    ("self.bn = nn.BatchNorm1d(6); self.mean = self.bn.running_mean[:]",
     "return self.bn(x) + self.mean", "shares"),
]  # fmt: skip


@pytest.mark.parametrize(("init", "body", "reason"), REFUSED)
def test_what_cannot_be_updated_is_refused(
    init: str, body: str, reason: str, region: Callable[..., Region]
) -> None:
    found = region(init, body, "4, 6")
    assert found.status is RegionStatus.UNSUPPORTED
    assert reason in found.reason


def test_the_identity_of_a_task_knows_its_updates(region: Callable[..., Region]) -> None:
    tasks = [region(f"self.{name} = nn.BatchNorm1d(6)", f"return self.{name}(x)", "4, 6").task
             for name in ("one", "other")]  # fmt: skip
    assert tasks[0] is not None and tasks[1] is not None
    assert len({item.task_id for item in tasks if item}) == 1  # arguments have other names, and that is all
    assert tasks[0].graph.updates
    graph = evolve(tasks[0].graph, updates=())
    assert evolve(tasks[0], graph=graph).task_id != tasks[0].task_id


COMPARE = """
import copy, torch
torch.manual_seed(0)
import before, evokernel_kernels, model
first, second = before.Model(), model.Model()
second.load_state_dict(first.state_dict())
def ran():
    return sum(evokernel_kernels.calls().values())
def same_state(*others):
    for other in others:
        for (name, buffer), (_, right) in zip(other.named_buffers(), first.named_buffers()):
            torch.testing.assert_close(buffer, right, msg=name)
compiled = torch.compile(copy.deepcopy(second), backend="eager", fullgraph=True)
for turn in range(3):
    x = torch.randn({shape}) * 3 + turn
    values = [x.clone().requires_grad_() for _ in range(3)]
    results = [net(value) for net, value in zip((first, second, compiled), values)]
    for result in results:
        result.square().sum().backward()
    for result, value in zip(results[1:], values[1:]):
        torch.testing.assert_close(result, results[0])
        torch.testing.assert_close(value.grad, values[0].grad, rtol=1e-3, atol=1e-4)
    same_state(second, compiled._orig_mod)
    with torch.no_grad():
        before_it = ran()
        expected = first(x)
        torch.testing.assert_close(second(x), expected)
        assert ran() == before_it + 1  # a kernel where no gradient is wanted
        torch.testing.assert_close(compiled(x), expected)
        assert ran() > before_it + 1  # compiling runs it on fake tensors too
    same_state(second, compiled._orig_mod)
assert int(second.get_buffer("{counter}")) == 6
with torch.no_grad():
    program = torch.export.export(second, (x,))
    assert any("evokernel" in str(node.target) for node in program.graph.nodes)
    made = program.module()
    torch.testing.assert_close(made(x), first(x))
    same_state(made)
print("fine")
"""

MODELS = [
    ("self.bn = nn.BatchNorm2d(6)", "return torch.relu(self.bn(x))", "4, 6, 5, 7", "bn.num_batches_tracked"),
    ("self.net = nn.Sequential(nn.BatchNorm1d(6, momentum=0.3), nn.Tanh(), nn.BatchNorm1d(6, affine=False))",
     "return self.net(x)", "5, 6", "net.2.num_batches_tracked"),
    ("self.bn = nn.BatchNorm3d(3)", "return self.bn(torch.relu(self.bn(x))) * self.bn.running_mean.sum()",
     "2, 3, 4, 2, 5", "bn.num_batches_tracked"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("init", "body", "shape", "counter"),
    [MODELS[0], *(pytest.param(*item, marks=pytest.mark.thorough) for item in MODELS[1:])],
)
def test_the_edited_model_trains_compiles_and_exports_like_the_first(
    init: str, body: str, shape: str, counter: str, region: Callable[..., Region], tmp_path: Path
) -> None:
    found = region(init, body, shape)
    assert found.task is not None, found.reason
    chip = load_chip("ascend910b1")
    source = write(found.task, initial(found.task, chip), chip)
    verdict = Verdict(found.task.task_id, source.source_id, "t", ())
    name = write_package(tmp_path, found.task, placed(found), source, verdict).name
    text = (tmp_path / "model.py").read_text()
    edited = plan_edit(text, found, name)
    assert revert_edit(edited, found, name) == text
    (tmp_path / "before.py").write_text(text)
    (tmp_path / "model.py").write_text(edited)
    code = COMPARE.format(shape=shape, counter=counter)
    if "bn(torch.relu" in body:
        code = code.replace("== 6", "== 12")
    words = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    run = warm.run(code, tmp_path, {**words, "EVOKERNEL_EMULATE": "1"})
    assert run.stdout == "fine\n", run.stderr
    test = tmp_path / "evokernel_kernels" / name / "test_op.py"
    run = warm.run(warm.pytest_of(test), tmp_path, words)
    assert run.returncode == 0, run.stdout
