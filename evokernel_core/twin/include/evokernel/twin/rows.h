// High-level reductions, running sums and broadcasting.
#pragma once
#include "evokernel/twin/advanced_data.h"
#include "evokernel/twin/patterns.h"
#include "evokernel/twin/tensor.h"

namespace AscendC {

struct SumParams {
    uint32_t outter = 1;
    uint32_t inner = 0;
    uint32_t n = 0;
};
struct MeanParams {
    uint32_t outter = 1;
    uint32_t inner = 0;
    uint32_t n = 0;
};

template <typename T, int32_t reduceDim = -1, bool isReuseSource = false, bool isBasicBlock = false>
void Sum(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &temporary,
         const SumParams &params, EVK_AT)
{
    twin::RowReduce(twin::RowOp::Sum, dst.Ref(), src.Ref(), &temporary.Ref(), twin::kDType<T>, params.outter,
                    params.inner, params.n, at);
}
template <typename T, int32_t reduceDim = -1, bool isReuseSource = false, bool isBasicBlock = false>
void Sum(const LocalTensor<T> &dst, const LocalTensor<T> &src, const SumParams &params, EVK_AT)
{
    twin::RowReduce(twin::RowOp::Sum, dst.Ref(), src.Ref(), nullptr, twin::kDType<T>, params.outter, params.inner,
                    params.n, at);
}
template <typename T, typename accType = T, bool isReuseSource = false, bool isBasicBlock = false,
          int32_t reduceDim = -1>
void Mean(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &temporary,
          const MeanParams &params, EVK_AT)
{
    twin::RowReduce(twin::RowOp::Mean, dst.Ref(), src.Ref(), &temporary.Ref(), twin::kDType<accType>, params.outter,
                    params.inner, params.n, at);
}
template <typename T, typename accType = T, bool isReuseSource = false, bool isBasicBlock = false,
          int32_t reduceDim = -1>
void Mean(const LocalTensor<T> &dst, const LocalTensor<T> &src, const MeanParams &params, EVK_AT)
{
    twin::RowReduce(twin::RowOp::Mean, dst.Ref(), src.Ref(), nullptr, twin::kDType<accType>, params.outter,
                    params.inner, params.n, at);
}

namespace Pattern::Reduce {
struct AR {};
struct RA {};
}  // namespace Pattern::Reduce

#define EVK_PATTERN_REDUCE(Name, Op)                                                                                 \
    template <class T, class pattern, bool isReuseSource = false>                                                    \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &temporary,           \
              const uint32_t srcShape[], bool srcInnerPad, EVK_AT)                                                   \
    {                                                                                                                \
        twin::PatternReduce(twin::RowOp::Op, std::is_same_v<pattern, Pattern::Reduce::AR>, dst.Ref(), src.Ref(),     \
                            &temporary.Ref(), srcShape, srcInnerPad, at);                                            \
    }                                                                                                                \
    template <class T, class pattern, bool isReuseSource = false>                                                    \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t srcShape[], bool srcInnerPad,     \
              EVK_AT)                                                                                                \
    {                                                                                                                \
        twin::PatternReduce(twin::RowOp::Op, std::is_same_v<pattern, Pattern::Reduce::AR>, dst.Ref(), src.Ref(),     \
                            nullptr, srcShape, srcInnerPad, at);                                                     \
    }
EVK_PATTERN_REDUCE(ReduceSum, Sum)
EVK_PATTERN_REDUCE(ReduceMean, Mean)
EVK_PATTERN_REDUCE(ReduceMax, Max)
EVK_PATTERN_REDUCE(ReduceMin, Min)
EVK_PATTERN_REDUCE(ReduceProd, Prod)
EVK_PATTERN_REDUCE(ReduceAny, Any)
EVK_PATTERN_REDUCE(ReduceAll, All)
#undef EVK_PATTERN_REDUCE

// The sum of src0 ^ src1.
template <typename T, bool isReuseSource = false>
void ReduceXorSum(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
                  const LocalTensor<uint8_t> &temporary, const uint32_t count, EVK_AT)
{
    twin::XorSum(dst.Ref(), src0.Ref(), src1.Ref(), &temporary.Ref(), count, at);
}
template <typename T, bool isReuseSource = false>
void ReduceXorSum(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
                  const uint32_t count, EVK_AT)
{
    twin::XorSum(dst.Ref(), src0.Ref(), src1.Ref(), nullptr, count, at);
}

enum class CumSumAlgorithm { CUMSUM_ALGORITHM_LINEBYLINE = 0, CUMSUM_ALGORITHM_SKLANSKY = 1 };
struct CumSumConfig {
    bool isLastAxis{true};
    bool isReuseSource{false};
    bool outputLastRow{false};
    CumSumAlgorithm algorithm{CumSumAlgorithm::CUMSUM_ALGORITHM_LINEBYLINE};
};
inline constexpr CumSumConfig defaultCumSumConfig{};
struct CumSumInfo {
    uint32_t outter{0};
    uint32_t inner{0};
};

template <typename T, const CumSumConfig &config = defaultCumSumConfig>
void CumSum(const LocalTensor<T> &dst, const LocalTensor<T> &lastRow, const LocalTensor<T> &src,
            const LocalTensor<uint8_t> &temporary, const CumSumInfo &info, EVK_AT)
{
    twin::CumulativeSum(dst.Ref(), config.outputLastRow ? &lastRow.Ref() : nullptr, src.Ref(), &temporary.Ref(),
                        info.outter, info.inner, config.isLastAxis, at);
}
template <typename T, const CumSumConfig &config = defaultCumSumConfig>
void CumSum(const LocalTensor<T> &dst, const LocalTensor<T> &lastRow, const LocalTensor<T> &src,
            const CumSumInfo &info, EVK_AT)
{
    twin::CumulativeSum(dst.Ref(), config.outputLastRow ? &lastRow.Ref() : nullptr, src.Ref(), nullptr, info.outter,
                        info.inner, config.isLastAxis, at);
}

template <typename T, int32_t dim, int32_t axis, bool isReuseSource = false>
void Broadcast(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t dstShape[dim],
               const uint32_t srcShape[dim], const LocalTensor<uint8_t> &temporary, EVK_AT)
{
    twin::BroadcastAxis(dst.Ref(), src.Ref(), &temporary.Ref(), dstShape, srcShape, dim, axis, at);
}
template <typename T, int32_t dim, int32_t axis, bool isReuseSource = false>
void Broadcast(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t dstShape[dim],
               const uint32_t srcShape[dim], EVK_AT)
{
    twin::BroadcastAxis(dst.Ref(), src.Ref(), nullptr, dstShape, srcShape, dim, axis, at);
}
template <typename T, int32_t dim, int32_t axis, bool isReuseSource = false>
void BroadCast(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t dstShape[dim],
               const uint32_t srcShape[dim], const LocalTensor<uint8_t> &temporary, EVK_AT)
{
    twin::BroadcastAxis(dst.Ref(), src.Ref(), &temporary.Ref(), dstShape, srcShape, dim, axis, at);
}
template <typename T, int32_t dim, int32_t axis, bool isReuseSource = false>
void BroadCast(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t dstShape[dim],
               const uint32_t srcShape[dim], EVK_AT)
{
    twin::BroadcastAxis(dst.Ref(), src.Ref(), nullptr, dstShape, srcShape, dim, axis, at);
}

// Up to nine dimensions, with a tiling that is computed in the kernel.
struct BroadcastTiling {
    uint32_t rank = 0;
};
template <class T, int constRank = -1, uint32_t *constDstShape = nullptr, uint32_t *constSrcShape = nullptr>
void GetBroadcastTilingInfo(uint32_t rank, const uint32_t *dstShape, const uint32_t *srcShape, bool srcInnerPad,
                            BroadcastTiling &tiling)
{
    static_cast<void>(dstShape);
    static_cast<void>(srcShape);
    static_cast<void>(srcInnerPad);
    tiling.rank = constRank > 0 ? static_cast<uint32_t>(constRank) : rank;
}
template <class T, int constRank = -1, uint32_t *constDstShape = nullptr, uint32_t *constSrcShape = nullptr,
          bool constSrcInnerPad = false>
void Broadcast(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t *dstShape,
               const uint32_t *srcShape, BroadcastTiling *tiling, EVK_AT)
{
    twin::BroadcastTensor(dst.Ref(), src.Ref(), nullptr, dstShape, srcShape, static_cast<int>(tiling->rank), at);
}

}  // namespace AscendC
