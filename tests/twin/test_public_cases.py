"""What benchmarks/public_cases.py learns from the bindings of public operators."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from public_cases import outputs_cleared, write_case

from evokernel_core.twin.operators.definition import Operator, OperatorParameter


def parameter(name: str) -> OperatorParameter:
    return OperatorParameter(name, "required", (0,), (2,), False, None)


OPERATOR = Operator("Count", (parameter("x"),), (parameter("sums"), parameter("y")), (), ("ascend910b",))


@pytest.mark.parametrize(
    ("body", "cleared"),
    [
        ("auto a = torch::empty({1}); auto b = torch::empty({2});", set()),
        ("auto a = torch::empty({1}); a.zero_(); auto b = torch::empty({2});", {"sums"}),
        ("at::Tensor a = at::zeros({1}); at::Tensor b = torch::zeros_like(x);", {"sums", "y"}),
        ("auto a = torch::empty({1}); auto b = torch::empty({2}); b.fill_(0.0f);", {"y"}),
        ("auto a = torch::ones({1}); auto b = torch::empty({2}); b.fill_(0.5);", set()),
        ("x.zero_(); auto a = torch::empty({1}); auto b = torch::empty({2});", set()),
    ],
)
def test_outputs_that_the_binding_clears(tmp_path: Path, body: str, cleared: set[str]) -> None:
    binding = tmp_path / "pybind.cpp"
    binding.write_text(
        f"at::Tensor count(at::Tensor x) {{ {body} EXEC_NPU_CMD(aclnnCount, x,\n  a, b); return a; }}"
    )
    assert outputs_cleared(binding, OPERATOR) == cleared


def test_an_operator_without_a_binding_clears_nothing(tmp_path: Path) -> None:
    assert outputs_cleared(tmp_path / "pybind.cpp", OPERATOR) == set()


MODULE = """
import kernel_gen_ops
import torch_npu


class Model:
    def __call__(self, grads, found, scale):
        for grad in grads[:1]:
            grad.mul_(scale)
        found.copy_(torch_false(found))
        return [grads[0], found]


def torch_false(found):
    return found * 0


class ModelNew:
    def __call__(self, grads, found, scale):
        return kernel_gen_ops.unscale(grads, found, scale)
"""
INPUTS = """
import torch


def get_inputs(row):
    return [torch.full((2,), 3.0), torch.full((2,), 5.0)], torch.zeros(1), torch.full((1,), row["by"])


def get_init_inputs(row):
    return []
"""


def test_what_the_reference_writes_in_place_is_what_an_operator_without_outputs_changes(
    tmp_path: Path,
) -> None:
    """Also where the values stay as they were, and the tensors of a list together."""
    pytest.importorskip("torch")
    (tmp_path / "module.py").write_text(MODULE)
    (tmp_path / "prepare_inputs.py").write_text(INPUTS)
    (tmp_path / "test_cases.csv").write_text("case_id;by\n0;4.0\n")
    lists = evolve(parameter("grads"), kind="dynamic")
    operator = Operator("Unscale", (lists, parameter("found"), parameter("scale")), (), (), ("ascend910b",))
    case = json.loads(write_case(tmp_path, operator, tmp_path).read_text())
    held = {
        name: [np.load(tmp_path / file).tolist() for file in case["expect"][name]] for name in case["expect"]
    }
    assert held == {"grads": [[12.0, 12.0], [5.0, 5.0]], "found": [[0.0]]}
    assert np.load(tmp_path / case["inputs"]["grads"][0]["file"]).tolist() == [3.0, 3.0]
