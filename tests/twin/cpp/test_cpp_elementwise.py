"""Element-wise instructions in every form, against a NumPy model of masks, blocks and repeats."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.tables import drawn

BYTES = 8192  # of each operand's buffer

BINARY = ["Add", "Sub", "Mul", "Div", "Max", "Min", "AddRelu", "SubRelu", "FusedMulAdd", "MulAddRelu"]
BITWISE = ["And", "Or"]
UNARY = ["Abs", "Relu", "Sqrt", "Exp", "Ln"]
SHIFTS = ["ShiftLeft", "ShiftRight"]
SCALAR = ["Adds", "Muls", "Maxs", "Mins", "LeakyRelu", "Axpy"]
OPS = {
    "half": [*BINARY, *UNARY, *SCALAR, "MulAddDst"],
    "float": [*BINARY, *UNARY, *SCALAR, "MulAddDst"],
    "int16_t": [
        "Add",
        "Sub",
        "Mul",
        "Max",
        "Min",
        "AddRelu",
        "SubRelu",
        *BITWISE,
        "Not",
        "Adds",
        "Muls",
        "Maxs",
        "Mins",
        *SHIFTS,
    ],
    "int32_t": ["Add", "Sub", "Mul", "Max", "Min", "Relu", "Adds", "Muls", "Maxs", "Mins", *SHIFTS],
    "uint16_t": [*BITWISE, "Not", *SHIFTS],
    "uint32_t": SHIFTS,
}
DTYPES = {
    "half": np.float16,
    "float": np.float32,
    **{f"{name}_t": np.dtype(name).type for name in ("int16", "int32", "uint16", "uint32")},
}


def _case(op: str, number: int) -> str:
    """One branch of the kernel: an instruction by count, by both masks, by the register in both modes."""
    two = op in [*BINARY, *BITWISE, "MulAddDst"]
    operands = "d, a, b" if two else ("d, a, s" if op in [*SCALAR, *SHIFTS] else "d, a")
    types = "T, T, false" if op in ("Axpy", "MulAddDst") else "T, false"
    params = "binary" if two else "unary"
    return f"""
    if (op == {number}) {{
        if (form == 0) {op}({operands}, count);
        if (form == 1) {op}({operands}, mask[0], repeats, {params});
        if (form == 2) {op}({operands}, mask, repeats, {params});
        if (form == 3) SetVectorMask<T, MaskMode::NORMAL>(mask[1], mask[0]);
        if (form == 4) {{ SetMaskCount(); SetVectorMask<T, MaskMode::COUNTER>(0, count); }}
        if (form == 5) {{ SetMaskCount(); {op}({operands}, (uint64_t)count, 1, {params}); }}
        const int32_t rounds = form == 4 ? 1 : repeats;
        if (form == 3 || form == 4) {op}<{types}>({operands}, MASK_PLACEHOLDER, rounds, {params});
        SetMaskNorm();
        ResetMask();
    }}"""


def _body(dtype: str) -> str:
    cases = "".join(_case(op, number) for number, op in enumerate(OPS[dtype]))
    return f"""
    using T = {dtype};
    TPipe pipe;
    TBuf<TPosition::VECCALC> bufA, bufB, bufD;
    pipe.InitBuffer(bufA, {BYTES});
    pipe.InitBuffer(bufB, {BYTES});
    pipe.InitBuffer(bufD, {BYTES});
    LocalTensor<T> a = bufA.Get<T>(), b = bufB.Get<T>(), d = bufD.Get<T>();
    GlobalTensor<T> g[4];
    for (int i = 0; i < 4; ++i) g[i].SetGlobalBuffer((__gm__ T *)t[i]);
    const uint32_t all = {BYTES} / sizeof(T);
    DataCopy(a, g[0], all); DataCopy(b, g[1], all); DataCopy(d, g[2], all);
    PipeBarrier<PIPE_ALL>();
    const int64_t op = tiling.size[0], form = tiling.size[1];
    const int32_t count = tiling.size[2], repeats = tiling.size[5];
    uint64_t mask[2] = {{(uint64_t)tiling.size[3], (uint64_t)tiling.size[4]}};
    const int64_t *s6 = tiling.size + 6;
    BinaryRepeatParams binary((uint8_t)s6[0], (uint8_t)s6[1], (uint8_t)s6[2], (uint8_t)s6[3], (uint8_t)s6[4],
                              (uint8_t)s6[5]);
    UnaryRepeatParams unary((uint16_t)s6[0], (uint16_t)s6[1], (uint8_t)s6[3], (uint8_t)s6[4]);
    const T s = (T)tiling.scalar[0];
    {cases}
    PipeBarrier<PIPE_ALL>();
    DataCopy(g[3], d, all);
"""


@pytest.fixture(scope="module")
def kernels(compile_kernel):
    return {dtype: compile_kernel(_body(dtype), sizes=12, scalars=1) for dtype in OPS}


def _model(op: str, a, b, d, s):
    """The instruction's arithmetic; one rounding to the element type."""
    kind = a.dtype.type
    if op in ("Exp", "Ln", "Sqrt", "Div"):
        wide = {"Exp": np.exp, "Ln": np.log, "Sqrt": np.sqrt}
        result = (
            a.astype(np.float64) / b.astype(np.float64) if op == "Div" else wide[op](a.astype(np.float64))
        )
        return result.astype(kind)
    if op in ("FusedMulAdd", "MulAddRelu", "MulAddDst", "Axpy"):
        x, y, z, k = (v.astype(np.float64) for v in (a, b, d, np.asarray(s)))
        result = {
            "FusedMulAdd": x * z + y,
            "MulAddRelu": np.maximum(x * z + y, 0),
            "MulAddDst": x * y + z,
        }.get(op)
        return (k * x + z if result is None else result).astype(kind)
    relu = np.zeros((), kind)
    simple = {
        "Add": lambda: a + b,
        "Sub": lambda: a - b,
        "Mul": lambda: a * b,
        "Max": lambda: np.maximum(a, b),
        "Min": lambda: np.minimum(a, b),
        "AddRelu": lambda: np.maximum(a + b, relu),
        "SubRelu": lambda: np.maximum(a - b, relu),
        "And": lambda: a & b,
        "Or": lambda: a | b,
        "Not": lambda: ~a,
        "Abs": lambda: np.abs(a),
        "Relu": lambda: np.maximum(a, relu),
        "Adds": lambda: a + s,
        "Muls": lambda: a * s,
        "Maxs": lambda: np.maximum(a, s),
        "Mins": lambda: np.minimum(a, s),
        "LeakyRelu": lambda: np.where(a < 0, a * s, a),
        "ShiftLeft": lambda: a << abs(s),
        "ShiftRight": lambda: a >> abs(s),
    }
    return simple[op]().astype(kind)


def _lanes(form: int, width: int, count: int, mask, repeats: int):
    """(repeat, lane) of every active lane, in order."""
    lanes = 256 // width
    if form in (0, 4, 5):
        return [(i // lanes, i % lanes) for i in range(count)]
    if form == 1:
        active = range(min(mask[0], lanes))
    else:
        active = [i for i in range(lanes) if (mask[i // 64] >> (i % 64)) & 1]
    return [(r, lane) for r in range(repeats) for lane in active]


def _index(places, width: int, block: int, repeat: int):
    per_block = 32 // width
    return np.array(
        [(r * repeat + lane // per_block * block) * per_block + lane % per_block for r, lane in places], int
    )


def _expected(run, mask, strides, arrays, s):
    op, form = run["op"], run["form"]
    a, b, d = arrays
    width = a.dtype.itemsize
    out = d.copy()
    places = _lanes(form, width, run["count"], mask, run["repeats"])
    if form == 0:
        strides = (1, 1, 1, 8, 8, 8)
    two = op in [*BINARY, *BITWISE, "MulAddDst"]
    to, ia = (_index(places, width, strides[i], strides[3 + i]) for i in (0, 1))
    ib = _index(places, width, strides[2], strides[5]) if two else ia
    if len(places):
        with np.errstate(all="ignore"):
            out[to] = _model(op, a[ia], b[ib], d[to], s)
    return out


def _values(dtype, rng, positive: bool):
    n = BYTES // np.dtype(DTYPES[dtype]).itemsize
    if dtype in ("half", "float"):
        values = rng.standard_normal(n) * 4
        return (np.abs(values) + 0.1 if positive else values).astype(DTYPES[dtype])
    return rng.integers(-30000, 30000, n).astype(DTYPES[dtype])


@st.composite
def _runs(draw):
    dtype = draw(st.sampled_from(sorted(OPS)))
    lanes = 256 // np.dtype(DTYPES[dtype]).itemsize
    return {
        "dtype": dtype,
        "op": draw(st.sampled_from(OPS[dtype])),
        "form": (form := draw(st.integers(0, 5))),
        "count": draw(st.integers(0, 5 * lanes if form > 3 else BYTES // np.dtype(DTYPES[dtype]).itemsize)),
        "length": draw(st.integers(0, lanes)),
        "bits": (draw(st.integers(0, 2**64 - 1)), draw(st.integers(0, 2**64 - 1))),
        "repeats": draw(st.integers(0, 5)),
        "blocks": draw(st.tuples(st.integers(1, 3), st.integers(0, 3), st.integers(0, 3))),
        "steps": draw(st.tuples(st.sampled_from([24, 30]), st.integers(0, 24), st.integers(0, 24))),
        "seed": draw(st.integers(0, 1000)),
    }


def any_form(kernels, run) -> None:
    dtype, op, form = run["dtype"], run["op"], run["form"]
    rng = np.random.default_rng(run["seed"])
    positive = op in ("Ln", "Sqrt", "Div")
    arrays = [_values(dtype, rng, positive) for _ in range(3)]
    mask = (run["length"], 0) if form == 1 else run["bits"]
    strides = (*run["blocks"], *run["steps"])
    scalar = float(rng.integers(-3, 4)) if "int" in dtype else 0.75
    scalar = abs(scalar) if op in SHIFTS or dtype.startswith("u") else scalar
    signed = [m - 2**64 if m >= 2**63 else m for m in mask]
    sizes = [OPS[dtype].index(op), form, run["count"], *signed, run["repeats"], *strides]
    ran = kernels[dtype].run(arrays, [(len(arrays[0]), DTYPES[dtype])], sizes, [scalar])
    assert not ran.codes()
    with np.errstate(all="ignore"):
        wanted = _expected(run, mask, strides, arrays, DTYPES[dtype](scalar))
    if op in ("Exp", "Ln", "Sqrt", "Div"):
        np.testing.assert_allclose(
            ran.outputs[0].astype(np.float64),
            wanted.astype(np.float64),
            rtol=1e-3 if dtype == "half" else 1e-6,
        )
    else:
        np.testing.assert_array_equal(ran.outputs[0], wanted)


test_every_form_matches_numpy, test_many_forms_match_numpy = drawn(any_form, 80, 250, run=_runs())


def test_operators_run_over_the_whole_destination(compile_kernel) -> None:
    kernel = compile_kernel(
        """
    LocalMemAllocator allocator;
    LocalTensor<float> a = allocator.Alloc<float>(256), b = allocator.Alloc<float>(256);
    LocalTensor<float> d = allocator.Alloc<float>(256);
    GlobalTensor<float> x, y, z;
    x.SetGlobalBuffer((__gm__ float *)t[0]);
    y.SetGlobalBuffer((__gm__ float *)t[1]);
    z.SetGlobalBuffer((__gm__ float *)t[2]);
    DataCopy(a, x, 256);
    DataCopy(b, y, 256);
    PipeBarrier<PIPE_ALL>();
    d = a + b;
    d = d * b;
    d = d - a;
    d = d / b;
    PipeBarrier<PIPE_ALL>();
    DataCopy(z, d, 256);"""
    )
    x, y = (np.random.default_rng(i).uniform(1, 2, 256).astype(np.float32) for i in (0, 1))
    ran = kernel.run([x, y], [(256, np.float32)])
    assert not ran.codes(), ran.result.hazards
    np.testing.assert_array_equal(ran.outputs[0], ((x + y) * y - x) / y)
