"""Vector instructions by their own names, as kernels of older versions write them, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

BODY = """
    TPipe pipe;
    TBuf<TPosition::VECCALC> bufA, bufD;
    pipe.InitBuffer(bufA, 8192);
    pipe.InitBuffer(bufD, 8192);
    GlobalTensor<int16_t> x, z;
    x.SetGlobalBuffer((__gm__ int16_t *)t[0]);
    z.SetGlobalBuffer((__gm__ int16_t *)t[1]);
    LocalTensor<int16_t> from = bufA.Get<int16_t>(), to = bufD.Get<int16_t>();
    DataCopy(from, x, 4096);
    Duplicate(to, (int16_t)0, 4096);
    PipeBarrier<PIPE_ALL>();
    __ubuf__ int16_t *a = (__ubuf__ int16_t *)from.GetPhyAddr(), *d = (__ubuf__ int16_t *)to.GetPhyAddr();
    const int64_t *s = tiling.size;
    const uint8_t repeats = (uint8_t)s[1];
    AscendCUtils::SetMask<int16_t>((int32_t)s[2]);
    if (s[0] == 0) {
        AscendCUtils::SetMask<float>((int32_t)s[2]);
        vcadd(nullptr, (__ubuf__ float *)a, repeats, 1, 1, 8, true);
        SetFlag<HardEvent::V_S>(EVENT_ID0);
        WaitFlag<HardEvent::V_S>(EVENT_ID0);
        uint64_t bits = GetAccVal();
        to.ReinterpretCast<float>().SetValue(0, *reinterpret_cast<float *>(&bits));
    } else if (s[0] == 6) {
        AscendCUtils::ResetMask();
        LocalTensor<float> numbers = from.ReinterpretCast<float>();
        ReduceMax(to.ReinterpretCast<float>(), numbers, numbers[1024], (int32_t)s[2], true);
        SetFlag<HardEvent::V_S>(EVENT_ID0);
        WaitFlag<HardEvent::V_S>(EVENT_ID0);
        uint64_t bits = get_max_min_cnt();
        to.ReinterpretCast<float>().SetValue(8, *reinterpret_cast<float *>(&bits));
        to.ReinterpretCast<uint32_t>().SetValue(9, (uint32_t)(bits >> 32));
    } else if (s[0] == 1) {
        vor(d, a, a + 2048, repeats, 1, 1, 1, 8, 8, 8);
    } else if (s[0] == 2) {
        vector_dup(d, (int16_t)77, repeats, 1, 0, (uint8_t)8, (uint8_t)0);
    } else if (s[0] == 3) {
        copy_ubuf_to_ubuf(d, a, 0, 2, 3, 1, 2);
    } else if (s[0] == 4) {
        vtranspose((__ubuf__ uint16_t *)d, (__ubuf__ uint16_t *)a);
    } else if (s[0] == 5) {
        uint64_t places[4][8];
        for (int i = 0; i < 32; ++i) {
            places[i / 8][i % 8] = (uint64_t)((i < 16 ? d : a) + 16 * (i % 16));
        }
        set_va_reg_sb(VA4, places[0]);
        set_va_reg_sb(VA5, places[1]);
        set_va_reg_sb(VA0, places[2]);
        set_va_reg_sb(VA1, places[3]);
        scatter_vnchwconv_b16(VA4, VA0, repeats, 16, 16);
    }
    AscendCUtils::ResetMask();
    PipeBarrier<PIPE_ALL>();
    DataCopy(z, to, 4096);
"""


@pytest.fixture(scope="module")
def run(compile_kernel):
    kernel = compile_kernel(BODY, sizes=3)

    def go(op, repeats, mask, values):
        ran = kernel.run([values.view(np.int16)], [(4096, np.int16)], [op, repeats, mask])
        assert not ran.codes(), ran.result.hazards
        return ran.outputs[0]

    return go


@pytest.fixture
def words():
    return np.random.default_rng(5).integers(-(2**15), 2**15, 4096, dtype=np.int16)


@pytest.mark.parametrize("repeats", [1, 3, 32])
@pytest.mark.parametrize("mask", [1, 33, 64])
def test_a_sum_in_the_register_is_of_the_active_lanes_of_all_repeats(run, repeats, mask) -> None:
    values = np.random.default_rng(repeats).standard_normal(2048).astype(np.float32)
    found = run(0, repeats, mask, values).view(np.float32)[0]
    expected = values.reshape(32, 64)[:repeats, :mask].astype(np.float64).sum()
    assert found == pytest.approx(expected, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("count", [8, 500])
def test_the_register_of_a_maximum_has_its_value_and_index(run, count) -> None:
    values = np.random.default_rng(count).standard_normal(2048).astype(np.float32)
    found = run(6, 1, count, values)
    assert found.view(np.float32)[8] == values[:count].max()
    assert found.view(np.uint32)[9] == values[:count].argmax()


@pytest.mark.parametrize("repeats", [1, 5])
@pytest.mark.parametrize("mask", [16, 100, 128])
def test_bits_and_scalars_go_to_the_active_lanes(run, words, repeats, mask) -> None:
    rows = words.reshape(32, 128)
    either, same = np.zeros((32, 128), np.int16), np.zeros((32, 128), np.int16)
    either[:repeats, :mask] = (rows[:16] | rows[16:])[:repeats, :mask]
    same[:repeats, :mask] = 77
    np.testing.assert_array_equal(run(1, repeats, mask, words).reshape(32, 128), either)
    np.testing.assert_array_equal(run(2, repeats, mask, words).reshape(32, 128), same)


def test_a_copy_within_the_buffer_counts_in_blocks(run, words) -> None:
    blocks, expected = words.reshape(256, 16), np.zeros((256, 16), np.int16)
    expected[0:3], expected[5:8] = blocks[0:3], blocks[4:7]
    np.testing.assert_array_equal(run(3, 1, 128, words).reshape(256, 16), expected)


@pytest.mark.parametrize(("op", "repeats"), [(4, 1), (5, 2), (5, 7)])
def test_squares_are_transposed(run, words, op, repeats) -> None:
    squares = words.reshape(16, 16, 16)
    found = run(op, repeats, 128, words).reshape(16, 16, 16)
    np.testing.assert_array_equal(found[:repeats], squares[:repeats].transpose(0, 2, 1))
    assert not found[repeats:].any()


OLDER = """
    GlobalTensor<int16_t> x, z;
    x.SetGlobalBuffer((__gm__ int16_t *)t[0]);
    z.SetGlobalBuffer((__gm__ int16_t *)t[1]);
    TPipe pipe;
    TBuf<TPosition::VECCALC> buf;
    pipe.InitBuffer(buf, 256);
    __ubuf__ int16_t *d = (__ubuf__ int16_t *)buf.Get<int16_t>().GetPhyAddr();
    uint64_t padding = GetScalarBitcodeValue((half)1.0f);
    DuplicateImpl<int16_t>(d, (int16_t)padding, 128);
    PipeBarrier<PIPE_ALL>();
    DataCopyUB2GMImpl((__gm__ int16_t *)z.GetPhyAddr(), d, {1, 8, 0, 0});
    PipeBarrier<PIPE_ALL>();
    const int64_t *s = tiling.size;
    const uint32_t unit = (uint32_t)s[1];
    InitOutput<int16_t>(z[s[0]], (uint32_t)Ceil((int32_t)s[2], s[1]), (int16_t)CeilAlign(s[2], unit));
    (void)x;
"""
OWN = """
template <typename A, typename B> __aicore__ inline A CeilAlign(A a, B b) { return (a + b - 1) / b * b + 1; }
"""


@pytest.mark.parametrize(("start", "unit", "value"), [(0, 4, 33), (16, 8, 64), (48, 3, 100)])
def test_functions_of_older_versions(compile_kernel, start, unit, value) -> None:
    """A kernel's own template is taken before ours of the same name."""
    kernel = compile_kernel(OLDER, sizes=3, prelude=OWN)
    ran = kernel.run([np.zeros(16, np.int16)], [(128, np.int16)], [start, unit, value])
    rows = -(-value // unit)
    expected = np.full(128, 0x3C00, np.int16)
    expected[start : start + rows] = rows * unit + 1
    np.testing.assert_array_equal(ran.outputs[0], expected)
