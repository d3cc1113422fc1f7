"""Reductions, comparisons and selections against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

LOAD = """
    TPipe pipe;
    TBuf<TPosition::VECCALC> bufA, bufD, bufT;
    pipe.InitBuffer(bufA, 8192);
    pipe.InitBuffer(bufD, 8192);
    pipe.InitBuffer(bufT, 8192);
    LocalTensor<T> a = bufA.Get<T>(), d = bufD.Get<T>(), tmp = bufT.Get<T>();
    GlobalTensor<T> x, z;
    x.SetGlobalBuffer((__gm__ T *)t[0]);
    z.SetGlobalBuffer((__gm__ T *)t[1]);
    DataCopy(a, x, 8192 / sizeof(T));
    Duplicate(d, T(0), 8192 / sizeof(T));
    const int64_t op = tiling.size[0];
    const int32_t n = tiling.size[1];
    uint64_t bits[2] = {(uint64_t)tiling.size[2], (uint64_t)tiling.size[3]};
    PipeBarrier<PIPE_ALL>();
"""
STORE = """
    PipeBarrier<PIPE_ALL>();
    DataCopy(z, d, 8192 / sizeof(T));
"""
REDUCTIONS = """
    const int32_t repeats = 8192 / 256;
    if (op == 0) WholeReduceSum(d, a, n, repeats, 1, 1, 8);
    if (op == 1) WholeReduceMax(d, a, n, repeats, 1, 1, 8, ReduceOrder::ORDER_ONLY_VALUE);
    if (op == 2) WholeReduceMin(d, a, n, repeats, 1, 1, 8);
    if (op == 3) BlockReduceSum(d, a, repeats, n, 1, 1, 8);
    if (op == 4) BlockReduceMax(d, a, repeats, n, 1, 1, 8);
    if (op == 5) PairReduceSum(d, a, repeats, n, 1, 1, 8);
    if (op == 6) ReduceSum(d, a, tmp, n);
    if (op == 7) ReduceMax(d, a, tmp, n, true);
    if (op == 8) ReduceMin(d, a, tmp, n);
    if (op == 9) ReduceRepeat<ReduceType::SUM>(d, a, n, repeats, 1, 1, 8);
    if (op == 10) ReduceDataBlock<ReduceType::MAX>(d, a, n, repeats, 1, 1, 8);
    if (op == 11) WholeReduceSum(d, a, bits, repeats, 1, 1, 8);
    if (op == 12) ReduceSum(d, a, tmp, (int32_t)(256 / sizeof(T)), repeats, 8);
"""
KINDS = {"float": np.float32, "half": np.float16}


@pytest.fixture(scope="module", params=sorted(KINDS))
def reductions(request, compile_kernel):
    body = f"using T = {request.param};" + LOAD + REDUCTIONS + STORE
    return compile_kernel(body, sizes=4), KINDS[request.param]


def _tree(values):
    """Adjacent pairs, each sum rounded to the type."""
    while values.shape[-1] > 1:
        values = (values[..., 0::2] + values[..., 1::2]).astype(values.dtype)
    return values[..., 0]


def _run(kernel, kind, op, n, values, bits=(0, 0)):
    count = 8192 // np.dtype(kind).itemsize
    signed = [b - 2**64 if b >= 2**63 else b for b in bits]
    ran = kernel.run([values], [(count, kind)], [op, n, *signed])
    assert not ran.codes(), ran.result.hazards
    return ran.outputs[0]


def _data(kind):
    count = 8192 // np.dtype(kind).itemsize
    return np.random.default_rng(3).standard_normal(count).astype(kind)


def _masked(values, lanes, n, fill):
    rows = values.reshape(-1, lanes).copy()
    rows[:, n:] = fill
    return rows


@pytest.mark.parametrize("part", [1, 7, 32, 63, 64])
def test_reductions_of_a_repeat(reductions, part) -> None:
    kernel, kind = reductions
    lanes = 256 // np.dtype(kind).itemsize
    n = part * lanes // 64
    values = _data(kind)
    rows = len(values) // lanes
    np.testing.assert_array_equal(
        _run(kernel, kind, 0, n, values)[:rows], _tree(_masked(values, lanes, n, 0))
    )
    np.testing.assert_array_equal(
        _run(kernel, kind, 9, n, values)[:rows], _tree(_masked(values, lanes, n, 0))
    )
    np.testing.assert_array_equal(
        _run(kernel, kind, 1, n, values)[:rows], _masked(values, lanes, n, -np.inf).max(1)
    )
    pairs = _run(kernel, kind, 2, n, values)[: 2 * rows].reshape(rows, 2)
    low = _masked(values, lanes, n, np.inf)
    np.testing.assert_array_equal(pairs[:, 0], low.min(1))
    index = pairs[:, 1].copy().view(np.uint16 if kind is np.float16 else np.uint32)
    np.testing.assert_array_equal(index, low.argmin(1))


@pytest.mark.parametrize("part", [64, 40])
def test_reductions_of_blocks_and_pairs(reductions, part) -> None:
    kernel, kind = reductions
    lanes = 256 // np.dtype(kind).itemsize
    n = part * lanes // 64
    values = _data(kind)
    rows = len(values) // lanes
    masked = _masked(values, lanes, n, 0).reshape(rows, 8, lanes // 8)
    active = np.arange(8) * (lanes // 8) < n
    blocks = _run(kernel, kind, 3, n, values)[: rows * 8].reshape(rows, 8)
    np.testing.assert_array_equal(blocks, np.where(active, _tree(masked), 0))
    highest = _masked(values, lanes, n, -np.inf).reshape(rows, 8, lanes // 8).max(2)
    for op in (4, 10):
        got = _run(kernel, kind, op, n, values)[: rows * 8].reshape(rows, 8)
        np.testing.assert_array_equal(got, np.where(active, highest, 0))
    pairs = _run(kernel, kind, 5, n, values)[: rows * lanes // 2].reshape(rows, lanes // 2)
    flat = _masked(values, lanes, n, 0)
    np.testing.assert_array_equal(pairs, (flat[:, 0::2] + flat[:, 1::2]).astype(kind))


def test_bit_mask_reduction(reductions) -> None:
    kernel, kind = reductions
    lanes = 256 // np.dtype(kind).itemsize
    bits = (0x00FF_F0F0_1234_8001, 0x8000_0000_0000_0001)
    values = _data(kind)
    active = [(bits[i // 64] >> (i % 64)) & 1 == 1 for i in range(lanes)]
    wanted = _tree(np.where(active, values.reshape(-1, lanes), kind(0)))
    np.testing.assert_array_equal(_run(kernel, kind, 11, 0, values, bits)[: len(wanted)], wanted)


@pytest.mark.parametrize("n", [1, 8, 100, 1000, 2048])
def test_reductions_of_a_tensor(reductions, n) -> None:
    kernel, kind = reductions
    lanes = 256 // np.dtype(kind).itemsize
    values = _data(kind)
    padded = np.zeros(-(-n // lanes) * lanes, kind)
    padded[:n] = values[:n]
    total = kind(0)
    for i, part in enumerate(_tree(padded.reshape(-1, lanes))):
        total = part if i == 0 else kind(total + part)
    assert _run(kernel, kind, 6, n, values)[0] == total
    best = _run(kernel, kind, 7, n, values)[:2]
    assert best[0] == values[:n].max()
    assert best[1:].view(np.uint16 if kind is np.float16 else np.uint32)[0] == values[:n].argmax()
    assert _run(kernel, kind, 8, n, values)[0] == values[:n].min()


def test_high_dimensional_sum_is_a_tree_over_repeats_too(reductions) -> None:
    kernel, kind = reductions
    lanes = 256 // np.dtype(kind).itemsize
    values = _data(kind)
    parts = np.zeros(lanes, kind)
    sums = _tree(values.reshape(-1, lanes))
    parts[: len(sums)] = sums
    assert _run(kernel, kind, 12, 0, values)[0] == _tree(parts)


SELECTIONS = """
    TBuf<TPosition::VECCALC> bufM, bufB;
    pipe.InitBuffer(bufM, 1024);
    pipe.InitBuffer(bufB, 8192);
    LocalTensor<uint8_t> m = bufM.Get<uint8_t>();
    LocalTensor<T> b = bufB.Get<T>();
    GlobalTensor<T> y;
    y.SetGlobalBuffer((__gm__ T *)t[2]);
    GlobalTensor<uint8_t> bitsOut;
    bitsOut.SetGlobalBuffer((__gm__ uint8_t *)t[3]);
    DataCopy(b, y, 8192 / sizeof(T));
    Duplicate(m.ReinterpretCast<uint16_t>(), (uint16_t)0, 512);
    PipeBarrier<PIPE_ALL>();
    const uint32_t all = 8192 / sizeof(T);
    const CMPMODE mode = static_cast<CMPMODE>(n);
    if (op == 0) { Compare(m, a, b, mode, all); Select(d, m, a, b, SELMODE::VSEL_TENSOR_TENSOR_MODE, all); }
    if (op == 1) {
        CompareScalar(m, a, T(0.25f), mode, all);
        Select(d, m, a, T(7), SELMODE::VSEL_TENSOR_SCALAR_MODE, all);
    }
    if (op == 2) { Compares(m, a, T(0), mode, all); Select(d, m, a, b, SELMODE::VSEL_CMPMASK_SPR, all); }
    PipeBarrier<PIPE_ALL>();
    DataCopy(bitsOut, m, 1024);
"""
COMPARISONS = [np.less, np.greater, np.equal, np.less_equal, np.greater_equal, np.not_equal]


@pytest.fixture(scope="module", params=sorted(KINDS))
def selections(request, compile_kernel):
    load = LOAD.replace("t[1]", "t[4]").replace("t[0]", "t[1]").replace("t[4]", "t[3]")
    body = (
        f"using T = {request.param};"
        + load
        + SELECTIONS.replace("t[2]", "t[0]").replace("t[3]", "t[2]")
        + STORE
    )
    return compile_kernel(body, sizes=4), KINDS[request.param]


@pytest.mark.parametrize("op", [0, 1, 2])
@pytest.mark.parametrize("mode", range(6))
def test_compare_and_select(selections, op, mode) -> None:
    kernel, kind = selections
    count = 8192 // np.dtype(kind).itemsize
    lanes = 256 // np.dtype(kind).itemsize
    rng = np.random.default_rng(mode)
    b, a = (rng.integers(-3, 4, count).astype(kind) / kind(4) for _ in range(2))
    ran = kernel.run([b, a], [(1024, np.uint8), (count, kind)], [op, mode, 0, 0])
    assert not ran.codes(), ran.result.hazards
    right = [b, np.full(count, 0.25, kind), np.zeros(count, kind)][op]
    holds = COMPARISONS[mode](a, right)
    np.testing.assert_array_equal(np.unpackbits(ran.outputs[0], bitorder="little")[:count], holds)
    chosen = np.tile(holds[:lanes], count // lanes) if op == 2 else holds
    other = np.full(count, 7, kind) if op == 1 else b
    np.testing.assert_array_equal(ran.outputs[1], np.where(chosen, a, other))
