"""Element-wise high-level functions in every form, against NumPy, with temporaries of the promised size."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.tables import drawn

ELEMENTS = 1024
DTYPES = {"half": np.float16, "float": np.float32}

UNARY = [
    "Tanh", "Sigmoid", "Erf", "Erfc", "Log", "Log2", "Log10", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan",
    "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Ceil", "Floor", "Round", "Trunc", "Frac", "Sign", "Lgamma",
    "Digamma",
]  # fmt: skip
BINARY = ["GeGLU", "ReGlu", "Fmod", "Power"]
OTHERS = {
    "Gelu": "Gelu({operands}n)",
    "FasterGelu": "FasterGelu({operands}n)",
    "FasterGeluV2": "FasterGeluV2({operands}n)",
    "ClampMax": "ClampMax({operands}s, n)",
    "ClampMin": "ClampMin({operands}s, n)",
    "Exp": "Exp<T, 12>({operands}n)",
    "SwiGLU": "SwiGLU(d, a, b, (float)s, {tmp}n)",
    "PowerScalar": "Power(d, a, s, {tmp}n)",
    "ScalarPower": "Power(d, s, a, {tmp}n)",
}
SIZES = {"PowerScalar": "Power", "ScalarPower": "Power", "ClampMax": "Clamp", "ClampMin": "Clamp"}
ALL = [*UNARY, *BINARY, *OTHERS]
PLATFORM = """
#include "tiling/tiling_api.h"
"""


def _size_of(op: str) -> str:
    name = SIZES.get(op, op)
    shape = "TensorShape shape({(int64_t)n});"
    if op in ("FasterGelu", "FasterGeluV2", "Gelu"):
        call = "GetGeluMaxMinTmpSize(shape, sizeof(T), most, least);"
    elif name == "Power":
        call = "GetPowerMaxMinTmpSize(shape, shape, false, sizeof(T), false, most, least);"
    elif name == "SwiGLU":
        call = "GetSwiGLUMaxMinTmpSize(shape, sizeof(T), most, least, false);"
    elif name == "Round":
        call = "GetRoundMaxMinTmpSize(platform, shape, sizeof(T), false, most, least);"
    else:
        call = f"Get{name}MaxMinTmpSize(shape, sizeof(T), false, most, least);"
    return shape + call


def _case(op: str, number: int) -> str:
    if op in OTHERS:
        text = OTHERS[op]
        with_tmp = text.format(operands="d, a, tmp, ", tmp="tmp, ")
        without = text.format(operands="d, a, ", tmp="")
        forms = [with_tmp, without]
    else:
        operands = "d, a" if op in UNARY else "d, a, b"
        forms = [
            f"{op}({operands}, tmp, n)",
            f"{op}({operands}, n)",
            f"{op}({operands}, tmp)",
            f"{op}({operands})",
        ]
    branches = "".join(f"if (form == {i}) {form};" for i, form in enumerate(forms))
    return f"if (op == {number}) {{ {_size_of(op)} temporary(least); {branches} }}\n"


def _body(dtype: str) -> str:
    cases = "".join(_case(op, number) for number, op in enumerate(ALL))
    return f"""
    using T = {dtype};
    const int64_t op = tiling.size[0], form = tiling.size[1];
    const uint32_t n = tiling.size[2];
    const T s = (T)tiling.scalar[0];
    TPipe pipe;
    TBuf<TPosition::VECCALC> bufA, bufB, bufD, bufT;
    pipe.InitBuffer(bufA, {ELEMENTS} * sizeof(T));
    pipe.InitBuffer(bufB, {ELEMENTS} * sizeof(T));
    pipe.InitBuffer(bufD, {ELEMENTS} * sizeof(T));
    pipe.InitBuffer(bufT, 16384);
    LocalTensor<T> a = bufA.Get<T>(), b = bufB.Get<T>(), d = bufD.Get<T>();
    GlobalTensor<T> g[3];
    for (int i = 0; i < 3; ++i) g[i].SetGlobalBuffer((__gm__ T *)t[i]);
    DataCopy(a, g[0], {ELEMENTS}); DataCopy(b, g[1], {ELEMENTS});
    PipeBarrier<PIPE_ALL>();
    Duplicate(d, (T)0, {ELEMENTS});
    a.SetSize(n); b.SetSize(n);
    LocalTensor<uint8_t> tmp;
    uint32_t most = 0, least = 0;
    auto &platform = *platform_ascendc::PlatformAscendCManager::GetInstance();
    auto temporary = [&](uint32_t bytes) {{
        tmp = bufT.Get<uint8_t>(bytes > tiling.size[3] ? bytes - tiling.size[3] : 0);
    }};
    {cases}
    PipeBarrier<PIPE_ALL>();
    DataCopy(g[2], d, {ELEMENTS});
"""


def _gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def _faster_gelu_v2(x):
    return x * (np.sign(x) * (-0.1444 * (np.minimum(np.abs(x) / np.sqrt(2), 1.769) - 1.769) ** 2 + 0.5) + 0.5)


def _digamma(x):
    """By its definition: the slope of log gamma."""
    step = 1e-5
    each = np.vectorize(lambda v: (math.lgamma(v + step) - math.lgamma(v - step)) / (2 * step))
    return each(x)


MODELS = {
    "Tanh": lambda a, b, s: np.tanh(a),
    "Sigmoid": lambda a, b, s: 1 / (1 + np.exp(-a)),
    "Erf": lambda a, b, s: np.vectorize(math.erf)(a),
    "Erfc": lambda a, b, s: np.vectorize(math.erfc)(a),
    "Log": lambda a, b, s: np.log(a),
    "Log2": lambda a, b, s: np.log2(a),
    "Log10": lambda a, b, s: np.log10(a),
    "Sin": lambda a, b, s: np.sin(a),
    "Cos": lambda a, b, s: np.cos(a),
    "Tan": lambda a, b, s: np.tan(a),
    "Asin": lambda a, b, s: np.arcsin(a),
    "Acos": lambda a, b, s: np.arccos(a),
    "Atan": lambda a, b, s: np.arctan(a),
    "Sinh": lambda a, b, s: np.sinh(a),
    "Cosh": lambda a, b, s: np.cosh(a),
    "Asinh": lambda a, b, s: np.arcsinh(a),
    "Acosh": lambda a, b, s: np.arccosh(a),
    "Atanh": lambda a, b, s: np.arctanh(a),
    "Ceil": lambda a, b, s: np.ceil(a),
    "Floor": lambda a, b, s: np.floor(a),
    "Round": lambda a, b, s: np.rint(a),
    "Trunc": lambda a, b, s: np.trunc(a),
    "Frac": lambda a, b, s: a - np.trunc(a),
    "Sign": lambda a, b, s: np.sign(a),
    "Lgamma": lambda a, b, s: np.vectorize(math.lgamma)(a),
    "Digamma": lambda a, b, s: _digamma(a),
    "GeGLU": lambda a, b, s: a * _gelu(b),
    "ReGlu": lambda a, b, s: a * np.maximum(b, 0),
    "Fmod": lambda a, b, s: np.fmod(a, b),
    "Power": lambda a, b, s: np.power(a, b),
    "Gelu": lambda a, b, s: _gelu(a),
    "FasterGelu": lambda a, b, s: a / (1 + np.exp(-1.702 * a)),
    "FasterGeluV2": lambda a, b, s: _faster_gelu_v2(a),
    "ClampMax": lambda a, b, s: np.minimum(a, s),
    "ClampMin": lambda a, b, s: np.maximum(a, s),
    "Exp": lambda a, b, s: np.exp(a),
    "SwiGLU": lambda a, b, s: a * b / (1 + np.exp(-s * b)),
    "PowerScalar": lambda a, b, s: np.power(a, s),
    "ScalarPower": lambda a, b, s: np.power(s, a),
}
DOMAINS = {
    "Asin": (-0.99, 0.99),
    "Acos": (-0.99, 0.99),
    "Atanh": (0.01, 0.98),
    "Acosh": (1.1, 6),
    "Tan": (-1.2, 1.2),
}
POSITIVE = {"Log", "Log2", "Log10", "Lgamma", "Digamma", "Power", "PowerScalar", "Fmod"}


@pytest.fixture(scope="module")
def kernels(compile_kernel):
    return {dtype: compile_kernel(_body(dtype), sizes=4, scalars=1, prelude=PLATFORM) for dtype in DTYPES}


def _operands(op: str, dtype: str, seed: int):
    rng = np.random.default_rng(seed)
    low, high = DOMAINS.get(op, (0.2, 3) if op in POSITIVE else (-3, 3))
    a = rng.uniform(low, high, ELEMENTS).astype(DTYPES[dtype])
    b = rng.uniform(0.3, 3, ELEMENTS).astype(DTYPES[dtype])
    return a, b


def any_function(kernels, dtype, op, form, count, seed) -> None:
    form = form % 2 if op in OTHERS else form
    a, b = _operands(op, dtype, seed)
    ran = kernels[dtype].run([a, b], [(ELEMENTS, DTYPES[dtype])], [ALL.index(op), form, count, 0], [1.5])
    assert not ran.codes(), ran.result.hazards
    wanted = MODELS[op](a[:count].astype(np.float64), b[:count].astype(np.float64), 1.5)
    tolerance = 2e-3 if dtype == "half" else 1e-5
    got = ran.outputs[0].astype(np.float64)
    np.testing.assert_allclose(got[:count], wanted, rtol=tolerance, atol=tolerance)
    assert not got[count:].any()


test_every_function_matches_numpy, test_many_functions_match_numpy = drawn(
    any_function,
    60,
    150,
    dtype=st.sampled_from(sorted(DTYPES)),
    op=st.sampled_from(ALL),
    form=st.integers(0, 3),
    count=st.integers(1, ELEMENTS),
    seed=st.integers(0, 1000),
)


@pytest.mark.parametrize("op", ["Erf", "Gelu", "Fmod", "PowerScalar", "SwiGLU"])
def test_a_smaller_temporary_is_reported(kernels, op) -> None:
    a, b = _operands(op, "float", 0)
    ran = kernels["float"].run([a, b], [(ELEMENTS, np.float32)], [ALL.index(op), 0, 64, 32], [1.5])
    assert ran.codes() == {"temp-buffer"}


INTEGER = """
    TPipe pipe;
    TBuf<TPosition::VECCALC> buf;
    pipe.InitBuffer(buf, 4 * 2048 + 8192);
    LocalTensor<int16_t> a = buf.GetWithOffset<int16_t>(512, 0);
    LocalTensor<int16_t> b = buf.GetWithOffset<int16_t>(512, 1024);
    LocalTensor<int16_t> d = buf.GetWithOffset<int16_t>(512, 2048);
    LocalTensor<int32_t> x = buf.GetWithOffset<int32_t>(256, 3072);
    LocalTensor<int32_t> y = buf.GetWithOffset<int32_t>(256, 4096);
    LocalTensor<int32_t> z = buf.GetWithOffset<int32_t>(256, 5120);
    LocalTensor<half> h = buf.GetWithOffset<half>(256, 6144);
    LocalTensor<float> f = buf.GetWithOffset<float>(256, 7168);
    LocalTensor<uint8_t> tmp = buf.GetWithOffset<uint8_t>(8192, 8192);
    GlobalTensor<int16_t> g0, g1, g4; GlobalTensor<int32_t> g2, g3, g5;
    GlobalTensor<half> gh; GlobalTensor<float> gf;
    g0.SetGlobalBuffer((__gm__ int16_t *)t[0]); g1.SetGlobalBuffer((__gm__ int16_t *)t[1]);
    g2.SetGlobalBuffer((__gm__ int32_t *)t[2]); g3.SetGlobalBuffer((__gm__ int32_t *)t[3]);
    gh.SetGlobalBuffer((__gm__ half *)t[4]);
    g4.SetGlobalBuffer((__gm__ int16_t *)t[5]);
    g5.SetGlobalBuffer((__gm__ int32_t *)t[6]);
    gf.SetGlobalBuffer((__gm__ float *)t[7]);
    DataCopy(a, g0, 512); DataCopy(b, g1, 512); DataCopy(x, g2, 256); DataCopy(y, g3, 256);
    DataCopy(h, gh, 256);
    PipeBarrier<PIPE_ALL>();
    Xor(d, a, b, tmp, 512);
    Power(z, x, y, tmp, 256);
    Duplicate(f, 1.0f, 256);
    Axpy(f, h, (half)2.0, tmp, 256);
    PipeBarrier<PIPE_ALL>();
    DataCopy(g4, d, 512); DataCopy(g5, z, 256); DataCopy(gf, f, 256);
"""


def test_integers_and_mixed_types(compile_kernel) -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-30000, 30000, 512).astype(np.int16) for _ in range(2))
    x, y = rng.integers(-9, 9, 256).astype(np.int32), rng.integers(0, 9, 256).astype(np.int32)
    h = rng.standard_normal(256).astype(np.float16)
    ran = compile_kernel(INTEGER).run([a, b, x, y, h], [(512, np.int16), (256, np.int32), (256, np.float32)])
    assert not ran.codes(), ran.result.hazards
    np.testing.assert_array_equal(ran.outputs[0], a ^ b)
    np.testing.assert_array_equal(ran.outputs[1], x**y)
    np.testing.assert_allclose(ran.outputs[2], 1 + 2 * h.astype(np.float32))


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("Tanh(a, a, tmp, 64);", "overlap"),
        ("Tanh(b, a, a.ReinterpretCast<uint8_t>(), 64);", "overlap"),
        ("Tanh(b[4], a, tmp, 64);", "alignment"),
        ("Tanh(b, a, tmp, 4096);", "out-of-bounds"),
        ("Tanh(b.ReinterpretCast<int32_t>(), a.ReinterpretCast<int32_t>(), tmp, 64);", "dtype-unsupported"),
        (
            "Tanh(b, a, 64); TBuf<TPosition::VECCALC> more; pipe.InitBuffer(more, 190000); Gelu(b, a, 64);",
            "ub-capacity",
        ),
        ("Tanh(b, c, tmp, 64); Adds(a, b, 1.0f, 64);", "uninitialised-read"),
    ],
)
def test_misuse_is_reported(compile_kernel, body, code) -> None:
    kernel = compile_kernel(
        f"""
    TPipe pipe;
    TBuf<TPosition::VECCALC> bufA, bufB, bufC, bufT;
    pipe.InitBuffer(bufA, 256); pipe.InitBuffer(bufB, 1024); pipe.InitBuffer(bufC, 1024);
    pipe.InitBuffer(bufT, 4096);
    LocalTensor<float> a = bufA.Get<float>(), b = bufB.Get<float>(), c = bufC.Get<float>();
    LocalTensor<uint8_t> tmp = bufT.Get<uint8_t>();
    Duplicate(a, 0.5f, 64); Duplicate(b, 0.5f, 256);
    {body}
    GlobalTensor<float> g; g.SetGlobalBuffer((__gm__ float *)t[0]);
    PipeBarrier<PIPE_ALL>();
    DataCopy(g, a, 64);"""
    )
    ran = kernel.run([], [(64, np.float32)])
    assert code in ran.codes(), ran.result.hazards
