"""Matrix instructions against NumPy: loads in every layout, products of every type pair, and Fixpipe."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

CUBE = (1, 0, "false")

# A whole product with the transposing forms that the type has. size: m, n, k, transposed a, b, bias, type.
PRODUCT = """
template <typename T, typename C> void Product(GM_ADDR *t, const OpTiling &tiling)
{
    constexpr uint32_t c0 = std::is_same_v<T, int4b_t> ? 64 : 32 / sizeof(T);
    constexpr uint32_t pack = std::is_same_v<T, int4b_t> ? 2 : 1;
    constexpr uint32_t square = c0 == 8 ? 16 : c0;
    const uint32_t m = tiling.size[0], n = tiling.size[1], k = tiling.size[2];
    const bool ta = tiling.size[3] != 0, tb = tiling.size[4] != 0;
    const bool bias = tiling.size[5] != 0;
    auto up = [](uint32_t value, uint32_t unit) { return (value + unit - 1) / unit * unit; };
    GlobalTensor<T> a, b;
    GlobalTensor<C> c, d;
    a.SetGlobalBuffer((__gm__ T *)t[0]);
    b.SetGlobalBuffer((__gm__ T *)t[1]);
    d.SetGlobalBuffer((__gm__ C *)t[2]);
    c.SetGlobalBuffer((__gm__ C *)t[3]);
    LocalTensor<T> a1(TPosition::A1, 0, 64 * 1024), b1(TPosition::B1, 131072, 64 * 1024);
    LocalTensor<T> a2(TPosition::A2, 0, 32 * 1024 / sizeof(T)), b2(TPosition::B2, 0, 32 * 1024 / sizeof(T));
    LocalTensor<C> l0c(TPosition::CO1, 0, 32 * 1024);
    LocalTensor<C> c1(TPosition::C1, 400 * 1024, 256), c2(TPosition::C2, 0, 256);
    const uint32_t ra = ta ? k : m, ca = ta ? m : k, rb = tb ? n : k, cb = tb ? k : n;
    const uint32_t ha = up(ra, ta ? square : 16), hb = up(rb, tb ? 16 : square);
    DataCopy(a1, a, Nd2NzParams(1, ra, ca / pack, 0, ca / pack, ha, 1, 0));
    DataCopy(b1, b, Nd2NzParams(1, rb, cb / pack, 0, cb / pack, hb, 1, 0));
    if (bias) {
        DataCopy(c1, d, up(n, 16));
    }
    SetFlag<HardEvent::MTE2_MTE1>(0);
    WaitFlag<HardEvent::MTE2_MTE1>(0);
    if (bias) {
        DataCopy(c2, c1, DataCopyParams(1, up(n, 16) * sizeof(C) / 64, 0, 0));
    }
    if (!ta) {
        LoadData2DParams p;
        p.repeatTimes = up(k, c0) / c0;
        p.srcStride = ha / 16;
        for (uint32_t i = 0; i < up(m, 16) / 16; ++i) {
            LoadData(a2[i * up(k, c0) * 16], a1[i * 16 * c0], p);
        }
    } else if constexpr (c0 == 32) {
        LoadData2dTransposeParams p;
        p.repeatTimes = up(k, 32) / 32;
        p.srcStride = 1;
        p.dstFracGap = up(k, 32) / 32 - 1;
        for (uint32_t i = 0; i < up(m, 32) / 32; ++i) {
            LoadDataWithTranspose(a2[i * up(k, 32) * 32], a1[i * up(k, 32) * 32], p);
        }
    } else if constexpr (c0 <= 16) {
        LoadData3DParamsV2<T> p;
        p.l1H = 1;
        p.l1W = ha;
        p.channelSize = p.kExtension = up(m, c0);
        p.mExtension = up(k, 16);
        p.enTranspose = true;
        LoadData(a2, a1, p);
    }
    uint32_t columns = n;
    if (tb) {
        LoadData2DParams p;
        p.repeatTimes = up(k, c0) / c0 * (up(n, 16) / 16);
        p.srcStride = 1;
        LoadData(b2, b1, p);
    } else if constexpr (c0 >= 32) {
        columns = up(n, c0);
        LoadData2dTransposeParams p;
        p.repeatTimes = columns / c0;
        p.srcStride = hb / c0;
        p.dstGap = c0 / 16 - 1;
        for (uint32_t i = 0; i < hb / c0; ++i) {
            LoadDataWithTranspose(b2[i * columns * c0], b1[i * c0 * c0], p);
        }
    } else {
        LoadData3DParamsV2<T> p;
        p.l1H = 1;
        p.l1W = hb;
        p.channelSize = p.kExtension = up(n, c0);
        p.mExtension = up(k, 16);
        LoadData(b2, b1, p);
    }
    SetFlag<HardEvent::MTE1_M>(0);
    WaitFlag<HardEvent::MTE1_M>(0);
    MmadParams p;
    p.m = m;
    p.n = columns;
    p.k = k;
    p.kDirectionAlign = ta;
    if (bias) {
        Mmad(l0c, a2, b2, c2, p);
    } else {
        Mmad(l0c, a2, b2, p);
    }
    SetFlag<HardEvent::M_FIX>(0);
    WaitFlag<HardEvent::M_FIX>(0);
    FixpipeParamsV220 f(n, m, up(m, 16), n, false);
    Fixpipe(c, l0c, f);
}
"""
TYPES = ["half, float", "bfloat16_t, float", "float, float", "int8_t, int32_t", "int4b_t, int32_t"]


def _bfloat(values: np.ndarray) -> np.ndarray:
    return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def _stored(kind: int, values: np.ndarray) -> np.ndarray:
    """Small integers as the type keeps them."""
    if kind == 4:
        flat = values.reshape(-1, 2).astype(np.int8)
        return ((flat[:, 0] & 15) | ((flat[:, 1] & 15) << 4)).astype(np.uint8)
    if kind == 1:
        return _bfloat(values)
    return values.astype((np.float16, None, np.float32, np.int8)[kind])


@pytest.fixture(scope="module")
def product(compile_kernel):
    body = "switch (tiling.size[6]) {\n"
    body += "".join(f"case {i}: Product<{pair}>(t, tiling); break;\n" for i, pair in enumerate(TYPES))
    return compile_kernel(body + "}", sizes=7, prelude=PRODUCT, kind=CUBE)


@settings(max_examples=60)
@given(
    kind=st.integers(0, 4),
    m=st.integers(1, 60),
    n=st.integers(1, 60),
    k=st.integers(1, 90),
    ta=st.booleans(),
    tb=st.booleans(),
    bias=st.booleans(),
    seed=st.integers(0, 99),
)
def test_products_of_every_type_and_transposition(product, *, kind, m, n, k, ta, tb, bias, seed) -> None:
    """Small integers make every sum exact, whatever its order. A vector (m = 1) is not transposed."""
    if kind == 4:
        ta, bias, n, k = False, False, n + n % 2, k + k % 2
    if m == 1:
        m = 2 if ta else 1
    if m == 1:
        k = 16 * ((k + 15) // 16)
    rng = np.random.default_rng(seed)
    a = rng.integers(-7, 8, (m, k))
    b = rng.integers(-7, 8, (k, n))
    d = rng.integers(-9, 10, 64)
    out = np.float32 if kind < 3 else np.int32
    inputs = [_stored(kind, a.T if ta else a), _stored(kind, b.T if tb else b), d.astype(out)]
    if m == 1 and (k * (4 if kind == 2 else 2 if kind < 2 else 1)) % 512:
        m, a = 2, np.vstack([a, a])
        inputs[0] = _stored(kind, a)
    ran = product.run(inputs, [(m * n, out)], (m, n, k, int(ta), int(tb), int(bias), kind))
    assert not ran.codes(), ran.result.hazards
    wanted = a.astype(np.int64) @ b + (d[:n] if bias else 0)
    np.testing.assert_array_equal(ran.outputs[0].reshape(m, n), wanted)


# A convolution: the map in NC1HWC0 with one block of channels, its unrolled block to L0A, times an identity.
COLUMNS = """
    const uint32_t h = tiling.size[0], w = tiling.size[1], m = tiling.size[2], k = tiling.size[3];
    const uint32_t channels = tiling.size[14];
    LoadData3DParamsV2<half> p;
    p.l1H = h;
    p.l1W = w;
    p.channelSize = channels;
    p.mExtension = m;
    p.kExtension = k;
    p.mStartPt = tiling.size[4];
    p.kStartPt = tiling.size[5];
    p.strideH = tiling.size[6];
    p.strideW = tiling.size[7];
    p.filterH = tiling.size[8];
    p.filterW = tiling.size[9];
    p.dilationFilterH = tiling.size[10];
    p.dilationFilterW = tiling.size[11];
    p.padList[0] = p.padList[1] = tiling.size[12];
    p.padList[2] = p.padList[3] = tiling.size[13];
    p.padValue = (half)-5.0f;
    GlobalTensor<half> x, eye;
    GlobalTensor<float> z;
    x.SetGlobalBuffer((__gm__ half *)t[0]);
    eye.SetGlobalBuffer((__gm__ half *)t[1]);
    z.SetGlobalBuffer((__gm__ float *)t[2]);
    LocalTensor<half> map(TPosition::A1, 0, 65536), e1(TPosition::B1, 262144, 65536);
    LocalTensor<half> a2(TPosition::A2, 0, 32768), b2(TPosition::B2, 0, 32768);
    LocalTensor<float> l0c(TPosition::CO1, 0, 32768);
    DataCopy(map, x, (h * w * channels + 15) / 16 * 16);
    DataCopy(e1, eye, Nd2NzParams(1, 64, 64, 0, 64, 64, 1, 0));
    PipeBarrier<PIPE_ALL>();
    LoadData(a2, map, p);
    for (uint32_t i = 0; i < k / 16; ++i) {
        LoadData(b2[i * k * 16], e1[i * 256], LoadData2DParams(0, k / 16, 4, 0, 0, true, 0));
    }
    PipeBarrier<PIPE_ALL>();
    MmadParams mm;
    mm.m = m;
    mm.n = mm.k = k;
    Mmad(l0c, a2, b2, mm);
    PipeBarrier<PIPE_ALL>();
    Fixpipe(z, l0c, FixpipeParamsV220(k, m, (m + 15) / 16 * 16, k, false));
"""


def _unrolled(x: np.ndarray, filters, strides, dilations, pads) -> np.ndarray:
    """Rows: positions of the filter; columns: (C1, Kh, Kw, C0). x: [C1, H, W, C0]."""
    x = np.pad(x, ((0, 0), (pads[0],) * 2, (pads[1],) * 2, (0, 0)), constant_values=-5)
    (kh, kw), (sh, sw), (dh, dw) = filters, strides, dilations
    ho = (x.shape[1] - (kh - 1) * dh - 1) // sh + 1
    wo = (x.shape[2] - (kw - 1) * dw - 1) // sw + 1
    taps = [
        x[:, i * dh : i * dh + (ho - 1) * sh + 1 : sh, j * dw : j * dw + (wo - 1) * sw + 1 : sw]
        for i in range(kh)
        for j in range(kw)
    ]
    stacked = np.stack(taps, 1)  # C1, taps, ho, wo, C0
    return stacked.transpose(2, 3, 0, 1, 4).reshape(ho * wo, -1)


@pytest.fixture(scope="module")
def columns(compile_kernel):
    return compile_kernel(COLUMNS, sizes=15, kind=CUBE)


@settings(max_examples=40)
@given(
    size=st.tuples(st.integers(3, 9), st.integers(3, 9)),
    filters=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    strides=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    dilations=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    pads=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    channels=st.sampled_from([4, 8, 16, 32]),
    data=st.data(),
)
def test_image_to_column(columns, *, size, filters, strides, dilations, pads, channels, data) -> None:
    """Any block of the unrolled matrix, with padding, strides and dilation."""
    c1, c0 = (1, channels) if channels <= 16 else (channels // 16, 16)
    x = np.random.default_rng(1).integers(-99, 100, (c1, *size, c0)).astype(np.float16)
    reach = [(f - 1) * d + 1 for f, d in zip(filters, dilations, strict=True)]
    assume(all(s + 2 * p >= r for s, p, r in zip(size, pads, reach, strict=True)))
    whole = _unrolled(x, filters, strides, dilations, pads)
    assume(whole.shape[1] % 16 == 0)  # else the rest of the last fractal is not defined
    rows = data.draw(st.integers(1, min(64, whole.shape[0])))
    first = data.draw(st.integers(0, whole.shape[0] - rows))
    pieces = data.draw(st.integers(1, min(4, whole.shape[1] // 16)))
    k_start = 16 * data.draw(st.integers(0, whole.shape[1] // 16 - pieces))
    k = 16 * pieces
    assume(rows > 1)  # one row is a vector
    flat = np.zeros(-(-x.size // 16) * 16, np.float16)
    flat[: x.size] = x.reshape(-1)
    sizes = (*size, rows, k, first, k_start, *strides, *filters, *dilations, pads[1], pads[0], channels)
    ran = columns.run([flat, np.eye(64, dtype=np.float16)], [(rows * k, np.float32)], sizes)
    assert not ran.codes(), ran.result.hazards
    np.testing.assert_array_equal(
        ran.outputs[0].reshape(rows, k), whole[first : first + rows, k_start : k_start + k]
    )


# C from L0C in every conversion. size: m, n, quantPre, ND, relu, sign, byte offset, vector.
OUT = """
template <typename S, typename D> void Out(GM_ADDR *t, const OpTiling &tiling)
{
    const uint32_t m = tiling.size[0], n = tiling.size[1];
    const auto quant = (QuantMode_t)tiling.size[2];
    GlobalTensor<S> identity, x;
    GlobalTensor<uint64_t> q;
    GlobalTensor<D> z;
    x.SetGlobalBuffer((__gm__ S *)t[0]);
    q.SetGlobalBuffer((__gm__ uint64_t *)t[1]);
    z.SetGlobalBuffer((__gm__ D *)t[3]);
    using In = std::conditional_t<std::is_same_v<S, float>, float, int8_t>;
    using C = std::conditional_t<std::is_same_v<S, float>, float, int32_t>;
    constexpr uint32_t c0 = 32 / sizeof(In);
    GlobalTensor<In> a, eye;
    a.SetGlobalBuffer((__gm__ In *)t[0]);
    eye.SetGlobalBuffer((__gm__ In *)t[2]);
    LocalTensor<In> a1(TPosition::A1, 0, 16384), e1(TPosition::B1, 131072, 16384);
    LocalTensor<In> a2(TPosition::A2, 0, 16384), b2(TPosition::B2, 0, 16384);
    LocalTensor<C> l0c(TPosition::CO1, 0, 16384);
    LocalTensor<uint64_t> q1(TPosition::C1, 300 * 1024, 64), fb(TPosition::C2PIPE2GM, 0, 64);
    DataCopy(a1, a, Nd2NzParams(1, 48, 64, 0, 64, 48, 1, 0));
    DataCopy(e1, eye, Nd2NzParams(1, 64, 64, 0, 64, 64, 1, 0));
    DataCopy(q1, q, 64);
    PipeBarrier<PIPE_ALL>();
    for (uint32_t i = 0; i < 3; ++i) {
        LoadData(a2[i * 64 * 16], a1[i * 16 * c0], LoadData2DParams(0, 64 / c0, 3, 0, 0, false, 0));
    }
    LoadData(b2, e1, LoadData2DParams(0, 64 / c0 * 4, 1, 0, 0, false, 0));
    PipeBarrier<PIPE_ALL>();
    MmadParams mm(48, 64, 64, 0, false, true);
    Mmad(l0c, a2, b2, mm);
    PipeBarrier<PIPE_ALL>();
    const bool vector = tiling.size[5] != 0;
    const uint64_t scalar = tiling.size[6];
    if (tiling.size[7] == 0) {
        FixpipeParamsV220 f(n, m, 48, 0, tiling.size[4] != 0);
        f.quantPre = quant;
        f.deqScalar = scalar;
        f.dstStride = tiling.size[3] ? n : tiling.size[8];
        if (tiling.size[3]) {
            vector ? Fixpipe<D, C, CFG_ROW_MAJOR>(z, l0c, q1, f) : Fixpipe<D, C, CFG_ROW_MAJOR>(z, l0c, f);
        } else {
            f.isChannelSplit = tiling.size[9] != 0;
            vector ? Fixpipe<D, C, CFG_NZ>(z, l0c, q1, f) : Fixpipe<D, C, CFG_NZ>(z, l0c, f);
        }
    } else {
        DataCopyCO12DstParams f(n, m, tiling.size[3] ? n : tiling.size[8], 48, quant, tiling.size[4], false,
                                tiling.size[3] != 0);
        SetFixpipeNz2ndFlag(1, 0, 0);
        SetFixpipePreQuantFlag(scalar);
        DataCopy(fb, q1, DataCopyParams(1, 4, 0, 0));
        SetFixPipeConfig(fb);
        PipeBarrier<PIPE_FIX>();
        DataCopy(z, l0c, f);
    }
}
"""
MODES = [  # quantPre, source, target, vector
    (0, "float", np.float32, 0),
    (1, "float", np.float16, 0),
    (5, "float", np.int8, 0),
    (6, "float", np.uint8, 1),
    (0, "int32_t", np.int32, 0),
    (3, "int32_t", np.float16, 0),
    (4, "int32_t", np.float16, 1),
    (7, "int32_t", np.uint8, 0),
    (8, "int32_t", np.int8, 1),
]
NAMES = {
    np.float32: "float",
    np.float16: "half",
    np.int8: "int8_t",
    np.uint8: "uint8_t",
    np.int32: "int32_t",
}


@pytest.fixture(scope="module")
def out(compile_kernel):
    cases = "".join(
        f"case {i}: Out<{source}, {NAMES[target]}>(t, tiling); break;\n"
        for i, (_, source, target, _) in enumerate(MODES)
    )
    return compile_kernel("switch (tiling.size[10]) {\n" + cases + "}", sizes=11, prelude=OUT, kind=CUBE)


def _parameter(scale: float, signed: bool, offset: int) -> int:
    bits = int(np.float32(scale).view(np.uint32)) & ~0x1FFF
    return bits | (offset & 511) << 37 | int(signed) << 46


def _quantised(values: np.ndarray, mode: int, target, scales, signed: bool, offset: int, relu: bool):
    if mode in (0, 1):
        return np.maximum(values, 0).astype(target) if relu else values.astype(target)
    scaled = values.astype(np.float32) * scales
    if relu:
        scaled = np.where(values < 0, np.float32(0), scaled)
    if target is np.float16:
        return scaled.astype(np.float16)
    whole = np.clip(np.rint(scaled), -256, 255) + offset
    return np.clip(whole, -128 if signed else 0, 127 if signed else 255).astype(target)


@settings(max_examples=60)
@given(
    case=st.integers(0, 8),
    m=st.integers(1, 48),
    columns=st.integers(1, 4),
    nd=st.booleans(),
    relu=st.booleans(),
    registers=st.booleans(),
    offset=st.integers(-20, 20),
    split=st.booleans(),
)
def test_results_leave_in_every_type_and_layout(
    out, *, case, m, columns, nd, relu, registers, offset, split
) -> None:
    """NZ and ND, casts and quantisation by one scale or one for each column, with ReLU."""
    mode, source, target, vector = MODES[case]
    n = 16 * columns
    rng = np.random.default_rng(m)
    x = rng.integers(-100, 101, (48, 64)).astype(np.float32 if source == "float" else np.int8)
    signed = target is np.int8
    scales = np.float32(2.0) ** rng.integers(-2, 3, 64).astype(np.float32)
    parameters = np.array([_parameter(s, signed, offset) for s in scales], np.uint64)
    split = split and mode == 0 and source == "float" and not nd and not registers
    width = np.dtype(target).itemsize
    lanes = 32 if width == 1 else 8 if split else 16
    row = lanes * width
    sizes = (m, n, mode, int(nd), int(relu), vector, int(parameters[0]), int(registers))
    sizes += (m * row // 32, int(split), case)
    eye = np.eye(64).astype(x.dtype)
    used = scales[:n] if vector else scales[0]
    wanted = _quantised(x[:m, :n], mode, target, used, signed, offset, relu)
    ran = out.run([x, parameters, eye], [(m * n, target)], sizes)
    assert not ran.codes(), ran.result.hazards
    if not nd:
        parts = [wanted[:, i : i + lanes].reshape(-1) for i in range(0, n, lanes)]
        wanted = np.concatenate(parts)
    np.testing.assert_array_equal(ran.outputs[0], wanted.reshape(-1))
