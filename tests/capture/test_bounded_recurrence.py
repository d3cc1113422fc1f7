"""Inputs that a recurrence takes are drawn so that it is not chaotic."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from evokernel_core.capture.agent.reference.bounded_inputs import layers_take, steadied


def ref(name: str) -> dict[str, Any]:
    return {"ref": name, "index": 0}


@pytest.mark.parametrize(("times", "found"), [(3, set()), (4, {"w"})])
def test_weights_that_a_loop_multiplies_with_again_and_again(times: int, found: set[str]) -> None:
    nodes = [
        {"name": f"t{i}", "op": "aten.t.default", "args": [ref("w")], "kwargs": []} for i in range(times)
    ]
    nodes += [
        {"name": f"mm{i}", "op": "aten.mm.default", "args": [ref("x"), ref(f"t{i}")], "kwargs": []}
        for i in range(times)
    ]
    assert layers_take({"inputs": [{"name": "x"}, {"name": "w"}], "nodes": nodes}) == found


def test_what_a_layer_takes_but_not_its_input() -> None:
    args = [ref("x"), [ref("h"), ref("c")], [ref("w"), ref("b")], True, 1, 0.0, False, False, False]
    nodes = [{"name": "lstm", "op": "aten.lstm.input", "args": args, "kwargs": []}]
    graph = {"inputs": [{"name": name} for name in "xhcw"], "nodes": nodes}
    assert layers_take(graph) == {"h", "c", "w"}


@pytest.mark.parametrize("shape", [(0, 3), (4, 0), (40, 30), (2, 3, 4), (7,)])
def test_small_values_stay_as_they_are(shape: tuple[int, ...]) -> None:
    large = steadied(torch.randn(shape) * 100)
    assert bool((large.abs() <= 1).all())
    assert torch.allclose(steadied(large), large)
    if len(shape) == 2:
        assert bool((large.norm(dim=1) < 0.58).all())
