"""What jumps between numbers side by side - whole parts, remainders, conversions to integers, comparisons -
on the twin, bit by bit against PyTorch's CPU kernels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from evokernel_core.targets.ascendc.author import initial, write
from evokernel_core.targets.ascendc.source import KERNEL

FLOATS = ("float32", "float16", "bfloat16")
EDGES = (
    *(0.0, 0.5, -0.5, 1.5, 2.5, 127.0, 128.0, 129.0, 200.5, 255.0, 256.0, 257.0, 300.0, -1.0, -129.0, -128.0),
    *(-300.0, 32767.0, 32768.0, 65536.0, 70000.0, -70000.0, 2147483520.0, 2147483648.0, -2147483648.0),
    *(-2147483904.0, 3e9, 4294967296.0, 5e9, -5e9, 9.2e18, 9.3e18, -9.3e18, 1e30, -1e30),
    *(math.inf, -math.inf, math.nan),
)


def tensor(values: Any, dtype: str) -> torch.Tensor:
    return torch.tensor(np.asarray(values, "f8")).to(getattr(torch, dtype))


def raw(value: torch.Tensor) -> Any:
    return value.float().numpy() if value.dtype == torch.bfloat16 else value.numpy()


def same(got: Any, want: torch.Tensor, message: str) -> None:
    wanted = want.double().numpy() if want.is_floating_point() else want.numpy()
    np.testing.assert_array_equal(np.asarray(got, wanted.dtype), wanted, err_msg=message)


@pytest.mark.parametrize("source", FLOATS)
def test_floats_beyond_the_range_of_integers(source: str, builder: Any, on_twin: Any) -> None:
    x = tensor(EDGES, source)
    graph = builder()
    ref = graph.input("x", [len(x)], source)
    kinds = ("int64", "int32", "int16", "int8", "uint8", "bool")
    calls = [graph.call("_to_copy.default", ref, shape=[len(x)], dtype=kind) for kind in kinds]
    found = on_twin(graph.task(*calls), {"x": raw(x)})
    for kind, got in zip(kinds, found, strict=True):
        same(got, x.to(getattr(torch, kind)), f"{source} to {kind}")


def test_a_range_that_is_known_takes_no_more_instructions(builder: Any, on_twin: Any) -> None:
    graph = builder()
    ref = graph.input("x", [64])
    clipped = graph.call("clamp.default", ref, -128.0, 127.0, shape=[64])
    task = graph.task(graph.call("_to_copy.default", clipped, shape=[64], dtype="int8"))
    values = np.array([*EDGES[:-1], *range(-13, 14)], "f4")[:64]
    (found,) = on_twin(task, {"x": np.resize(values, 64)})
    np.testing.assert_array_equal(found, np.trunc(np.clip(np.resize(values, 64), -128, 127)))
    assert "Select" not in write(task, initial(task, on_twin.chip), on_twin.chip).files[KERNEL]


Call = tuple[str, tuple[Any, ...], dict[str, Any]]
DIVISIONS: list[Call] = [
    ("div.Tensor_mode", ("x", "y"), {"rounding_mode": "floor"}),
    ("div.Tensor_mode", ("x", "y"), {"rounding_mode": "trunc"}),
    ("div.Tensor_mode", ("x", 3.7), {"rounding_mode": "floor"}),
    ("div.Tensor_mode", ("x", 41.0), {"rounding_mode": "trunc"}),
    ("div.Tensor_mode", ("x", 2.0), {"rounding_mode": "floor"}),
    ("div.Tensor_mode", ("x", -0.7), {"rounding_mode": "floor"}),
    ("fmod.Tensor", ("x", "y"), {}),
    ("remainder.Tensor", ("x", "y"), {}),
    ("fmod.Scalar", ("x", 2.3), {}),
    ("remainder.Scalar", ("x", -1.7), {}),
]
LITERALS: list[Call] = [
    *((f"{name}.Scalar", ("x", 2.3), {}) for name in ("add", "sub", "rsub", "mul")),
    *((f"{name}.Scalar", ("x", 2.3), {}) for name in ("eq", "ne", "lt", "le", "gt", "ge")),
]


def dividends(seed: int) -> Any:
    """Numbers that many quotients of are whole, and others of all magnitudes up to 1e6."""
    rng = np.random.default_rng(seed)
    whole = rng.integers(-600, 600, 300)
    return np.concatenate([whole, whole[:100] * 3.7, rng.normal(size=300) * 600, rng.normal(size=300) * 1e4])


def divisors(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    usual = np.concatenate([rng.integers(1, 50, 500) * rng.choice([-1, 1], 500), rng.normal(size=496) * 3])
    return np.concatenate([usual, [math.inf, -math.inf, 0.0, 1e5]])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("calls", [DIVISIONS, LITERALS], ids=["divisions", "literals"])
def test_quotients_remainders_and_literals(calls: list[Call], dtype: str, builder: Any, on_twin: Any) -> None:
    given = {"x": tensor(dividends(1), dtype), "y": tensor(divisors(2), dtype)}
    graph = builder()
    refs = {name: graph.input(name, [1000], dtype) for name in given}
    wanted, nodes = [], []
    for name, args, kwargs in calls:
        packet, overload = name.split(".")
        function = getattr(getattr(torch.ops.aten, packet), overload)
        if overload.startswith("Tensor") and not isinstance(args[1], str):
            function = getattr(torch.ops.aten, packet).Scalar_mode
        wanted.append(function(*(given.get(arg, arg) for arg in args), **kwargs))
        kind = str(wanted[-1].dtype).removeprefix("torch.")
        nodes.append(
            graph.call(name, *(refs.get(arg, arg) for arg in args), shape=[1000], dtype=kind, **kwargs)
        )
    found = on_twin.tolerant(graph.task(*nodes), {name: raw(value) for name, value in given.items()})
    for call, got, want in zip(calls, found, wanted, strict=True):
        same(got, want, str(call))


WHOLE_PARTS: dict[str, list[tuple[str, tuple[Any, ...]]]] = {
    "floor of cos": [("cos.default", ()), ("floor.default", ())],
    "quarters of sin": [("sin.default", ()), ("mul.Scalar", (4.0,)), ("round.default", ())],
    "floor of a quotient": [("div.Scalar", (41.0,)), ("floor.default", ())],
    "half-way": [("mul.Scalar", (0.5,)), ("round.default", ())],
    "a root": [("cos.default", ()), ("square.default", ()), ("rsub.Scalar", (1.0,)), ("sqrt.default", ())],
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_whole_parts_of_results(dtype: str, builder: Any, on_twin: Any) -> None:
    rng = np.random.default_rng(3)
    values = np.concatenate(
        [
            np.arange(-100, 100),
            rng.normal(size=400),
            np.geomspace(1e-6, 2e-4, 50),
            np.geomspace(4e-4, 1e-1, 50),
        ]
    )
    x = tensor(values, dtype)
    graph = builder()
    ref, wanted, outputs = graph.input("x", [len(x)], dtype), [], []
    for chain in WHOLE_PARTS.values():
        want, value = x, ref
        for name, args in chain:
            packet, overload = name.split(".")
            want = getattr(getattr(torch.ops.aten, packet), overload)(want, *args)
            value = graph.call(name, value, *args, shape=[len(x)], dtype=dtype)
        wanted.append(want)
        outputs.append(value)
    found = on_twin(graph.task(*outputs), {"x": raw(x)})
    for name, got, want in zip(WHOLE_PARTS, found, wanted, strict=True):
        if name == "a root":
            np.testing.assert_allclose(got, want.double().numpy(), 2e-2, 4e-4, err_msg=name)
        else:
            same(got, want, name)


def test_ties_are_those_of_bfloat16(builder: Any, on_twin: Any) -> None:
    """The largest elements of a row of quotients are counted."""
    x = tensor(np.random.default_rng(4).normal(size=(60, 480)), "bfloat16")
    graph = builder()
    ref = graph.input("x", [60, 480], "bfloat16")
    quotient = graph.call("div.Scalar", ref, 3.7, shape=[60, 480], dtype="bfloat16")
    most = graph.call("amax.default", quotient, (-1,), True, shape=[60, 1], dtype="bfloat16")
    equal = graph.call("eq.Tensor", quotient, most, shape=[60, 480], dtype="bool")
    number = graph.call("_to_copy.default", equal, shape=[60, 480], dtype="float32")
    task = graph.task(graph.call("sum.dim_IntList", number, (-1,), shape=[60], dtype="float32"))
    (found,) = on_twin(task, {"x": raw(x)})
    wanted = x / 3.7
    same(found, (wanted == wanted.amax(-1, keepdim=True)).sum(-1).float(), "ties")
    assert found.max() > 1


def test_a_quotient_by_a_row_is_rounded_as_division_is(builder: Any, on_twin: Any) -> None:
    """Quantisation by a row's scale: half-way quotients, and scales that have no inverse in float32."""
    rng = np.random.default_rng(5)
    x = tensor(rng.integers(-255, 256, (40, 96)) / 2, "float32")
    scale = tensor(rng.integers(1, 60, (40, 1)), "float32")
    scale[:4] = torch.tensor([[3e-39], [1.2e-38], [1e-30], [2e38]])
    x[:3] *= scale[:3]
    x = x * torch.where(scale < 1, 1.0, scale)
    x[3] = 1e38
    graph = builder()
    refs = graph.input("x", ("n", "m")), graph.input("scale", ("n", 1))
    quotient = graph.call("div.Tensor", *refs, shape=("n", "m"))
    whole = graph.call("round.default", quotient, shape=("n", "m"))
    clipped = graph.call("clamp.default", whole, -128, 127, shape=("n", "m"))
    result = graph.call("_to_copy.default", clipped, shape=("n", "m"), dtype="int8")
    task = graph.task(result, symbols={"n": 40, "m": 96})
    for rows, columns in ((40, 96), (4, 3)):
        given = {"x": raw(x[:rows, :columns]), "scale": raw(scale[:rows])}
        (found,) = on_twin(task, given, sizes={"n": rows, "m": columns})
        wanted = torch.clamp(torch.round(x[:rows, :columns] / scale[:rows]), -128, 127).to(torch.int8)
        same(found, wanted, "quantised")
