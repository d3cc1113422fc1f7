"""Sums of which little is left in what later sums take are computed again in float64."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evokernel_core.capture.agent.reference.reference import reference

FLOAT = {"dtype": "float32", "contiguous": True}
Step = tuple[str, list[Any]]
MM, ADD = "aten.mm.default", "aten.add.Tensor"


def ref(name: str) -> dict[str, Any]:
    return {"ref": name, "index": 0}


def chain(steps: list[Step]) -> dict[str, Any]:
    """Steps over square matrices x, y, z and n0, n1 and so on, as the graph's JSON."""
    spec = {"shape": [64, 64], **FLOAT}
    inputs = [{"name": name, "kind": "tensor", "spec": spec} for name in "xyz"]
    nodes = [
        {"name": f"n{number}", "op": op, "args": args, "kwargs": [], "outputs": [spec]}
        for number, (op, args) in enumerate(steps)
    ]
    return {"inputs": inputs, "nodes": nodes, "outputs": [ref(f"n{len(nodes) - 1}")]}


CLAMPED: list[Step] = [
    (MM, [ref("x"), ref("y")]),
    ("aten.hardtanh.default", [ref("n0"), -2.0, 2.0]),
    (MM, [ref("n1"), ref("z")]),
    ("aten.mul.Tensor", [ref("n2"), 100.0]),
]
"""Little is left of the first product, and the result is larger than both."""
FACTOR: list[Step] = [
    (MM, [ref("x"), ref("y")]),
    ("aten.relu.default", [ref("n0")]),
    (MM, [ref("n1"), ref("z")]),
]
BRANCHES: list[Step] = [
    (MM, [ref("x"), ref("y")]),
    (MM, [ref("x"), ref("z")]),
    (ADD, [ref("n0"), ref("n1")]),
]
"""Both products are of inputs, which are smaller than either."""


def computed(steps: list[Step], tmp_path: Path, *, rounded: bool = True) -> dict[str, Any]:
    return reference(chain(steps), {}, 0, "normal", str(tmp_path), rounded=rounded)


def test_a_factor_within_bounds_hides_a_sum_from_results_that_are_larger(tmp_path: Path) -> None:
    case = computed(CLAMPED, tmp_path)
    assert len(case["precise"]) == len(case["rounded"]) == 1


@pytest.mark.parametrize("steps", [FACTOR, BRANCHES], ids=["chain", "branches"])
def test_sums_that_keep_their_size_are_computed_once(steps: list[Step], tmp_path: Path) -> None:
    assert computed(steps, tmp_path, rounded=False)["precise"] == []
