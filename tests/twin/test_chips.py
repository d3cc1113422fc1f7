"""Every chip file is complete, and every constant in it says where it is from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evokernel_core.domain.graph import Graph, GraphInput, Node, ValueRef
from evokernel_core.domain.task import TOLERANCES, KernelTask, Symbol
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.domain.verdict import Latency, LatencySource
from evokernel_core.hardware.ascend.chip import load_chip, runner_text
from evokernel_core.hardware.ascend.chip_files import CHIPS, chip_names
from evokernel_core.hardware.ascend.eager import reachable_us
from evokernel_core.hardware.roofline import roofline_us
from evokernel_core.synthesis.rewards import at_bound

CHIP_FILES = sorted(CHIPS.glob("*.toml"))


def test_the_chips_of_the_family() -> None:
    assert chip_names() == ("ascend910b1", "ascend910b2", "ascend910b3", "ascend910b4")


@pytest.mark.parametrize("path", CHIP_FILES, ids=lambda path: path.stem)
def test_each_constant_has_its_source(path: Path) -> None:
    for line in path.read_text().splitlines():
        if re.match(r"\w+ *= *[0-9]", line):
            _, _, comment = line.partition("#")
            assert comment.strip(), f"{path.name}: {line}"


@pytest.mark.parametrize("name", chip_names())
def test_each_chip_has_all_constants_of_the_first(name: str) -> None:
    assert load_chip(name).constants.keys() == load_chip("ascend910b1").constants.keys()
    assert "vector.startup_cycles 22\n" in runner_text(load_chip(name))


def test_what_differs_between_the_chips() -> None:
    sizes = {name[-2:]: load_chip(name) for name in chip_names()}
    assert [(chip.aic, chip.aiv, chip.mhz) for chip in sizes.values()] == [
        (24, 48, 1850),
        (24, 48, 1800),
        (20, 40, 1800),
        (20, 40, 1500),
    ]
    assert sizes["b4"].hbm_gbps < sizes["b1"].hbm_gbps / 2


def relu_task(rows: int) -> KernelTask:
    spec = TensorSpec(("s0", 8192), "float16")
    node = Node("v0", "aten.relu.default", (ValueRef("x"),), (), (spec,))
    graph = Graph((GraphInput("x", spec),), (node,), (ValueRef("v0"),))
    return KernelTask("relu", graph, (Symbol("s0", rows),), TOLERANCES["float16"], "elementwise")


@pytest.mark.parametrize("name", chip_names())
@pytest.mark.parametrize("rows", [1, 64, 4096, 16384])
def test_the_model_reaches_no_more_than_the_bound_allows(name: str, rows: int) -> None:
    chip, task = load_chip(name), relu_task(rows)
    assert reachable_us(task, chip) > roofline_us(task, chip)
    assert reachable_us(task, chip) <= reachable_us(relu_task(2 * rows), chip)


def latency(us: float, source: LatencySource) -> Latency:
    return Latency(us, source, "ascend910b1", 48, (), "", roofline_us=10.0, baseline_us=90.0)


@pytest.mark.parametrize(
    ("us", "source", "done"),
    [
        (10.2, LatencySource.MEASURED, True),
        (14.2, LatencySource.MODELLED, True),
        (14.2, LatencySource.MEASURED, False),
        (14.4, LatencySource.MODELLED, False),
    ],
)
def test_refining_stops_at_the_bound_or_at_what_the_model_can_reach(
    us: float, source: LatencySource, done: bool
) -> None:
    assert at_bound(latency(us, source), reachable_us=14.0) is done
