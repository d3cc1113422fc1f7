"""What a program returns through a view is computed before the view."""

from __future__ import annotations

from typing import Any

import numpy as np

from evokernel_core.compiler.coverage import view_ops
from evokernel_core.compiler.fusion.partition import pieces
from evokernel_core.domain.graph import ValueRef
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.targets.ascendc.target import ASCENDC


def test_a_result_is_turned_after_a_kernel_that_knows_no_views(builder: Any, on_twin: Any) -> None:
    b = builder()
    x = b.input("x", (4, 60, 9))
    found = b.call("argmax.default", x, 1, shape=(4, 9), dtype="int64")
    turned = b.call("permute.default", found, (1, 0), shape=(9, 4), dtype="int64")
    values = np.random.default_rng(1).normal(size=(4, 60, 9)).astype(np.float32)
    (result,) = on_twin(b.task(turned), {"x": values})
    np.testing.assert_array_equal(result, values.argmax(1).T)


def test_a_kernel_takes_two_results_of_one_node_in_their_order(builder: Any) -> None:
    """Whatever the names hash to: sets of names have no order of their own."""
    moments = [TensorSpec((80,), "float32")] * 2
    for tried in range(12):
        b = builder()
        for unread in range(tried):  # shifts the number in every name
            b.call("relu.default", b.input(f"unread{unread}", (4,)), shape=(4,))
        x = b.input("x", (64, 80))
        found = b.calls("var_mean.correction", x, (0,), outputs=moments, correction=0)
        first, second = found, ValueRef(found.name, 1)
        left = b.call("add.Tensor", b.input("y", (80,)), second, shape=(80,))
        right = b.call("mul.Tensor", b.input("z", (80,)), first, shape=(80,))
        result = b.call("sub.Tensor", left, right, shape=(80,))
        groups = ({found.name}, {left.name, right.name, result.name})
        piece = pieces(b.task(result), tuple(map(frozenset, groups)), view_ops(ASCENDC))[1]
        assert [ref.index for ref in piece.inputs if ref.name == found.name] == [0, 1]
