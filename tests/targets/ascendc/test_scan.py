"""Family scan: running sums, products, maxima, minima and log-sum-exps, along any dimension."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import evolve

from evokernel_core.capture.agent.reference.bounded_inputs import lengths, near_one
from evokernel_core.compiler.ops import SCAN
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Node, SymbolicInt, ValueRef
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.domain.verdict import GateStatus
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.audit import audit
from evokernel_core.targets.ascendc.author import initial, legalised, moves, write
from evokernel_core.targets.ascendc.kernels.scan import scan_family as scan
from tests.tables import few

_UFUNC = {
    "sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum, "logaddexp": np.logaddexp
}  # fmt: skip
_IDENTITY = {"sum": 0.0, "prod": 1.0, "max": -np.inf, "min": np.inf, "logaddexp": -np.inf}


def scan_task(  # noqa: PLR0917 - one argument a property of a scan
    builder: Any,
    shape: Any,
    dim: int,
    op: str,
    flags: tuple[bool, bool],
    dtype: str,
    masked: bool,
    sizes: Any,
) -> KernelTask:
    graph = builder()
    x = graph.input("x", shape, dtype)
    mask = graph.input("mask", shape, "bool") if masked else None
    graph.nodes.append(Node("scan", SCAN.name, (x, dim, op, *flags, mask), (), (TensorSpec(shape, dtype),)))
    task: KernelTask = graph.task(ValueRef("scan"), symbols=sizes)
    return task


def expected(x: Any, dim: int, op: str, reverse: bool, exclusive: bool) -> Any:
    x = np.flip(x, dim) if reverse else x
    found = _UFUNC[op].accumulate(x.astype("f8"), axis=dim)
    if exclusive:
        first = np.full_like(found.take([0], dim), _IDENTITY[op])
        found = np.concatenate([first, found.take(range(x.shape[dim] - 1), dim)], dim)
    return np.flip(found, dim) if reverse else found


def drawn(shape: Any, op: str, dtype: str, seed: int) -> Any:
    values = np.random.default_rng(seed).normal(size=shape)
    values = (1 + values / 100 if op == "prod" else values).astype("f4")
    if dtype == "float16":
        return values.astype("f2").astype("f4")
    return (values.view("u4") & 0xFFFF0000).view("f4") if dtype == "bfloat16" else values


ROWS = ((3, 9000), (50, 7), (20, 700), (1, 1), (700, 33), (2, 30001))
COLUMNS = ((2, 50, 7), (1, 300, 3000), (3, 1, 1), (60, 9, 64), (1, 2000, 33))
NO, YES = False, True
CASES = [
    ("sum", (NO, NO), "float32", NO), ("sum", (YES, NO), "float32", NO), ("sum", (NO, YES), "float32", NO),
    ("sum", (YES, YES), "float32", YES), ("prod", (NO, NO), "float32", NO), ("max", (YES, NO), "float32", NO),
    ("min", (NO, YES), "float32", NO), ("logaddexp", (NO, NO), "float32", NO),
    ("logaddexp", (YES, YES), "float16", NO), ("sum", (NO, NO), "float16", YES),
    ("sum", (YES, YES), "bfloat16", NO), ("max", (NO, NO), "bfloat16", NO),
]  # fmt: skip


PLACED = [(across, *case) for across in (NO, YES) for case in CASES]
"""Along rows, and along columns."""


@few(("across", "op", "flags", "dtype", "masked"), PLACED, keep=(0, 3, 5, 8, 10, 12, 15, 20))
def test_scans_at_many_sizes(
    across: bool, op: str, flags: tuple[bool, bool], dtype: str, masked: bool, builder: Any, on_twin: Any
) -> None:
    names, sizes = ("oni", COLUMNS) if across else ("rc", ROWS)
    task = placed_task(builder, across, op, flags, dtype, masked)
    for seed, size in enumerate(sizes):
        inputs = {"x": drawn(size, op, dtype, seed)}
        if masked:
            inputs["mask"] = np.random.default_rng(seed).random(size) < 0.5
        (result,) = on_twin(task, inputs, sizes=dict(zip(names, size, strict=True)))
        right = expected(inputs["x"] * inputs.get("mask", True), 1, op, *flags)
        tolerance = 1e-4 if dtype == "float32" else 1e-2
        np.testing.assert_allclose(
            result, right, rtol=tolerance, atol=tolerance * max(1.0, np.sqrt(size[1]) / 9)
        )


@few(("across", "op", "flags", "dtype", "masked"), PLACED, keep=(3, 20))
def test_kernels_pass_the_audit(
    across: bool, op: str, flags: tuple[bool, bool], dtype: str, masked: bool, builder: Any, chip: Any
) -> None:
    task = placed_task(builder, across, op, flags, dtype, masked)
    assert audit(task, write(task, initial(task, chip), chip)).status is GateStatus.PASSED


def placed_task(
    builder: Any, across: bool, op: str, flags: tuple[bool, bool], dtype: str, masked: bool
) -> KernelTask:
    names, sizes = ("oni", COLUMNS[0]) if across else ("rc", ROWS[0])
    return scan_task(builder, tuple(names), 1, op, flags, dtype, masked, dict(zip(names, sizes, strict=True)))


def test_a_log_sum_exp_of_nothing_but_minus_infinity_is_that(builder: Any, on_twin: Any) -> None:
    task = scan_task(builder, (2, 20), 1, "logaddexp", (False, False), "float32", False, {})
    x = np.zeros((2, 20), "f4")
    x[:, :5] = -np.inf
    (result,) = on_twin(task, {"x": x})
    np.testing.assert_allclose(result, expected(x, 1, "logaddexp", False, False), rtol=1e-5)


@few(("shape", "dim", "part"), [
    ((5, 4000), -1, 0), ((5, 4000), -1, 1), ((3, 200, 90), 1, 0), ((3, 200, 90), 1, 1),
], keep=(0, 2))  # fmt: skip
def test_every_move_is_right(shape: Any, dim: int, part: int, builder: Any, on_twin: Any) -> None:
    task = scan_task(builder, shape, dim, "sum", (False, False), "float32", False, {})
    x = np.random.default_rng(0).normal(size=shape).astype("f4")
    found = moves(task, initial(task, on_twin.chip), on_twin.chip)
    assert len({write(task, move.strategy, on_twin.chip).source_id for move in found}) == len(found) > 1
    for move in found[part::2]:
        (result,) = on_twin(task, {"x": x}, move.strategy)
        np.testing.assert_allclose(result, np.cumsum(x, dim, "f8"), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(("op", "reverse"), [("sum", False), ("max", True)])
def test_few_long_rows_are_scanned_in_parts(op: str, reverse: bool, builder: Any, on_twin: Any) -> None:
    shape = ("r", 2**19)
    task = scan_task(builder, shape, -1, op, (reverse, False), "float32", False, {"r": 2})
    assert [node.op for node in legalised(task, load_chip()).graph.nodes].count(SCAN.name) == 2
    x = np.random.default_rng(0).normal(size=(1, 2**19)).astype("f4")
    (result,) = on_twin(task, {"x": x}, sizes={"r": 1})
    np.testing.assert_allclose(result, expected(x, 1, op, reverse, False), rtol=1e-4, atol=2e-3)


def _scans(task: KernelTask) -> list[Any]:
    nodes = [node for node in legalised(task, load_chip()).graph.nodes if node.op == SCAN.name]
    return [(*node.args[1:5], node.args[5] is not None) for node in nodes]


def test_a_flipped_scan_of_a_flipped_tensor_is_one_scan(builder: Any) -> None:
    graph = builder()
    x = graph.input("x", ("a", "b", 8))
    names = {"shape": ("a", "b", 8)}
    total = graph.call("cumsum.default", graph.call("flip.default", x, (1,), **names), -2, **names)
    task = graph.task(graph.call("flip.default", total, (-2,), **names), symbols={"a": 3, "b": 7})
    assert _scans(task) == [(-2, "sum", True, False, False)]


def test_a_flip_along_another_dimension_stays(builder: Any) -> None:
    graph = builder()
    x = graph.input("x", (4, 8))
    total = graph.call("cumsum.default", graph.call("flip.default", x, (0,), shape=(4, 8)), 1, shape=(4, 8))
    task = graph.task(graph.call("flip.default", total, (1,), shape=(4, 8)))
    assert [node.op.split(".")[1] for node in legalised(task, load_chip()).graph.nodes].count("flip") == 2


def _zeros(graph: Any, value: float = 0.0) -> Any:
    return graph.call("full.default", (SymbolicInt("a"), 1), value, shape=("a", 1))


@pytest.mark.parametrize("form", ["sliced input", "sliced result", "shifted input"])
def test_a_scan_without_the_element_itself_is_one_scan(form: str, builder: Any) -> None:
    graph = builder()
    x = graph.input("x", ("a", "b"))
    short, end = ("a", "b - 1"), SymbolicInt("b - 1")
    if form == "sliced input":
        part = graph.call("slice.Tensor", x, 1, 0, end, shape=short)
        tail = graph.call("cumsum.default", part, 1, shape=short)
    elif form == "sliced result":
        tail = graph.call("cumsum.default", x, 1, shape=("a", "b"))
        tail = graph.call("slice.Tensor", tail, 1, 0, end, shape=short)
    if form == "shifted input":
        joined = graph.call("cat.default", (_zeros(graph), x), 1, shape=("a", "b + 1"))
        cut = graph.call("slice.Tensor", joined, 1, 0, SymbolicInt("b"), shape=("a", "b"))
        result = graph.call("cumsum.default", cut, 1, shape=("a", "b"))
    else:
        result = graph.call("cat.default", (_zeros(graph), tail), 1, shape=("a", "b"))
    task = graph.task(result, symbols={"a": 3, "b": 9})
    assert _scans(task) == [(1, "sum", False, True, False)]


def test_ones_in_front_of_a_sum_are_no_identity(builder: Any) -> None:
    graph = builder()
    x = graph.input("x", ("a", "b"))
    tail = graph.call("cumsum.default", x, 1, shape=("a", "b"))
    tail = graph.call("slice.Tensor", tail, 1, 0, SymbolicInt("b - 1"), shape=("a", "b - 1"))
    result = graph.call("cat.default", (_zeros(graph, 1.0), tail), 1, shape=("a", "b"))
    task = graph.task(result, symbols={"a": 3, "b": 9})
    assert (1, "sum", False, False, False) in _scans(task)


def test_a_mask_goes_into_the_sum(builder: Any, on_twin: Any) -> None:
    graph = builder()
    x, mask = graph.input("x", ("a", "b")), graph.input("mask", ("a", "b"), "bool")
    product = graph.call("mul.Tensor", x, mask, shape=("a", "b"))
    task = graph.task(graph.call("cumsum.default", product, 1, shape=("a", "b")), symbols={"a": 3, "b": 900})
    assert _scans(task) == [(1, "sum", False, False, True)]
    rng = np.random.default_rng(0)
    values, truth = rng.normal(size=(3, 900)).astype("f4"), rng.random((3, 900)) < 0.5
    (result,) = on_twin(task, {"x": values, "mask": truth})
    np.testing.assert_allclose(result, np.cumsum(values * truth, 1), rtol=1e-3, atol=1e-3)


@few(
    "dtype, dim, op",
    [
        ("float32", 1, "max"), ("float16", 0, "min"), ("int32", 1, "min"), ("bfloat16", 1, "max"),
        ("int64", 0, "max"), ("uint8", 1, "max"),
    ],
    keep=(0, 1, 2, 4),
)  # fmt: skip
def test_indices_of_running_extremes(dtype: str, dim: int, op: str, builder: Any, on_twin: Any) -> None:
    """The last of equals, of which there are many, and of floats what is no number from where it comes."""
    torch = pytest.importorskip("torch")
    graph = builder()
    x = graph.input("x", ("a", "b"), dtype)
    specs = [TensorSpec(("a", "b"), dtype), TensorSpec(("a", "b"), "int64")]
    both = graph.calls(f"cum{op}.default", x, dim, outputs=specs)
    task = graph.task(both, ValueRef(both.name, 1), symbols={"a": 40, "b": 300})
    for a, b in ((1, 1), (6, 290), (70, 33)):
        data = torch.from_numpy(np.random.default_rng(a).integers(0 if dtype == "uint8" else -50, 50, (a, b)))
        data = data.to(getattr(torch, dtype))
        if data.is_floating_point() and b > 1:
            data[2:4, b // 2], data[0, 3] = float("nan"), -float("inf")
        wanted = getattr(torch, f"cum{op}")(data, dim)
        given = data.float() if dtype == "bfloat16" else data
        values, places = on_twin(task, {"x": given.numpy()}, sizes={"a": a, "b": b})
        right = wanted.values.float() if dtype == "bfloat16" else wanted.values
        np.testing.assert_array_equal(values, right.numpy())
        np.testing.assert_array_equal(places, wanted.indices.numpy())


def test_a_running_maximum_of_truth_values_says_what_is_covered(builder: Any, on_twin: Any) -> None:
    graph = builder()
    x = graph.input("x", (4, 50), "bool")
    specs = [TensorSpec((4, 50), "bool"), TensorSpec((4, 50), "int64")]
    with pytest.raises(PlanError, match="float32"):
        initial(graph.task(graph.calls("cummax.default", x, 1, outputs=specs)), on_twin.chip)


def test_a_strategy_of_rows_does_not_fit_columns(builder: Any, chip: Any) -> None:
    family = scan.FAMILY
    rows = scan_task(builder, (4, 500), 1, "sum", (False, False), "float32", False, {})
    columns = scan_task(builder, (4, 500), 0, "sum", (False, False), "float32", False, {})
    strategy = family.initial(rows, chip)
    assert family.adapt(columns, strategy, chip) is None
    assert family.adapt(evolve(rows, name="other"), strategy, chip) is not None


@pytest.mark.parametrize(
    ("op", "args", "count"),
    [("cumprod.default", [1], 500), ("prod.dim_int", [1], 500), ("prod.default", [], 1000)],
)
def test_factors_of_products_keep_them_in_range(op: str, args: list[int], count: int) -> None:
    torch = pytest.importorskip("torch")
    graph = {
        "inputs": [{"name": "x"}, {"name": "y"}],
        "nodes": [
            {"name": "f", "op": "aten.flip.default", "args": [{"ref": "x", "index": 0}, [1]], "kwargs": []},
            {"name": "p", "op": f"aten.{op}", "args": [{"ref": "f", "index": 0}, *args], "kwargs": []},
        ],
    }
    shapes = {("x", 0): (2, 500), ("y", 0): (2, 500), ("f", 0): (2, 500), ("p", 0): (2, 500)}
    assert lengths(graph, shapes) == {"x": count}
    products = torch.cumprod(near_one(torch.full((2, 500), 50.0), 500), 1)
    assert torch.isfinite(products).all()


@pytest.mark.parametrize("length", [1, 2, 33, 500, 2000])
def test_factors_of_any_magnitude_may_be_multiplied_in_any_order(length: int) -> None:
    torch = pytest.importorskip("torch")
    factors = near_one(torch.full((length,), 2.0**60), length)
    assert torch.isfinite(factors.double().abs().cumprod(0).float()).all()
    assert near_one(torch.tensor([torch.inf, torch.nan]), length).isfinite().sum() == 0


def test_rounding_of_many_equal_factors_stays_within_the_tolerance() -> None:
    torch = pytest.importorskip("torch")
    factors = near_one(torch.full((70_000,), 0.75), 70_000)
    exact = factors.double().prod().item()
    assert factors.cumprod(0)[-1].item() == pytest.approx(exact, rel=5e-5)
    assert exact != pytest.approx(1.0, rel=0.1)
