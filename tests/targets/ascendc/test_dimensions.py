"""Dimensions that nodes name: outside their tensor they are refused; a single number is given one."""

from __future__ import annotations

from typing import Any

import pytest

from evokernel_core.compiler.rewrites.dimensions import checked_calls
from evokernel_core.domain.errors import PlanError
from evokernel_core.hardware.ascend.chip import load_chip


@pytest.mark.parametrize(
    ("op", "args", "shape"),
    [
        ("cumsum.default", (2,), (3, 4)),
        ("cumsum.default", (-3,), (3, 4)),
        ("sum.dim_IntList", ((0, 5),), (3, 4)),
        ("transpose.int", (0, 2), (3, 4)),
        ("unsqueeze.default", (3,), (3, 4)),
        ("select.int", (0, 0), ()),
    ],
)
def test_a_dimension_that_a_tensor_lacks_is_refused(
    builder: Any, op: str, args: tuple[object, ...], shape: tuple[int, ...]
) -> None:
    graph = builder()
    x = graph.input("x", shape)
    task = graph.task(graph.call(op, x, *args, shape=shape))
    with pytest.raises(PlanError, match=op.split(".", maxsplit=1)[0]):
        checked_calls(task, load_chip())


@pytest.mark.parametrize("op", ["cumsum.default", "cumprod.default", "flip.default", "_softmax.default"])
def test_a_single_number_has_one_dimension(builder: Any, op: str) -> None:
    graph = builder()
    x = graph.input("x", ())
    args = {"flip.default": ((0,),), "_softmax.default": (0, False)}.get(op, (0,))
    task = graph.task(graph.call(op, x, *args, shape=()))
    wide, called, back = checked_calls(task, load_chip()).graph.nodes
    assert (wide.outputs[0].shape, called.op, called.outputs[0].shape) == ((1,), f"aten.{op}", (1,))
    assert back.outputs[0].shape == ()
