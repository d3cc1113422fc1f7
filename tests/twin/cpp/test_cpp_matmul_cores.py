"""The Matmul object where cores meet: objects that share a cube core, published core splits, Fill."""

from __future__ import annotations

import numpy as np
import pytest

CUT = """
#include "tiling/tiling_api.h"
#include "lib/matmul_intf.h"

// m n k cores bias baseM baseN baseK
inline TCubeTiling Cut(const int64_t *size, bool to_vector)
{
    using namespace matmul_tiling;
    MultiCoreMatmulTiling cut;
    cut.SetDim(static_cast<int32_t>(size[3]));
    cut.SetAType(matmul_tiling::TPosition::GM, ::CubeFormat::ND, DataType::DT_FLOAT16, false);
    cut.SetBType(matmul_tiling::TPosition::GM, ::CubeFormat::ND, DataType::DT_FLOAT16, false);
    const auto c = to_vector ? matmul_tiling::TPosition::VECIN : matmul_tiling::TPosition::GM;
    cut.SetCType(c, ::CubeFormat::ND, DataType::DT_FLOAT);
    cut.SetBiasType(matmul_tiling::TPosition::GM, ::CubeFormat::ND, DataType::DT_FLOAT);
    cut.SetOrgShape(size[0], size[1], size[2]);
    cut.SetShape(size[0], size[1], size[2]);
    cut.EnableBias(size[4]);
    if (size[5] > 0) { cut.SetFixSplit(size[5], size[6], size[7]); }
    TCubeTiling tiling;
    if (cut.GetTiling(tiling) != 0) { tiling.usedCoreNum = 0; }
    return tiling;
}
"""

TILING_BODY = """
    const TCubeTiling cut = Cut(tiling.size, tiling.size[8] != 0);
    GlobalTensor<int32_t> out;
    out.SetGlobalBuffer((__gm__ int32_t *)t[0], 7);
    const int32_t words[] = {cut.usedCoreNum, cut.singleCoreM, cut.singleCoreN, cut.singleCoreK,
                             cut.baseM, cut.baseN, cut.baseK};
    for (int i = 0; i < 7; ++i) { out.SetValue(i, likely(i >= 0) && !unlikely(i < 0) ? words[i] : 0); }
    static constexpr uint8_t bytes[] = {7, 0, 0, 0, 0, 2, 0, 0};
    struct Pair { int32_t first, second; };
    constexpr Pair pair = convert_from_bytes<Pair>(bytes);
    static_assert(pair.first == 7 && pair.second == 512);
"""


@pytest.mark.parametrize(
    ("sizes", "parts"),
    [
        # The tiling that the public sample of compilation ahead of time has as bytes.
        ((512, 512, 128, 2, 0, 0, 0, 0, 0), (2, 256, 512, 128)),
        # What the public sample that fuses LeakyRelu says of its cores: N is cut in two.
        ((512, 128, 128, 2, 1, 128, 64, 128, 1), (2, 512, 64, 128, 128, 64, 128)),
    ],
)
def test_cores_get_the_published_parts(compile_kernel, sizes, parts) -> None:
    ran = compile_kernel(TILING_BODY, sizes=9, prelude=CUT).run([], [(7, np.int32)], sizes)
    assert ran.codes() == set()
    assert tuple(ran.outputs[0][: len(parts)].tolist()) == parts


# Each vector core of a block drives its own object on the one cube core, block by block in turns.
TURNS_BODY = """
    TPipe pipe;
    using Type = MatmulType<TPosition::GM, CubeFormat::ND, half>;
    using Sum = MatmulType<TPosition::VECIN, CubeFormat::ND, float>;
    Matmul<Type, Type, Sum, MatmulType<TPosition::GM, CubeFormat::ND, float>> mm;
    const TCubeTiling cut = Cut(tiling.size, true);
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &cut);
    GlobalTensor<half> a, b;
    GlobalTensor<float> bias, c;
    const int64_t column = GetBlockIdx() * cut.singleCoreN;
    a.SetGlobalBuffer((__gm__ half *)t[0]);
    b.SetGlobalBuffer((__gm__ half *)t[1] + column);
    bias.SetGlobalBuffer((__gm__ float *)t[2] + column);
    c.SetGlobalBuffer((__gm__ float *)t[3] + column);
    mm.SetTensorA(a);
    mm.SetTensorB(b);
    mm.SetBias(bias);
    TQue<TPosition::VECIN, 1> queue;
    pipe.InitBuffer(queue, 1, cut.baseM * cut.baseN * sizeof(float));
    TQue<TPosition::VECOUT, 1> doubled;
    pipe.InitBuffer(doubled, 1, cut.baseM * cut.baseN * sizeof(float));
    for (int64_t row = 0; mm.Iterate<true>(); row += cut.baseM) {
        LocalTensor<float> part = queue.AllocTensor<float>();
        mm.GetTensorC<true>(part, false, true);
        queue.EnQue(part);
        part = queue.DeQue<float>();
        LocalTensor<float> out = doubled.AllocTensor<float>();
        Muls(out, part, 2.0f, cut.baseM * cut.baseN);
        doubled.EnQue(out);
        out = doubled.DeQue<float>();
        queue.FreeTensor(part);
        const uint32_t width = cut.baseN * sizeof(float);
        DataCopyExtParams rows(cut.baseM, width, 0, cut.N * sizeof(float) - width, 0);
        DataCopyPad(c[row * cut.N], out, rows);
        doubled.FreeTensor(out);
    }
    mm.End();
"""


def test_objects_of_two_vector_cores_take_turns(compile_kernel) -> None:
    m, n, k = 512, 64, 64
    rng = np.random.default_rng(0)
    a = rng.integers(-3, 4, (m, k)).astype(np.float16)
    b = rng.integers(-3, 4, (k, n)).astype(np.float16)
    bias = rng.integers(-3, 4, n).astype(np.float32)
    kernel = compile_kernel(TURNS_BODY, sizes=8, prelude=CUT, kind=(1, 2, "true"))
    ran = kernel.run([a, b, bias], [(m * n, np.float32)], (m, n, k, 2, 1, 32, 32, 64))
    assert ran.codes() == set(), ran.result.hazards
    expected = 2 * (a.astype(np.float32) @ b.astype(np.float32) + bias)
    np.testing.assert_array_equal(ran.outputs[0].reshape(m, n), expected)


# One object multiplies one shape after another: the second one's pieces take the L1 of the first one's.
SHAPES_BODY = """
    TPipe pipe;
    using Type = MatmulType<TPosition::GM, CubeFormat::ND, half>;
    using Sum = MatmulType<TPosition::GM, CubeFormat::ND, float>;
    Matmul<Type, Type, Sum, Sum, CFG_MDL> mm;
    const TCubeTiling cut = Cut(tiling.size, false);
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &cut);
    GlobalTensor<half> a, b;
    GlobalTensor<float> c, filled;
    a.SetGlobalBuffer((__gm__ half *)t[0]);
    b.SetGlobalBuffer((__gm__ half *)t[1]);
    c.SetGlobalBuffer((__gm__ float *)t[2]);
    filled.SetGlobalBuffer((__gm__ float *)t[3]);
    Fill(filled, tiling.size[8], 1.5f);
    for (int64_t row = 0; row < cut.M; row += 48) {
        mm.SetTail(cut.M - row < 48 ? cut.M - row : 48, cut.N);
        mm.SetTensorA(a[row * cut.Ka]);
        mm.SetTensorB(b);
        mm.IterateAll(c[row * cut.N]);
    }
    mm.End();
"""


@pytest.mark.parametrize("count", [8, 37, 200_001])
def test_a_cube_core_fills_and_multiplies_shape_after_shape(compile_kernel, count) -> None:
    m, n, k = 160, 64, 96
    rng = np.random.default_rng(1)
    a = rng.integers(-3, 4, (m, k)).astype(np.float16)
    b = rng.integers(-3, 4, (k, n)).astype(np.float16)
    kernel = compile_kernel(SHAPES_BODY, sizes=9, prelude=CUT, kind=(1, 0, "false"))
    ran = kernel.run([a, b], [(m * n, np.float32), (count, np.float32)], (m, n, k, 1, 0, 0, 0, 0, count))
    assert ran.codes() == set(), ran.result.hazards
    expected = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_array_equal(ran.outputs[0].reshape(m, n), expected)
    np.testing.assert_array_equal(ran.outputs[1], np.full(count, 1.5, np.float32))
