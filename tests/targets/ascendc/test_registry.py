"""The family of a task, and the reason where there is none."""

from __future__ import annotations

from typing import Any

import pytest

from evokernel_core.compiler.coverage import family_for
from evokernel_core.domain.errors import PlanError
from evokernel_core.targets.ascendc.target import ASCENDC


def test_what_is_wrong_with_a_product_is_said_also_beside_other_operations(builder: Any, chip: Any) -> None:
    """Element-wise operations are more, but the product is what cannot be done."""
    graph = builder()
    x = graph.input("x", ("n", 100_000, 8))
    y = graph.input("y", ("n", 8, 100_000))
    shape = ("n", 100_000, 100_000)
    scores = graph.call("bmm.default", x, y, shape=shape)
    scores = graph.call("mul.Tensor", scores, 0.5, shape=shape)
    scores = graph.call("add.Tensor", scores, 1.0, shape=shape)
    with pytest.raises(PlanError, match="GiB of device memory"):
        family_for(graph.task(scores, symbols={"n": 4}), chip, ASCENDC)
