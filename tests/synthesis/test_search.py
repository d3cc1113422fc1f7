"""When a run ends before its budget."""

from __future__ import annotations

import pytest

from evokernel_core.domain.graph import Graph
from evokernel_core.domain.task import TOLERANCES, KernelTask
from evokernel_core.synthesis.search import Search


@pytest.mark.parametrize(
    ("history", "patience", "expected"),
    [
        ([100.0] * 9, 8, True),
        ([100.0] * 8, 8, False),  # the first kernel is no improvement to wait from
        ([100.0] * 9, 0, False),
        ([100.0] * 5 + [98.0] * 4, 8, False),
        ([100.0] * 5 + [99.5] * 4, 8, True),
        ([100.0] + [98.0] * 8, 8, False),
        ([100.0] + [98.0] * 9, 8, True),
        ([None] * 20, 8, False),  # without a kernel there is everything to gain
        ([None] * 8 + [100.0], 8, False),
    ],
)
def test_patience(history: list[float | None], patience: int, expected: bool) -> None:
    task = KernelTask("t", Graph((), (), ()), (), TOLERANCES["float32"], "other")
    assert Search(task, 30, history=history).is_stagnant(patience) is expected
