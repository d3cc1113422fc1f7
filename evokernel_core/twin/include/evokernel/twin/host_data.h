// Host side of reductions, broadcasting, filtering and quantisation: sizes of their temporaries.
#pragma once
#include <algorithm>

#include "evokernel/twin/advanced_data.h"
#include "evokernel/twin/host_types.h"
#include "evokernel/twin/tensor.h"
#include "evokernel/twin/patterns.h"

namespace platform_ascendc {

class PlatformAscendC;

}  // namespace platform_ascendc

namespace AscendC {

namespace detail {

inline uint32_t TypeSize(TensorDataType type)
{
    switch (type) {
        case ge::DT_FLOAT:
        case ge::DT_INT32:
        case ge::DT_UINT32: return 4;
        case ge::DT_INT64:
        case ge::DT_UINT64:
        case ge::DT_DOUBLE: return 8;
        case ge::DT_FLOAT16:
        case ge::DT_BF16:
        case ge::DT_INT16:
        case ge::DT_UINT16: return 2;
        default: return 1;
    }
}

inline uint64_t LastDim(const TensorShape &shape)
{
    const size_t dims = shape.GetDimNum();
    return dims == 0 ? 1 : static_cast<uint64_t>(shape.GetDim(dims - 1));
}

// One repeat at a time is enough; the whole is the most that is of use.
inline void Sizes(uint64_t least, uint64_t whole, uint32_t &maxValue, uint32_t &minValue)
{
    minValue = static_cast<uint32_t>(least);
    maxValue = static_cast<uint32_t>(std::max(least, whole));
}

inline void PatternSizes(twin::RowOp op, const TensorShape &shape, TensorDataType type, ReducePattern pattern,
                         bool reuse, uint32_t &maxValue, uint32_t &minValue)
{
    const uint64_t columns = LastDim(shape);
    const uint64_t rows = columns == 0 ? 0 : static_cast<uint64_t>(shape.GetShapeSize()) / columns;
    const uint64_t least =
        twin::PatternTemporary(op, rows, columns, TypeSize(type), pattern == ReducePattern::AR, reuse);
    Sizes(least, least, maxValue, minValue);
}

}  // namespace detail

inline void GetSumMaxMinTmpSize(const uint32_t n, const uint32_t typeSize, const bool /*isReuseSource*/,
                                uint32_t &maxSize, uint32_t &minSize)
{
    detail::Sizes(twin::RowReduceTemporary(n, typeSize), 0, maxSize, minSize);
}
inline void GetMeanMaxMinTmpSize(const uint32_t n, const uint32_t srcTypeSize, const uint32_t accTypeSize,
                                 const bool /*isReuseSource*/, uint32_t &maxSize, uint32_t &minSize)
{
    const uint32_t copy = accTypeSize > srcTypeSize ? (n * accTypeSize + 31) / 32 * 32 : 0;
    detail::Sizes(twin::RowReduceTemporary(n, accTypeSize) + copy, 0, maxSize, minSize);
}
inline void GetMeanTmpBufferFactorSize(const uint32_t typeSize, uint32_t &maxLiveNodeCount, uint32_t &extraBuffer)
{
    maxLiveNodeCount = typeSize == 2 ? 2 : 1;
    extraBuffer = 0;
}

#define EVK_PATTERN_SIZES(Name, Op)                                                                                  \
    inline void Get##Name##MaxMinTmpSize(const TensorShape &srcShape, const TensorDataType dataType,                 \
                                         ReducePattern pattern, bool /*isSrcInnerPad*/, bool isReuseSource,          \
                                         uint32_t &maxValue, uint32_t &minValue)                                     \
    {                                                                                                                \
        detail::PatternSizes(twin::RowOp::Op, srcShape, dataType, pattern, isReuseSource, maxValue, minValue);       \
    }
EVK_PATTERN_SIZES(ReduceSum, Sum)
EVK_PATTERN_SIZES(ReduceMean, Mean)
EVK_PATTERN_SIZES(ReduceMax, Max)
EVK_PATTERN_SIZES(ReduceMin, Min)
EVK_PATTERN_SIZES(ReduceProd, Prod)
EVK_PATTERN_SIZES(ReduceAny, Any)
EVK_PATTERN_SIZES(ReduceAll, All)
#undef EVK_PATTERN_SIZES

inline void GetReduceXorSumMaxMinTmpSize(const TensorShape &srcShape, const uint32_t typeSize,
                                         const bool /*isReuseSource*/, uint32_t &maxValue, uint32_t &minValue)
{
    detail::Sizes((static_cast<uint64_t>(srcShape.GetShapeSize()) * typeSize + 31) / 32 * 32, 0, maxValue, minValue);
}
inline void GetCumSumMaxMinTmpSize(const TensorShape &srcShape, const uint32_t typeSize, const bool isLastAxis,
                                   const bool /*isReuseSource*/, uint32_t &maxValue, uint32_t &minValue)
{
    const uint64_t inner = detail::LastDim(srcShape);
    const uint64_t outer = inner == 0 ? 0 : static_cast<uint64_t>(srcShape.GetShapeSize()) / inner;
    detail::Sizes(twin::CumulativeTemporary(outer, inner, typeSize, isLastAxis),
                  static_cast<uint64_t>(srcShape.GetShapeSize()) * 8, maxValue, minValue);
}
inline void GetBroadCastMaxMinTmpSize(const platform_ascendc::PlatformAscendC &, const TensorShape & /*srcShape*/,
                                      const TensorShape &dstShape, uint32_t typeSize, const bool /*isReuseSource*/,
                                      uint32_t &maxValue, uint32_t &minValue)
{
    const uint64_t least = twin::BroadcastTemporary(1, typeSize);
    detail::Sizes(least, static_cast<uint64_t>(dstShape.GetShapeSize()) * (typeSize == 1 ? 2 : typeSize), maxValue,
                  minValue);
}

inline void GetArangeMaxMinTmpSize(uint32_t &maxValue, uint32_t &minValue) { maxValue = minValue = 0; }
inline void GetArithProgressionMaxMinTmpSize(uint32_t &maxValue, uint32_t &minValue)
{
    GetArangeMaxMinTmpSize(maxValue, minValue);
}

inline void GetDropOutMaxMinTmpSize(const TensorShape &srcShape, const uint32_t typeSize, const bool /*isReuseSource*/,
                                    uint32_t &maxValue, uint32_t &minValue)
{
    const uint64_t all = static_cast<uint64_t>(srcShape.GetShapeSize());
    detail::Sizes(twin::FilterTemporary(), all * typeSize, maxValue, minValue);
}
inline uint32_t GetDropOutMaxTmpSize(const TensorShape &srcShape, const uint32_t typeSize, const bool isReuseSource)
{
    uint32_t most = 0;
    uint32_t least = 0;
    GetDropOutMaxMinTmpSize(srcShape, typeSize, isReuseSource, most, least);
    return most;
}
inline uint32_t GetDropOutMinTmpSize(const TensorShape &srcShape, const uint32_t typeSize, const bool isReuseSource)
{
    uint32_t most = 0;
    uint32_t least = 0;
    GetDropOutMaxMinTmpSize(srcShape, typeSize, isReuseSource, most, least);
    return least;
}

#define EVK_SELECT_SIZES(Name)                                                                                       \
    inline void Get##Name##MaxMinTmpSize(const TensorShape &src0Shape, const TensorShape &src1Shape,                 \
                                         const uint32_t srcTypeSize, const TensorShape & /*maskShape*/,              \
                                         const uint32_t /*maskTypeSize*/, const bool /*isReuseMask*/,                \
                                         uint32_t &maxValue, uint32_t &minValue)                                     \
    {                                                                                                                \
        const TensorShape &src = src0Shape.GetShapeSize() >= src1Shape.GetShapeSize() ? src0Shape : src1Shape;       \
        detail::Sizes(twin::FilterTemporary(),                                                                       \
                      static_cast<uint64_t>(src.GetShapeSize()) * srcTypeSize, maxValue, minValue);                  \
    }                                                                                                                \
    inline uint32_t Get##Name##MaxTmpSize(const TensorShape &src0Shape, const TensorShape &src1Shape,                \
                                          const uint32_t srcTypeSize, const TensorShape &maskShape,                  \
                                          const uint32_t maskTypeSize, const bool isReuseMask)                       \
    {                                                                                                                \
        uint32_t most = 0;                                                                                           \
        uint32_t least = 0;                                                                                          \
        Get##Name##MaxMinTmpSize(src0Shape, src1Shape, srcTypeSize, maskShape, maskTypeSize, isReuseMask, most,      \
                                 least);                                                                             \
        return most;                                                                                                 \
    }                                                                                                                \
    inline uint32_t Get##Name##MinTmpSize(const TensorShape &src0Shape, const TensorShape &src1Shape,                \
                                          const uint32_t srcTypeSize, const TensorShape &maskShape,                  \
                                          const uint32_t maskTypeSize, const bool isReuseMask)                       \
    {                                                                                                                \
        uint32_t most = 0;                                                                                           \
        uint32_t least = 0;                                                                                          \
        Get##Name##MaxMinTmpSize(src0Shape, src1Shape, srcTypeSize, maskShape, maskTypeSize, isReuseMask, most,      \
                                 least);                                                                             \
        return least;                                                                                                \
    }
EVK_SELECT_SIZES(Select)
EVK_SELECT_SIZES(SelectWithBytesMask)
#undef EVK_SELECT_SIZES

inline void GetAscendQuantMaxMinTmpSize(const TensorShape &srcShape, const uint32_t typeSize, uint32_t &maxValue,
                                        uint32_t &minValue)
{
    const uint64_t live = typeSize == 2 ? 2 : 3;
    detail::Sizes(twin::QuantTemporary(typeSize), live * static_cast<uint64_t>(srcShape.GetShapeSize()) * typeSize,
                  maxValue, minValue);
}
inline void GetAscendQuantTmpBufferFactorSize(uint32_t &maxLiveNodeCount, uint32_t &extraBuf)
{
    maxLiveNodeCount = 3;
    extraBuf = 0;
}
inline void GetAscendDequantMaxMinTmpSize(const TensorShape &srcShape, const uint32_t typeSize, uint32_t &maxValue,
                                          uint32_t &minValue)
{
    detail::Sizes(twin::DequantTemporary(detail::LastDim(srcShape)),
                  static_cast<uint64_t>(srcShape.GetShapeSize()) * typeSize, maxValue, minValue);
}
inline void GetAscendDequantTmpBufferFactorSize(const TensorShape & /*srcShape*/, uint32_t &maxLiveNodeCount,
                                                uint32_t &extraBuf)
{
    maxLiveNodeCount = 1;
    extraBuf = 32;
}
inline void GetAscendAntiQuantMaxMinTmpSize(const TensorShape &srcShape, const TensorShape & /*scaleShape*/,
                                            bool /*isTranspose*/, TensorDataType /*inputDataType*/,
                                            TensorDataType outputDataType, uint32_t &maxValue, uint32_t &minValue)
{
    const bool wide = outputDataType == ge::DT_BF16;  // half needs none
    detail::Sizes(wide ? twin::AntiQuantTemporary(detail::LastDim(srcShape)) : 0,
                  wide ? static_cast<uint64_t>(srcShape.GetShapeSize()) * 8 : 0, maxValue, minValue);
}
inline uint32_t GetAscendAntiQuantMaxTmpSize(const TensorShape &srcShape, const TensorShape &scaleShape,
                                             bool isTranspose, TensorDataType inputDataType,
                                             TensorDataType outputDataType)
{
    uint32_t most = 0;
    uint32_t least = 0;
    GetAscendAntiQuantMaxMinTmpSize(srcShape, scaleShape, isTranspose, inputDataType, outputDataType, most, least);
    return most;
}
inline uint32_t GetAscendAntiQuantMinTmpSize(const TensorShape &srcShape, const TensorShape &scaleShape,
                                             bool isTranspose, TensorDataType inputDataType,
                                             TensorDataType outputDataType)
{
    uint32_t most = 0;
    uint32_t least = 0;
    GetAscendAntiQuantMaxMinTmpSize(srcShape, scaleShape, isTranspose, inputDataType, outputDataType, most, least);
    return least;
}
inline void GetAscendAntiQuantTmpBufferFactorSize(const TensorShape & /*srcShape*/, const TensorShape & /*scaleShape*/,
                                                  TensorDataType /*inputDataType*/, TensorDataType outputDataType,
                                                  uint32_t &maxLiveNodeCount, uint32_t &extraBuf)
{
    maxLiveNodeCount = outputDataType == ge::DT_BF16 ? 2 : 0;
    extraBuf = 0;
}

}  // namespace AscendC
