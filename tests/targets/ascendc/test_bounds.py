"""The bound of a task: the least over the graph as it was written and as rewrites say it."""

from __future__ import annotations

from typing import Any

import pytest

from evokernel_core.compiler.bounds import least_us
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.hardware.roofline import roofline_us
from evokernel_core.targets.ascendc import author
from evokernel_core.targets.ascendc.target import ASCENDC

ROWS, DEPTH, COLUMNS = 4096, 8192, 8192


def product(graph: Any, last: str) -> KernelTask:
    """A product [4096, 8192] and what ``last`` makes of its rows."""
    x = graph.input("x", (ROWS, DEPTH))
    weight = graph.input("weight", (DEPTH, COLUMNS), parameter=True)
    value = graph.call("mm.default", x, weight, shape=(ROWS, COLUMNS))
    if last == "mean":
        value = graph.call("mean.dim", value, (1,), True, shape=(ROWS, 1))
    elif last:
        value = graph.call(last, value, shape=(ROWS, COLUMNS))
    task: KernelTask = graph.task(value)
    return task


def test_a_mean_of_a_product_is_bound_by_the_bytes(builder: Any, chip: Chip) -> None:
    task = product(builder(), "mean")
    read = 4 * DEPTH * (ROWS + COLUMNS) / (chip.hbm_gbps * 1e3)
    assert least_us(task, chip, ASCENDC) == pytest.approx(read, rel=0.01)
    assert roofline_us(task, chip) > 4 * read


@pytest.mark.parametrize("last", ["", "relu.default", "fft_fft2.default"])
def test_it_is_that_of_the_captured_graph_where_nothing_takes_less(
    builder: Any, chip: Chip, last: str
) -> None:
    """Also where no kernel can be planned: another proposer may write one."""
    task = product(builder(), last)
    assert least_us(task, chip, ASCENDC) == pytest.approx(roofline_us(task, chip))


@pytest.mark.parametrize("last", ["", "mean"])
def test_no_draft_is_below_it(builder: Any, chip: Chip, last: str) -> None:
    task = product(builder(), last)
    assert least_us(task, chip, ASCENDC) <= author.estimate_us(task, author.initial(task, chip), chip)
