"""Parts of what is made of an input element by element, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.targets.ascendc.author import legalised


def _gated(builder: Any, kept: bool) -> Any:
    """Both halves of a converted tensor, one of them negative; ``kept``: the tensor is a result too."""
    graph = builder()
    x = graph.input("x", ("a", 24), "float16")
    wide = graph.call("_to_copy.default", x, shape=("a", 24))
    exact = graph.call("neg.default", wide, shape=("a", 24))
    halves = graph.calls("split.Tensor", exact, 12, -1, outputs=[TensorSpec(("a", 12), "float32")] * 2)
    parts = [type(halves)(halves.name, i) for i in range(2)]
    result = graph.call("mul.Tensor", *parts, shape=("a", 12))
    return graph.task(result, *([exact] if kept else []), symbols={"a": 5})


@pytest.mark.parametrize("kept", [False, True])
def test_parts_are_cut_out_of_the_input(kept: bool, builder: Any, on_twin: Any, chip: Any) -> None:
    task = _gated(builder, kept)
    slices = [node for node in legalised(task, chip).graph.nodes if node.op == "aten.slice.Tensor"]
    assert [next(node.operands()).name == "x" for node in slices] == [not kept] * 2
    for rows in (5, 1, 70):
        x = np.random.default_rng(rows).normal(size=(rows, 24)).astype("f2")
        got, *_ = on_twin(task, {"x": x}, sizes={"a": rows})
        np.testing.assert_allclose(got, x[:, :12].astype("f4") * x[:, 12:].astype("f4"), rtol=1e-6)


def test_parts_that_overlap_are_cut_where_they_are(builder: Any, chip: Any) -> None:
    graph = builder()
    x = graph.input("x", ("a", 24), "float16")
    wide = graph.call("_to_copy.default", x, shape=("a", 24))
    parts = [graph.call("slice.Tensor", wide, 1, first, first + 14, shape=("a", 14)) for first in (0, 5)]
    task = graph.task(graph.call("mul.Tensor", *parts, shape=("a", 14)), symbols={"a": 5})
    names = [node.op for node in legalised(task, chip).graph.nodes]
    assert names.count("aten._to_copy.default") == 1


def test_the_one_place_of_a_dimension_is_a_view(builder: Any, chip: Any) -> None:
    graph = builder()
    x = graph.input("x", (1, "a", 24))
    row = graph.call("select.int", x, 0, 0, shape=("a", 24))
    task = graph.task(graph.call("exp.default", row, shape=("a", 24)), symbols={"a": 5})
    assert [node.op for node in legalised(task, chip).graph.nodes] == [
        "aten.view.default",
        "aten.exp.default",
    ]
