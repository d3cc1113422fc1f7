"""Each node knows the call of eager PyTorch that it is part of."""

from __future__ import annotations

from itertools import groupby

import pytest
from attrs import evolve

from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.calls import operations
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.hardware.ascend.eager import eager_launches
from evokernel_core.targets.ascendc.target import ASCENDC

CALLS = {
    "x.sigmoid().exp()": ["sigmoid", "exp"],
    "F.silu(x)": ["silu"],
    "F.silu(F.silu(x))": ["silu", "silu"],
    "F.group_norm(x, 2)": ["native_group_norm"],
    "F.group_norm(F.group_norm(x, 2), 2)": ["native_group_norm", "native_group_norm"],
    "F.batch_norm(x, torch.zeros(4), torch.ones(4))": ["zeros", "ones", "batch_norm"],
    "F.batch_norm(x, None, None, training=True)": ["batch_norm"],
    "F.layer_norm(x, (8,)) * 2": ["native_layer_norm", "mul"],
    "F.linear(x[0, 0], x[0, 1], x[0, 0, 0]).exp()": ["addmm", "exp"],
    "F.mse_loss(x, x * 2)": ["mul", "mse_loss"],
    "F.softmax(x, -1)": ["_softmax"],
}
"""What eager PyTorch calls for an expression of a float tensor of shape 2, 4, 8, 8."""


@pytest.fixture(scope="module")
def tasks(agent: AgentClient, tmp_path_factory: pytest.TempPathFactory) -> dict[str, KernelTask]:
    path = tmp_path_factory.mktemp("calls") / "calls.py"
    functions = [
        f"# evokernel: x=f32[2,4,8,8]\ndef f{number}(x):\n    return {text}\n"
        for number, text in enumerate(CALLS)
    ]
    path.write_text("import torch\nimport torch.nn.functional as F\n\n\n" + "\n\n".join(functions))
    regions = agent.capture(path, None, covered_ops(ASCENDC), whole=True)
    known = {region.symbol: region.task for region in regions if region.task}
    return {text: known[f"f{number}"] for number, text in enumerate(CALLS)}


@pytest.mark.parametrize("text", CALLS)
def test_nodes_are_of_the_calls_that_pytorch_makes(tasks: dict[str, KernelTask], text: str) -> None:
    nodes = [node for node in tasks[text].graph.nodes if node.call]
    names = [op.split(".")[1] for (op, _), _ in groupby(nodes, lambda node: (node.call.op, node.call.number))]
    computing = [name for name in names if name not in ("t", "view", "select", "unsqueeze", "slice")]
    assert [name for name in computing if name not in ("zeros", "ones", "full")] == [
        name for name in CALLS[text] if name not in ("zeros", "ones")
    ]


@pytest.mark.parametrize("text", CALLS)
def test_a_call_is_no_part_of_what_is_computed(tasks: dict[str, KernelTask], text: str) -> None:
    task = tasks[text]
    nodes = tuple(evolve(node, call=None) for node in task.graph.nodes)
    forgotten = evolve(task, graph=evolve(task.graph, nodes=nodes))
    assert (forgotten.task_id, forgotten.spelled_id) == (task.task_id, task.spelled_id)


def test_a_call_that_is_taken_apart_launches_less_than_its_nodes(tasks: dict[str, KernelTask]) -> None:
    task, chip = tasks["F.group_norm(x, 2)"], load_chip()
    nodes = tuple(evolve(node, call=None) for node in task.graph.nodes)
    apart = evolve(task, graph=evolve(task.graph, nodes=nodes))
    assert len(operations(task.graph, task.sizes)) == 1 < len(operations(apart.graph, task.sizes))
    assert len(eager_launches(task, chip)) == 1 < len(eager_launches(apart, chip))
