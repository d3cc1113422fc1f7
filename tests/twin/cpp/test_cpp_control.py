"""Registers, dequantization, scalar functions, slices and lists of tensors."""

# ruff: noqa: E501 - a line of a kernel stays one line

from __future__ import annotations

import numpy as np
import pytest

N = 1024
BODY = """
    TPipe pipe;
    TBuf<TPosition::VECCALC> bufA, bufB, bufC, bufT;
    pipe.InitBuffer(bufA, 16384); pipe.InitBuffer(bufB, 16384); pipe.InitBuffer(bufC, 16384); pipe.InitBuffer(bufT, 65536);
    GlobalTensor<int32_t> x, y, z;
    x.SetGlobalBuffer((__gm__ int32_t *)t[0]); y.SetGlobalBuffer((__gm__ int32_t *)t[1]); z.SetGlobalBuffer((__gm__ int32_t *)t[2]);
    LocalTensor<int32_t> a = bufA.Get<int32_t>(), b = bufB.Get<int32_t>(), d = bufC.Get<int32_t>();
    DataCopy(a, x, 1024); DataCopy(b, y, 1024); Duplicate(d, -1, 1024);
    PipeBarrier<PIPE_ALL>();
    LocalTensor<half> ha = bufA.Get<half>(), hb = bufB.Get<half>(), hd = bufC.Get<half>();
    LocalTensor<float> fa = bufA.Get<float>(), fb = bufB.Get<float>(), fd = bufC.Get<float>();
    LocalTensor<int16_t> sa = bufA.Get<int16_t>();
    LocalTensor<int8_t> bd = bufC.Get<int8_t>();
    LocalTensor<uint8_t> ud = bufC.Get<uint8_t>();
    const int64_t *s = tiling.size;
    const int64_t op = s[0];
    if (op == 0) { SetSaturationFlag<SaturationMode::FLOAT>(s[1] != 0); Add(hd, ha, hb, 2048); }
    if (op == 1) { SetCtrlSpr<48, 48>(s[1]); Cast(hd, fa, RoundMode::CAST_RINT, 1024); d.SetValue(1023, (int32_t)GetCtrlSpr<48, 48>()); }
    if (op == 2) { SetSaturationFlag<SaturationMode::CAST>(s[1] != 0); Cast(bufC.Get<int16_t>(), fa, RoundMode::CAST_TRUNC, 1024); }
    if (op == 3) {
        SetDeqScale(0.5f, 3, s[2] != 0);
        if (s[1] == 0) { if (s[2] != 0) CastDequant<int8_t, int16_t, false, true>(bd, sa, 512); else CastDequant<uint8_t, int16_t, false, false>(ud, sa, 512); }
        if (s[1] == 1) CastDequant<int8_t, int16_t, true, false, false>(bd, sa, 100, 2, {1, 1, 8, 8});
        uint64_t bits[2] = {0x00FF00FF00FF00FFull, 0xFFFFull};
        if (s[1] == 2) CastDeq<int8_t, int16_t, true, false, true>(bd, sa, bits, 2, {2, 1, 16, 8});
    }
    if (op == 4) {
        float scales[16]; int16_t offsets[16]; bool signs[16];
        for (int i = 0; i < 16; ++i) { scales[i] = 0.25f * (i + 1); offsets[i] = i - 8; signs[i] = i % 2 == 0; }
        LocalTensor<uint64_t> table = bufT.Get<uint64_t>();
        SetDeqScale(table, VdeqInfo(scales, offsets, signs));
        CastDequant<int8_t, int16_t, true, true>(bd, sa, 512);
    }
    if (op == 5) { SetDeqScale((half)0.5); AddDeqRelu(hd, a, b, 1000); }
    if (op == 6) { SetDeqScale((half)0.25); AddDeqRelu(hd, a, b, (uint64_t)48, 3, {1, 1, 1, 4, 8, 8}); }
    if (op == 7) {
        SliceInfo from[] = {{16, 70, 7, 3, 87}, {0, 2, 1, 1, 3}}, to[] = {{0, 47, 0, 3, 48}, {0, 1, 0, 1, 2}};
        PipeBarrier<PIPE_ALL>();
        DataCopy(d, x, to, from, 2);
    }
    if (op == 8) {
        SliceInfo from[] = {{0, 47, 0, 3, 48}, {0, 1, 0, 1, 2}}, to[] = {{16, 70, 7, 3, 87}, {0, 2, 1, 1, 3}};
        DataCopy(z, d, 1024); PipeBarrier<PIPE_ALL>();
        DataCopy(z, a, to, from, 2); PipeBarrier<PIPE_ALL>();
        DataCopy(d, z, 1024);
    }
    if (op == 9) { DataCopy(z, d, 1024); PipeBarrier<PIPE_ALL>(); Nz2NdParamsFull p(2, 4, 32, 1, 4, 80, 40); DataCopy(z, a, p); PipeBarrier<PIPE_ALL>(); DataCopy(d, z, 1024); }
    if (op == 10) {
        SetPadValue((int32_t)77);
        DataCopyPad(d, x, {2, 20, 12, 1, 0}, {false, 1, 2, 5});
    }
    if (op == 11) {
        int i = 0;
        auto put = [&](int64_t value) { d.SetValue(i++, (int32_t)value); };
        put(GetBitCount<1>(0xFF01)); put(ScalarGetCountOfValue<0>(0xFF01)); put(CountLeadingZero(0x0100000000000020ull)); put(ScalarCountLeadingZero(0));
        put(GetSFFValue<1>(0x1000000000000100ull)); put(ScalarGetSFFValue<0>(~0ull)); put(GetSFFValue<0>(7)); put(CountBitsCntSameAsSignBit(0x0100000000000020));
        put(CountBitsCntSameAsSignBit(-1)); put(CeilDivision(7, 2)); put(CeilDivision(7, 0)); put(AlignUp(33, 32)); put(CeilAlign(33u, 16));
        put(Cast<float, int32_t, RoundMode::CAST_ROUND>(-2.5f)); put(Cast<float, int32_t, RoundMode::CAST_RINT>(2.5f)); put(ScalarCast<float, int32_t, RoundMode::CAST_CEIL>(2.1f));
        put(ScalarCast<float, int32_t, RoundMode::CAST_FLOOR>(-2.1f)); put(Cast<float, int32_t, RoundMode::CAST_RINT>(3e9f));
        put(GetScalarBitcodeValue<half, uint16_t>(Cast<float, half, RoundMode::CAST_ODD>(1.00001f))); put(GetScalarBitcodeValue<half, int16_t>(Cast<float, half, RoundMode::CAST_ODD>(1.0f)));
        put(GetScalarBitcodeValue<half, uint16_t>(Cast<float, half, RoundMode::CAST_ODD>(1.0009f))); put(GetScalarBitcodeValue<float, int32_t>(1.0f)); put((int)(4 * Cast(Cast(1.25f))));
        put(ToFloat(ToBfloat16(3.0f))); put(Std::max(3, 4)); put(Std::min(3, 4)); put(Std::abs(-3)); put(Std::sqrt(9.0f)); put(Std::get<1>(Std::make_tuple(1, 5)));
        put(MakeLayout(MakeShape(3, 4, 5), MakeStride(20, 5, 1))(MakeCoord(1, 2, 3)));
        put(Crd2Idx(MakeCoord(11, 12), MakeShape(MakeShape(2, 4), MakeShape(3, 5)), MakeStride(MakeStride(3, 6), MakeStride(1, 24))));
        half h = 3; h++; ++h; h -= 1; h *= (half)2; put(h); bfloat16_t f = 3; f--; f += 4; put(f); put(-h); put((half)0.5 + (half)0.25 == 0.75f);
        uint16_t type = 9, action = 9; GetStoreAtomicConfig(type, action); put(type); SetStoreAtomicConfig<AtomicDtype::ATOMIC_S16, AtomicOp::ATOMIC_SUM>();
        GetStoreAtomicConfig(type, action); put(type); SetAtomicType<float>(); GetStoreAtomicConfig(type, action); put(type); SetAtomicNone();
        put(GetSaturationFlag<SaturationMode::CAST>()); put(GetSaturationFlag<SaturationMode::FLOAT>());
        uint32_t sizes[2] = {4, 6}; a.SetShapeInfo(ShapeInfo(2, sizes, DataFormat::NZ)); put(GetShapeSize(a.GetShapeInfo())); put((int)a.GetShapeInfo().dataFormat);
        a.SetUserTag(12); put(a.GetUserTag()); LocalTensor<int32_t> moved; moved.SetAddrWithOffset(a, 5); put(moved.GetValue(0)); TBuffAddr place = a.GetBufferAddr(); place.bufferAddr += 64;
        LocalTensor<int32_t> placed(place); put(placed.GetValue(0)); LocalTensor<int32_t> fixed((uint32_t)32); put(fixed.GetValue(0)); put(a.GetLength()); moved.SetBufferLen(3); put(moved.GetSize());
        put(ReadGmByPassDCache((__gm__ int32_t *)t[0] + 9)); WriteGmByPassDCache<int32_t>((__gm__ int32_t *)t[2], 31); put(ReadGmByPassDCache((__gm__ int32_t *)t[2]));
        put(x.ReinterpretCast<int16_t>().GetValue(18)); Nop<3>(); ICachePreLoad(1); put(GetICachePreloadStatus()); OOMCheckAddrRange((__gm__ float *)t[0], 4096); SetNextTaskStart(); WaitPreTaskEnd();
        GlobalTensor<uint64_t> lines; lines.SetGlobalBuffer((__gm__ uint64_t *)t[0]); DataCachePreload(lines, (int64_t)64);
    }
    if (op == 12) {
        uint64_t *words = (uint64_t *)t[2];
        const uint64_t block[] = {7 * 8, 2ull | (0ull << 32), 8, 2048, 1ull | (1ull << 32), 64, 0};
        for (int i = 0; i < 6; ++i) WriteGmByPassDCache<uint64_t>((__gm__ uint64_t *)words + i, i == 0 ? 48 : block[i]);
        WriteGmByPassDCache<uint64_t>((__gm__ uint64_t *)words + 6, (uint64_t)t[0]);
        WriteGmByPassDCache<uint64_t>((__gm__ uint64_t *)words + 7, (uint64_t)t[1]);
        ListTensorDesc list((__gm__ void *)words, 64, (uint32_t)s[1]);
        TensorDesc<int32_t> desc;
        uint64_t shape[4];
        desc.SetShapeAddr(shape);
        int i = 0;
        auto put = [&](int64_t value) { d.SetValue(i++, (int32_t)value); };
        put(list.GetSize());
        for (uint32_t k = 0; k < 2; ++k) { list.GetDesc(desc, k); put(desc.GetDim()); put(desc.GetIndex()); for (uint32_t j = 0; j < desc.GetDim(); ++j) put(desc.GetShape(j)); put(desc.GetDataObj().GetValue(4)); put(*list.GetDataPtr<int32_t>(k)); }
    }
    if (op == 13) {
        uint64_t mask[2] = {~0ull, ~0ull};
        if (s[1] == 0) BilinearInterpolation(hd, ha, bufB.Get<uint32_t>(), ha[512], mask, (uint8_t)2, false, (uint16_t)1, (uint16_t)128, (uint8_t)2, bufT.Get<uint8_t>());
        else BilinearInterpolation(hd, ha, bufB.Get<uint32_t>(), ha[512], (uint64_t)128, (uint8_t)2, true, (uint16_t)1, (uint16_t)128, (uint8_t)2, bufT.Get<uint8_t>());
    }
    PipeBarrier<PIPE_ALL>();
    DataCopy(z, d, 1024);
"""


@pytest.fixture(scope="module")
def run(compile_kernel):
    kernel = compile_kernel(BODY, sizes=4)

    def go(sizes, x, y=None):
        first, second = (np.zeros(N, np.int32) for _ in range(2))
        first.view(x.dtype)[: x.size] = x.ravel()
        if y is not None:
            second.view(y.dtype)[: y.size] = y.ravel()
        by_pointer = sizes[0] == 12  # the case that reads an element through what a list's address is cast to
        padded = [*sizes, *[0] * (4 - len(sizes))]
        return kernel.run([first, second], [(N, np.int32)], padded, one_process=by_pointer)

    return go


def _checked(ran):
    assert not ran.codes(), ran.result.hazards
    return ran.outputs[0]


def test_half_results_saturate_only_when_asked(run) -> None:
    x = np.array([6e4, -6e4, np.nan, 1, np.inf], np.float16)
    y = np.array([6e4, -6e4, 1, 2, 1], np.float16)
    plain = _checked(run([0, 0], x, y)).view(np.float16)[:5]
    np.testing.assert_array_equal(plain, np.array([np.inf, -np.inf, np.nan, 3, np.inf], np.float16))
    saturated = _checked(run([0, 1], x, y)).view(np.float16)[:5]
    np.testing.assert_array_equal(saturated, np.array([65504, -65504, 0, 3, 65504], np.float16))


def test_the_control_bit_saturates_conversions(run) -> None:
    x = np.array([1e6, -1e6, np.nan, 2], np.float32)
    got = _checked(run([1, 0], x))
    np.testing.assert_array_equal(got.view(np.float16)[:4], np.array([65504, -65504, 0, 2], np.float16))
    assert got[-1] == 0
    got = _checked(run([1, 1], x))
    np.testing.assert_array_equal(
        got.view(np.float16)[:4], np.array([np.inf, -np.inf, np.nan, 2], np.float16)
    )
    assert got[-1] == 1


def test_casts_keep_the_low_bits_when_saturation_is_off(run) -> None:
    x = np.array([70000.5, -70000.5, 32767, -5], np.float32)
    np.testing.assert_array_equal(_checked(run([2, 1], x)).view(np.int16)[:4], [32767, -32768, 32767, -5])
    wrapped = np.array([70000, -70000, 32767, -5]).astype(np.int16)
    np.testing.assert_array_equal(_checked(run([2, 0], x)).view(np.int16)[:4], wrapped)


def _half_blocks(got, high):
    """The bytes that CastDequant fills of every data block."""
    return got.view(np.int8).reshape(-1, 32)[:, 16 * high : 16 * high + 16]


@pytest.mark.parametrize("signed", [True, False])
def test_dequantization_with_one_scale(run, signed) -> None:
    x = np.random.default_rng(0).integers(-400, 400, 512).astype(np.int16)
    low, high = (-128, 127) if signed else (0, 255)
    wanted = np.clip(np.rint(x * 0.5 + 3), low, high).astype(np.int64).astype(np.uint8).view(np.int8)
    got = _half_blocks(_checked(run([3, 0, int(signed)], x)), int(signed))
    np.testing.assert_array_equal(got[:32], wanted.reshape(32, 16))


def test_dequantization_under_masks(run) -> None:
    x = np.random.default_rng(1).integers(-200, 200, 256).astype(np.int16)
    wanted = np.clip(np.rint(x * 0.5 + 3), -128, 127).astype(np.int8).reshape(2, 8, 16)
    got = _half_blocks(_checked(run([3, 1, 1], x)), 0)[:16].reshape(2, 8, 16)
    active = np.arange(128).reshape(8, 16) < 100
    np.testing.assert_array_equal(got, np.where(active, wanted, -1))
    spread = _half_blocks(_checked(run([3, 2, 1], x)), 1)[:32].reshape(2, 8, 2, 16)
    bits = (0x00FF00FF00FF00FF, 0xFFFF)
    chosen = np.array([(bits[i // 64] >> (i % 64)) & 1 for i in range(128)], bool).reshape(8, 16)
    np.testing.assert_array_equal(spread[:, :, 0], np.where(chosen, wanted, -1))
    assert (spread[:, :, 1] == -1).all()


def test_dequantization_with_a_scale_for_each_lane(run) -> None:
    x = np.random.default_rng(2).integers(-100, 100, 512).astype(np.int16)
    scale, offset = 0.25 * (np.arange(16) + 1), np.arange(16) - 8
    signed = np.arange(16) % 2 == 0
    exact = np.rint(x.reshape(-1, 16) * scale + offset)
    wanted = np.where(signed, np.clip(exact, -128, 127), np.clip(exact, 0, 255)).astype(np.int64)
    got = _half_blocks(_checked(run([4], x)), 1)[:32]
    np.testing.assert_array_equal(got.view(np.uint8), wanted.astype(np.uint8))


def test_sign_mode_and_result_type_must_agree(run) -> None:
    x = np.ones(256, np.int16)
    assert run([3, 1, 0], x).codes() == {"param-limit"}


def test_sum_dequantization_and_relu(run) -> None:
    x, y = (np.random.default_rng(i).integers(-3000, 3000, N).astype(np.int32) for i in (0, 1))
    wanted = np.maximum((x + y).astype(np.float32) * 0.5, 0).astype(np.float16)
    np.testing.assert_array_equal(_checked(run([5], x, y)).view(np.float16)[:1000], wanted[:1000])
    got = _checked(run([6], x, y)).view(np.float16)[:192].reshape(3, 64)
    wanted = np.maximum((x + y).astype(np.float32) * 0.25, 0).astype(np.float16)[:192].reshape(3, 64)
    np.testing.assert_array_equal(got[:, :48], wanted[:, :48])
    assert (got[:, 48:].view(np.int16) == -1).all()


def test_slices_in_and_out(run) -> None:
    """The example of the documentation: two rows of two pieces of 24 elements."""
    x = np.arange(N, dtype=np.int32)
    rows = x[: 3 * 87].reshape(3, 87)[::2]
    wanted = np.concatenate([rows[:, 16:40], rows[:, 47:71]], axis=1).ravel()
    np.testing.assert_array_equal(_checked(run([7], x))[:96], wanted)
    got = _checked(run([8], x))[: 3 * 87].reshape(3, 87)
    np.testing.assert_array_equal(got[::2, 16:40], x[:96].reshape(2, 48)[:, :24])
    np.testing.assert_array_equal(got[::2, 47:71], x[:96].reshape(2, 48)[:, 24:])
    assert (got[1] == -1).all()


def test_fractals_to_rows(run) -> None:
    x = np.arange(N, dtype=np.int32)
    got = _checked(run([9], x))
    for m in range(2):
        for r in range(4):
            wanted = np.concatenate([x[m * 256 + c * 64 + r * 16 :][:16] for c in range(2)])
            np.testing.assert_array_equal(got[m * 40 + r * 80 :][:32], wanted)


def test_the_padding_value_of_the_register(run) -> None:
    x = np.arange(N, dtype=np.int32)
    got = _checked(run([10], x))
    for block in range(2):
        part = got[block * 16 :][:8]
        np.testing.assert_array_equal(part, [77, *(block * 8 + np.arange(5)), 77, 77])


def test_scalar_functions(run) -> None:
    x = np.arange(N, dtype=np.int32) * 3
    got = list(_checked(run([11], x))[:60])
    wanted = [9, 55, 7, 64, 8, -1, 3, 6, -1, 4, 0, 64, 48, -3, 2, 3, -3, 2147483647, 0x3C01, 0x3C00, 0x3C01]
    wanted += [0x3F800000, 5, 3, 4, 3, 3, 3, 5, 33, 129, 8, 6, -8, 1, 0, 3, 1, 1, 0, 24, 1, 12, 15, 48, 24]
    wanted += [16384, 3, 27, 31, 27, 0]
    assert got[: len(wanted)] == wanted


def test_a_list_of_tensors(run) -> None:
    x, y = np.arange(N, dtype=np.int32), np.arange(N, dtype=np.int32) + 1000
    got = _checked(run([12, 2], x, y))[:12]
    np.testing.assert_array_equal(got, [2, 2, 0, 8, 2048, 4, 0, 1, 1, 64, 1004, 1000])
    assert run([12, 3], x, y).codes() == {"param-limit"}


def test_bilinear_interpolation(run) -> None:
    source = (np.arange(512) % 61).astype(np.float16)
    weights = np.tile(np.arange(1, 33) / 4, 16)[:512].astype(np.float16)
    offsets = (np.random.default_rng(0).permutation(32) * 32).astype(np.uint32)
    data = np.concatenate([source, weights])
    blocks = source.reshape(32, 16)[offsets // 32].reshape(4, 8, 16)
    for mode in (0, 1):
        got = _checked(run([13, mode], data, offsets)).view(np.float16)[:256].reshape(2, 8, 16)
        factor = weights[:4].reshape(4, 1, 1) if mode == 0 else weights[:32].reshape(4, 8, 1)
        products = (blocks * factor).astype(np.float16).reshape(2, 2, 8, 16)
        np.testing.assert_array_equal(got, products[:, 0] + products[:, 1])
