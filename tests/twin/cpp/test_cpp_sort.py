"""Sorting, merging and TopK against NumPy."""

# ruff: noqa: E501 - a line of a kernel stays one line

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

PAIRS = 512
BYTES = 8 * PAIRS
PRELUDE = '#include "tiling/tiling_api.h"\n'
BODY = """
    TPipe pipe;
    TBuf<TPosition::VECCALC> bufA, bufI, bufD, bufT, bufV;
    pipe.InitBuffer(bufA, 4096); pipe.InitBuffer(bufI, 4096); pipe.InitBuffer(bufD, 8192);
    pipe.InitBuffer(bufT, 32768); pipe.InitBuffer(bufV, 8192);
    LocalTensor<T> a = bufA.Get<T>(), d = bufD.Get<T>(), tmp = bufT.Get<T>(), values = bufV.Get<T>();
    LocalTensor<uint32_t> index = bufI.Get<uint32_t>();
    LocalTensor<int32_t> signed_index = bufI.Get<int32_t>();
    GlobalTensor<T> x, z, w;
    GlobalTensor<uint32_t> i, zi;
    x.SetGlobalBuffer((__gm__ T *)t[0]);
    i.SetGlobalBuffer((__gm__ uint32_t *)t[1]);
    z.SetGlobalBuffer((__gm__ T *)t[2]);
    zi.SetGlobalBuffer((__gm__ uint32_t *)t[3]);
    Duplicate(d.template ReinterpretCast<int32_t>(), 0, 2048);
    Duplicate(values.template ReinterpretCast<int32_t>(), -1, 2048);
    DataCopy(a, x, 512); DataCopy(index, i, 512);
    PipeBarrier<PIPE_ALL>();
    const int64_t op = tiling.size[0];
    const int32_t n = tiling.size[1];
    constexpr uint32_t pair = 8 / sizeof(T);
    if (op == 0) { Sort32(d, a, index, n); }
    if (op == 1) {
        uint16_t lengths[4];
        uint32_t starts[4], at = 0;
        for (int k = 0; k < 4; ++k) { lengths[k] = (uint16_t)tiling.size[2 + k]; starts[k] = at; at += lengths[k]; }
        DataCopy(tmp, x, 512 * pair);
        PipeBarrier<PIPE_ALL>();
        MrgSortSrcList<T> list(tmp[starts[0] * pair], tmp[starts[1] * pair], tmp[starts[2] * pair], tmp[starts[3] * pair]);
        MrgSort(d, list, MrgSort4Info(lengths, tiling.size[6] != 0, (uint16_t)n, (uint16_t)tiling.size[7]));
        uint16_t r[4];
        GetMrgSortResult(r[0], r[1], r[2], r[3]);
        for (int k = 0; k < 4; ++k) { values.template ReinterpretCast<int32_t>().SetValue(k, r[k]); }
    }
    if (op == 2) {
        LocalTensor<T> concat;
        Concat(concat, a, tmp, n * 2);
        if (tiling.size[2] != 0) { Sort<T, true>(d, concat, index, tmp, n); } else { Sort<T, false>(d, concat, index, tmp, n); }
        Extract(values, index, d, n);
        Adds(values[1024].template ReinterpretCast<int32_t>(), index.template ReinterpretCast<int32_t>(), 0, 512);
    }
    if (op == 3) {
        TopKInfo info;
        info.outter = tiling.size[3]; info.inner = tiling.size[4]; info.n = tiling.size[5];
        const bool largest = tiling.size[2] != 0;
        LocalTensor<uint8_t> scratch = bufT.Get<uint8_t>();
        LocalTensor<bool> finish = bufD.Get<bool>();
        LocalTensor<int32_t> out = values[1024].template ReinterpretCast<int32_t>();
        TopkTiling plan;
        platform_ascendc::PlatformAscendC platform(nullptr);
        TopKTilingFunc(platform, info.inner, info.outter, n, sizeof(T), tiling.size[6] != 0, tiling.size[7] != 0 ? TopKMode::TOPK_NSMALL : TopKMode::TOPK_NORMAL, largest, plan);
        if (tiling.size[7] != 0) { TopK<T, false, false, false, TopKMode::TOPK_NSMALL>(values, out, a, signed_index, finish, scratch, n, plan, info, largest); }
        else if (tiling.size[6] != 0) { finish.SetValue(1, true); TopK<T, true, true>(values, out, a, signed_index, finish, n, plan, info, largest); }
        else { TopK<T>(values, out, a, signed_index, finish, scratch, n, plan, info, largest); }
    }
    PipeBarrier<PIPE_ALL>();
    DataCopy(z, d, 4096 / sizeof(T));
    DataCopy(zi, values.template ReinterpretCast<uint32_t>(), 2048);
"""
KINDS = {"float": np.float32, "half": np.float16}


@pytest.fixture(scope="module", params=sorted(KINDS))
def kernel(request, compile_kernel):
    return compile_kernel(f"using T = {request.param};" + BODY, sizes=8, prelude=PRELUDE), KINDS[
        request.param
    ]


def _run(compiled, kind, scores, index, sizes):
    width = np.dtype(kind).itemsize
    return compiled.run(
        [scores.astype(kind), index.astype(np.uint32)],
        [(BYTES // width, kind), (2048, np.uint32)],
        [*sizes, *[0] * (8 - len(sizes))],
    )


def _pairs(raw, kind):
    """The scores and indices of a list of pairs of 8 bytes."""
    data = raw.view(np.uint8).reshape(-1, 8)
    scores = np.ascontiguousarray(data[:, : np.dtype(kind).itemsize]).view(kind)[:, 0]
    return scores, np.ascontiguousarray(data[:, 4:]).view(np.uint32)[:, 0]


def _descending(scores):
    return np.argsort(-scores.astype(np.float64), kind="stable")


def _as_pairs(scores, index, kind):
    data = np.zeros((len(scores), 8), np.uint8)
    data[:, : np.dtype(kind).itemsize] = scores.astype(kind)[:, None].view(np.uint8)
    data[:, 4:] = index.astype(np.uint32)[:, None].view(np.uint8)
    return data.ravel().view(kind)


def _scores(seed, count, kind):
    return (np.random.default_rng(seed).integers(-9, 10, count) / 4).astype(kind)


@pytest.mark.parametrize("repeats", [0, 1, 16])
def test_sort32_orders_groups_and_keeps_equals_in_place(kernel, repeats) -> None:
    compiled, kind = kernel
    scores, index = _scores(1, PAIRS, kind), np.arange(PAIRS) * 7
    ran = _run(compiled, kind, scores, index, [0, repeats])
    assert not ran.codes(), ran.result.hazards
    got, order = _pairs(ran.outputs[0], kind)
    for group in range(repeats):
        part = slice(32 * group, 32 * group + 32)
        wanted = _descending(scores[part])
        np.testing.assert_array_equal(got[part], scores[part][wanted])
        np.testing.assert_array_equal(order[part], index[part][wanted])
    assert not ran.outputs[0][repeats * 32 * 8 // np.dtype(kind).itemsize :].any()


def test_nan_comes_first(kernel) -> None:
    compiled, kind = kernel
    scores = np.linspace(-1, 1, PAIRS).astype(kind)
    scores[[3, 9]] = np.nan
    scores[5] = np.inf
    got, order = _pairs(_run(compiled, kind, scores, np.arange(PAIRS), [0, 1]).outputs[0], kind)
    assert np.isnan(got[:2]).all()
    assert list(order[:3]) == [3, 9, 5]


@st.composite
def _merges(draw):
    runs = draw(st.integers(2, 4))
    return {
        "lengths": [draw(st.integers(0, 60)) for _ in range(runs)],
        "suspend": draw(st.booleans()),
        "seed": draw(st.integers(0, 99)),
    }


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=_merges())
def test_merge_of_runs(kernel, case) -> None:
    compiled, kind = kernel
    lengths = [*case["lengths"], 0, 0][:4]
    scores = _scores(case["seed"], PAIRS, kind)
    runs, start = [], 0
    for length in case["lengths"]:
        part = np.sort(scores[start : start + length])[::-1]
        runs.append([(part[i], start + i) for i in range(length)])
        scores[start : start + length] = part
        start += length
    wanted, taken = [], [0] * 4
    alive = lambda: all(len(r) for r in runs) if case["suspend"] else any(len(r) for r in runs)  # noqa: E731
    while alive():
        best = max(range(len(runs)), key=lambda k: (runs[k][0][0] if runs[k] else -np.inf, -k))
        wanted.append(runs[best].pop(0))
        taken[best] += 1
    data = _as_pairs(scores, np.arange(PAIRS), kind)
    valid = (1 << len(case["lengths"])) - 1
    ran = _run(compiled, kind, data, np.arange(512), [1, valid, *lengths, int(case["suspend"]), 1])
    assert not ran.codes(), ran.result.hazards
    got, order = _pairs(ran.outputs[0], kind)
    np.testing.assert_array_equal(got[: len(wanted)], np.array([w[0] for w in wanted], kind))
    np.testing.assert_array_equal(order[: len(wanted)], [w[1] for w in wanted])
    assert not order[len(wanted) :].any()
    assert list(ran.outputs[1][:4]) == taken


def test_merge_repeats_over_four_equal_runs(kernel) -> None:
    compiled, kind = kernel
    scores = _scores(4, PAIRS, kind)
    for start in range(0, 256, 32):
        scores[start : start + 32] = np.sort(scores[start : start + 32])[::-1]
    data = _as_pairs(scores, np.arange(PAIRS), kind)
    ran = _run(compiled, kind, data, np.arange(512), [1, 15, 32, 32, 32, 32, 0, 2])
    assert not ran.codes(), ran.result.hazards
    got, _ = _pairs(ran.outputs[0], kind)
    for start in (0, 128):
        np.testing.assert_array_equal(got[start : start + 128], np.sort(scores[start : start + 128])[::-1])
    ran = _run(compiled, kind, data, np.arange(512), [1, 7, 32, 32, 32, 0, 0, 2])
    assert ran.codes() == {"param-limit"}
    assert _run(compiled, kind, data, np.arange(512), [1, 5, 32, 32, 32, 0, 0, 1]).codes() == {"param-limit"}


@pytest.mark.parametrize("repeats", [1, 2, 5, 16])
@pytest.mark.parametrize("full", [0, 1])
def test_sort_and_extract(kernel, repeats, full) -> None:
    compiled, kind = kernel
    scores, index = _scores(8, PAIRS, kind), np.arange(PAIRS) + 3
    ran = _run(compiled, kind, scores, index, [2, repeats, full])
    assert not ran.codes(), ran.result.hazards
    size = 32 * repeats
    part = size if full else 32
    order = np.concatenate([s + _descending(scores[s : s + part]) for s in range(0, size, part)])
    values = ran.outputs[1].view(kind)[:size]
    np.testing.assert_array_equal(values, scores[order])
    first = 1024 * np.dtype(kind).itemsize // 4
    np.testing.assert_array_equal(ran.outputs[1][first : first + size], index[order])


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.integers(1, 4),
    groups=st.integers(1, 4),
    k=st.integers(1, 32),
    largest=st.booleans(),
    mode=st.sampled_from(["plain", "given", "small"]),
    seed=st.integers(0, 99),
)
def test_topk(kernel, rows, groups, k, largest, mode, seed) -> None:
    compiled, kind = kernel
    inner = 32 if mode == "small" else 32 * groups
    scores, index = _scores(seed, PAIRS, kind), np.arange(PAIRS) + 100
    sizes = [3, k, int(largest), rows, inner, inner, int(mode == "given"), int(mode == "small")]
    ran = _run(compiled, kind, scores, index, sizes)
    assert not ran.codes(), ran.result.hazards
    width = np.dtype(kind).itemsize
    values = ran.outputs[1].view(kind)
    indices = ran.outputs[1][1024 * width // 4 :].view(np.int32)
    value_row = k if mode == "small" else -(-k * width // 32) * 32 // width
    index_row = k if mode == "small" else -(-k // 8) * 8
    for row in range(rows):
        part = scores[row * inner : (row + 1) * inner]
        order = np.argsort((-1 if largest else 1) * part.astype(np.float64), kind="stable")[:k]
        np.testing.assert_array_equal(values[row * value_row : row * value_row + k], part[order])
        wanted = index[order] if mode == "given" else order
        wanted = np.full(k, inner) if mode == "given" and row == 1 else wanted
        np.testing.assert_array_equal(indices[row * index_row : row * index_row + k], wanted)


def test_topk_refuses_rows_that_are_no_groups(kernel) -> None:
    compiled, kind = kernel
    scores = _scores(0, PAIRS, kind)
    assert _run(compiled, kind, scores, scores, [3, 4, 1, 1, 40, 40]).codes() == {"param-limit"}
    assert _run(compiled, kind, scores, scores, [3, 33, 1, 1, 32, 32]).codes() == {"param-limit"}
