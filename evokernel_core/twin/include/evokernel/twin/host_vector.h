// Host side of the sorting, padding and transposing interfaces: temporary space and tilings.
#pragma once
#include "evokernel/twin/host_types.h"
#include "evokernel/twin/sorting.h"
#include "evokernel/twin/topk.h"
#include "evokernel/twin/transpose.h"

namespace platform_ascendc {

class PlatformAscendC;

}  // namespace platform_ascendc

namespace AscendC {

namespace detail {

constexpr uint32_t kPair = 8;    // bytes of a score and its index
constexpr uint32_t kWord = 4;    // bytes of an index
constexpr uint32_t kBlock = 32;  // bytes

inline uint32_t SizeAt(const TensorShape &shape, size_t index) { return static_cast<uint32_t>(shape.GetDim(index)); }
inline uint32_t BlocksUp(uint32_t bytes) { return (bytes + kBlock - 1) / kBlock * kBlock; }

// Two lists of pairs that merging goes between, indices and negated scores where they are needed.
inline uint32_t TopKBytes(int32_t inner, int32_t outter, bool given_index, bool largest, bool small, uint32_t width)
{
    const auto row = static_cast<uint32_t>(inner);
    const uint32_t elements = small ? row * static_cast<uint32_t>(outter) : row;
    return elements * (2 * kPair + (given_index ? 0 : kWord) + (largest ? 0 : width));
}

}  // namespace detail

// Sort's tmp holds the pairs that a pass of merging writes.
inline uint32_t GetSortTmpSize(const platform_ascendc::PlatformAscendC &, const uint32_t elemCount, const uint32_t)
{
    return elemCount * detail::kPair;
}
// This chip merges whatever the configuration says.
inline void GetSortMaxMinTmpSize(const AscendC::TensorShape &srcShape, AscendC::TensorDataType, AscendC::TensorDataType,
                                 bool, const SortConfig &, uint32_t &maxValue, uint32_t &minValue)
{
    minValue = static_cast<uint32_t>(srcShape.GetShapeSize()) * detail::kPair;
    maxValue = minValue;
}
// Scores are sorted where they lie.
inline uint32_t GetConcatTmpSize(const platform_ascendc::PlatformAscendC &, const uint32_t, const uint32_t)
{
    return 0;
}

inline bool GetTopKMaxMinTmpSize(const platform_ascendc::PlatformAscendC &, const int32_t inner, const int32_t outter,
                                 const bool, const bool isInitIndex, enum TopKMode mode, const bool isLargest,
                                 const uint32_t dataTypeSize, uint32_t &maxValue, uint32_t &minValue)
{
    const bool small = mode == TopKMode::TOPK_NSMALL;
    if (inner <= 0 || inner % 32 != 0 || outter <= 0 || (small && inner != 32)) {
        return false;
    }
    minValue = detail::TopKBytes(inner, outter, isInitIndex, isLargest, small, dataTypeSize);
    maxValue = minValue;
    return true;
}

inline bool TopKTilingFunc(const platform_ascendc::PlatformAscendC &platform, const int32_t inner, const int32_t outter,
                           const int32_t k, const uint32_t dataTypeSize, const bool isInitIndex, enum TopKMode mode,
                           const bool isLargest, AscendC::tiling::TopkTiling &topKTiling)
{
    uint32_t most = 0;
    uint32_t least = 0;
    if (k < 1 || k > inner || (dataTypeSize != 2 && dataTypeSize != 4) ||
        !GetTopKMaxMinTmpSize(platform, inner, outter, false, isInitIndex, mode, isLargest, dataTypeSize, most,
                              least)) {
        return false;
    }
    constexpr int32_t group = 32;
    topKTiling = AscendC::tiling::TopkTiling{};
    topKTiling.tmpLocalSize = static_cast<int32_t>(least);
    topKTiling.allDataSize = inner * outter;
    topKTiling.innerDataSize = inner;
    topKTiling.sortRepeat = static_cast<uint32_t>(inner / group);
    topKTiling.kAlignFourBytes = (k + 7) / 8 * 8;
    topKTiling.kAlignTwoBytes = (k + 15) / 16 * 16;
    return true;
}

inline void GetPadMaxMinTmpSize(const AscendC::TensorShape &srcShape, const uint32_t typeSize, uint32_t &maxValue,
                                uint32_t &minValue)
{
    const uint32_t row = detail::BlocksUp(detail::SizeAt(srcShape, 1) * typeSize);
    constexpr uint32_t rows_at_once = 16;  // one transpose of blocks
    minValue = 2 * rows_at_once * row;
    const uint32_t whole = 2 * detail::SizeAt(srcShape, 0) * row;
    maxValue = whole > minValue ? whole : minValue;
}
inline void PadTilingFunc(const AscendC::TensorShape srcShape, const AscendC::TensorShape oriSrcShape,
                          const uint32_t /*stackBufferSize*/, const uint32_t typeSize,
                          AscendC::tiling::PadTiling &tiling)
{
    uint32_t most = 0;
    uint32_t least = 0;
    GetPadMaxMinTmpSize(srcShape, typeSize, most, least);
    tiling = AscendC::tiling::PadTiling{{detail::SizeAt(srcShape, 0), detail::SizeAt(srcShape, 1),
                                         detail::SizeAt(oriSrcShape, 1), least}};
}

inline void GetUnPadMaxMinTmpSize(const platform_ascendc::PlatformAscendC &, const AscendC::TensorShape &srcShape,
                                  const uint32_t typeSize, uint32_t &maxValue, uint32_t &minValue)
{
    GetPadMaxMinTmpSize(srcShape, typeSize, maxValue, minValue);
}
inline void UnPadTilingFunc(const AscendC::TensorShape srcShape, const uint32_t /*stackBufferSize*/,
                            const uint32_t typeSize, AscendC::tiling::UnPadTiling &tiling)
{
    uint32_t most = 0;
    uint32_t least = 0;
    GetPadMaxMinTmpSize(srcShape, typeSize, most, least);
    tiling = AscendC::tiling::UnPadTiling{
        {detail::SizeAt(srcShape, 0), detail::SizeAt(srcShape, 1), detail::SizeAt(srcShape, 1), least}};
}

// Between two transposes of blocks lies a copy of the rows that a step takes.
inline void GetTransposeMaxMinTmpSize(const AscendC::TensorShape &srcShape, const uint32_t typeSize,
                                      const uint32_t transposeTypeIn, uint32_t &maxValue, uint32_t &minValue)
{
    constexpr uint32_t plain = 7;
    constexpr uint32_t side = 16;
    const uint32_t buffers = transposeTypeIn == plain ? 0 : transposeTypeIn <= 2 ? 1 : 2;
    const uint32_t rows = (detail::SizeAt(srcShape, 2) + side - 1) / side * side;
    minValue = buffers * rows * side * typeSize;
    maxValue = minValue;
}
inline void GetTransposeTilingInfo(const AscendC::TensorShape &srcShape, const uint32_t /*stackBufferSize*/,
                                   const uint32_t typeSize, const uint32_t transposeTypeIn,
                                   AscendC::tiling::ConfusionTransposeTiling &tiling)
{
    uint32_t most = 0;
    uint32_t least = 0;
    GetTransposeMaxMinTmpSize(srcShape, typeSize, transposeTypeIn, most, least);
    tiling = AscendC::tiling::ConfusionTransposeTiling{};
    tiling.scenario = transposeTypeIn;
    tiling.tmpBytes = least;
    for (size_t i = 0; i < srcShape.GetDimNum() && i < 4; ++i) {
        tiling.shape[i] = detail::SizeAt(srcShape, i);
    }
}

// The names that these had before.
inline void GetConfusionTransposeMaxMinTmpSize(const AscendC::TensorShape &srcShape, const uint32_t typeSize,
                                               const uint32_t transposeTypeIn, uint32_t &maxValue, uint32_t &minValue)
{
    GetTransposeMaxMinTmpSize(srcShape, typeSize, transposeTypeIn, maxValue, minValue);
}
inline void GetConfusionTransposeTilingInfo(const AscendC::TensorShape &srcShape, const uint32_t stackBufferSize,
                                            const uint32_t typeSize, const uint32_t transposeTypeIn,
                                            AscendC::tiling::ConfusionTransposeTiling &tiling)
{
    GetTransposeTilingInfo(srcShape, stackBufferSize, typeSize, transposeTypeIn, tiling);
}
inline void GetConfusionTransposeOnlyTilingInfo(const AscendC::TensorShape &srcShape, const uint32_t stackBufferSize,
                                                const uint32_t typeSize,
                                                AscendC::tiling::ConfusionTransposeTiling &tiling)
{
    constexpr uint32_t plain = 7;
    GetTransposeTilingInfo(srcShape, stackBufferSize, typeSize, plain, tiling);
}

inline bool GetTransDataMaxMinTmpSize(const platform_ascendc::PlatformAscendC &, const AscendC::TensorShape &srcShape,
                                      const AscendC::TensorShape &dstShape, const AscendC::TensorDataType,
                                      const TransDataConfig &config, uint32_t &maxValue, uint32_t &minValue)
{
    constexpr size_t dims = 5;
    constexpr uint32_t element = 2;  // every type that TransData takes
    const TensorShape &plain = config.srcFormat == DataFormat::NCDHW ? srcShape : dstShape;
    if (!detail::IsFractalPair(config) || plain.GetDimNum() != dims) {
        return false;
    }
    uint32_t sizes[dims];
    for (size_t i = 0; i < dims; ++i) {
        sizes[i] = detail::SizeAt(plain, i);
    }
    minValue = static_cast<uint32_t>(twin::FractalTmpElements(detail::FractalOf(config), sizes)) * element;
    maxValue = minValue;
    return true;
}

}  // namespace AscendC
