"""Element-wise kernels on the twin against float64, without a hazard."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.lowering.queues import plan
from tests.tables import drawn

erf = np.vectorize(math.erf, otypes=[np.float64])
Function = Callable[[Any], Any]


def sigmoid(x: Any) -> Any:
    return np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))))


def elu(x: Any, alpha: float = 1.0, scale: float = 1.0) -> Any:
    return scale * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def gelu_tanh(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


UNARY: dict[str, tuple[tuple[Any, ...], Function]] = {
    "abs.default": ((), np.abs),
    "neg.default": ((), np.negative),
    "relu.default": ((), lambda x: np.maximum(x, 0)),
    "leaky_relu.default": ((0.02,), lambda x: np.where(x > 0, x, 0.02 * x)),
    "sigmoid.default": ((), sigmoid),
    "tanh.default": ((), np.tanh),
    "silu.default": ((), lambda x: x * sigmoid(x)),
    "gelu.default": ((), lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2)))),
    "erf.default": ((), erf),
    "elu.default": ((1.5, 1.1), lambda x: elu(x, 1.5, 1.1)),
    "hardtanh.default": ((-1.0, 2.0), lambda x: np.clip(x, -1, 2)),
    "hardsigmoid.default": ((), lambda x: np.clip(x + 3, 0, 6) / 6),
    "hardswish.default": ((), lambda x: x * np.clip(x + 3, 0, 6) / 6),
    "softplus.default": ((), lambda x: np.logaddexp(x, 0)),
    "mish.default": ((), lambda x: x * np.tanh(np.logaddexp(x, 0))),
    "square.default": ((), np.square),
    "pow.Tensor_Scalar": ((3,), lambda x: x**3),
    "sign.default": ((), np.sign),
    "floor.default": ((), np.floor),
    "ceil.default": ((), np.ceil),
    "round.default": ((), np.round),
    "trunc.default": ((), np.trunc),
    "sin.default": ((), np.sin),
    "cos.default": ((), np.cos),
    "clamp.default": ((None, 0.75), lambda x: np.minimum(x, 0.75)),
    "add.Scalar": ((0.3,), lambda x: x + 0.3),
    "rsub.Scalar": ((2.0, 3.0), lambda x: 2 - 3 * x),
    "div.Scalar": ((7.0,), lambda x: x / 7),
}
POSITIVE: dict[str, tuple[tuple[Any, ...], Function]] = {
    "log.default": ((), np.log),
    "log2.default": ((), np.log2),
    "log1p.default": ((), np.log1p),
    "sqrt.default": ((), np.sqrt),
    "rsqrt.default": ((), lambda x: 1 / np.sqrt(x)),
    "reciprocal.default": ((), lambda x: 1 / x),
    "pow.Tensor_Scalar": ((-0.5,), lambda x: x**-0.5),
    "expm1.default": ((), np.expm1),
}


def groups(table: dict[str, Any], size: int = 4) -> list[tuple[str, ...]]:
    names = list(table)
    return [tuple(names[start : start + size]) for start in range(0, len(names), size)]


def check_group(names: tuple[str, ...], table: dict[str, Any], x: Any, builder: Any, on_twin: Any) -> None:
    """One kernel with an output for each operation."""
    b = builder()
    value = b.input("x", list(x.shape))
    outputs = [b.call(name, value, *table[name][0], shape=list(x.shape)) for name in names]
    results = on_twin(b.task(*outputs), {"x": x})
    for name, result in zip(names, results, strict=True):
        np.testing.assert_allclose(result, table[name][1](x.astype(np.float64)), 1e-5, 2e-6, err_msg=name)


@pytest.mark.parametrize("names", groups(UNARY), ids=lambda names: names[0])
def test_functions_of_any_number(names: tuple[str, ...], builder: Any, on_twin: Any) -> None:
    spread = np.linspace(-50, 50, 997)
    small = np.array([0.0, -0.0, 1e-6, -1e-6, 1e-3, -1e-3, 0.5, 1.5, 2.5, -0.5])
    rng = np.random.default_rng(0)
    x = np.concatenate([spread, small, rng.normal(size=500)]).astype(np.float32)
    check_group(names, UNARY, x, builder, on_twin)


@pytest.mark.parametrize("names", groups(POSITIVE), ids=lambda names: names[0])
def test_functions_of_positive_numbers(names: tuple[str, ...], builder: Any, on_twin: Any) -> None:
    x = np.concatenate([np.geomspace(1e-6, 60, 997), np.linspace(0.01, 3, 500)]).astype(np.float32)
    table = dict(POSITIVE)
    check_group(names, table, x[x < 20] if "expm1.default" in names else x, builder, on_twin)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_types_are_computed_in_float32(dtype: str, builder: Any, on_twin: Any) -> None:
    b = builder()
    x, y = b.input("x", [3, 333], dtype), b.input("y", [3, 333], dtype)
    gate = b.call("silu.default", x, shape=[3, 333], dtype=dtype)
    out = b.call("mul.Tensor", gate, y, shape=[3, 333], dtype=dtype)
    rng = np.random.default_rng(1)
    given_x, given_y = (rng.normal(size=(3, 333)).astype(np.float32) for _ in range(2))
    (result,) = on_twin(b.task(out), {"x": given_x, "y": given_y})
    np.testing.assert_allclose(result, given_x * sigmoid(given_x) * given_y, 2e-2, 1e-2)


def test_comparisons_masks_and_choices(builder: Any, on_twin: Any) -> None:
    b = builder()
    shape = [5, 77]
    x, y, keep = b.input("x", shape), b.input("y", [77]), b.input("keep", shape, "bool")
    above = b.call("gt.Tensor", x, y, shape=shape, dtype="bool")
    below = b.call("le.Scalar", x, -0.5, shape=shape, dtype="bool")
    either = b.call("logical_or.default", above, below, shape=shape, dtype="bool")
    mask = b.call("logical_and.default", either, keep, shape=shape, dtype="bool")
    flipped = b.call("logical_not.default", mask, shape=shape, dtype="bool")
    zero = b.call("full.default", (), 0.25, shape=[])
    chosen = b.call("where.self", flipped, x, zero, shape=shape)
    rng = np.random.default_rng(2)
    values = {"x": rng.normal(size=shape), "y": rng.normal(size=77), "keep": rng.random(shape) < 0.5}
    values["x"] = values["x"].astype(np.float32)
    values["y"] = values["y"].astype(np.float32)
    got_mask, got = on_twin(b.task(mask, chosen), values)
    expected = ((values["x"] > values["y"]) | (values["x"] <= -0.5)) & values["keep"]
    np.testing.assert_array_equal(got_mask, expected)
    np.testing.assert_array_equal(got, np.where(~expected, values["x"], np.float32(0.25)))


def test_run_time_numbers_and_sizes(builder: Any, on_twin: Any) -> None:
    b = builder()
    x, scale = b.input("x", ["s0", 12]), b.scalar("scale")
    y = b.call("mul.Tensor", x, scale, shape=["s0", 12])
    one = b.input("one", [])
    z = b.call("add.Tensor", y, one, shape=["s0", 12])
    task = b.task(z, symbols={"s0": 40})
    for rows in (1, 3, 40):
        x_values = np.random.default_rng(rows).normal(size=(rows, 12)).astype(np.float32)
        values = {"x": x_values, "scale": 1.5, "one": np.float32(2)}
        (result,) = on_twin(task, values, sizes={"s0": rows})
        np.testing.assert_allclose(result, x_values * np.float32(1.5) + 2, 1e-6, 1e-6)


@st.composite
def broadcasts(draw: st.DrawFn) -> tuple[list[int], list[list[int]], list[str]]:
    """An output shape, and the shapes and operations of operands that broadcast to it."""
    rank = draw(st.integers(1, 4))
    sizes = st.sampled_from([1, 2, 3, 5, 8, 17, 64, 100, 257])
    shape = draw(st.lists(sizes, min_size=rank, max_size=rank).filter(lambda dims: math.prod(dims) < 40_000))
    operands = []
    for _ in range(draw(st.integers(1, 2))):
        kept = draw(st.lists(st.booleans(), min_size=rank, max_size=rank))
        dims = [dim if keep else 1 for dim, keep in zip(shape, kept, strict=True)]
        operands.append(dims[draw(st.integers(0, rank - 1)) :])
    names = draw(st.lists(st.sampled_from(["add", "sub", "mul", "maximum"]), min_size=2, max_size=2))
    return shape, operands, names


_NUMPY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "maximum": np.maximum}


def any_broadcast(
    case: tuple[list[int], list[list[int]], list[str]], dtype: str, data: Any, builder: Any, on_twin: Any
) -> None:
    shape, operands, names = case
    b = builder()
    rng = np.random.default_rng(3)
    value, expected = b.input("x", shape, dtype), rng.normal(size=shape).astype(dtype)
    arrays = {"x": expected}
    for index, (dims, name) in enumerate(zip(operands, names, strict=False)):
        other = b.input(f"other{index}", dims, dtype)
        arrays[f"other{index}"] = rng.normal(size=dims).astype(dtype)
        overload = "default" if name == "maximum" else "Tensor"
        value = b.call(f"{name}.{overload}", value, other, shape=shape, dtype=dtype)
        expected = _NUMPY[name](expected, arrays[f"other{index}"]).astype(dtype)
    task = b.task(value)
    steps = [None, *(move.strategy for move in on_twin.moves(task, on_twin.initial(task)))]
    (result,) = on_twin(task, arrays, data.draw(st.sampled_from(steps)))
    tolerance = 1e-6 if dtype == "float32" else 4e-3
    np.testing.assert_allclose(result.astype(np.float64), expected.astype(np.float64), tolerance, tolerance)


test_any_broadcast_under_any_schedule, test_many_broadcasts_under_any_schedule = drawn(
    any_broadcast,
    8,
    25,
    derandomize=True,
    case=broadcasts(),
    dtype=st.sampled_from(["float32", "float16"]),
    data=st.data(),
)


def test_views_that_split_and_merge_dimensions(builder: Any, on_twin: Any) -> None:
    b = builder()
    x, weight = b.input("x", [24, 10]), b.input("weight", [6, 1])
    split = b.call("view.default", x, (4, 6, 10), shape=[4, 6, 10])
    scaled = b.call("mul.Tensor", split, weight, shape=[4, 6, 10])
    merged = b.call("view.default", scaled, (240,), shape=[240])
    arrays = {
        "x": np.random.default_rng(4).normal(size=(24, 10)).astype(np.float32),
        "weight": np.arange(6, dtype=np.float32).reshape(6, 1),
    }
    (result,) = on_twin(b.task(merged), arrays)
    np.testing.assert_allclose(result, (arrays["x"].reshape(4, 6, 10) * arrays["weight"]).reshape(-1))


def test_an_input_read_along_two_dimensions_is_loaded_twice(builder: Any, on_twin: Any) -> None:
    b = builder()
    x = b.input("x", [33])
    column = b.call("unsqueeze.default", x, 1, shape=[33, 1])
    outer = b.call("mul.Tensor", column, x, shape=[33, 33])
    task = b.task(outer)
    assert [item.name for item in plan(task, load_chip()).inputs] == ["x", "x_columns"]
    values = np.random.default_rng(5).normal(size=33).astype(np.float32)
    (result,) = on_twin(task, {"x": values})
    np.testing.assert_allclose(result, values[:, None] * values[None, :])


def test_a_single_number_beside_a_whole_result_is_written_by_one_core(builder: Any, on_twin: Any) -> None:
    b = builder()
    x, y = b.input("x", (3000,)), b.input("y", ())
    number = b.call("exp.default", y, shape=())
    task = b.task(b.call("add.Tensor", x, number, shape=(3000,)), number)
    values = np.linspace(-1, 1, 3000, dtype=np.float32)
    whole, single = on_twin(task, {"x": values, "y": np.float32(0.5)})
    np.testing.assert_allclose(whole, values + np.exp(0.5), rtol=1e-6)
    np.testing.assert_allclose(single, np.exp(0.5), rtol=1e-6)


def test_powers_of_two_tensors(builder: Any, on_twin: Any) -> None:
    b = builder()
    x, y = b.input("x", ["n", "m"]), b.input("y", ["m"])
    task = b.task(b.call("pow.Tensor_Tensor", x, y, shape=["n", "m"]), symbols={"n": 17, "m": 24})
    bases = [0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.7, -3.7, 1e-3, 40.0]
    bases += [math.inf, -8.0, 1e-30, math.nan, 7.0]
    exponents = [0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, 2.5, -1.7, 7.0]
    exponents += [10.0, math.inf, -math.inf, 1e9, 0.1, 1 / 3, 5.0, 4.0, -5.0, 6.0, -0.0, math.nan]
    columns = np.array(exponents, "f4")
    for seed, base in enumerate([bases, [*np.random.default_rng(2).normal(size=40)]]):
        rows = np.array(base, "f4")[:, None] * np.ones(len(columns), "f4")
        (found,) = on_twin(task, {"x": rows, "y": columns}, sizes={"n": len(base), "m": len(columns)})
        with np.errstate(all="ignore"):
            expected = np.power(rows.astype("f8"), columns.astype("f8")).astype("f4")
        np.testing.assert_allclose(found, expected, 3e-5, 1e-30, err_msg=str(seed))


def test_numbers_are_kept_above_and_below_tensors(builder: Any, on_twin: Any) -> None:
    graph = builder()
    x, low = graph.input("x", ("n", "c")), graph.input("low", ("n", 1))
    above = graph.call("clamp_min.Tensor", x, low, shape=("n", "c"))
    result = graph.call("clamp_max.Tensor", above, graph.input("high", ("c",)), shape=("n", "c"))
    task = graph.task(result, symbols={"n": 6, "c": 50})
    rng = np.random.default_rng(3)
    values, least, most = (rng.standard_normal(shape).astype("f4") for shape in ((6, 50), (6, 1), (50,)))
    (found,) = on_twin(task, {"x": values, "low": least, "high": most})
    np.testing.assert_array_equal(found, np.minimum(np.maximum(values, least), most))
