"""What benchmarks/public_cases.py learns from the bindings of public operators."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from public_cases import outputs_cleared

from evokernel_core.twin.operators.definition import Operator, Parameter


def parameter(name: str) -> Parameter:
    return Parameter(name, "required", (0,), (2,), False, None)


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
