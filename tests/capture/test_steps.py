"""Values beside a step of rounding: what else than PyTorch's result a right kernel may give."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest
import torch

from evokernel_core.capture.agent.reference.steps import SIDES, Beside
from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.domain.task import Tolerance
from evokernel_core.targets.ascendc.target import ASCENDC
from evokernel_core.verifier.gates.compare import Expected, compare

QUANTISED = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        scale = x.abs().amax(-1, keepdim=True) / 127
        return {result}, scale

def get_inputs():
    return [torch.randn(64, 96)]
"""
ROWS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "int8": ("(x / scale).round().to(torch.int8)", np.rint),
    "float32": ("torch.round(x / scale) * 0.5", lambda value: np.rint(value) / 2),
    "int32": ("(x / scale).to(torch.int32)", np.trunc),
}


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("distribution", ["normal", "uniform", "ties", "scales"])
def test_either_side_of_a_step_is_right_and_nothing_else(
    name: str, distribution: str, agent: AgentClient, tmp_path: Path
) -> None:
    result, rounded = ROWS[name]
    text = dedent(QUANTISED.format(result=result))
    (region,) = agent.capture(tmp_path / "model.py", text, covered_ops(ASCENDC), whole=True)
    assert region.task is not None, region.reason
    case = agent.reference(region.task, region.task.sizes, 11, distribution, tmp_path / "case")
    shape = region.task.graph.output_specs()[0].sizes(region.task.sizes)
    x = np.fromfile(case.inputs[0], np.float32).reshape(shape)
    scale = np.fromfile(case.outputs[1], np.float32).reshape(-1, 1)
    expected = Expected(case.outputs[0], beside=tuple(side[0] for side in case.beside))

    def wrong(value: np.ndarray) -> int:
        rounded(value).astype(name).tofile(tmp_path / "made")
        found = compare(tmp_path / "made", expected, shape, name, Tolerance(1e-6, 1e-6))
        return found.wrong

    nearly = x * (np.float32(1) / scale)  # another order, which float32 rounds otherwise
    assert wrong(nearly) == 0
    assert wrong(nearly * 1.01) > 50
    assert wrong(nearly + 1) > x.size // 4


def test_values_that_come_in_have_one_result(agent: AgentClient, tmp_path: Path) -> None:
    text = dedent(QUANTISED.format(result="x.clamp(-99, 99).round().to(torch.int8)"))
    (region,) = agent.capture(tmp_path / "model.py", text, covered_ops(ASCENDC), whole=True)
    assert region.task is not None, region.reason
    case = agent.reference(region.task, region.task.sizes, 5, "ties", tmp_path / "case")
    assert all(side[0].read_bytes() == case.outputs[0].read_bytes() for side in case.beside)


HALVES = {"mul": ([1.0, 3.0, -1.0], 12.5), "add": ([0.25, 1.25, -2.75], 0.25), "sub": ([1.25, -0.75], 0.75)}


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("op", HALVES)
def test_a_half_of_which_no_bit_was_lost_has_one_result(op: str, side: float) -> None:
    values, other = torch.tensor(HALVES[op][0]), HALVES[op][1]
    beside = Beside(side)
    half = beside(f"aten.{op}.Tensor", [values, other], {}, getattr(torch, op)(values, other))
    assert torch.equal(beside("aten.round.default", [half], {}, half.round()), half.round())


def test_a_half_that_rounding_made_has_two_results() -> None:
    values = torch.tensor([0.1])  # five times of it are a little more than a half
    made = set()
    for side in SIDES:
        beside = Beside(side)
        half = beside("aten.mul.Tensor", [values, 5.0], {}, values * 5.0)
        made.add(float(beside("aten.round.default", [half], {}, half.round())))
    assert made == {0.0, 1.0}


INF, LARGE = float("inf"), 3e38


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("function", [torch.round, torch.floor, torch.ceil, torch.trunc])
def test_what_lies_beside_no_step_stays(side: float, function: Callable[[Any], Any]) -> None:
    values = torch.tensor([INF, -INF, LARGE, -LARGE, 2.0**20 + 0.5, -3e6, 0.3, 0.0])
    beside = Beside(side)
    product = beside("aten.mul.Tensor", [values, values], {}, values.clone())
    made = beside(f"aten.{function.__name__}.default", [product], {}, function(product))
    assert torch.equal(made, function(values))
    assert beside("aten.round.default", [made], {}, made).equal(made)


@pytest.mark.parametrize("side", SIDES)
def test_sums_of_integers_are_exact(side: float) -> None:
    beside = Beside(side)
    whole = beside("aten.add.Tensor", [torch.arange(9), 1], {}, torch.arange(9) + 1)
    value = beside("aten._to_copy.default", [whole], {"dtype": torch.float32}, whole.float())
    assert torch.equal(beside("aten.floor.default", [value], {}, value.floor()), value)


def test_a_graph_without_steps_has_one_result(agent: AgentClient, tmp_path: Path) -> None:
    text = dedent(QUANTISED.format(result="x / scale"))
    (region,) = agent.capture(tmp_path / "model.py", text, covered_ops(ASCENDC), whole=True)
    assert region.task is not None, region.reason
    assert agent.reference(region.task, region.task.sizes, 1, "normal", tmp_path / "case").beside == ()
