"""The vendor's operator as a second baseline: which figures it has, and what kernels gain over it."""

from __future__ import annotations

import pytest
from attrs import evolve

from evokernel_core.domain.graph import Graph, GraphInput, Node, ValueRef
from evokernel_core.domain.region import Region, RegionStatus, Span
from evokernel_core.domain.task import TOLERANCES, KernelTask, Symbol
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.domain.verdict import Latency, LatencySource
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.hardware.ascend.eager import eager_us, fused_us, rival_us
from evokernel_core.synthesis.offers import Estimate, Offer, better_us, choose, side_by_side, why_left_alone
from evokernel_core.vendor.functions import TABLE
from evokernel_core.vendor.rival import Rival, published, rival_of


def swiglu(rows: int, columns: int, dtype: str, *, generic: bool = False) -> KernelTask:
    """SwiGLU over the last axis of a matrix; ``generic`` in its rows."""
    size: int | str = "s0" if generic else rows
    half = TensorSpec((size, columns // 2), dtype)
    x = GraphInput("x", TensorSpec((size, columns), dtype), expression="x")
    nodes = (
        Node("parts", "aten.split.Tensor", (ValueRef("x"), columns // 2, -1), (), (half, half)),
        Node("gate", "aten.silu.default", (ValueRef("parts", 0),), (), (half,)),
        Node("out", "aten.mul.Tensor", (ValueRef("gate"), ValueRef("parts", 1)), (), (half,)),
    )
    symbols = (Symbol("s0", rows),) if generic else ()
    graph = Graph((x,), nodes, (ValueRef("out"),))
    return KernelTask("swiglu", graph, symbols, TOLERANCES[dtype], "activation")


@pytest.mark.parametrize(
    ("rows", "columns", "dtype", "chip", "measured"),
    [
        (1024, 2048, "float16", "ascend910b2", 15.44),
        (2048, 4096, "float32", "ascend910b2", 35.86),
        # another type, other sizes, another chip: no row is this call
        (1024, 2048, "bfloat16", "ascend910b2", None),
        (1024, 2050, "float16", "ascend910b2", None),
        (1024, 2048, "float16", "ascend910b1", None),
    ],
)
@pytest.mark.parametrize("generic", [False, True])
def test_a_row_counts_for_its_own_call(
    rows: int, columns: int, dtype: str, chip: str, measured: float | None, generic: bool
) -> None:
    task = swiglu(rows, columns, dtype, generic=generic)
    rival = rival_of(task, load_chip(chip))
    assert rival is not None
    assert rival.name == "torch_npu.npu_swiglu"
    assert rival.measured_us == measured
    assert bool(rival.source) == (measured is not None)
    assert rival.modelled_us == rival_us(task, load_chip(chip))
    words = [word for _, word in rival.figures]
    assert words == (["modelled"] if measured is None else ["measured", "modelled"])


def test_one_operator_costs_one_launch_and_where_there_is_work_no_more_than_its_ops() -> None:
    chip = load_chip("ascend910b1")
    for rows in (1, 64, 4096, 65536):
        assert fused_us(swiglu(rows, 4096, "float16"), chip) > chip.eager.launch_us
    large = swiglu(65536, 4096, "float16")
    assert fused_us(large, chip) < eager_us(large, chip)


def test_every_row_names_an_operator_a_chip_and_a_source() -> None:
    assert len({row.id for row in published()}) == len(published()) > 0
    for row in published():
        assert row.us > 0
        assert row.source
        assert load_chip(row.chip)
        assert row.tensors
    named = {function.operator for function in TABLE} - {""}
    assert named <= {row.operator for row in published()}


MODELLED = Rival("torch_npu.npu_swiglu", 20.0)
MEASURED = Rival("torch_npu.npu_swiglu", 20.0, 15.0, "a row")


@pytest.mark.parametrize(
    ("now", "after", "rival", "gain", "wins", "leads"),
    [
        (100.0, 10.0, None, 0.9, True, False),
        (100.0, 10.0, MODELLED, 0.5, True, False),
        (100.0, 10.0, MEASURED, 1 / 3, True, False),
        (100.0, 19.0, MODELLED, 0.05, False, False),  # within the model's error, but not slower
        (100.0, 20.0, MODELLED, 0.0, False, True),
        (100.0, 18.0, MEASURED, -0.2, False, True),
        (18.0, 10.0, MODELLED, 1 - 10 / 18, True, False),  # ops one by one are faster than the operator
        (20.5, 25.0, MODELLED, -0.25, False, False),  # the operator saves next to nothing itself
    ],
)
def test_a_gain_is_over_the_better_of_the_two(
    now: float, after: float, rival: Rival | None, gain: float, wins: bool, leads: bool
) -> None:
    estimate = Estimate(now, after, 1.0, "ascend910b1", rival=rival)
    assert estimate.gain == pytest.approx(gain)
    assert (estimate.wins, estimate.rival_leads) == (wins, leads)


@pytest.mark.parametrize(("saved", "chosen"), [(79.0, ["whole"]), (81.0, ["part"])])
def test_parts_of_an_operators_code_have_to_save_more_than_the_operator(
    saved: float, chosen: list[str]
) -> None:
    def offer(name: str, lines: int, estimate: Estimate) -> Offer:
        span = Span(1, 0, lines + 1, 0)
        region = Region(name, "m.py", "M.forward", span, "", "", "other", RegionStatus.CANDIDATE)
        return Offer(region, estimate)

    part = offer("part", 1, Estimate(100.0, 100.0 - saved, 1.0, "ascend910b1"))
    whole = offer("whole", 2, Estimate(100.0, 30.0, 1.0, "ascend910b1", rival=MODELLED))
    assert [item.region.id for item in choose(side_by_side([part], [whole]))] == chosen


def test_what_is_measured_is_compared_with_what_is_measured() -> None:
    measured = LatencySource.MEASURED.value
    assert better_us(100.0, MODELLED, measured) == 100.0
    assert better_us(100.0, MEASURED, measured) == 15.0


def test_why_a_kernel_is_left_alone_names_the_operator() -> None:
    latency = Latency(21.0, LatencySource.MODELLED, "ascend910b1", 48, (), "", 1.0, 100.0)
    assert why_left_alone(latency) == ""
    said = why_left_alone(latency, MODELLED)
    assert said == "21.0 us estimated instead of 20.0 us, modelled for torch_npu.npu_swiglu, is no gain"
    assert "measured for torch_npu" in why_left_alone(latency, MEASURED)
    assert why_left_alone(evolve(latency, us=2.0), MEASURED) == ""
