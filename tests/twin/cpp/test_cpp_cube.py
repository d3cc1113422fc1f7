"""Matrix instructions against NumPy: loads in every layout, products of every type pair, and Fixpipe."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

CUBE = (1, 0, "false")

# A whole product with the transposing forms that the type has. size: m, n, k, transposed a, transposed b, mode.
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
def test_products_of_every_type_and_transposition(product, kind, m, n, k, ta, tb, bias, seed) -> None:
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
