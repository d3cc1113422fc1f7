"""Instructions in the interpreting process give the numbers that a GPU gives: a table of expressions, each
beside what NumPy computes for it, run for several programs at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evokernel_core.targets import author_for
from evokernel_core.targets.triton.backends.interpreter import InterpreterBackend
from evokernel_core.targets.triton.launch import Launch, LaunchRecord
from evokernel_core.verifier.base import Case, RunStatus
from tests.targets.ascendc.conftest import GraphBuilder
from tests.targets.triton.written import source

WIDTH, PROGRAMS = 32, 3
Array = Any


def bf16(values: Array) -> Array:
    """To eight significant bits, ties to even, by arithmetic alone."""
    wide = np.asarray(values, np.float64)
    _, exponent = np.frexp(wide)
    unit = np.exp2(np.maximum(exponent, -125) - 8.0)
    return np.where(np.isfinite(wide), np.rint(wide / unit) * unit, wide)


def f16(values: Array) -> Array:
    return np.asarray(values, np.float32).astype(np.float16).astype(np.float64)


def tf32(values: Array) -> Array:
    """Eleven significant bits, the others cut off."""
    wide = np.asarray(values, np.float64)
    _, exponent = np.frexp(wide)
    unit = np.exp2(exponent - 11.0)
    return np.trunc(wide / unit) * unit


def _all(values: Array) -> Array:
    return np.broadcast_to(np.asarray(values, np.float64)[..., None], (*np.shape(values), WIDTH))


def _matrix(values: Array) -> Array:
    return values.reshape(*values.shape[:-1], 2, 16)


def _dot(a: Array, b: Array, axes: str = "pij,pkj->pik") -> Array:
    return _all(np.einsum(axes, _matrix(a), _matrix(b)).sum((1, 2)))


X, Y = "x", "y"
"""Blocks of float32 of a program: ordinary numbers, in y with NaN in the second place."""
SQUARE = "tl.reshape({0}, [2, 16])"
DOT = "tl.sum(tl.sum(tl.dot({a}, tl.trans({b}){how}), 1), 0)"


def dot(dtype: str, how: str = "") -> str:
    """The sum of all elements of a product of small matrices of x and z."""
    a, b = (f"tl.reshape({name}.to(tl.{dtype}), [2, 16])" for name in ("x", "z"))
    return DOT.format(a=a, b=b, how=how)


def _every(values: Array) -> Array:
    """The same numbers in every program."""
    return np.broadcast_to(values, (PROGRAMS, WIDTH))


def _turned(values: Array, shape: tuple[int, ...], order: tuple[int, ...]) -> Array:
    turned = values.reshape(-1, *shape).transpose(0, *(axis + 1 for axis in order))
    return turned.reshape(-1, WIDTH)


def _eighths(values: Array) -> Array:
    return np.repeat(np.float64(values).reshape(-1, 4, 8).sum(-1), 8, -1)


TABLE: dict[str, Callable[[Array, Array, Array], Array]] = {
    # bfloat16, and float16
    "x.to(tl.bfloat16)": lambda x, y, z: bf16(x),
    "x.to(tl.bfloat16) + z.to(tl.bfloat16)": lambda x, y, z: bf16(bf16(x) + bf16(z)),
    "x.to(tl.bfloat16) * z.to(tl.bfloat16)": lambda x, y, z: bf16(bf16(x) * bf16(z)),
    "x.to(tl.bfloat16) - 1.0": lambda x, y, z: bf16(bf16(x) - 1.0),
    "-x.to(tl.bfloat16)": lambda x, y, z: -bf16(x),
    "tl.abs(x.to(tl.bfloat16))": lambda x, y, z: np.abs(bf16(x)),
    "x.to(tl.bfloat16) < z.to(tl.bfloat16)": lambda x, y, z: bf16(x) < bf16(z),
    "x.to(tl.bfloat16) == x.to(tl.bfloat16)": lambda x, y, z: np.ones_like(x),
    "tl.where(x.to(tl.bfloat16) > 0, x, z).to(tl.bfloat16)": lambda x, y, z: bf16(np.where(x > 0, x, z)),
    "tl.maximum(x.to(tl.bfloat16), z.to(tl.bfloat16))": lambda x, y, z: bf16(np.maximum(x, z)),
    "tl.max(x.to(tl.bfloat16), 0)": lambda x, y, z: _all(bf16(x).max(-1)),
    "(x * 9).to(tl.bfloat16).to(tl.int32)": lambda x, y, z: np.trunc(bf16(x * np.float32(9))),
    "x.to(tl.bfloat16).to(tl.int16, bitcast=True).to(tl.bfloat16, bitcast=True)": lambda x, y, z: bf16(x),
    "tl.full([32], 1.00390625, tl.bfloat16)": lambda x, y, z: np.ones_like(x),
    "x.to(tl.bfloat16).to(tl.float16)": lambda x, y, z: f16(bf16(x)),
    dot("bfloat16"): lambda x, y, z: _dot(bf16(x), bf16(z)),
    dot("float16"): lambda x, y, z: _dot(f16(x), f16(z)),
    "x.to(tl.float16) * z.to(tl.float16)": lambda x, y, z: f16(f16(x) * f16(z)),
    "tl.math.exp(x)": lambda x, y, z: np.exp(np.float64(x)),
    # float32 on matrix units
    dot("float32", ", input_precision='ieee'"): lambda x, y, z: _dot(np.float64(x), np.float64(z)),
    dot("float32"): lambda x, y, z: _dot(tf32(x), tf32(z)),
    dot("float32", ", input_precision='tf32x3'"): lambda x, y, z: _dot(np.float64(x), np.float64(z)),
    # NaN
    "tl.maximum(y, 0.0)": lambda x, y, z: np.fmax(y, 0),
    "tl.minimum(y, 0.0)": lambda x, y, z: np.fmin(y, 0),
    "tl.maximum(y, 0.0, propagate_nan=tl.PropagateNan.ALL)": lambda x, y, z: np.maximum(y, 0),
    "tl.clamp(y, -0.5, 0.5)": lambda x, y, z: np.fmin(np.fmax(y, -0.5), 0.5),
    "tl.clamp(y, -0.5, 0.5, propagate_nan=tl.PropagateNan.ALL)": lambda x, y, z: np.clip(y, -0.5, 0.5),
    "tl.max(y, 0)": lambda x, y, z: _all(np.nanmax(y, -1)),
    "tl.min(y, 0)": lambda x, y, z: _all(np.nanmin(y, -1)),
    "tl.sum(y, 0)": lambda x, y, z: _all(y.sum(-1)),
    "y != y": lambda x, y, z: np.isnan(y),
    "y.to(tl.int32)": lambda x, y, z: np.where(np.isnan(y), 0, np.trunc(np.nan_to_num(y))),
    "(x * 1e30).to(tl.int32).to(tl.float64)": lambda x, y, z: np.where(x > 0, 2.0**31 - 1, -(2.0**31)),
    # whole numbers
    "(tl.arange(0, 32) - 16) // 5": lambda x, y, z: _every(np.trunc((np.arange(32) - 16) / 5)),
    "(tl.arange(0, 32) - 16) % 5": lambda x, y, z: _every(np.fmod(np.arange(32) - 16, 5)),
    "(tl.arange(0, 32) - 16) >> 1": lambda x, y, z: _every((np.arange(32) - 16) >> 1),
    "(tl.arange(0, 32) * 300000000).to(tl.float64)": lambda x, y, z: _every(
        (np.arange(32) * 300000000).astype(np.int32)
    ),
    "~(x > 0)": lambda x, y, z: ~(x > 0),
    "not (row > 1)": lambda x, y, z: _all(~(np.arange(PROGRAMS) > 1)),
    "tl.cdiv(tl.arange(0, 32), 5)": lambda x, y, z: _every(-(-np.arange(32) // 5)),
    "min(row, 1) + max(row, 1)": lambda x, y, z: _all(np.arange(PROGRAMS) + 1),
    # reductions and scans
    "tl.sum(x, 0)": lambda x, y, z: _all(np.float64(x).sum(-1)),
    "tl.argmax(tl.where(x > 0, 1.0, 0.0), 0)": lambda x, y, z: _all((x > 0).argmax(-1)),
    "tl.argmin(x, 0)": lambda x, y, z: _all(x.argmin(-1)),
    "tl.reduce(x, 0, larger)": lambda x, y, z: _all(np.abs(x).max(-1)),
    "tl.cumsum(x, 0)": lambda x, y, z: np.cumsum(np.float64(x), -1),
    "tl.cumsum(x, 0, reverse=True)": lambda x, y, z: np.cumsum(x[:, ::-1], -1)[:, ::-1],
    "tl.associative_scan(tl.abs(x), 0, larger)": lambda x, y, z: np.maximum.accumulate(np.abs(x), -1),
    "eighths(x)": lambda x, y, z: _eighths(x),
    "tl.sum(tl.reshape(x, [4, 8]))": lambda x, y, z: _all(np.float64(x).sum(-1)),
    "tl.sort(x)": lambda x, y, z: np.sort(x, -1),
    "tl.flip(x, 0)": lambda x, y, z: x[:, ::-1],
    "tl.softmax(x)": lambda x, y, z: np.exp(x) / np.exp(x).sum(-1, keepdims=True),
    # shapes
    "tl.reshape(tl.trans(tl.reshape(x, [4, 8])), [32])": lambda x, y, z: _turned(x, (4, 8), (1, 0)),
    "tl.reshape(tl.reshape(x, [4, 8]).T, [32])": lambda x, y, z: _turned(x, (4, 8), (1, 0)),
    "swapped(x)": lambda x, y, z: x.reshape(-1, 16, 2)[:, :, ::-1].reshape(-1, 32),
    "tl.gather(x, 31 - tl.arange(0, 32), 0)": lambda x, y, z: x[:, ::-1],
    "permuted(x)": lambda x, y, z: _turned(x, (2, 4, 4), (2, 0, 1)),
    "tl.erf(x)": lambda x, y, z: np.vectorize(__import__("math").erf)(np.float64(x)),
    "tl.sigmoid(x)": lambda x, y, z: 1 / (1 + np.exp(-np.float64(x))),
    "tl.fma(x, z, 1.0)": lambda x, y, z: np.float64(x) * np.float64(z) + 1,
    "tl.rsqrt(tl.abs(x) + 1.0)": lambda x, y, z: 1 / np.sqrt(np.abs(np.float64(x)) + 1),
    "x.shape[0] * row + one * row - (x.shape[0] - row)": lambda x, y, z: _all(34 * np.arange(PROGRAMS) - 32),
    "tl.cdiv(one, 16) * row < one + row": lambda x, y, z: np.ones_like(x),
    "chosen(x, row)": lambda x, y, z: np.where(np.arange(PROGRAMS)[:, None] == 1, x * np.float64(2), x),
    "x if row == 1 else z": lambda x, y, z: np.where(np.arange(PROGRAMS)[:, None] == 1, x, z),
}  # fmt: skip
CLOSE = 2e-6
HELPERS = """
@triton.jit
def larger(a, b):
    return tl.maximum(tl.abs(a), tl.abs(b))


@triton.jit
def swapped(value):
    even, odd = tl.split(tl.reshape(value, [16, 2]))
    return tl.interleave(odd, even)


@triton.jit
def eighths(value):
    sums = tl.sum(tl.reshape(value, [4, 8]), 1, keep_dims=True)
    return sums.broadcast_to(4, 8).reshape(32)


@triton.jit
def permuted(value):
    return tl.ravel(tl.permute(tl.reshape(value, [2, 4, 4]), [2, 0, 1]))


@triton.jit
def chosen(value, row):
    if row == 1:
        return value * 2.0
    return value
"""


def _text() -> str:
    lines = ["@triton.jit", "def table(first, second, third, output, one, WIDTH: tl.constexpr):"]
    lines += ["    row = tl.program_id(0)", "    place = row * WIDTH + tl.arange(0, WIDTH)"]
    lines += [
        "    x = tl.load(first + place)",
        "    y = tl.load(second + place)",
        "    z = tl.load(third + place)",
    ]
    for number, expression in enumerate(TABLE):
        at = f"output + {number} * WIDTH * {PROGRAMS} + place"
        lines.append(f"    tl.store({at}, tl.zeros([WIDTH], tl.float64) + ({expression}))")
    return HELPERS + "\n\n" + "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> tuple[tuple[Array, Array, Array], Array]:
    """The inputs and the results of all expressions."""
    g = GraphBuilder()
    shape = (PROGRAMS, WIDTH)
    x, y, z = (g.input(name, shape) for name in ("first", "second", "third"))
    made = g.call("made_up.default", x, y, z, shape=(len(TABLE), *shape), dtype="float64")
    task = g.task(made)
    launch = Launch(
        "table", (str(PROGRAMS),), ("first", "second", "third", "output", "1"), {"WIDTH": str(WIDTH)}
    )
    record = LaunchRecord(("first", "second", "third"), ("output",), (launch,))
    backend = InterpreterBackend(author_for("nvidia_h200", "triton"))
    folder = tmp_path_factory.mktemp("table")
    numbers = np.random.default_rng(7)
    arrays = tuple(numbers.standard_normal(shape).astype(np.float32) for _ in "xyz")
    arrays[1][:, 1] = np.nan
    paths = tuple(folder / f"{name}.bin" for name in "xyz")
    for path, array in zip(paths, arrays, strict=True):
        path.write_bytes(array.tobytes())
    nbytes = 8 * len(TABLE) * PROGRAMS * WIDTH
    execution = backend.execute(
        backend.build(task, source(_text(), record)), Case((), (), paths, (folder / "out.bin",), (nbytes,), 2)
    )
    assert execution.status is RunStatus.OK and not execution.hazards, execution
    made_here = np.fromfile(Path(folder / "out.bin"), np.float64).reshape(len(TABLE), *shape)
    return (arrays[0], arrays[1], arrays[2]), made_here


@pytest.mark.parametrize("expression", TABLE)
def test_an_expression_has_the_numbers_of_a_device(
    expression: str, results: tuple[tuple[Array, Array, Array], Array]
) -> None:
    (x, y, z), made = results
    right = np.asarray(TABLE[expression](x, y, z), np.float64)
    given = made[list(TABLE).index(expression)]
    is_exact = "bfloat16" in expression and "dot" not in expression
    assert np.allclose(
        given, right, rtol=0 if is_exact else CLOSE, atol=0 if is_exact else CLOSE, equal_nan=True
    )
