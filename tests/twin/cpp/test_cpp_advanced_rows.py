"""High-level functions over rows against NumPy: softmax, normalisations, reductions, quantisation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.tables import drawn

DTYPES = {"half": np.float16, "float": np.float32}
ROOM = 4096  # elements of each operand
PLATFORM = """
#include "tiling/tiling_api.h"
inline constexpr SoftmaxConfig SINGLE = {false, 0, 0, SoftmaxMode::SOFTMAX_OUTPUT_WITHOUT_BRC};
inline constexpr CumSumConfig BY_ROW = {true, false, true, CumSumAlgorithm::CUMSUM_ALGORITHM_LINEBYLINE};
inline constexpr CumSumConfig BY_COLUMN = {false, false, true, CumSumAlgorithm::CUMSUM_ALGORITHM_LINEBYLINE};
"""

# d0..d2 are outputs, a, b, c inputs, all of T; f0..f2 float; m rows of k elements, n of them in use.
CASES = {
    "SoftMax": "TILE(SoftMax); SoftMax<T>(d0, d1, d2, a, tmp, soft, info);",
    "SimpleSoftMax": "TILE(SoftMax); SimpleSoftMax<T>(d0, b, c, a, tmp, soft, info);",
    "SoftmaxFlash": "TILE(SoftMax); SoftmaxFlash<T>(d0, d1, d2, a, d3, b, c, tmp, soft, true, info);",
    "SoftmaxFlashV2": "TILE(SoftMax); SoftmaxFlashV2<T, true>(d0, d1, d2, a, d3, b, c, tmp, soft, info);",
    "SoftmaxFlashV2Single": "TILE(SoftMax);"
    " SoftmaxFlashV2<T, true, false, false, false, SINGLE>(d0, d1, d2, a, d3, b, c, tmp, soft, info);",
    "LogSoftMax": "TILE(SoftMax); LogSoftMaxTiling log{}; LogSoftMax<T>(d0, d1, d2, a, tmp, log, info);",
    "SoftmaxGrad": "TILE(SoftMax); SoftmaxGrad<T>(d0, b, a, tmp, soft, false, info);",
    "SoftmaxGradFront": "TILE(SoftMax); SoftmaxGradFront<T>(d0, b, a, tmp, soft, info);",
    "LayerNorm": "TensorShape s({1, m, k, n}); LayerNormTiling t{}; NORM(GetLayerNormMaxMinTmpSize);"
    " GetLayerNormNDTilingInfo(s, least, sizeof(T), false, t);"
    " LayerNorm<T>(d0, d1, d2, a, b, c, tmp, (T)eps, t);",
    "LayerNormRstd": "TensorShape s({m, k}); LayerNormSeparateTiling t{};"
    " GetLayerNormMaxMinTmpSize(s, sizeof(T), false, true, false, most, least); temporary(least);"
    " GetLayerNormNDTilingInfo(s, least, sizeof(T), false, true, t);"
    " LayerNorm<T, T>(d0, f1, f2, a, b, c, eps, tmp, LayerNormPara{m, n, k}, t);",
    "Normalize": "TensorShape s({m, k});"
    " GetNormalizeMaxMinTmpSize(s, sizeof(T), sizeof(T), false, true, false, most, least); temporary(least);"
    " Normalize<T, T>(d0, f1, f3, f4, a, b, c, tmp, eps, NormalizePara{m, n, k});",
    "RmsNorm": "TensorShape s({1, m, k}), o({1, m, n}); RmsNormTiling t{};"
    " GetRmsNormMaxMinTmpSize(s, sizeof(T), most, least); temporary(least);"
    " GetRmsNormTilingInfo(s, o, least, sizeof(T), t); RmsNorm<T>(d0, a, b, tmp, (T)eps, t);",
    "DeepNorm": "TensorShape s({1, m, k}), o({1, m, n}); DeepNormTiling t{};"
    " GetDeepNormMaxMinTmpSize(s, sizeof(T), false, false, most, least); temporary(least);"
    " GetDeepNormTilingInfo(s, o, least, sizeof(T), false, false, t);"
    " DeepNorm<T>(d0, d1, d2, a, b, c, c[k], tmp, (T)2, (T)eps, t);",
    "LayerNormGrad": "TensorShape s({1, m, k, n}); LayerNormGradTiling t{};"
    " NORM(GetLayerNormGradMaxMinTmpSize);"
    " GetLayerNormGradNDTilingInfo(s, least, sizeof(T), false, t);"
    " LayerNormGrad<T>(d0, d1, a, b, c, c[256], c[512], tmp, (T)eps, t);",
    "LayerNormGradBeta": "TensorShape s({1, m, k, n}); LayerNormGradBetaTiling t{};"
    " NORM(GetLayerNormGradBetaMaxMinTmpSize);"
    " GetLayerNormGradBetaNDTilingInfo(s, least, sizeof(T), false, t);"
    " LayerNormGradBeta<T>(d0, d1, a, b, tmp, t);",
    "BatchNorm": "TensorShape s({m, 1, k}); BatchNormTiling t{};"
    " GetBatchNormMaxMinTmpSize(s, s, sizeof(T), false, most, least); temporary(least);"
    " GetBatchNormNDTilingInfo(s, s, least, sizeof(T), false, t);"
    " BatchNorm<T>(d0, d1, d2, a, b, c, tmp, (T)eps, t);",
    "GroupNorm": "TensorShape s({1, m, 1, k}); GroupNormTiling t{};"
    " GetGroupNormMaxMinTmpSize(s, sizeof(T), false, 1, most, least); temporary(least);"
    " GetGroupNormNDTilingInfo(s, least, sizeof(T), false, 1, t);"
    " GroupNorm<T>(d0, d1, d2, a, b, c, tmp, (T)eps, t);",
    "Sum": "GetSumMaxMinTmpSize(n, sizeof(T), false, most, least); temporary(least);"
    " Sum(d0, a, tmp, SumParams{m, k, n});",
    "Mean": "GetMeanMaxMinTmpSize(n, sizeof(T), sizeof(float), false, most, least); temporary(least);"
    " Mean<T, float>(d0, a, tmp, MeanParams{m, k, n});",
    "ReduceMaxAR": "PATTERN(ReduceMax, AR); ReduceMax<T, Pattern::Reduce::AR>(d0, a, tmp, shape, true);",
    "ReduceMinRA": "PATTERN(ReduceMin, RA); ReduceMin<T, Pattern::Reduce::RA>(d0, a, tmp, shape, true);",
    "CumSumRow": "GetCumSumMaxMinTmpSize(TensorShape({m, k}), sizeof(T), true, false, most, least);"
    " temporary(least); CumSum<T, BY_ROW>(d0, d1, a, tmp, CumSumInfo{m, k});",
    "CumSumColumn": "GetCumSumMaxMinTmpSize(TensorShape({m, k}), sizeof(T), false, false, most, least);"
    " temporary(least); CumSum<T, BY_COLUMN>(d0, d1, a, tmp, CumSumInfo{m, k});",
    "DropBytes": "DROP; DropOut<T, false, 2>(d0, a, mask, tmp, 0.5f, {m, k, k});",
    "DropBits": "DROP; DropOut<T, false, 3>(d0, a, mask, tmp, 0.5f, {m, k, k / 8});",
    "SelectBytes": "TensorShape s({m, k}), one({1});"
    " GetSelectMaxMinTmpSize(s, one, sizeof(T), s, 1, false, most, least); temporary(least);"
    " Select(d0, a, (T)9, mask, tmp, SelectWithBytesMaskShapeInfo{m, k, k});",
    "AscendQuant": "GetAscendQuantMaxMinTmpSize(TensorShape({m, k}), sizeof(T), most, least);"
    " temporary(least);"
    " AscendQuant<T>(d0.template ReinterpretCast<int8_t>(), a, tmp, 2.0f, 1.0f, m * k);",
    "Broadcast0": "BROADCAST; const uint32_t from[] = {1, k}; Broadcast<T, 2, 0>(d0, a, shape, from, tmp);",
    "Broadcast1": "BROADCAST; const uint32_t from[] = {m, 1}; Broadcast<T, 2, 1>(d0, a, shape, from, tmp);",
}


OPS = list(CASES)


def _body(dtype: str) -> str:
    cases = "".join(f"if (op == {i}) {{ {CASES[op]} }}\n" for i, op in enumerate(OPS))
    return f"""
    using T = {dtype};
    const int64_t op = tiling.size[0];
    const uint32_t m = tiling.size[1], k = tiling.size[2], n = tiling.size[3];
    const float eps = 0.001f;
    TPipe pipe;
    TBuf<TPosition::VECCALC> bufs[8], bufT, bufM;
    for (auto &buf : bufs) pipe.InitBuffer(buf, {ROOM} * 4);
    pipe.InitBuffer(bufT, 32768);
    pipe.InitBuffer(bufM, {ROOM});
    LocalTensor<T> a = bufs[0].Get<T>(), b = bufs[1].Get<T>(), c = bufs[2].Get<T>();
    LocalTensor<T> d0 = bufs[3].Get<T>(), d1 = bufs[4].Get<T>(), d2 = bufs[5].Get<T>(), d3 = bufs[6].Get<T>();
    LocalTensor<float> f1 = bufs[4].Get<float>(), f2 = bufs[5].Get<float>(), f3 = bufs[7].Get<float>();
    LocalTensor<float> f4 = f3[512];
    LocalTensor<uint8_t> mask = bufM.Get<uint8_t>();
    GlobalTensor<T> g[3];
    for (int i = 0; i < 3; ++i) g[i].SetGlobalBuffer((__gm__ T *)t[i]);
    GlobalTensor<float> gf;
    gf.SetGlobalBuffer((__gm__ float *)t[3]);
    GlobalTensor<uint8_t> gm, out[4];
    gm.SetGlobalBuffer((__gm__ uint8_t *)t[4]);
    DataCopy(a, g[0], {ROOM}); DataCopy(b, g[1], {ROOM}); DataCopy(c, g[2], {ROOM}); DataCopy(f3, gf, 1024);
    DataCopy(mask, gm, {ROOM});
    for (int i = 3; i < 7; ++i) Duplicate(bufs[i].Get<float>(), 0.0f, {ROOM});
    PipeBarrier<PIPE_ALL>();
    LocalTensor<uint8_t> tmp;
    uint32_t most = 0, least = 0;
    auto temporary = [&](uint32_t bytes) {{
        tmp = bufT.Get<uint8_t>(bytes > tiling.size[4] ? bytes - tiling.size[4] : 0);
    }};
    const uint32_t shape[] = {{m, k}};
    SoftMaxShapeInfo info{{m, k, m, n}};
    SoftMaxTiling soft{{}};
    auto &platform = *platform_ascendc::PlatformAscendCManager::GetInstance();
    #define TILE(Name) {{ TensorShape s({{m, k}}); least = Get##Name##MinTmpSize(s, sizeof(T), false); \\
        temporary(least); Name##TilingFunc(s, sizeof(T), least, soft); }}
    #define NORM(Name) Name(s, sizeof(T), false, most, least); temporary(least)
    #define PATTERN(Name, Axis) Get##Name##MaxMinTmpSize(TensorShape({{m, k}}), \\
        sizeof(T) == 2 ? ge::DT_FLOAT16 : ge::DT_FLOAT, ReducePattern::Axis, true, false, most, least); \\
        temporary(least)
    #define DROP GetDropOutMaxMinTmpSize(TensorShape({{m, k}}), sizeof(T), false, most, least); \\
        temporary(least)
    #define BROADCAST GetBroadCastMaxMinTmpSize(platform, TensorShape({{m, 1}}), TensorShape({{m, k}}), \\
        sizeof(T), false, most, least); temporary(least)
    {cases}
    PipeBarrier<PIPE_ALL>();
    for (int i = 0; i < 4; ++i) {{
        out[i].SetGlobalBuffer((__gm__ uint8_t *)t[5 + i]);
        DataCopy(out[i], bufs[3 + i].Get<uint8_t>(), {ROOM} * 4);
    }}
"""


@pytest.fixture(scope="module")
def kernels(compile_kernel):
    return {dtype: compile_kernel(_body(dtype), sizes=5, prelude=PLATFORM) for dtype in DTYPES}


def _soft(x, base=None):
    top = x.max(-1, keepdims=True) if base is None else np.maximum(x.max(-1, keepdims=True), base)
    e = np.exp(x - top)
    return e, e.sum(-1, keepdims=True), top


def _statistics(x):
    return x.mean(-1, keepdims=True), x.var(-1, keepdims=True)


class Model:
    """What each function leaves in its outputs, in float64. ``x``: the rows' elements in use."""

    def __init__(self, a, b, c, floats, mask, shape, lanes):
        self.m, self.k, self.n = shape
        self.a, self.b, self.c = (v.astype(np.float64) for v in (a, b, c))
        self.floats, self.mask, self.lanes = floats.astype(np.float64), mask, lanes
        self.full = self.a[: self.m * self.k].reshape(self.m, self.k)
        self.x = self.full[:, : self.n]
        self.eps = 0.001

    def stat(self, values, single=False):
        """One value a row out of an operand that holds it spread over 32 bytes."""
        width = 1 if single else self.lanes
        return values[: self.m * width].reshape(self.m, width)[:, :1]

    def rows(self, values):
        return values[: self.m * self.k].reshape(self.m, self.k)[:, : self.n]

    def run(self, op):
        return getattr(self, "_" + op)()

    def _SoftMax(self):
        e, s, top = _soft(self.x)
        return {"rows": e / s, "stat": (s, top)}

    def _SimpleSoftMax(self):
        return {"rows": np.exp(self.x - self.stat(self.c)) / self.stat(self.b)}

    def _flash(self, single=False):
        before, carried = self.stat(self.c, single), self.stat(self.b, single)
        e, s, top = _soft(self.x, before)
        factor = np.exp(before - top)
        return e, factor * carried + s, top, factor, carried

    def _SoftmaxFlash(self):
        e, s, top, factor, carried = self._flash()
        return {"rows": e / s, "stat": (s, top, factor * carried / s)}

    def _SoftmaxFlashV2(self):
        e, s, top, factor, _ = self._flash()
        return {"rows": e, "stat": (s, top, factor)}

    def _SoftmaxFlashV2Single(self):
        e, s, top, factor, _ = self._flash(True)
        return {"rows": e, "flat": (s.ravel(), top.ravel(), factor.ravel())}

    def _LogSoftMax(self):
        e, s, top = _soft(self.x)
        return {"rows": np.log10(e / s), "stat": (s, top)}

    def _SoftmaxGrad(self):
        grad = self.rows(self.b)
        return {"rows": (grad - (grad * self.x).sum(-1, keepdims=True)) * self.x}

    def _SoftmaxGradFront(self):
        return {"stat0": (self.rows(self.b) * self.x).sum(-1, keepdims=True)}

    def _normal(self, x, mean, variance, gamma, beta):
        return (x - mean) / np.sqrt(variance + self.eps) * gamma + beta

    def _LayerNorm(self):
        mean, variance = _statistics(self.x)
        out = self._normal(self.x, mean, variance, self.b[: self.n], self.c[: self.n])
        return {"rows": out, "flat": (mean.ravel(), variance.ravel())}

    def _LayerNormRstd(self):
        mean, variance = _statistics(self.x)
        out = self._normal(self.x, mean, variance, self.b[: self.n], self.c[: self.n])
        return {"rows": out, "floats": (mean.ravel(), 1 / np.sqrt(variance.ravel() + self.eps))}

    def _Normalize(self):
        mean, variance = self.floats[: self.m, None], self.floats[512 : 512 + self.m, None]
        out = self._normal(self.x, mean, variance, self.b[: self.n], self.c[: self.n])
        return {"rows": out, "floats": (1 / np.sqrt(variance.ravel() + self.eps),)}

    def _RmsNorm(self):
        square = (self.x**2).mean(-1, keepdims=True)
        return {"rows": self.x / np.sqrt(square + self.eps) * self.b[: self.n]}

    def _DeepNorm(self):
        x = 2 * self.x + self.rows(self.b)
        mean, variance = _statistics(x)
        out = self._normal(x, mean, variance, self.c[self.k :][: self.n], self.c[: self.n])
        return {"rows": out, "flat": (mean.ravel(), variance.ravel())}

    def _LayerNormGrad(self):
        dy, x = self.x, self.rows(self.b)
        variance, mean, gamma = self.c[: self.m, None], self.c[256:][: self.m, None], self.c[512:][: self.n]
        scaled, rstd = dy * gamma, 1 / np.sqrt(variance + self.eps)
        d_var = (-0.5 * scaled * (x - mean) * rstd**3).sum(-1, keepdims=True)
        d_mean = (-scaled * rstd).sum(-1, keepdims=True) + d_var / self.n * (-2 * (x - mean)).sum(
            -1, keepdims=True
        )
        dx = scaled * rstd + d_var * 2 / self.n * (x - mean) + d_mean / self.n
        return {"rows": dx, "rows1": (x - mean) * rstd}

    def _LayerNormGradBeta(self):
        dy = self.b[: self.m * self.k].reshape(self.m, self.k)
        return {"flat0": (self.full * dy).sum(0), "flat": (dy.sum(0),)}

    def _BatchNorm(self):
        mean, variance = self.full.mean(0), self.full.var(0)
        out = self._normal(self.full, mean, variance, self.b[: self.m, None], self.c[: self.m, None])
        return {"flat0": out.ravel(), "flat": (mean, variance)}

    def _GroupNorm(self):
        mean, variance = self.full.mean(), self.full.var()
        out = self._normal(self.full, mean, variance, self.b[: self.m, None], self.c[: self.m, None])
        return {"flat0": out.ravel(), "flat": (np.array([mean]), np.array([variance]))}

    def _Sum(self):
        return {"flat0": self.x.sum(-1)}

    def _Mean(self):
        return {"flat0": self.x.mean(-1)}

    def _ReduceMaxAR(self):
        return {"flat0": self.full.max(-1)}

    def _ReduceMinRA(self):
        return {"flat0": self.full.min(0)}

    def _CumSumRow(self):
        out = self.full.cumsum(1)
        return {"flat0": out.ravel(), "flat": (out[-1],)}

    def _CumSumColumn(self):
        out = self.full.cumsum(0)
        return {"flat0": out.ravel(), "flat": (out[-1],)}

    def _DropBytes(self):
        return {"flat0": np.where(self.mask[: self.full.size] != 0, self.full.ravel() * 2, 0)}

    def _DropBits(self):
        bits = np.unpackbits(self.mask, bitorder="little")[: self.full.size]
        return {"flat0": np.where(bits != 0, self.full.ravel() * 2, 0)}

    def _SelectBytes(self):
        return {"flat0": np.where(self.mask[: self.full.size] == 0, self.full.ravel(), 9)}

    def _AscendQuant(self):
        through_half = (self.full.ravel() * 2 + 1).astype(np.float16)
        return {"bytes": np.clip(np.rint(through_half.astype(np.float64)), -128, 127)}

    def _Broadcast0(self):
        return {"flat0": np.tile(self.a[: self.k], self.m)}

    def _Broadcast1(self):
        return {"flat0": np.repeat(self.a[: self.m], self.k)}


WHOLE = {
    "LayerNormGradBeta",
    "BatchNorm",
    "GroupNorm",
    "ReduceMaxAR",
    "ReduceMinRA",
    "CumSumRow",
    "CumSumColumn",
}


def _operands(dtype, seed):
    rng = np.random.default_rng(seed)
    kind = DTYPES[dtype]
    a, b, c = (rng.uniform(0.25, 2, ROOM).astype(kind) for _ in range(3))
    floats = rng.uniform(0.5, 2, 1024).astype(np.float32)
    return a, b, c, floats, rng.integers(0, 2, ROOM).astype(np.uint8)


def _check(wanted, outputs, dtype, model, tolerance):
    kind = DTYPES[dtype]
    plain = [o.view(kind).astype(np.float64) for o in outputs]
    close = {"rtol": tolerance, "atol": tolerance}
    if "rows" in wanted:
        np.testing.assert_allclose(model.rows(plain[0]), wanted["rows"], **close)
    if "rows1" in wanted:
        np.testing.assert_allclose(model.rows(plain[1]), wanted["rows1"], **close)
    for place, value in enumerate(wanted.get("stat", ())):
        spread = plain[1 + place][: model.m * model.lanes].reshape(model.m, model.lanes)
        np.testing.assert_allclose(spread, np.broadcast_to(value, spread.shape), **close)
    if "stat0" in wanted:
        np.testing.assert_allclose(model.stat(plain[0]), wanted["stat0"], **close)
    if "flat0" in wanted:
        np.testing.assert_allclose(plain[0][: wanted["flat0"].size], wanted["flat0"], **close)
    for place, value in enumerate(wanted.get("flat", ())):
        np.testing.assert_allclose(plain[1 + place][: value.size], value, **close)
    for place, value in enumerate(wanted.get("floats", ())):
        np.testing.assert_allclose(outputs[1 + place].view(np.float32)[: value.size], value, **close)
    if "bytes" in wanted:
        got = outputs[0].view(np.int8)[: wanted["bytes"].size].astype(np.float64)
        assert np.abs(got - wanted["bytes"]).max() <= (1 if dtype == "half" else 0)


def any_rows(kernels, dtype, op, m, blocks, cut, seed) -> None:
    k = blocks * 32
    n = k if op in WHOLE else k - cut
    a, b, c, floats, mask = _operands(dtype, seed)
    ran = kernels[dtype].run([a, b, c, floats, mask], [(ROOM * 4, np.uint8)] * 4, [OPS.index(op), m, k, n, 0])
    assert not ran.codes(), ran.result.hazards
    model = Model(a, b, c, floats, mask, (m, k, n), 32 // np.dtype(DTYPES[dtype]).itemsize)
    _check(model.run(op), ran.outputs, dtype, model, 2e-2 if dtype == "half" else 2e-5)


test_rows_match_numpy, test_many_rows_match_numpy = drawn(
    any_rows,
    50,
    120,
    dtype=st.sampled_from(sorted(DTYPES)),
    op=st.sampled_from(OPS),
    m=st.integers(1, 16),
    blocks=st.integers(1, 4),
    cut=st.integers(0, 7),
    seed=st.integers(0, 500),
)


@pytest.mark.parametrize(
    "op", ["SoftMax", "LayerNorm", "RmsNorm", "BatchNorm", "DropBytes", "CumSumRow", "AscendQuant"]
)
def test_a_smaller_temporary_is_reported(kernels, op) -> None:
    a, b, c, floats, mask = _operands("float", 0)
    sizes = [OPS.index(op), 8, 64, 64, 32]
    ran = kernels["float"].run([a, b, c, floats, mask], [(ROOM * 4, np.uint8)] * 4, sizes)
    assert ran.codes() == {"temp-buffer"}, ran.result.hazards


@pytest.mark.parametrize(
    ("k", "cut", "codes"),
    [
        (32, 192, set()),
        (64, 128, set()),
        (64, 160, {"temp-buffer"}),
        (128, 0, set()),
        (128, 32, {"temp-buffer"}),
    ],
)
def test_a_selection_needs_no_more_than_its_row(kernels, k, cut, codes) -> None:
    """The temporary holds the mask as half, at most a repeat of it: a row may be less."""
    a, b, c, floats, mask = _operands("half", 0)
    ran = kernels["half"].run(
        [a, b, c, floats, mask], [(ROOM * 4, np.uint8)] * 4, [OPS.index("SelectBytes"), 4, k, k, cut]
    )
    assert ran.codes() == codes, ran.result.hazards
