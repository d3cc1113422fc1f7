"""Special functions on the twin against float64, with their poles, limits and signs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

Function = Callable[..., Any]
INF = math.inf
NUMBERS = np.concatenate([np.linspace(-30, 30, 601), [0.0, 1.0, -1.0, 1e-6, -1e-4, 1e6, -3e8, 80.0, -80.0]])
UNITS = np.concatenate([np.linspace(-1, 1, 801), [0.999999, -0.99999, 1e-6, 1.5, -2.0]])
ABOVE = np.concatenate([np.linspace(1, 30, 500), [1.000001, 1e5, 1e18, 0.5, -3.0]])


def inverse_error(x: Any) -> Any:
    """Newton's method on math.erf, from a rough start."""
    found = np.arctanh(np.clip(x, -1 + 1e-15, 1 - 1e-15)) * 0.7
    for _ in range(60):
        error = np.vectorize(math.erf)(found) - x
        found = found - np.clip(error / (2 / math.sqrt(math.pi) * np.exp(-(found**2)) + 1e-300), -0.3, 0.3)
    return np.where(np.abs(x) < 1, found, np.where(np.abs(x) == 1, np.copysign(INF, x), np.nan))


UNARY: dict[str, tuple[Any, Function]] = {
    "atan.default": (np.append(NUMBERS, [INF, -INF]), np.arctan),
    "asinh.default": (np.append(NUMBERS, [1e30, -1e30]), np.arcsinh),
    "sinh.default": (NUMBERS[np.abs(NUMBERS) < 85], np.sinh),
    "cosh.default": (NUMBERS[np.abs(NUMBERS) < 85], np.cosh),
    "asin.default": (UNITS, np.arcsin),
    "acos.default": (UNITS, np.arccos),
    "atanh.default": (UNITS, np.arctanh),
    "erfinv.default": (UNITS, inverse_error),
    "acosh.default": (ABOVE, np.arccosh),
    "isinf.default": (np.append(NUMBERS, [INF, -INF, np.nan]), np.isinf),
    "signbit.default": (NUMBERS, lambda x: x < 0),
    "tan.default": (np.linspace(-1.5, 1.5, 500), np.tan),
}


@pytest.mark.parametrize("names", [tuple(UNARY)[:4], tuple(UNARY)[4:8], tuple(UNARY)[8:]])
def test_functions_of_one_number(names: tuple[str, ...], builder: Any, on_twin: Any) -> None:
    b = builder()
    results, inputs, wanted = [], {}, []
    for name in names:
        values, function = UNARY[name]
        key = name.split(".", maxsplit=1)[0]
        inputs[key] = np.resize(values, 800).astype(np.float32)
        dtype = "bool" if key in {"isinf", "signbit"} else "float32"
        results.append(b.call(name, b.input(key, (800,)), shape=(800,), dtype=dtype))
        with np.errstate(all="ignore"):
            wanted.append(function(inputs[key].astype(np.float64)))
    for name, found, want in zip(names, on_twin(b.task(*results), inputs), wanted, strict=True):
        np.testing.assert_allclose(found, want, rtol=3e-6, atol=2e-6, err_msg=name)


BINARY: dict[str, Function] = {
    "atan2.default": np.arctan2,
    "fmod.Tensor": np.fmod,
    "remainder.Tensor": np.remainder,
    "hypot.default": np.hypot,
    "logaddexp.default": np.logaddexp,
    "logaddexp2.default": np.logaddexp2,
    "fmax.default": np.fmax,
    "fmin.default": np.fmin,
    "heaviside.default": np.heaviside,
    "copysign.Tensor": np.copysign,
}


@pytest.mark.parametrize("names", [tuple(BINARY)[:4], tuple(BINARY)[4:7], tuple(BINARY)[7:]])
def test_functions_of_two_numbers(names: tuple[str, ...], builder: Any, on_twin: Any) -> None:
    random = np.random.default_rng(5)
    x = random.integers(-40, 41, 700).astype(np.float32) / 8
    y = random.integers(1, 41, 700).astype(np.float32) / 8 * random.choice([-1, 1], 700)
    y = y.astype(np.float32)
    if "fmax.default" in names:
        x[::50], y[::70] = np.nan, np.nan
    if "logaddexp.default" in names:
        x[:3], y[:3] = [INF, -INF, INF], [INF, -INF, 0]
    b = builder()
    left, right = b.input("x", (700,)), b.input("y", (700,))
    task = b.task(*(b.call(name, left, right, shape=(700,)) for name in names))
    for name, found in zip(names, on_twin(task, {"x": x, "y": y}), strict=True):
        wanted = BINARY[name](x.astype(np.float64), y.astype(np.float64))
        np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=2e-6, err_msg=name)


def test_powers_and_remainders_by_literals(builder: Any, on_twin: Any) -> None:
    x = np.array([-2.0, -3.0, 2.0, 0.0, 5.0, -2.0, 7.5, 0.0, 4.0], np.float32)
    y = np.array([3.0, 2.0, 0.5, 0.0, -2.0, 0.5, 0.0, 3.0, 1.5], np.float32)
    with np.errstate(invalid="ignore"):
        wanted = {
            "pow": np.power(x, y),
            "down": np.remainder(x * 7.3, np.float32(-2.5)),
            "whole": np.remainder(x * 3, 3.0),
            "cut": np.fmod(x, 1.75),
        }
    b = builder()
    left, right = b.input("x", (9,)), b.input("y", (9,))
    scaled = b.call("mul.Scalar", left, float(np.float32(7.3)), shape=(9,))
    triple = b.call("mul.Scalar", left, 3.0, shape=(9,))
    results = [
        b.call("pow.Tensor_Tensor", left, right, shape=(9,)),
        b.call("remainder.Scalar", scaled, -2.5, shape=(9,)),
        b.call("remainder.Scalar", triple, 3.0, shape=(9,)),
        b.call("fmod.Scalar", left, 1.75, shape=(9,)),
    ]
    found = on_twin(b.task(*results), {"x": x, "y": y})
    for got, (name, want) in zip(found, wanted.items(), strict=True):
        np.testing.assert_allclose(got, want, rtol=3e-6, atol=1e-5, err_msg=name)


def test_truth_values_multiply(builder: Any, on_twin: Any) -> None:
    b = builder()
    x, y = b.input("x", (100,), "bool"), b.input("y", (100,), "bool")
    task = b.task(b.call("mul.Tensor", x, y, shape=(100,), dtype="bool"))
    random = np.random.default_rng(3)
    left, right = random.random(100) > 0.5, random.random(100) > 0.5
    (found,) = on_twin(task, {"x": left, "y": right})
    np.testing.assert_array_equal(found, left & right)


def test_powers_of_zeros_and_infinities(builder: Any, on_twin: Any) -> None:
    """An odd power keeps the sign, and the zero of negative sign has one, too."""
    bases, exponents = [-0.0, 0.0, -2.0, -np.inf, np.inf, 1.0], [-3.0, -2.0, -0.5, 0.0, 0.5, 2.0, 3.0]
    x, y = (np.array(side, np.float32).ravel() for side in np.meshgrid(bases, exponents))
    with np.errstate(all="ignore"):
        wanted = np.power(x, y)
    b = builder()
    shape = x.shape
    task = b.task(b.call("pow.Tensor_Tensor", b.input("x", shape), b.input("y", shape), shape=shape))
    (found,) = on_twin(task, {"x": x, "y": y})
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
