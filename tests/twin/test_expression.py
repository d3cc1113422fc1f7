"""Reference expressions compute what numpy does, and nothing else is evaluated."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evokernel_core.domain.errors import UsageError
from evokernel_core.twin.expected import operands
from evokernel_core.twin.expression import DEEPEST, FUNCTIONS, LONGEST, parse

X = np.random.default_rng(0).standard_normal((4, 6))
W = np.random.default_rng(1).standard_normal(6)
EPS = np.asarray(1e-5)
ROOT = np.sqrt(np.mean(X * X, -1, keepdims=True) + 1e-5)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def erf(x: Any) -> Any:
    return np.vectorize(math.erf)(x)


VALUES: dict[str, Any] = {
    "x / sqrt(mean(x*x, -1) + eps) * w": X / ROOT * W,
    "x * rsqrt(mean(x**2, -1) + eps) * w": X / ROOT * W,
    "(x - mean(x, -1)) / sqrt(var(x, -1) + eps)": (X - X.mean(-1, keepdims=True))
    / np.sqrt(X.var(-1, keepdims=True) + 1e-5),
    "softmax(x, -1)": np.exp(X) / np.exp(X).sum(-1, keepdims=True),
    "silu(x) + sigmoid(x)": (X + 1) * sigmoid(X),
    "gelu(x)": X * 0.5 * (1 + erf(X / math.sqrt(2))),
    "x * 0.5 * (1 + erf(x / sqrt(2)))": X * 0.5 * (1 + erf(X / math.sqrt(2))),
    "x @ transpose(x, (1, 0))": X @ X.T,
    "reshape(x, (2, -1))": X.reshape(2, -1),
    "max(x) - min(x, (0, 1)) + prod(x, 0)": X.max() - X.min() + X.prod(0, keepdims=True),
    "where(x > 0, x, -x) + relu(x)": np.abs(X) + np.maximum(X, 0),
    "clip(x, -1, 1) % 2 // 1": np.clip(X, -1, 1) % 2 // 1,
    "maximum(x, w) + minimum(x, +w)": np.maximum(X, W) + np.minimum(X, W),
    "round(x) + floor(x) + ceil(x)": np.rint(X) + np.floor(X) + np.ceil(X),
    "erf(eps) + exp(x)": math.erf(1e-5) + np.exp(X),
    "log(abs(x)) + sin(x) + cos(x) + tan(x) + tanh(x)": np.log(np.abs(X))
    + (np.sin(X) + np.cos(X) + np.tan(X) + np.tanh(X)),
    f"{'tanh(' * (DEEPEST - 3)}exp(-x){')' * (DEEPEST - 3)} * 0": np.zeros_like(X),
    "sum(x == x) * True": np.asarray(24.0),
}


@pytest.mark.parametrize("text", VALUES)
def test_an_expression_computes_what_numpy_does(text: str) -> None:
    found = parse(text).value({"x": X, "w": W, "eps": EPS})
    np.testing.assert_allclose(np.squeeze(found), np.squeeze(VALUES[text]), rtol=1e-12)


def test_every_function_is_in_an_example() -> None:
    assert all(any(f"{name}(" in text for text in VALUES) for name in FUNCTIONS)


WRONG = (
    *("__import__('os')", "x.shape", "x[0]", "[x]", "(lambda: x)()", "open('f')", "x if x else w", "x and w"),
    *("x; w", "x = w", "", "x +", "'x'", "None", "1j", "x < w < 1", "f'{x}'", "{x}", "~x", "x | w", "x << 2"),
    *("sum(x, axis=-1)", "sum(*x)", "sum(x, w)", "sum(x, 'a')", "sum(x, 0.5)", "reshape(x)", "exp(x, w)"),
    *("exp()", "sum()", "where(x)", "eval(x)", "(x)(w)", "x := w", "sum(x, (0, 2**60))"),
    *("-" * (DEEPEST + 1) + "x", "(" * 300 + "x" + ")" * 300, "x" * (LONGEST + 1), "x\0"),
)


@pytest.mark.parametrize("text", WRONG)
def test_anything_else_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(UsageError, match="reference"):
        parse(text)


@pytest.mark.parametrize("text", ["-0", "-2.0", "+True", "-(1 + 2)", "-sum(w)", "eps"])
def test_a_number_is_an_array_too(text: str) -> None:
    assert isinstance(parse(text).value({"w": W, "eps": EPS}), np.ndarray)


@given(st.text("xw()+-*/@<=.,0123456789[]{}_'\": emansu", max_size=40))
def test_any_text_is_computed_or_refused(text: str) -> None:
    try:
        expression = parse(text)
        if expression.names <= {"x", "w"}:
            assert isinstance(expression.value({"x": X, "w": W}), np.ndarray)
    except UsageError:
        return


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x + reshape(w, (2, 3))", "broadcast"),
        ("sum(x, 5)", "axis 5"),
        ("x @ x", "mismatch"),
        ("reshape(x, (5, 5))", "cannot reshape"),
        ("big + reshape(big, (1, -1))", "more than"),
        ("big @ reshape(big, (1, -1))", "more than"),
        (f"x * 1{'0' * 400}", "too large"),
    ],
)
def test_what_cannot_be_computed_is_said(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse(text).value({"x": X, "w": W, "big": np.zeros((2**16, 1))})


def test_operands_are_files_scalars_and_what_an_output_holds_before(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X.astype(np.float32))
    halves = np.asarray([0x3F80, 0x4000, 0x4040, 0x4080], np.uint16)
    halves.tofile(tmp_path / "y.bin")
    args: list[dict[str, Any]] = [
        {"in": "x.npy"},
        {"in": "y.bin", "shape": [2, 2], "dtype": "bfloat16"},
        {"out": "z.npy", "from": "x.npy", "shape": [4, 6], "dtype": "float32"},
        {"scalar": "float", "value": 3},
        {"same": 1},
    ]
    read = operands(parse("x + y + z + s + t"), ("x", "y", "z", "s", "t"), args, tmp_path)
    np.testing.assert_array_equal(read["x"], X.astype(np.float32))
    np.testing.assert_array_equal(read["z"], read["x"])
    assert read["y"].tolist() == read["t"].tolist() == [[1, 2], [3, 4]] and read["s"] == 3
    with pytest.raises(UsageError, match="shape and dtype"):
        operands(parse("y"), ("y",), [{"in": "y.bin"}], tmp_path)
