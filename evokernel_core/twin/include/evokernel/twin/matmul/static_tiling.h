// MatmulApiStaticTiling: a tiling known when the kernel is compiled.
#pragma once
#include "evokernel/twin/matmul/config.h"
#include "evokernel/twin/matmul/types.h"

struct MatmulApiStaticTiling {
    int32_t usedCoreNum = -1, M = -1, N = -1, Ka = -1, Kb = -1, singleCoreM = -1, singleCoreN = -1, singleCoreK = -1,
            baseM = -1, baseN = -1, baseK = -1, depthA1 = -1, depthB1 = -1, stepM = -1, stepN = -1, stepKa = -1,
            stepKb = -1, isBias = -1, transLength = -1, iterateOrder = -1, dbL0A = -1, dbL0B = -1, dbL0C = -1,
            shareMode = -1, shareL1Size = -1, shareL0CSize = -1, shareUbSize = -1, batchM = -1, batchN = -1,
            singleBatchM = -1, singleBatchN = -1, mxTypePara = -1;  // -1: taken from the tiling given at run time
    MatmulConfig cfg{};
};

namespace AscendC {

using ::MatmulApiStaticTiling;

namespace Impl {

constexpr int32_t L1_SIZE = 512 * 1024;
constexpr int32_t QUEUE_DEPTH = 1;

}  // namespace Impl
}  // namespace AscendC

namespace evokernel::twin::matmul {

constexpr int32_t Parts(int32_t value, int32_t unit) { return (value + unit - 1) / unit; }

template <typename T> constexpr int32_t BitsOfType() { return std::is_same_v<T, int4b_t> ? 4 : 8 * sizeof(T); }

// The deepest steps along K whose two copies of A and B fit L1.
constexpr int32_t StepK(int32_t blocks, int32_t bytes, int32_t room)
{
    int32_t best = 1;
    for (int32_t step = 1; step <= blocks; ++step) {
        const int32_t copies = step < blocks ? 2 : 1;
        if (static_cast<int64_t>(bytes) * step * copies <= room && Parts(blocks, step) < Parts(blocks, best)) {
            best = step;
        }
    }
    return best;
}

constexpr void FillDepth(MatmulApiStaticTiling &out, int32_t block_bytes, int32_t room)
{
    const int32_t blocks = Parts(out.singleCoreK, out.baseK);
    const int32_t step = StepK(blocks, block_bytes, room);
    const int32_t copies = static_cast<int64_t>(block_bytes) * step * 2 <= room ? 2 : 1;
    out.stepM = 1;
    out.stepN = 1;
    out.stepKa = step;
    out.stepKb = step;
    out.depthA1 = step * copies;
    out.depthB1 = step * copies;
}

}  // namespace evokernel::twin::matmul

namespace AscendC {

// Base and single-core sizes from the configuration; the rest follows from them where all are given.
template <class A_TYPE, class B_TYPE, class C_TYPE, class BIAS_TYPE>
constexpr MatmulApiStaticTiling GetMatmulApiTiling(const MatmulConfig &mmCFG, int32_t l1Size = Impl::L1_SIZE)
{
    namespace detail = ::evokernel::twin::matmul;
    MatmulApiStaticTiling out;
    out.cfg = mmCFG;
    if (mmCFG.basicM == 0 || mmCFG.basicN == 0 || mmCFG.basicK == 0) {
        return out;
    }
    out.baseM = static_cast<int32_t>(mmCFG.basicM);
    out.baseN = static_cast<int32_t>(mmCFG.basicN);
    out.baseK = static_cast<int32_t>(mmCFG.basicK);
    const int32_t a_bits = detail::BitsOfType<typename A_TYPE::T>();
    const int32_t b_bits = detail::BitsOfType<typename B_TYPE::T>();
    const int32_t accumulator = out.baseM * out.baseN * 4;
    out.dbL0A = out.baseM * out.baseK * a_bits / 8 * 2 <= 64 * 1024 ? 2 : 1;
    out.dbL0B = out.baseN * out.baseK * b_bits / 8 * 2 <= 64 * 1024 ? 2 : 1;
    out.dbL0C = accumulator * 2 <= 128 * 1024 ? 2 : 1;
    if (mmCFG.singleCoreM == 0 || mmCFG.singleCoreN == 0 || mmCFG.singleCoreK == 0) {
        return out;
    }
    out.singleCoreM = static_cast<int32_t>(mmCFG.singleCoreM);
    out.singleCoreN = static_cast<int32_t>(mmCFG.singleCoreN);
    out.singleCoreK = static_cast<int32_t>(mmCFG.singleCoreK);
    out.M = out.singleCoreM;
    out.N = out.singleCoreN;
    out.Ka = out.singleCoreK;
    out.Kb = out.singleCoreK;
    out.iterateOrder = mmCFG.iterateOrder == IterateOrder::ORDER_N ? 1 : 0;
    const int32_t block = (out.baseM * a_bits + out.baseN * b_bits) / 8 * out.baseK;
    detail::FillDepth(out, block, l1Size - out.baseN * 4);
    out.shareL1Size = (out.baseM * out.depthA1 * a_bits + out.baseN * out.depthB1 * b_bits) / 8 * out.baseK;
    out.shareL0CSize = accumulator;
    return out;
}

}  // namespace AscendC
