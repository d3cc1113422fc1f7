"""Cast: the pair table of A2, its rounding modes and its saturation."""

from __future__ import annotations

import numpy as np
import pytest

MODES = ["CAST_NONE", "CAST_RINT", "CAST_FLOOR", "CAST_CEIL", "CAST_ROUND", "CAST_TRUNC", "CAST_ODD"]
FIVE = {"CAST_RINT", "CAST_FLOOR", "CAST_CEIL", "CAST_ROUND", "CAST_TRUNC"}
PAIRS = {
    ("int8_t", "half"): {"CAST_NONE"},
    ("uint8_t", "half"): {"CAST_NONE"},
    ("int16_t", "half"): FIVE | {"CAST_NONE"},
    ("int16_t", "float"): {"CAST_NONE"},
    ("half", "int8_t"): FIVE | {"CAST_NONE"},
    ("half", "uint8_t"): FIVE | {"CAST_NONE"},
    ("half", "int16_t"): FIVE,
    ("half", "int32_t"): FIVE,
    ("half", "float"): {"CAST_NONE"},
    ("bfloat16_t", "int32_t"): FIVE,
    ("bfloat16_t", "float"): {"CAST_NONE"},
    ("int32_t", "int16_t"): {"CAST_NONE"},
    ("int32_t", "float"): FIVE | {"CAST_NONE"},
    ("int32_t", "int64_t"): {"CAST_NONE"},
    ("float", "int16_t"): FIVE,
    ("float", "half"): FIVE | {"CAST_NONE", "CAST_ODD"},
    ("float", "bfloat16_t"): FIVE,
    ("float", "int32_t"): FIVE,
    ("float", "float"): FIVE,
    ("float", "int64_t"): FIVE,
    ("int64_t", "int32_t"): {"CAST_NONE"},
    ("int64_t", "float"): FIVE,
}
MISSING = [("int8_t", "float"), ("half", "bfloat16_t"), ("int16_t", "int32_t"), ("uint8_t", "int32_t")]
NUMPY = {
    "half": np.float16,
    "float": np.float32,
    "bfloat16_t": np.uint16,
    **{f"{name}_t": np.dtype(name).type for name in ("int8", "uint8", "int16", "int32", "int64")},
}
COUNT = 512


def _case(number: int, src: str, dst: str) -> str:
    return f"""
    if (tiling.size[0] == {number}) {{
        LocalTensor<{src}> a = in.Get<{src}>();
        LocalTensor<{dst}> d = out.Get<{dst}>();
        GlobalTensor<{src}> x; x.SetGlobalBuffer((__gm__ {src} *)t[0]);
        GlobalTensor<{dst}> y; y.SetGlobalBuffer((__gm__ {dst} *)t[1]);
        DataCopy(a, x, {COUNT});
        PipeBarrier<PIPE_ALL>();
        Cast(d, a, mode, {COUNT});
        PipeBarrier<PIPE_ALL>();
        DataCopy(y, d, {COUNT});
    }}"""


@pytest.fixture(scope="module")
def kernel(compile_kernel):
    cases = "".join(_case(i, *pair) for i, pair in enumerate([*PAIRS, *MISSING]))
    return compile_kernel(
        f"""
    TPipe pipe;
    TBuf<TPosition::VECCALC> in, out;
    pipe.InitBuffer(in, {COUNT * 8});
    pipe.InitBuffer(out, {COUNT * 8});
    const RoundMode mode = static_cast<RoundMode>(tiling.size[1]);
    {cases}""",
        sizes=2,
    )


def _inputs(src: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    edges = np.array(
        [0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 2.49, -2.51, 126.5, 127.5, -128.5, 255.5, 0, -0.0], np.float64
    )
    if src == "bfloat16_t":
        values = np.concatenate([edges, rng.standard_normal(COUNT - len(edges)) * 300])
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    kind = NUMPY[src]
    if src in ("half", "float"):
        large = (
            [40000.0, -40000.0, 60000.0]
            if src == "half"
            else [70000.0, -3e9, 3e9, 1.0009765625, 1.00048828125]
        )
        values = np.concatenate([edges, large, rng.standard_normal(COUNT - len(edges) - len(large)) * 300])
        return values.astype(kind)
    info = np.iinfo(kind)
    return rng.integers(info.min, info.max, COUNT, dtype=kind, endpoint=True)


def _as_values(array: np.ndarray, dtype: str) -> np.ndarray:
    """As long doubles, exact for every type."""
    if dtype == "bfloat16_t":
        array = (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.longdouble)


def _to_grid(values: np.ndarray, mode: str) -> np.ndarray:
    """Rounds to integers."""
    functions = {
        "CAST_FLOOR": np.floor,
        "CAST_CEIL": np.ceil,
        "CAST_TRUNC": np.trunc,
        "CAST_ROUND": lambda v: np.trunc(v + np.copysign(np.longdouble(0.5), v)),
        "CAST_ODD": lambda v: np.where(
            (np.trunc(v) == v) | (np.fmod(np.trunc(v), 2) != 0),
            np.trunc(v),
            np.trunc(v) + np.copysign(1.0, v),
        ),
    }
    return functions.get(mode, np.rint)(values)


def _to_float(values: np.ndarray, mode: str, digits: int, lowest: int) -> np.ndarray:
    """Rounds to ``digits`` significant bits, none below 2**lowest."""
    exponent = np.frexp(values)[1].astype(int)
    unit = np.maximum(exponent - digits, lowest)
    return np.ldexp(_to_grid(np.ldexp(values, -unit), mode), unit)


def _wanted(src_values: np.ndarray, src: str, dst: str, mode: str) -> np.ndarray:
    if dst == "half":
        rounded = _to_float(src_values, mode, 11, -24)
        return np.where(np.abs(rounded) > 65504, np.copysign(np.inf, rounded), rounded)
    if dst == "bfloat16_t":
        return _to_float(src_values, mode, 8, -133)
    if dst == "float":
        return _to_grid(src_values, mode) if src == "float" else _to_float(src_values, mode, 24, -149)
    info = np.iinfo(NUMPY[dst])
    return np.clip(_to_grid(src_values, mode), np.longdouble(info.min), np.longdouble(info.max))


@pytest.mark.parametrize(
    ("number", "pair"), list(enumerate(PAIRS)), ids=lambda v: "-".join(v) if isinstance(v, tuple) else ""
)
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_every_mode_of_every_pair(kernel, number, pair) -> None:
    src, dst = pair
    array = _inputs(src)
    for mode_number, mode in enumerate(MODES):
        ran = kernel.run([array], [(COUNT, NUMPY[dst])], [number, mode_number])
        if mode not in PAIRS[pair]:
            assert ran.codes() == {"dtype-unsupported"}, mode
            continue
        assert not ran.codes()
        wanted = _wanted(_as_values(array, src), src, dst, mode)
        directed_overflow = dst == "half" and mode in ("CAST_FLOOR", "CAST_CEIL", "CAST_TRUNC", "CAST_ODD")
        keep = np.isfinite(wanted) if directed_overflow else np.ones(COUNT, bool)
        np.testing.assert_array_equal(_as_values(ran.outputs[0], dst)[keep], wanted[keep], err_msg=mode)


@pytest.mark.parametrize(("number", "pair"), list(enumerate(MISSING, start=len(PAIRS))))
def test_a_pair_that_the_chip_lacks_is_an_error(kernel, number, pair) -> None:
    src, dst = pair
    ran = kernel.run([_inputs(src)], [(COUNT, NUMPY[dst])], [number, 1])
    assert "dtype-unsupported" in ran.codes()


def test_float_that_becomes_infinite_in_half_is_a_warning(kernel) -> None:
    number = list(PAIRS).index(("float", "half"))
    big = np.full(COUNT, 1e5, np.float32)
    assert "overflow-inf" in kernel.run([big], [(COUNT, np.float16)], [number, 1]).codes("warning")
    fits = np.full(COUNT, 6e4, np.float32)
    assert not kernel.run([fits], [(COUNT, np.float16)], [number, 1]).codes("warning")
