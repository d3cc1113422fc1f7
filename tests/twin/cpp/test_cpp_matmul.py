"""The Matmul object against NumPy: shapes, transposes, types, bias, formats, core splits, and its checks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evokernel_core.twin.run import Mode

HOST = """
#include "tiling/tiling_api.h"

// What a test asks for: m n k cores transA transB bias
inline TCubeTiling Cut(const int64_t *size, matmul_tiling::DataType a, matmul_tiling::DataType c, bool split)
{
    using namespace matmul_tiling;
    MultiCoreMatmulTiling cut;
    cut.SetDim(static_cast<int32_t>(size[3]));
    cut.SetAType(matmul_tiling::TPosition::GM, ::CubeFormat::ND, a, size[4]);
    cut.SetBType(matmul_tiling::TPosition::GM, ::CubeFormat::ND, a, size[5]);
    cut.SetCType(matmul_tiling::TPosition::GM, ::CubeFormat::ND, c);
    cut.SetBiasType(matmul_tiling::TPosition::GM, ::CubeFormat::ND, DataType::DT_FLOAT);
    cut.SetOrgShape(size[0], size[1], size[2]);
    cut.SetShape(size[0], size[1], size[2]);
    cut.EnableBias(size[6]);
    cut.EnableMultiCoreSplitK(split);
    TCubeTiling tiling;
    if (cut.GetTiling(tiling) != 0) { tiling.usedCoreNum = 0; }
    return tiling;
}
"""
PRODUCT = (
    HOST
    + """
#include "lib/matmul_intf.h"

struct Part { uint64_t a, b, c, bias; int32_t m, n; };
inline Part PartOf(const TCubeTiling &t, const int64_t *size, int64_t block)
{
    const int64_t rows = (t.M + t.singleCoreM - 1) / t.singleCoreM;
    const int64_t row = block % rows * t.singleCoreM, column = block / rows * t.singleCoreN;
    Part part;
    part.a = size[4] ? row : row * t.Ka;
    part.b = size[5] ? column * t.Kb : column;
    part.c = row * t.N + column;
    part.bias = column;
    part.m = static_cast<int32_t>(t.M - row < t.singleCoreM ? t.M - row : t.singleCoreM);
    part.n = static_cast<int32_t>(t.N - column < t.singleCoreN ? t.N - column : t.singleCoreN);
    return part;
}

template <typename A, typename C, typename B, const auto &CFG>
void Product(GM_ADDR *t, const int64_t *size, matmul_tiling::DataType a, matmul_tiling::DataType c)
{
    TPipe pipe;
    using AType = MatmulType<TPosition::GM, CubeFormat::ND, A, true>;
    using CType = MatmulType<TPosition::GM, CubeFormat::ND, C>;
    Matmul<AType, AType, CType, MatmulType<TPosition::GM, CubeFormat::ND, B>, CFG> mm;
    const TCubeTiling tiling = Cut(size, a, c, false);
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &tiling);
    if (GetBlockIdx() >= tiling.usedCoreNum) { return; }
    const Part part = PartOf(tiling, size, GetBlockIdx());
    const uint64_t pack = std::is_same_v<A, int4b_t> ? 2 : 1;
    GlobalTensor<A> ga, gb;
    GlobalTensor<C> gc;
    GlobalTensor<B> gv;
    ga.SetGlobalBuffer((__gm__ A *)(t[0] + part.a * sizeof(A) / pack));
    gb.SetGlobalBuffer((__gm__ A *)(t[1] + part.b * sizeof(A) / pack));
    gv.SetGlobalBuffer((__gm__ B *)t[2] + part.bias);
    gc.SetGlobalBuffer((__gm__ C *)t[3] + part.c);
    mm.SetTail(part.m, part.n);
    mm.SetTensorA(ga, size[4]);
    mm.SetTensorB(gb, size[5]);
    if (size[6]) { mm.SetBias(gv); }
    if (size[8] == 0) {
        mm.IterateAll(gc);
    } else {
        while (mm.Iterate()) { mm.GetTensorC(gc); }
    }
    mm.End();
}

template <const auto &CFG> void AnyType(GM_ADDR *t, const int64_t *size)
{
    using D = matmul_tiling::DataType;
    switch (size[7]) {
        case 0: return Product<half, float, float, CFG>(t, size, D::DT_FLOAT16, D::DT_FLOAT);
        case 1: return Product<half, half, half, CFG>(t, size, D::DT_FLOAT16, D::DT_FLOAT16);
        case 2: return Product<bfloat16_t, float, float, CFG>(t, size, D::DT_BF16, D::DT_FLOAT);
        case 3: return Product<float, float, float, CFG>(t, size, D::DT_FLOAT, D::DT_FLOAT);
        case 4: return Product<int8_t, int32_t, int32_t, CFG>(t, size, D::DT_INT8, D::DT_INT32);
        default: return Product<int4b_t, int32_t, int32_t, CFG>(t, size, D::DT_INT4, D::DT_INT32);
    }
}
"""
)
BODY = """
    if (tiling.size[9] == 0) { AnyType<CFG_NORM>(t, tiling.size); } else { AnyType<CFG_MDL>(t, tiling.size); }
"""
HALF, HALF_TO_HALF, BFLOAT, FLOAT, INT8, INT4 = range(6)


def stored(values: np.ndarray, kind: int) -> np.ndarray:
    """Small integers as the type holds them, dense rows."""
    if kind in (HALF, HALF_TO_HALF):
        return values.astype(np.float16)
    if kind == BFLOAT:
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    if kind == FLOAT:
        return values.astype(np.float32)
    if kind == INT8:
        return values.astype(np.int8)
    pairs = values.astype(np.int8).reshape(-1, 2) & 15
    return (pairs[:, 0] | (pairs[:, 1] << 4)).astype(np.uint8)


def out_type(kind: int) -> type:
    """The type of C."""
    return {HALF_TO_HALF: np.float16, INT8: np.int32, INT4: np.int32}.get(kind, np.float32)


def bias_type(kind: int) -> type:
    """The type of the bias."""
    return {HALF_TO_HALF: np.float16, INT8: np.int32, INT4: np.int32}.get(kind, np.float32)


@st.composite
def products(draw: st.DrawFn) -> tuple[int, ...]:
    """m n k cores transA transB bias kind iterate mdl"""
    kind = draw(st.sampled_from([HALF, HALF_TO_HALF, BFLOAT, FLOAT, INT8, INT4]))
    step = 2 if kind == INT4 else 1
    m, n, k = (draw(st.integers(1, 90)) * step for _ in range(3))
    cores = draw(st.sampled_from([1, 2, 4, 6]))
    trans_a = 0 if kind == INT4 else draw(st.integers(0, 1))
    trans_b, iterate, mdl = (draw(st.integers(0, 1)) for _ in range(3))
    bias = 0 if kind == INT4 else draw(st.integers(0, 1))
    return m, n, k, cores, trans_a, trans_b, bias, kind, iterate, mdl


def check(tested, sizes: tuple[int, ...]) -> None:
    """Runs one product and compares every element exactly: the sums are small integers."""
    m, n, k, _, trans_a, trans_b, bias, kind = sizes[:8]
    rng = np.random.default_rng(abs(hash(sizes)) % 2**32)
    a = rng.integers(-2, 3, (m, k))
    b = rng.integers(-2, 3, (k, n))
    v = rng.integers(-9, 10, n)
    inputs = [
        stored(np.ascontiguousarray(a.T if trans_a else a), kind),
        stored(np.ascontiguousarray(b.T if trans_b else b), kind),
        v.astype(bias_type(kind)),
    ]
    ran = tested.run(inputs, [(m * n, out_type(kind))], sizes)
    expected = (a @ b + (v if bias else 0)).astype(np.float64)
    assert ran.codes() == set(), ran.result.hazards
    np.testing.assert_array_equal(ran.outputs[0].reshape(m, n).astype(np.float64), expected)


@pytest.fixture(scope="module")
def cube_kernel(compile_kernel):
    return compile_kernel(
        BODY,
        sizes=10,
        blocks="sizes[3]",
        prelude="#define ASCENDC_CUBE_ONLY\n" + PRODUCT,
        kind=(1, 0, "false"),
    )


@pytest.fixture(scope="module")
def mix_kernel(compile_kernel):
    return compile_kernel(BODY, sizes=10, blocks="(sizes[3] + 1) / 2", prelude=PRODUCT, kind=(1, 2, "true"))


SLOW = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))


@SLOW
@given(sizes=products())
def test_products_on_cube_cores(cube_kernel, sizes) -> None:
    check(cube_kernel, sizes)


@SLOW
@given(sizes=products())
def test_products_driven_by_vector_cores(mix_kernel, sizes) -> None:
    check(mix_kernel, sizes)


@pytest.mark.parametrize("kind", [HALF, BFLOAT, FLOAT, INT8])
@pytest.mark.parametrize("trans", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_products_of_many_blocks(cube_kernel, kind, trans) -> None:
    check(cube_kernel, (300, 530, 700, 2, *trans, 1, kind, 0, 1))


# The host's search.

TILING_BODY = """
    using D = matmul_tiling::DataType;
    constexpr D types[] = {D::DT_FLOAT16, D::DT_FLOAT, D::DT_INT8, D::DT_INT4};
    const TCubeTiling cut = Cut(tiling.size, types[tiling.size[7]], D::DT_FLOAT, tiling.size[8]);
    GlobalTensor<int32_t> out;
    out.SetGlobalBuffer((__gm__ int32_t *)t[0], 50);
    const auto *words = reinterpret_cast<const int32_t *>(&cut);
    for (int i = 0; i < 50; ++i) { out.SetValue(i, words[i]); }
"""
# fmt: off
FIELDS = [
    "usedCoreNum", "M", "N", "Ka", "Kb", "singleCoreM", "singleCoreN", "singleCoreK", "baseM", "baseN",
    "baseK", "depthA1", "depthB1", "stepM", "stepN", "isBias", "transLength", "iterateOrder",
    "shareMode", "shareL1Size", "shareL0CSize", "shareUbSize", "batchM", "batchN", "singleBatchM",
    "singleBatchN", "stepKa", "stepKb", "depthAL1CacheUB", "depthBL1CacheUB", "dbL0A", "dbL0B", "dbL0C",
]
# fmt: on


@pytest.fixture(scope="module")
def cutter(compile_kernel):
    return compile_kernel(TILING_BODY, sizes=9, prelude=HOST)


def ceil(value: int, unit: int) -> int:
    """Parts of `unit` that hold `value`."""
    return -(-value // unit)


@SLOW
@given(
    shape=st.tuples(*[st.integers(1, 20000)] * 3),
    cores=st.integers(1, 48),
    trans=st.tuples(st.integers(0, 1), st.integers(0, 1)),
    kind=st.sampled_from([(0, 2.0), (1, 4.0), (2, 1.0), (3, 0.5)]),
    split=st.booleans(),
    bias=st.booleans(),
)
def test_a_tiling_fits_the_buffers_and_covers_c_once(cutter, shape, cores, trans, kind, split, bias) -> None:
    sizes = (*shape, cores, *trans, int(bias and not split), kind[0], int(split))
    ran = cutter.run([], [(50, np.int32)], sizes)
    t = dict(zip(FIELDS, ran.outputs[0].tolist(), strict=False))
    a, b = (t["baseM"] * t["baseK"] * kind[1], t["baseN"] * t["baseK"] * kind[1])
    assert a * t["dbL0A"] <= 65536 and b * t["dbL0B"] <= 65536
    assert t["baseM"] * t["baseN"] * 4 * t["dbL0C"] <= 131072
    assert t["depthA1"] * a + t["depthB1"] * b <= 524288
    assert t["depthA1"] % (t["stepM"] * t["stepKa"]) == 0 and t["depthB1"] % (t["stepN"] * t["stepKb"]) == 0
    parts = [ceil(shape[i], t[f"singleCore{axis}"]) for i, axis in enumerate("MNK")]
    assert t["usedCoreNum"] == parts[0] * parts[1] * parts[2] <= cores
    assert split or parts[2] == 1
    for i, axis in enumerate("MNK"):
        assert (parts[i] - 1) * t[f"singleCore{axis}"] < shape[i]


# Checks: one kernel, one wrong use a case.

WRONG = (
    HOST
    + """
#include "lib/matmul_intf.h"
"""
)
WRONG_BODY = """
    const int64_t wrong = tiling.size[7];
    TPipe pipe;
    TBuf<TPosition::VECCALC> early;
    if (wrong == 7) { pipe.InitBuffer(early, 256); }
    using Type = MatmulType<TPosition::GM, CubeFormat::ND, half>;
    using Sum = MatmulType<TPosition::GM, CubeFormat::ND, float>;
    Matmul<Type, Type, Sum, Sum, CFG_MDL> mm, other;
    using D = matmul_tiling::DataType;
    TCubeTiling cut = Cut(tiling.size, D::DT_FLOAT16, D::DT_FLOAT, false);
    if (wrong == 1) { cut.baseK *= 16; }
    if (wrong == 2) { cut.depthA1 = 4096; cut.stepM = 64; cut.stepKa = 64; }
    if (wrong == 3) { cut.singleCoreM = 4 * cut.M; }
    if (wrong == 4) { cut.baseM = 20; }
    const TCubeTiling *__restrict shape = &cut;
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, shape, other, shape);
    if (GetBlockIdx() != 0) { return; }
    GlobalTensor<half> a;
    GlobalTensor<float> c;
    a.SetGlobalBuffer((__gm__ half *)t[0]);
    c.SetGlobalBuffer((__gm__ float *)t[1]);
    if (wrong != 5) { mm.SetTensorA(a); }
    mm.SetTensorB(a, wrong == 8);
    if (wrong == 6) { mm.GetTensorC(c); }
    if (wrong == 9) { mm.SetBias(c); }
    mm.IterateAll(c);
    mm.End();
"""
CASES = {
    0: set(),
    1: {"tiling-misuse"},
    2: {"l1-capacity"},
    3: {"tiling-misuse"},
    4: {"tiling-misuse"},
    5: {"call-order"},
    6: {"call-order"},
    8: {"tiling-misuse"},
    9: {"tiling-misuse"},
}


@pytest.fixture(scope="module")
def wrong_kernel(compile_kernel):
    return compile_kernel(WRONG_BODY, sizes=8, blocks=1, prelude=WRONG, kind=(1, 2, "true"))


@pytest.mark.parametrize("wrong", CASES)
def test_a_wrong_use_is_named(wrong_kernel, wrong) -> None:
    a = np.ones(64 * 64, np.float16)
    ran = wrong_kernel.run([a], [(64 * 64, np.float32)], (64, 64, 64, 1, 0, 0, 0, wrong))
    found = ran.codes() - {"output-not-written"}
    assert found == CASES[wrong], ran.result.hazards


def test_registering_after_init_buffer_is_told(wrong_kernel) -> None:
    a = np.ones(64 * 64, np.float16)
    ran = wrong_kernel.run([a], [(64 * 64, np.float32)], (64, 64, 64, 1, 0, 0, 0, 7))
    assert ran.codes("warning") == {"call-order"} and ran.codes() == set()


def test_a_matmul_needs_a_cube_core(compile_kernel) -> None:
    alone = compile_kernel(WRONG_BODY, sizes=8, blocks=1, prelude=WRONG)
    ran = alone.run([np.ones(64 * 64, np.float16)], [(64 * 64, np.float32)], (64, 64, 64, 1, 0, 0, 0, 0))
    assert "wrong-core" in ran.codes()


def test_two_copies_in_l1_hide_the_loads(compile_kernel, zeros_of) -> None:
    body = """
    TPipe pipe;
    using Type = MatmulType<TPosition::GM, CubeFormat::ND, half>;
    using Sum = MatmulType<TPosition::GM, CubeFormat::ND, float>;
    Matmul<Type, Type, Sum, Sum, CFG_MDL> mm;
    using D = matmul_tiling::DataType;
    TCubeTiling cut = Cut(tiling.size, D::DT_FLOAT16, D::DT_FLOAT, false);
    cut.baseM = 128, cut.baseN = 256, cut.baseK = 64, cut.dbL0C = 1;
    cut.stepM = cut.stepN = 1, cut.stepKa = cut.stepKb = 4;
    cut.depthA1 = cut.depthB1 = static_cast<int32_t>(4 * tiling.size[7]);
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &cut);
    GlobalTensor<half> a, b;
    GlobalTensor<float> c;
    a.SetGlobalBuffer((__gm__ half *)t[0]);
    b.SetGlobalBuffer((__gm__ half *)t[1]);
    c.SetGlobalBuffer((__gm__ float *)t[2]);
    mm.SetTensorA(a);
    mm.SetTensorB(b);
    mm.IterateAll(c);
    mm.End();
"""
    kernel = compile_kernel(
        body, sizes=8, prelude="#define ASCENDC_CUBE_ONLY\n" + WRONG, kind=(1, 0, "false")
    )
    files = [zeros_of(1024 * 1024 * 2), zeros_of(1024 * 1024 * 2)], [zeros_of(1024 * 1024 * 4)]
    shape = (1024, 1024, 1024, 1, 0, 0, 0)
    runs = [kernel.run_files(*files, (*shape, copies), Mode.TIME).result for copies in (1, 2)]
    times = [run.launches[0].latency_us for run in runs]
    assert times[1] < 0.9 * times[0]
