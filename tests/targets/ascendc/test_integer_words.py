"""Element-wise arithmetic on integers against NumPy: every bit, wraparound included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import SymbolicInt
from evokernel_core.targets.ascendc.author import check, initial
from tests.tables import few

DTYPES = ("int64", "int32", "int16", "int8", "uint8")
EDGES = (0, 1, 2, -1, -2, 1 << 15, 1 << 16, 1 << 24, (1 << 24) + 1, (1 << 31) - 1, 1 << 31, (1 << 32) - 1,
         1 << 32, -(1 << 31) - 1, 1 << 48, (1 << 63) - 1, -(1 << 63))  # fmt: skip


RANDOM = np.random.default_rng(41)


def draw(rng: Any, shape: Any, dtype: str) -> Any:
    """Numbers of every size, many of them at the ends of words."""
    if dtype == "bool":
        return rng.random(shape) < 0.5
    wide = rng.integers(-(1 << 63), (1 << 63) - 1, shape) >> rng.integers(0, 64, shape)
    wide = np.where(rng.random(shape) < 0.3, rng.choice(np.array(EDGES), shape), wide)
    return wide.astype(dtype)


def _sign(a: Any) -> Any:
    return np.sign(a).astype(a.dtype)


ARITHMETIC = {
    "add.Tensor": np.add,
    "sub.Tensor": np.subtract,
    "mul.Tensor": np.multiply,
    "maximum.default": np.maximum,
    "minimum.default": np.minimum,
}
BITWISE = {
    "bitwise_and.Tensor": np.bitwise_and,
    "bitwise_or.Tensor": np.bitwise_or,
    "bitwise_xor.Tensor": np.bitwise_xor,
}
UNARY = {"neg.default": np.negative, "abs.default": np.abs, "sign.default": _sign,
         "bitwise_not.default": np.invert, "square.default": np.square}  # fmt: skip
ORDERS = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
          "ge": np.greater_equal}  # fmt: skip


def _run(on_twin: Any, chip: Any, b: Any, results: list[Any], inputs: dict[str, str], expected: Any) -> None:
    """One compile, three sizes."""
    task = b.task(*results, symbols={"n": 9000})
    strategy = initial(task, chip)
    assert strategy.family == "integers" or "bool" in inputs.values()
    for n in (1, 77, 9000):
        rng = np.random.default_rng(n)
        given = {name: draw(rng, n, dtype) for name, dtype in inputs.items()}
        with np.errstate(over="ignore"):
            wanted = expected(**given)
        for found, right in zip(on_twin(task, given, strategy, {"n": n}), wanted, strict=True):
            assert found.dtype == right.dtype
            np.testing.assert_array_equal(found, right)


@few(
    "dtype",
    DTYPES,
    keep=(
        0,
        2,
        4,
    ),
)
def test_arithmetic_of_two_tensors(dtype: str, builder: Any, on_twin: Any, chip: Any) -> None:
    b, ops = builder(), ARITHMETIC | BITWISE
    x, y = b.input("x", ("n",), dtype), b.input("y", ("n",), dtype)
    results = [b.call(name, x, y, shape=("n",), dtype=dtype) for name in ops]
    inputs = {"x": dtype, "y": dtype}
    _run(on_twin, chip, b, results, inputs, lambda x, y: [op(x, y) for op in ops.values()])


@few(
    "dtype",
    DTYPES,
    keep=(
        0,
        4,
    ),
)
def test_comparisons(dtype: str, builder: Any, on_twin: Any, chip: Any) -> None:
    """Of two tensors, many of whose elements are equal, and with a number."""
    b, number = builder(), 5 if dtype in ("int8", "uint8") else 30000
    x, y = b.input("x", ("n",), dtype), b.input("y", ("n",), dtype)
    moved = b.call("minimum.default", x, y, shape=("n",), dtype=dtype)
    results = [b.call(f"{name}.Tensor", moved, y, shape=("n",), dtype="bool") for name in ORDERS]
    results += [b.call(f"{name}.Scalar", x, number, shape=("n",), dtype="bool") for name in ("lt", "ge")]

    def expected(x: Any, y: Any) -> Any:
        found = [op(np.minimum(x, y), y) for op in ORDERS.values()] + [x < number, x >= number]
        return [item.astype("bool") for item in found]

    _run(on_twin, chip, b, results, {"x": dtype, "y": dtype}, expected)


@few(
    "dtype",
    DTYPES,
    keep=(
        0,
        3,
    ),
)
def test_single_tensors_and_numbers(dtype: str, builder: Any, on_twin: Any, chip: Any) -> None:
    b, number = builder(), {"int64": 5_000_000_007, "int32": 1_000_003}.get(dtype, 101)
    x = b.input("x", ("n",), dtype)
    results = [b.call(name, x, shape=("n",), dtype=dtype) for name in UNARY]
    results.append(b.call("add.Tensor", x, number, shape=("n",), dtype=dtype))
    results.append(b.call("mul.Tensor", x, number, shape=("n",), dtype=dtype))
    results.append(b.call("rsub.Scalar", x, number, shape=("n",), dtype=dtype))
    scale = np.array(number, dtype)

    def expected(x: Any) -> Any:
        return [*(op(x) for op in UNARY.values()), x + scale, x * scale, scale - x]

    _run(on_twin, chip, b, results, {"x": dtype}, expected)


@pytest.mark.parametrize("dtype", ("int64", "int32", "uint8"))
def test_shifts_choices_and_powers(dtype: str, builder: Any, on_twin: Any, chip: Any) -> None:
    b, bits = builder(), {"int64": (3, 32, 45), "int32": (1, 16, 31), "uint8": (1, 4, 7)}[dtype]
    x, mask = b.input("x", ("n",), dtype), b.input("mask", ("n",), "bool")
    kind = {"shape": ("n",), "dtype": dtype}
    left = [b.call("bitwise_left_shift.Tensor_Scalar", x, count, **kind) for count in bits]
    right = [b.call("bitwise_right_shift.Tensor_Scalar", x, count, **kind) for count in bits[1:]]
    cube = b.call("pow.Tensor_Scalar", x, 3, **kind)
    chosen = b.call("where.self", mask, x, left[0], **kind)
    filled = b.call("masked_fill.Scalar", x, mask, 100, **kind)

    def expected(x: Any, mask: Any) -> Any:
        shifted = [x << x.dtype.type(count) for count in bits]
        back = [x >> x.dtype.type(count) for count in bits[1:]]
        chosen = [np.where(mask, x, shifted[0]), np.where(mask, x.dtype.type(100), x)]
        return [*shifted, *back, x * x * x, *chosen]

    _run(on_twin, chip, b, [*left, *right, cube, chosen, filled], {"x": dtype, "mask": "bool"}, expected)


@pytest.mark.parametrize("source", (*DTYPES, "bool"))
def test_casts(source: str, builder: Any, on_twin: Any, chip: Any) -> None:
    b, targets = builder(), (*DTYPES, "bool")
    x = b.input("x", ("n",), source)
    other = b.call("bitwise_not.default", x, shape=("n",), dtype=source)
    results = [b.call("_to_copy.default", other, shape=("n",), dtype=to) for to in targets if to != source]
    inputs = {"x": source}
    _run(on_twin, chip, b, results, inputs, lambda x: [(~x).astype(to) for to in targets if to != source])


def test_an_operand_for_each_row_each_column_and_all(builder: Any, on_twin: Any, chip: Any) -> None:
    b, shape = builder(), ("a", "b", "c")
    x, rows = b.input("x", shape, "int64"), b.input("rows", ("a", 1, 1), "int64")
    columns, middle = b.input("columns", ("c",), "int32"), b.input("middle", ("b", 1), "bool")
    one = b.input("one", (), "int64")
    kind = {"shape": shape, "dtype": "int64"}
    total = b.call("add.Tensor", b.call("mul.Tensor", x, rows, **kind), columns, **kind)
    total = b.call("sub.Tensor", b.call("mul.Tensor", total, middle, **kind), one, **kind)
    wide = b.call("expand.default", b.call("unsqueeze.default", columns, 0, shape=(1, "c"), dtype="int32"),
                  ("b", "c"), shape=("b", "c"), dtype="int32")  # fmt: skip
    less = b.call("lt.Tensor", total, wide, shape=shape, dtype="bool")
    task = b.task(total, less, symbols={"a": 5, "b": 6, "c": 700})
    strategy = initial(task, chip)
    for sizes in ({"a": 1, "b": 1, "c": 1}, {"a": 3, "b": 4, "c": 65}, {"a": 2, "b": 3, "c": 1500}):
        a, m, c = sizes.values()
        rng = np.random.default_rng(c)
        given = {"x": draw(rng, (a, m, c), "int64"), "rows": draw(rng, (a, 1, 1), "int64"),
                 "columns": draw(rng, c, "int32"), "middle": draw(rng, (m, 1), "bool"),
                 "one": draw(rng, (), "int64")}  # fmt: skip
        with np.errstate(over="ignore"):
            right = (given["x"] * given["rows"] + given["columns"]) * given["middle"] - given["one"]
        found, smaller = on_twin(task, given, strategy, sizes)
        np.testing.assert_array_equal(found, right)
        np.testing.assert_array_equal(smaller, right < given["columns"])


@few(
    "seed",
    range(5),
    keep=(
        0,
        1,
    ),
)
def test_random_graphs(seed: int, builder: Any, on_twin: Any, chip: Any) -> None:
    """Chains of operations on tensors of several dtypes and shapes."""
    rng, b = np.random.default_rng(seed), builder()
    shapes = [("n", "m"), ("m",), ("n", 1), ()]
    names = {f"x{i}": (shapes[i % 4], str(rng.choice([*DTYPES, "bool"]))) for i in range(5)}
    nodes = [(b.input(name, shape, dtype), shape, dtype) for name, (shape, dtype) in names.items()]
    steps = []
    for _ in range(12):
        i, j = (int(rng.integers(0, len(nodes))) for _ in range(2))
        dtype = str(rng.choice(["int64", "int32"]))
        both = {nodes[i][1], nodes[j][1]}
        shape = ("n", "m") if ("n", "m") in both or both == {("m",), ("n", 1)} else max(both, key=len)
        if rng.random() < 0.4:
            op, kind = f"{rng.choice(list(ORDERS))}.Tensor", "bool"
            pair = [b.call("_to_copy.default", nodes[k][0], shape=nodes[k][1], dtype=dtype) for k in (i, j)]
        else:
            op, kind, pair = str(rng.choice(list(ARITHMETIC))), dtype, [nodes[i][0], nodes[j][0]]
        nodes.append((b.call(op, *pair, shape=shape, dtype=kind), shape, kind))
        steps.append((op, i, j, dtype))
    wanted = [k for k, (_, shape, _) in enumerate(nodes) if shape == ("n", "m") and k >= len(names)][-3:]
    task = b.task(*(nodes[k][0] for k in wanted), symbols={"n": 30, "m": 200})
    strategy = initial(task, chip)
    for n, m in ((1, 1), (7, 130)):
        sizes = {"n": n, "m": m}
        given = {name: draw(rng, tuple(sizes.get(d, d) for d in shape), dtype)
                 for name, (shape, dtype) in names.items()}  # fmt: skip
        values = [np.asarray(given[name]) for name in names]
        with np.errstate(over="ignore"):
            for op, i, j, dtype in steps:
                left, right = values[i].astype(dtype), values[j].astype(dtype)
                compute = ARITHMETIC.get(op) or ORDERS[op.split(".")[0]]
                values.append(np.asarray(compute(left, right)))
        for found, k in zip(on_twin(task, given, strategy, sizes), wanted, strict=True):
            np.testing.assert_array_equal(found, np.broadcast_to(values[k], (n, m)))


@pytest.mark.parametrize("dtype", ("int64", "int32", "uint8"))
def test_shifts_by_tensors(dtype: str, builder: Any, on_twin: Any, chip: Any) -> None:
    b, kind, width = builder(), {"shape": ("n",), "dtype": dtype}, 8 * np.dtype(dtype).itemsize
    x, bits = b.input("x", ("n",), dtype), b.input("bits", ("n",), dtype)
    results = [b.call(f"bitwise_{side}_shift.Tensor", x, bits, **kind) for side in ("left", "right")]
    task = b.task(*results, symbols={"n": 700})
    strategy = initial(task, chip)
    for n in (1, 700):
        rng = np.random.default_rng(n)
        x = draw(rng, n, dtype)
        bits = rng.integers(0 if dtype == "uint8" else -2, width + 2, n).astype(dtype)
        within = (bits >= 0) & (bits < width)
        some = np.where(within, bits, 0).astype(dtype)
        right = [np.where(within, x << some, 0), np.where(within, x >> some, np.where(x < 0, -1, 0))]
        for found, wanted in zip(
            on_twin(task, {"x": x, "bits": bits}, strategy, {"n": n}), right, strict=True
        ):
            np.testing.assert_array_equal(found, wanted.astype(dtype))


@pytest.mark.parametrize("power", (-1, 9))
def test_powers_that_are_refused(power: int, builder: Any, chip: Any) -> None:
    b = builder()
    x = b.input("x", (8,), "int64")
    with pytest.raises(PlanError, match="not covered for int64"):
        check(b.task(b.call("pow.Tensor_Scalar", x, power, shape=(8,), dtype="int64")), chip)


@few(
    "dtype",
    ("int64", "int32", "uint8"),
    keep=(
        0,
        2,
    ),
)
def test_quotients_and_remainders(dtype: str, builder: Any, on_twin: Any, chip: Any) -> None:
    """By numbers, powers of two among them, and by tensors; rounded down and towards zero."""
    b, kind = builder(), {"shape": ("n",), "dtype": dtype}
    x, y = b.input("x", ("n",), dtype), b.input("y", ("n",), dtype)
    odd = {"int64": 10_000_000_019, "int32": -(1 << 31) + 1, "uint8": 11}[dtype]
    wide = {"int64": -8_000_009, "int32": 77_777, "uint8": 255}[dtype]
    results = [
        b.call("div.Tensor_mode", x, 8, rounding_mode="floor", **kind),
        b.call("div.Tensor_mode", x, 8, rounding_mode="trunc", **kind),
        b.call("remainder.Scalar", x, 64, **kind),
        b.call("remainder.Scalar", x, odd, **kind),
        b.call("remainder.Scalar", x, -7 if dtype != "uint8" else 7, **kind),
        b.call("div.Tensor_mode", x, wide, rounding_mode="trunc", **kind),
        b.call("div.Tensor_mode", x, 32749 if dtype != "uint8" else 3, rounding_mode="floor", **kind),
        b.call("div.Tensor_mode", x, y, rounding_mode="floor", **kind),
        b.call("div.Tensor_mode", x, y, rounding_mode="trunc", **kind),
        b.call("fmod.Tensor", x, y, **kind),
    ]
    task = b.task(*results, symbols={"n": 700})
    strategy, to = initial(task, chip), np.dtype(dtype).type
    for n in (1, 700):
        rng = np.random.default_rng(n)
        given = {name: draw(rng, n, dtype) for name in "xy"}
        given["y"] = np.where(np.isin(given["y"], [0, -1]), to(3), given["y"])  # whatever these would give
        a, c = given.values()
        eights, rest, pieces = np.fmod(a, to(8)), np.fmod(a, to(wide)), np.fmod(a, c)
        seven, prime = (to(-7), to(32749)) if dtype != "uint8" else (to(7), to(3))
        right = [a // to(8), (a - eights) // to(8), a % to(64), a % to(odd), a % seven,
                 (a - rest) // to(wide), a // prime, a // c, (a - pieces) // c, pieces]  # fmt: skip
        for found, wanted in zip(on_twin(task, given, strategy, {"n": n}), right, strict=True):
            np.testing.assert_array_equal(found, wanted)


@few("dtype", ("int8", "uint8", "int16"), keep=(0, 2))
def test_every_quotient_of_short_integers(dtype: str, builder: Any, on_twin: Any) -> None:
    """All pairs of eight bits, and the ends of sixteen beside random ones; next to whole quotients, too."""
    b, kind = builder(), {"shape": ("n",), "dtype": dtype}
    x, y = b.input("x", ("n",), dtype), b.input("y", ("n",), dtype)
    results = [
        b.call("div.Tensor_mode", x, y, rounding_mode="floor", **kind),
        b.call("div.Tensor_mode", x, y, rounding_mode="trunc", **kind),
        b.call("remainder.Tensor", x, y, **kind),
        b.call("fmod.Tensor", x, y, **kind),
    ]
    ends = np.iinfo(dtype)
    values = np.arange(ends.min, ends.max + 1)
    if dtype == "int16":
        values = np.concatenate((values[:40], values[-40:], RANDOM.choice(values, 120), np.arange(-40, 41)))
    a, c = (item.ravel() for item in np.meshgrid(values, values[values != 0]))
    task = b.task(*results, symbols={"n": a.size})
    floor, trunc = a // c, np.trunc(a / c).astype(np.int64)
    given = {"x": a.astype(dtype), "y": c.astype(dtype)}
    right = (floor, trunc, a - floor * c, a - trunc * c)
    for found, wanted in zip(on_twin(task, given), right, strict=True):
        np.testing.assert_array_equal(found, wanted.astype(dtype))


@few("dtype", ("int32", "int16", "int8", "uint8"), keep=(0, 2))
def test_greatest_common_divisors(dtype: str, builder: Any, on_twin: Any, chip: Any) -> None:
    """Of neighbours among Fibonacci's and Pell's numbers, which take the most steps, of the ends of the type,
    and of numbers of every size and their multiples."""
    b, ends, series = builder(), np.iinfo(dtype), {0, 1, 2, -6, 6}
    x, y = b.input("x", ("n",), dtype), b.input("y", ("n",), dtype)
    task = b.task(b.call("gcd.default", x, y, shape=("n",), dtype=dtype), symbols={"n": 9000})
    for factor in (1, 2):
        last, number = 0, 1
        while number <= ends.max:
            series.add(number)
            last, number = number, factor * number + last
    numbers = np.array(sorted(series | {ends.max, ends.max - 1, max(ends.min, -ends.max)}))
    left, right = (item.ravel() for item in np.meshgrid(numbers, numbers))
    rng = np.random.default_rng(7)
    other, least = rng.integers(-ends.max if ends.min else 0, ends.max, (2, 3000)), rng.integers(0, 31, 3000)
    left, right = np.concatenate((left, other[0])), np.concatenate((right, other[1] >> least))
    given = {"x": left.astype(dtype), "y": right.astype(dtype)}
    (found,) = on_twin(task, given, initial(task, chip), {"n": left.size})
    np.testing.assert_array_equal(found, np.gcd(given["x"], given["y"]))


def test_common_divisors_of_long_integers_are_refused(builder: Any, chip: Any) -> None:
    b = builder()
    x = b.input("x", (8,), "int64")
    with pytest.raises(PlanError, match="of int64 is not covered"):
        check(b.task(b.call("gcd.default", x, x, shape=(8,), dtype="int64")), chip)


def test_sizes_as_operands(builder: Any, on_twin: Any, chip: Any) -> None:
    b, kind = builder(), {"shape": ("n",), "dtype": "int64"}
    x = b.input("x", ("n",), "int64")
    results = [
        b.call("remainder.Scalar", x, SymbolicInt("n"), **kind),
        b.call("add.Tensor", x, SymbolicInt("2*n"), **kind),
        b.call("lt.Scalar", x, SymbolicInt("n"), shape=("n",), dtype="bool"),
        b.call("remainder.Scalar", b.call("full_like.default", x, 1000, **kind), 7, **kind),
    ]
    task = b.task(*results, symbols={"n": 700})
    strategy = initial(task, chip)
    for n in (1, 700):
        x = np.random.default_rng(n).integers(-2 * n, 2 * n, n)
        x[::7] = draw(np.random.default_rng(n), len(x[::7]), "int64")
        with np.errstate(over="ignore"):
            right = [x % n, x + 2 * n, x < n, np.full(n, 1000 % 7)]
        for found, wanted in zip(on_twin(task, {"x": x}, strategy, {"n": n}), right, strict=True):
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", ("uint8", "int8", "int16"))
def test_short_integers_become_floats_and_floats_those(
    dtype: str, builder: Any, on_twin: Any, chip: Any
) -> None:
    """As images and quantized tensors are read and written, in rows and element by element."""
    b, shape = builder(), ("n", "m")
    x, zero = b.input("x", shape, dtype), b.input("zero", ("m",), dtype)
    number = b.call("_to_copy.default", x, shape=shape)
    centred = b.call("sub.Tensor", number, b.call("_to_copy.default", zero, shape=("m",)), shape=shape)
    mean = b.call("mean.dim", centred, (1,), True, shape=("n", 1))
    scaled = b.call("mul.Tensor", b.call("sub.Tensor", centred, mean, shape=shape), 0.5, shape=shape)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    kept = b.call("clamp.default", scaled, float(low), float(high), shape=shape)
    task = b.task(b.call("_to_copy.default", kept, shape=shape, dtype=dtype), mean,
                  symbols={"n": 60, "m": 128})  # fmt: skip
    strategy = initial(task, chip)
    for n, m in ((1, 1), (7, 50), (60, 128)):
        rng = np.random.default_rng(n)
        given = {"x": draw(rng, (n, m), dtype), "zero": draw(rng, m, dtype)}
        values = given["x"].astype("f4") - given["zero"].astype("f4")
        middle = values.mean(1, keepdims=True)
        found, average = on_twin(task, given, strategy, {"n": n, "m": m})
        np.testing.assert_allclose(average, middle, rtol=1e-5, atol=1e-4)
        np.testing.assert_array_equal(
            found, np.clip((values - average) * np.float32(0.5), low, high).astype(dtype)
        )
