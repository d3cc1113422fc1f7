"""TransDataTo5HD, Transpose in all its forms, TransData, Pad and UnPad against NumPy."""

# ruff: noqa: E501 - a line of a kernel stays one line

from __future__ import annotations

import numpy as np
import pytest

PRELUDE = """#include "evokernel/twin/host_vector.h"
constexpr TransDataConfig kToZ = {DataFormat::NCDHW, DataFormat::FRACTAL_Z_3D};
constexpr TransDataConfig kFromZ = {DataFormat::FRACTAL_Z_3D, DataFormat::NCDHW};
constexpr TransDataConfig kToBlocks = {DataFormat::NCDHW, DataFormat::NDC1HWC0};
constexpr TransDataConfig kFromBlocks = {DataFormat::NDC1HWC0, DataFormat::NCDHW};
template <typename T> __aicore__ void Five(LocalTensor<T> d, LocalTensor<T> a, const int64_t *s, LocalTensor<uint64_t> words)
{
    TransDataTo5HDParams params(s[3] != 0, s[4] != 0, (uint8_t)s[5], (uint16_t)s[6], (uint16_t)s[7]);
    constexpr uint32_t step = 32 / sizeof(T);
    if (s[2] == 0) {
        LocalTensor<T> to[16], from[16];
        for (int i = 0; i < 16; ++i) { to[i] = d[i * step]; from[i] = a[i * step]; }
        TransDataTo5HD<T>(to, from, params);
    } else {
        uint64_t to[16], from[16];
        for (int i = 0; i < 16; ++i) { to[i] = (uint64_t)d[i * step].GetPhyAddr(); from[i] = (uint64_t)a[i * step].GetPhyAddr(); }
        if (s[2] == 1) {
            TransDataTo5HD<T>(to, from, params);
        } else if (s[2] == 3) {
            __ubuf__ T *dst[16], *src[16];
            for (int i = 0; i < 16; ++i) { dst[i] = (__ubuf__ T *)to[i]; src[i] = (__ubuf__ T *)from[i]; }
            TransDataTo5HDImpl(dst, src, params);
        } else {
            for (int i = 0; i < 16; ++i) { words.SetValue(i, to[i]); words.SetValue(16 + i, from[i]); }
            TransDataTo5HD<T>(words, words[16], params);
        }
    }
}
template <typename T> __aicore__ void Image(LocalTensor<T> d, LocalTensor<T> a, const int64_t *s, LocalTensor<uint8_t> tmp)
{
    TransposeParamsExt params((uint16_t)s[2], (uint16_t)s[3], (uint16_t)s[4], (uint16_t)s[5], static_cast<TransposeType>(s[6]));
    Transpose(d, a, tmp, params);
}
template <typename T> __aicore__ void Rows(LocalTensor<T> d, LocalTensor<T> a, const int64_t *s, LocalTensor<uint8_t> tmp)
{
    const TensorShape shape{{s[2], s[3]}}, original{{s[2], s[4]}};
    if (s[7] == 0) {
        PadTiling tiling;
        PadTilingFunc(shape, original, 0, sizeof(T), tiling);
        PadParams params{(uint16_t)s[5], (uint16_t)s[6], 321};
        Pad(d, a, params, tmp, tiling);
    } else {
        UnPadTiling tiling;
        UnPadTilingFunc(shape, 0, sizeof(T), tiling);
        UnPadParams params{0, (uint16_t)s[6]};
        UnPad(d, a, params, tiling);
    }
}
"""
BODY = """
    TPipe pipe;
    TBuf<TPosition::VECCALC> bufA, bufD, bufT, bufW;
    pipe.InitBuffer(bufA, 32768); pipe.InitBuffer(bufD, 32768); pipe.InitBuffer(bufT, 65536); pipe.InitBuffer(bufW, 256);
    GlobalTensor<int32_t> x, z;
    x.SetGlobalBuffer((__gm__ int32_t *)t[0]);
    z.SetGlobalBuffer((__gm__ int32_t *)t[1]);
    DataCopy(bufA.Get<int32_t>(), x, 8192);
    Duplicate(bufD.Get<int32_t>(), -1, 8192);
    PipeBarrier<PIPE_ALL>();
    const int64_t *s = tiling.size;
    LocalTensor<uint8_t> tmp = bufT.Get<uint8_t>();
    LocalTensor<uint64_t> words = bufW.Get<uint64_t>();
    if (s[0] == 0 && s[1] == 1) Five(bufD.Get<int8_t>(), bufA.Get<int8_t>(), s, words);
    if (s[0] == 0 && s[1] == 2) Five(bufD.Get<half>(), bufA.Get<half>(), s, words);
    if (s[0] == 0 && s[1] == 4) Five(bufD.Get<float>(), bufA.Get<float>(), s, words);
    if (s[0] == 1 && s[1] == 1) Image(bufD.Get<uint8_t>(), bufA.Get<uint8_t>(), s, tmp);
    if (s[0] == 1 && s[1] == 2) Image(bufD.Get<uint16_t>(), bufA.Get<uint16_t>(), s, tmp);
    if (s[0] == 1 && s[1] == 4) Image(bufD.Get<int32_t>(), bufA.Get<int32_t>(), s, tmp);
    if (s[0] == 2) {
        const TensorShape shape{{s[2], s[3], s[4], s[5]}};
        uint32_t most, least;
        ConfusionTransposeTiling tiling;
        GetTransposeMaxMinTmpSize(shape, 2, (uint32_t)s[1], most, least);
        GetTransposeTilingInfo(shape, least, 2, (uint32_t)s[1], tiling);
        const TransposeType type = static_cast<TransposeType>(s[1]);
        if (s[6] == 0) { Transpose(bufD.Get<half>(), bufA.Get<half>(), type, tiling); }
        else { ConfusionTranspose(bufD.Get<half>(), bufA.Get<half>(), tmp, type, tiling); }
    }
    if (s[0] == 3) {
        const int32_t n = s[2], c = s[3], d = s[4], h = s[5], w = s[6], c1 = (c + 15) / 16, n1 = (n + 15) / 16;
        LocalTensor<half> to = bufD.Get<half>(), from = bufA.Get<half>();
        auto plain = MakeLayout(MakeShape(n, c, d, h, w), MakeStride());
        auto blocks = MakeLayout(MakeShape(n, d, c1, h, w, 16), MakeStride());
        auto fractals = MakeLayout(MakeShape(d, c1, h, w, n1, 16, 16), MakeStride());
        TransDataParams<decltype(plain), decltype(blocks)> toBlocks = {plain, blocks};
        TransDataParams<decltype(blocks), decltype(plain)> fromBlocks = {blocks, plain};
        TransDataParams<decltype(plain), decltype(fractals)> toZ = {plain, fractals};
        TransDataParams<decltype(fractals), decltype(plain)> fromZ = {fractals, plain};
        if (s[1] == 0) TransData<kToBlocks>(to, from, tmp, toBlocks);
        if (s[1] == 1) TransData<kFromBlocks>(to, from, tmp, fromBlocks);
        if (s[1] == 2) TransData<kToZ>(to, from, tmp, toZ);
        if (s[1] == 3) TransData<kFromZ>(to, from, fromZ);
    }
    if (s[0] == 4 && s[1] == 2) Rows(bufD.Get<int16_t>(), bufA.Get<int16_t>(), s, tmp);
    if (s[0] == 4 && s[1] == 4) Rows(bufD.Get<float>(), bufA.Get<float>(), s, tmp);
    PipeBarrier<PIPE_ALL>();
    DataCopy(z, bufD.Get<int32_t>(), 8192);
"""
TYPES = {1: np.uint8, 2: np.uint16, 4: np.uint32}


@pytest.fixture(scope="module")
def kernel(compile_kernel):
    return compile_kernel(BODY, sizes=8, prelude=PRELUDE)


@pytest.fixture(scope="module")
def run(kernel):
    def go(sizes, data, kind):
        buffer = np.zeros(8192, np.int32)
        buffer.view(kind)[: data.size] = data.ravel()
        ran = kernel.run([buffer], [(8192, np.int32)], [*sizes, *[0] * (8 - len(sizes))])
        return ran, ran.outputs[0].view(kind) if ran.outputs else None

    return go


def _checked(ran):
    assert not ran[0].codes(), ran[0].result.hazards
    return ran[1]


def _numbers(count, kind, seed=0):
    return np.random.default_rng(seed).integers(0, np.iinfo(kind).max, count, dtype=kind)


@pytest.mark.parametrize("form", [0, 1, 2, 3])
@pytest.mark.parametrize("repeats", [1, 2])
@pytest.mark.parametrize("width", [2, 4])
def test_blocks_of_16_and_32_bits(run, form, repeats, width) -> None:
    """16 blocks a repeat; those of 32 bits give rows of two blocks each."""
    kind = TYPES[width]
    step = 0 if repeats == 1 else 16
    data = _numbers(repeats * 512 // width, kind)
    got = _checked(run([0, width, form, 0, 0, repeats, step, step], data, kind))
    for r in range(repeats):
        part = data.reshape(repeats, 16, 32 // width)[r]
        np.testing.assert_array_equal(got.reshape(-1, 512 // width)[r], part.T.ravel())


@pytest.mark.parametrize("high", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_blocks_of_8_bits_move_halves(run, high) -> None:
    to, source = high
    data = _numbers(512, np.uint8)
    got = _checked(run([0, 1, 0, to, source, 1, 0, 0], data, np.uint8))[:512].reshape(16, 32)
    part = data.reshape(16, 32)[:, 16 * source : 16 * source + 16]
    np.testing.assert_array_equal(got[:, 16 * to : 16 * to + 16], part.T)
    assert (got[:, 16 - 16 * to : 32 - 16 * to] == 255).all()


def test_a_single_repeat_starts_a_stride_away(run) -> None:
    data = _numbers(512, np.uint16)
    got = _checked(run([0, 2, 0, 0, 0, 1, 0, 16], data, np.uint16))
    np.testing.assert_array_equal(got[:256].reshape(16, 16), data[256:].reshape(16, 16).T)


@pytest.mark.parametrize("width", [1, 2, 4])
def test_images_change_their_last_axis(run, width) -> None:
    kind = TYPES[width]
    n, c, h, w = 2, 3, 4, 8
    data = _numbers(n * c * h * w, kind)
    got = _checked(run([1, width, n, c, h, w, 11], data, kind))[: data.size]
    np.testing.assert_array_equal(got, data.reshape(n, c, h, w).transpose(0, 2, 3, 1).ravel())
    back = _checked(run([1, width, n, c, h, w, 12], got, kind))[: data.size]
    np.testing.assert_array_equal(back, data)


def test_image_transposes_say_what_they_cannot_do(run) -> None:
    data = _numbers(96, np.uint16)
    assert run([1, 2, 1, 2, 3, 5, 11], data, np.uint16)[0].codes() == {"alignment"}
    assert run([1, 2, 1, 4096, 1, 16, 11], data, np.uint16)[0].codes() == {"param-limit"}
    assert run([1, 4, 1, 700, 1, 8, 11], data, np.uint16)[0].codes() == {"temp-buffer"}
    assert run([1, 2, 1, 2, 1, 16, 4], data, np.uint16)[0].codes() == {"param-limit"}


def _nz(matrix):
    """[..., rows, columns] to [..., columns / 16, rows / 16, 16, 16], padded with zeros."""
    *outer, rows, columns = matrix.shape
    high, wide = -(-rows // 16) * 16, -(-columns // 16) * 16
    full = np.zeros((*outer, high, wide), matrix.dtype)
    full[..., :rows, :columns] = matrix
    split = full.reshape(*outer, high // 16, 16, wide // 16, 16)
    return np.moveaxis(split, -2, len(outer))


def _wide(matrix):
    """Rows padded to 16 elements."""
    *outer, columns = matrix.shape
    full = np.zeros((*outer, -(-columns // 16) * 16), matrix.dtype)
    full[..., :columns] = matrix
    return full


SCENARIOS = {
    1: (_nz, lambda x: x.transpose(0, 2, 1, 3)),
    2: (_nz, lambda x: _nz(x.transpose(0, 2, 1, 3))),
    3: (lambda x: _nz(_merged(x)), _nz),
    4: (lambda x: _nz(_merged(x)), _wide),
    5: (_nz, lambda x: _wide(_merged(x))),
    6: (_nz, lambda x: _nz(_merged(x))),
}


def _merged(x):
    b, n, s, d = x.shape
    return x.transpose(0, 2, 1, 3).reshape(b, s, n * d)


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("shape", [(1, 2, 16, 32), (2, 16, 16, 16), (1, 4, 32, 8)])
def test_fractal_scenarios(run, scenario, shape) -> None:
    """Padding of the result is left as it was; the model marks it with 0xFFFF."""
    x = _numbers(int(np.prod(shape)), np.uint16).reshape(shape) // 2
    before, after = SCENARIOS[scenario]
    wanted = after(x + 1).astype(np.int64) - 1
    got = _checked(run([2, scenario, *shape, scenario % 2], before(x), np.uint16))[: wanted.size]
    filled = wanted.ravel() >= 0
    np.testing.assert_array_equal(got[filled], wanted.ravel()[filled])
    assert (got[~filled] == 0xFFFF).all()


def test_transpose_of_a_matrix_and_its_limits(run) -> None:
    x = _numbers(48 * 32, np.uint16).reshape(48, 32)
    np.testing.assert_array_equal(_checked(run([2, 7, 48, 32], x, np.uint16))[: x.size], x.T.ravel())
    assert run([2, 7, 40, 32], x, np.uint16)[0].codes() == {"alignment"}
    assert run([2, 13, 48, 32], x, np.uint16)[0].codes() == {"param-limit"}


@pytest.mark.parametrize("shape", [(1, 16, 2, 3, 5), (17, 20, 1, 4, 4), (2, 32, 1, 1, 16)])
def test_volumes_to_blocks_and_fractals(run, shape) -> None:
    n, c, d, h, w = shape
    x = _numbers(int(np.prod(shape)), np.uint16).reshape(shape)
    plain = _wide(x.reshape(n, c, d, h * w))
    full = np.zeros((n, -(-c // 16) * 16, d, h * w), np.uint16)
    full[:, :c] = x.reshape(n, c, d, h * w)
    blocks = full.reshape(n, -1, 16, d, h * w).transpose(0, 3, 1, 4, 2)
    batches = np.zeros((-(-n // 16) * 16, *full.shape[1:]), np.uint16)
    batches[:n] = full
    fractals = batches.reshape(-1, 16, full.shape[1] // 16, 16, d, h * w).transpose(4, 2, 5, 0, 1, 3)
    for kind, wanted in ((0, blocks), (2, fractals)):
        if wanted.size > 16384:
            continue
        got = _checked(run([3, kind, *shape], plain, np.uint16))[: wanted.size]
        np.testing.assert_array_equal(got, wanted.ravel())
        back = _checked(run([3, kind + 1, *shape], wanted, np.uint16))[: plain.size]
        np.testing.assert_array_equal(back.reshape(plain.shape)[..., : h * w], x.reshape(n, c, d, h * w))


@pytest.mark.parametrize("width", [2, 4])
def test_pad_and_unpad(run, width) -> None:
    kind = TYPES[width]
    lanes = 32 // width
    columns = 2 * lanes - 3
    x = _numbers(16 * columns, kind).reshape(16, columns)
    got = _checked(run([4, width, 16, columns, columns, 1, 2, 0], x, kind))[: 16 * 2 * lanes].reshape(16, -1)
    value = np.array(321 if width == 2 else np.float32(321).view(np.uint32), kind)
    np.testing.assert_array_equal(got[:, 1:-2], x)
    assert (got[:, [0, -2, -1]] == value).all()
    narrow = _checked(run([4, width, 16, 2 * lanes, 0, 0, 3, 1], got, kind))[: 16 * columns]
    np.testing.assert_array_equal(narrow.reshape(16, -1), got[:, :-3])
    filled = _checked(run([4, width, 16, 2 * lanes, columns, 0, 2, 0], got, kind))[: got.size].reshape(16, -1)
    np.testing.assert_array_equal(filled[:, :columns], got[:, :columns])
    assert (filled[:, columns : columns + 2] == value).all()
    assert run([4, width, 16, columns, columns, 2, 2, 0], x, kind)[0].codes() == {"param-limit"}
    assert run([4, width, 16, columns, columns, 0, 1, 1], x, kind)[0].codes() == {"param-limit"}
