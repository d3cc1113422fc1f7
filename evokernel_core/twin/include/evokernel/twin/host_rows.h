// Host side of the softmax family and of the normalisations: sizes of their temporaries, and tilings.
#pragma once
#include <algorithm>

#include "evokernel/twin/advanced_rows.h"
#include "evokernel/twin/host_types.h"
#include "evokernel/twin/tiling_structs.h"

namespace optiling {

// The plain structure with the setters and getters of the host's generation: same fields, same layout.
#define EVK_ACCESS(Type, field)                      \
    void set_##field(Type value) { field = value; }  \
    Type get_##field() const { return field; }
#define EVK_HOST_TILING(Name)                                                  \
    struct Name : AscendC::tiling::Name {                                      \
        EVK_FIELDS_##Name(EVK_ACCESS)                                          \
        void SaveToBuffer(void *target, size_t capacity) const                 \
        {                                                                      \
            if (target != nullptr && capacity >= sizeof(Name)) {               \
                *static_cast<AscendC::tiling::Name *>(target) = *this;         \
            }                                                                  \
        }                                                                      \
        size_t GetDataSize() const { return sizeof(Name); }                    \
    };                                                                         \
    static_assert(sizeof(Name) == sizeof(AscendC::tiling::Name));
EVK_TILINGS(EVK_HOST_TILING)
#undef EVK_HOST_TILING
#undef EVK_ACCESS

}  // namespace optiling

namespace AscendC {

namespace detail {

constexpr uint32_t kTilingBlock = 32;  // bytes

inline uint32_t DimOf(const TensorShape &shape, size_t index) { return static_cast<uint32_t>(shape.GetDim(index)); }

// All dimensions but the last count as rows.
inline uint32_t TailOf(const TensorShape &shape)
{
    return shape.GetDimNum() == 0 ? 0 : DimOf(shape, shape.GetDimNum() - 1);
}
inline uint32_t RowsOfShape(const TensorShape &shape)
{
    const uint32_t tail = TailOf(shape);
    return tail == 0 ? 0 : static_cast<uint32_t>(shape.GetShapeSize() / tail);
}

// How many rows a step takes depends on the room; the last step takes what is left.
template <typename Tiling>
constexpr void SplitSoftmax(uint32_t m, uint32_t k, uint32_t stat_size, uint32_t room, Tiling &tiling)
{
    const uint32_t each = static_cast<uint32_t>(twin::SoftmaxTemporary(1, k));
    const uint32_t fit = room / each;
    const uint32_t at_once = fit == 0 ? 1 : (fit < m ? fit : m);
    const uint32_t split = at_once > 8 ? at_once / 8 * 8 : at_once;  // whole groups of eight rows
    const uint32_t lanes = kTilingBlock / (stat_size == 0 ? 4 : stat_size);
    tiling.srcM = m;
    tiling.srcK = k;
    tiling.srcSize = m * k;
    tiling.outMaxM = m;
    tiling.outMaxK = lanes;
    tiling.outMaxSize = m * lanes;
    tiling.splitM = split;
    tiling.splitK = k;
    tiling.splitSize = split * k;
    tiling.reduceM = split;
    tiling.reduceK = lanes;
    tiling.reduceSize = split * lanes;
    tiling.rangeM = m / split;
    tiling.tailM = m % split;
    tiling.tailSplitSize = tiling.tailM * k;
    tiling.tailReduceSize = tiling.tailM * lanes;
}

inline uint32_t SoftmaxLeast(const TensorShape &shape)
{
    return static_cast<uint32_t>(twin::SoftmaxTemporary(1, TailOf(shape)));
}
inline uint32_t SoftmaxMost(const TensorShape &shape)
{
    return static_cast<uint32_t>(twin::SoftmaxTemporary(std::max<uint32_t>(RowsOfShape(shape), 1), TailOf(shape)));
}

inline void NormSizes(uint64_t rows, uint64_t r, uint32_t type_size, bool reuse, uint32_t &most, uint32_t &least)
{
    least = static_cast<uint32_t>(twin::NormTemporary(1, r, type_size, reuse));
    most = static_cast<uint32_t>(twin::NormTemporary(std::max<uint64_t>(rows, 1), r, type_size, reuse));
}

// Fields that LayerNorm, DeepNorm and GroupNorm name alike: so many rows of `r` elements at a time.
template <typename Tiling>
void SplitRows(uint32_t rows, uint32_t r, uint32_t room, uint32_t type_size, bool reuse, Tiling &tiling)
{
    const auto each = static_cast<uint32_t>(twin::NormTemporary(1, r, type_size, reuse));
    const uint32_t at_once = std::max<uint32_t>(1, std::min(rows, room / each));
    tiling.inputXSize = rows * r;
    tiling.meanVarSize = rows;
    tiling.numberOfTmpBuf = type_size == 2 ? 3 : (reuse ? 1 : 2);
    tiling.tmpBufSize = room / static_cast<uint32_t>(sizeof(float));
    tiling.varianceTmpTensorSize = rows;
    tiling.oneTmpSize = at_once * r;
    tiling.secondTmpStartPos = tiling.oneTmpSize;
    tiling.thirdTmpStartPos = 2 * tiling.oneTmpSize;
    tiling.loopRound = rows / at_once;
    tiling.inputRoundSize = tiling.oneTmpSize;
    tiling.inputTailSize = rows % at_once * r;
    tiling.inputTailPos = tiling.loopRound * tiling.oneTmpSize;
    tiling.meanVarRoundSize = at_once;
    tiling.meanVarTailSize = rows % at_once;
    tiling.meanVarTailPos = tiling.loopRound * at_once;
}

template <typename Tiling>
void ShapeRows(const TensorShape &shape, uint32_t original, Tiling &tiling)
{
    tiling.bLength = DimOf(shape, 0);
    tiling.sLength = DimOf(shape, 1);
    tiling.hLength = DimOf(shape, 2);
    tiling.originalHLength = original;
}

}  // namespace detail

#define EVK_SOFTMAX_SIZES(Name)                                                                                      \
    inline uint32_t Get##Name##MaxTmpSize(const TensorShape &srcShape, const uint32_t, const bool)                   \
    {                                                                                                                \
        return detail::SoftmaxMost(srcShape);                                                                        \
    }                                                                                                                \
    inline uint32_t Get##Name##MinTmpSize(const TensorShape &srcShape, const uint32_t, const bool)                   \
    {                                                                                                                \
        return detail::SoftmaxLeast(srcShape);                                                                       \
    }
EVK_SOFTMAX_SIZES(SoftMax)
EVK_SOFTMAX_SIZES(LogSoftMax)
#undef EVK_SOFTMAX_SIZES

// The second flag says whether the call updates, or computes the front only.
#define EVK_SOFTMAX_SIZES(Name)                                                                                      \
    inline uint32_t Get##Name##MaxTmpSize(const TensorShape &srcShape, const uint32_t, const bool, const bool)       \
    {                                                                                                                \
        return detail::SoftmaxMost(srcShape);                                                                        \
    }                                                                                                                \
    inline uint32_t Get##Name##MinTmpSize(const TensorShape &srcShape, const uint32_t, const bool, const bool)       \
    {                                                                                                                \
        return detail::SoftmaxLeast(srcShape);                                                                       \
    }
EVK_SOFTMAX_SIZES(SoftMaxFlash)
EVK_SOFTMAX_SIZES(SoftMaxGrad)
#undef EVK_SOFTMAX_SIZES

inline uint32_t GetSoftMaxFlashV2MinTmpSize(const TensorShape &srcShape, const uint32_t, const uint32_t,
                                            const bool /*isUpdate*/, const bool = false, const bool = false)
{
    return detail::SoftmaxLeast(srcShape);
}
inline uint32_t GetSoftMaxFlashV2MaxTmpSize(const TensorShape &srcShape, const uint32_t, const uint32_t,
                                            const bool /*isUpdate*/, const bool = false, const bool = false)
{
    return detail::SoftmaxMost(srcShape);
}
inline void GetSoftMaxFlashV3MaxMinTmpSize(const TensorShape &srcShape, const uint32_t, const uint32_t,
                                           uint32_t &maxValue, uint32_t &minValue, const bool /*isUpdate*/,
                                           const bool = false)
{
    maxValue = detail::SoftmaxMost(srcShape);
    minValue = detail::SoftmaxLeast(srcShape);
}

inline void SoftMaxTilingFunc(const TensorShape &srcShape, const uint32_t dataTypeSize,
                              const uint32_t localWorkSpaceSize, tiling::SoftMaxTiling &softmaxTiling)
{
    detail::SplitSoftmax(detail::RowsOfShape(srcShape), detail::TailOf(srcShape), dataTypeSize, localWorkSpaceSize,
                         softmaxTiling);
}
inline void LogSoftMaxTilingFunc(const TensorShape srcShape, const uint32_t dataTypeSize,
                                 const uint32_t localWorkSpaceSize, tiling::LogSoftMaxTiling &softmaxTiling)
{
    detail::SplitSoftmax(detail::RowsOfShape(srcShape), detail::TailOf(srcShape), dataTypeSize, localWorkSpaceSize,
                         softmaxTiling);
}
inline void SoftMaxFlashTilingFunc(const TensorShape &srcShape, const uint32_t dataTypeSize,
                                   const uint32_t localWorkSpaceSize, tiling::SoftMaxTiling &softmaxFlashTiling,
                                   const bool /*isUpdate*/ = false)
{
    SoftMaxTilingFunc(srcShape, dataTypeSize, localWorkSpaceSize, softmaxFlashTiling);
}
inline void SoftMaxGradTilingFunc(const TensorShape &srcShape, const uint32_t dataTypeSize,
                                  const uint32_t localWorkSpaceSize, tiling::SoftMaxTiling &softmaxGradTiling,
                                  const bool /*isFront*/ = false)
{
    SoftMaxTilingFunc(srcShape, dataTypeSize, localWorkSpaceSize, softmaxGradTiling);
}
inline void SoftMaxFlashV2TilingFunc(const TensorShape &srcShape, const uint32_t /*dataTypeSize1*/,
                                     const uint32_t dataTypeSize2, const uint32_t localWorkSpaceSize,
                                     tiling::SoftMaxTiling &softmaxFlashTiling, const bool /*isUpdate*/,
                                     const bool = false, const bool = false)
{
    SoftMaxTilingFunc(srcShape, dataTypeSize2, localWorkSpaceSize, softmaxFlashTiling);
}
inline void SoftMaxFlashV3TilingFunc(const TensorShape &srcShape, const uint32_t /*dataTypeSize1*/,
                                     const uint32_t dataTypeSize2, const uint32_t localWorkSpaceSize,
                                     tiling::SoftMaxTiling &softmaxFlashV3Tiling, const bool /*isUpdate*/,
                                     const bool = false)
{
    SoftMaxTilingFunc(srcShape, dataTypeSize2, localWorkSpaceSize, softmaxFlashV3Tiling);
}

// Basic blocks: rows in eights, columns in 64s from one repeat up to 2048.
inline bool IsBasicBlockInSoftMax(const tiling::SoftMaxTiling &tiling, const uint32_t dataTypeSize = 2)
{
    constexpr uint32_t repeat = 256;
    const bool rows = tiling.srcM % 8 == 0 && tiling.splitM % 8 == 0 && tiling.splitM != 0;
    return rows && dataTypeSize != 0 && tiling.srcK % 64 == 0 && tiling.srcK < 2048 &&
           tiling.srcK >= repeat / dataTypeSize;
}

inline void GetLayerNormMaxMinTmpSize(const TensorShape &srcShape, const uint32_t typeSize, const bool isReuseSource,
                                      uint32_t &maxValue, uint32_t &minValue)
{
    const uint64_t rows = uint64_t{detail::DimOf(srcShape, 0)} * detail::DimOf(srcShape, 1);
    detail::NormSizes(rows, detail::DimOf(srcShape, 2), typeSize, isReuseSource, maxValue, minValue);
}
inline void GetLayerNormMaxMinTmpSize(const TensorShape &srcShape, const uint32_t typeSize, const bool /*isReuse*/,
                                      const bool /*isComputeRstd*/, const bool /*isOnlyOutput*/, uint32_t &maxValue,
                                      uint32_t &minValue)
{
    const uint32_t block = detail::kTilingBlock / typeSize;
    const uint32_t row = (detail::DimOf(srcShape, 1) + block - 1) / block * block;
    detail::NormSizes(detail::DimOf(srcShape, 0), row, typeSize, false, maxValue, minValue);
}
inline void GetLayerNormNDTilingInfo(const TensorShape &srcShape, const uint32_t stackBufferSize,
                                     const uint32_t typeSize, const bool isReuseSource,
                                     tiling::LayerNormTiling &tiling)
{
    tiling = {};
    detail::ShapeRows(srcShape, detail::DimOf(srcShape, 3), tiling);
    const uint32_t rows = tiling.bLength * tiling.sLength;
    detail::SplitRows(rows, tiling.hLength, stackBufferSize, typeSize, isReuseSource, tiling);
    tiling.bshCurLength = tiling.oneTmpSize;
    tiling.bsCurLength = tiling.meanVarRoundSize;
    tiling.lastDimValueBack = 1.0F / static_cast<float>(tiling.originalHLength);
}
inline void GetLayerNormNDTillingInfo(const TensorShape &srcShape, const uint32_t stackBufferSize,
                                      const uint32_t typeSize, const bool isReuseSource,
                                      tiling::LayerNormTiling &tilling)
{
    GetLayerNormNDTilingInfo(srcShape, stackBufferSize, typeSize, isReuseSource, tilling);
}
inline void GetLayerNormNDTilingInfo(const TensorShape &srcShape, const uint32_t stackBufferSize,
                                     const uint32_t typeSize, const bool isReuseSource, const bool /*isComputeRstd*/,
                                     tiling::LayerNormSeparateTiling &tiling)
{
    tiling = {};
    tiling.aLength = detail::DimOf(srcShape, 0);
    tiling.rLength = detail::DimOf(srcShape, 1);
    detail::SplitRows(tiling.aLength, tiling.rLength, stackBufferSize, typeSize, isReuseSource, tiling);
    tiling.arCurLength = tiling.oneTmpSize;
    tiling.aCurLength = tiling.meanVarRoundSize;
    tiling.rValueBack = 1.0F / static_cast<float>(tiling.rLength);
}

inline void GetLayerNormGradMaxMinTmpSize(const TensorShape &srcShape, const uint32_t typeSize,
                                          const bool /*isReuseSource*/, uint32_t &maxValue, uint32_t &minValue)
{
    GetLayerNormMaxMinTmpSize(srcShape, typeSize, false, maxValue, minValue);
}
inline void GetLayerNormGradNDTilingInfo(const TensorShape srcShape, const uint32_t stackBufferSize,
                                         const uint32_t /*typeSize*/, const bool /*isReuseSource*/,
                                         tiling::LayerNormGradTiling &tiling)
{
    tiling = {};
    detail::ShapeRows(srcShape, detail::DimOf(srcShape, 3), tiling);
    tiling.stackBufferSize = stackBufferSize;
    tiling.oneCalSize = tiling.hLength;
    tiling.nohCalSize = 1;
    tiling.loopNum = tiling.bLength * tiling.sLength;
}
inline void GetLayerNormGradBetaMaxMinTmpSize(const TensorShape &srcShape, const uint32_t typeSize,
                                              const bool /*isReuseSource*/, uint32_t &maxValue, uint32_t &minValue)
{
    GetLayerNormMaxMinTmpSize(srcShape, typeSize, false, maxValue, minValue);
}
inline void GetLayerNormGradBetaNDTilingInfo(const TensorShape srcShape, const uint32_t stackBufferSize,
                                             const uint32_t /*typeSize*/, const bool /*isReuseSource*/,
                                             tiling::LayerNormGradBetaTiling &tiling)
{
    tiling = {};
    detail::ShapeRows(srcShape, detail::DimOf(srcShape, 3), tiling);
    tiling.stackBufferSize = stackBufferSize;
    tiling.bsLength = tiling.bLength * tiling.sLength;
    tiling.bshLength = tiling.bsLength * tiling.hLength;
    tiling.oneCalSize = tiling.hLength;
    tiling.loopRound = tiling.bsLength;
}

inline bool GetRmsNormMaxMinTmpSize(const TensorShape &srcShape, const uint32_t typeSize, uint32_t &maxValue,
                                    uint32_t &minValue, const bool isBasicBlock = false)
{
    const uint32_t rows = detail::DimOf(srcShape, 0) * detail::DimOf(srcShape, 1);
    const uint32_t h = detail::DimOf(srcShape, 2);
    maxValue = static_cast<uint32_t>(twin::RmsTemporary(rows, h, typeSize));
    minValue = static_cast<uint32_t>(twin::RmsTemporary(1, h, typeSize));
    return srcShape.GetDimNum() == 3 && (!isBasicBlock || (rows % 8 == 0 && h % 64 == 0));
}
inline bool GetRmsNormTilingInfo(const TensorShape &srcShape, const TensorShape &originSrcShape,
                                 const uint32_t stackBufferByteSize, const uint32_t typeSize,
                                 tiling::RmsNormTiling &tiling, const bool isBasicBlock = false)
{
    tiling = {};
    detail::ShapeRows(srcShape, detail::DimOf(originSrcShape, 2), tiling);
    const uint32_t rows = tiling.bLength * tiling.sLength;
    const auto each = static_cast<uint32_t>(twin::RmsTemporary(1, tiling.hLength, typeSize));
    const bool basic = !isBasicBlock || (rows % 8 == 0 && tiling.hLength % 64 == 0 && tiling.hLength < 2048);
    if (rows == 0 || tiling.originalHLength == 0 || tiling.originalHLength > tiling.hLength ||
        stackBufferByteSize < each || !basic || tiling.hLength * typeSize % detail::kTilingBlock != 0) {
        return false;
    }
    tiling.reciprocalOfHLength = 1.0F / static_cast<float>(tiling.originalHLength);
    tiling.mainBsLength = std::min(rows, stackBufferByteSize / each);
    tiling.mainBsLengthAlign = (tiling.mainBsLength + 7) / 8 * 8;
    tiling.mainBshLength = tiling.mainBsLength * tiling.hLength;
    tiling.loopRound = rows / tiling.mainBsLength;
    tiling.inputTailPos = tiling.loopRound * tiling.mainBshLength;
    tiling.tailBsLength = rows % tiling.mainBsLength;
    tiling.tailBshLength = tiling.tailBsLength * tiling.hLength;
    return true;
}

inline bool GetDeepNormMaxMinTmpSize(const TensorShape &srcShape, const uint32_t typeSize, const bool isReuseSource,
                                     const bool /*isBasicBlock*/, uint32_t &maxValue, uint32_t &minValue)
{
    GetLayerNormMaxMinTmpSize(srcShape, typeSize, isReuseSource, maxValue, minValue);
    return srcShape.GetDimNum() == 3;
}
inline bool GetDeepNormTilingInfo(const TensorShape &srcShape, const TensorShape &originSrcShape,
                                  const uint32_t stackBufferSize, const uint32_t typeSize, const bool isReuseSource,
                                  const bool isBasicBlock, tiling::DeepNormTiling &tiling)
{
    tiling = {};
    detail::ShapeRows(srcShape, detail::DimOf(originSrcShape, 2), tiling);
    const uint32_t rows = tiling.bLength * tiling.sLength;
    const bool basic = !isBasicBlock || (rows % 8 == 0 && tiling.hLength % 64 == 0);
    if (rows == 0 || tiling.hLength == 0 || tiling.hLength > 2040 || tiling.originalHLength == 0 ||
        tiling.originalHLength > tiling.hLength || !basic) {
        return false;
    }
    detail::SplitRows(rows, tiling.hLength, stackBufferSize, typeSize, isReuseSource, tiling);
    tiling.bshCurLength = tiling.oneTmpSize;
    tiling.bsCurLength = tiling.meanVarRoundSize;
    tiling.lastDimValueBack = 1.0F / static_cast<float>(tiling.originalHLength);
    return true;
}

inline bool GetBatchNormMaxMinTmpSize(const TensorShape &srcShape, const TensorShape & /*originSrcShape*/,
                                      const uint32_t typeSize, const bool /*isReuseSource*/, uint32_t &maxValue,
                                      uint32_t &minValue, const bool /*isBasicBlock*/ = false)
{
    const uint64_t row = uint64_t{detail::DimOf(srcShape, 1)} * detail::DimOf(srcShape, 2);
    detail::NormSizes(detail::DimOf(srcShape, 0), row, typeSize, false, maxValue, minValue);
    return srcShape.GetDimNum() == 3;
}
inline bool GetBatchNormNDTilingInfo(const TensorShape &srcShape, const TensorShape &originSrcShape,
                                     const uint32_t stackBufferByteSize, const uint32_t typeSize,
                                     const bool /*isReuseSource*/, tiling::BatchNormTiling &tilling,
                                     const bool /*isBasicBlock*/ = false)
{
    tilling = {};
    tilling.originalBLength = detail::DimOf(originSrcShape, 0);
    tilling.meanVarSize = detail::DimOf(srcShape, 1) * detail::DimOf(srcShape, 2);
    if (tilling.originalBLength == 0 || tilling.meanVarSize == 0 ||
        tilling.meanVarSize * typeSize % detail::kTilingBlock != 0) {
        return false;
    }
    tilling.tmpBufSize = stackBufferByteSize / static_cast<uint32_t>(sizeof(float));
    tilling.shCurLength = tilling.meanVarSize;
    tilling.bshCurLength = tilling.meanVarSize * tilling.originalBLength;
    tilling.loopRound = 1;
    tilling.firstDimValueBack = 1.0F / static_cast<float>(tilling.originalBLength);
    return true;
}

inline void GetGroupNormMaxMinTmpSize(const TensorShape &srcShape, const uint32_t typeSize, const bool isReuseSource,
                                      const uint32_t groupNum, uint32_t &maxValue, uint32_t &minValue)
{
    const uint32_t groups = std::max<uint32_t>(groupNum, 1);
    const uint64_t group =
        uint64_t{detail::DimOf(srcShape, 1)} / groups * detail::DimOf(srcShape, 2) * detail::DimOf(srcShape, 3);
    detail::NormSizes(uint64_t{detail::DimOf(srcShape, 0)} * groups, group, typeSize, isReuseSource, maxValue,
                      minValue);
}
inline void GetGroupNormNDTilingInfo(const TensorShape &srcShape, const uint32_t stackBufferSize,
                                     const uint32_t typeSize, const bool isReuseSource, const uint32_t groupNum,
                                     tiling::GroupNormTiling &tiling)
{
    tiling = {};
    tiling.n = detail::DimOf(srcShape, 0);
    tiling.c = detail::DimOf(srcShape, 1);
    tiling.hw = detail::DimOf(srcShape, 2) * detail::DimOf(srcShape, 3);
    tiling.g = groupNum;
    tiling.d = groupNum == 0 ? 0 : tiling.c / groupNum;
    const uint32_t block = detail::kTilingBlock / typeSize;
    tiling.hwAlignSize = (tiling.hw + block - 1) / block * block;
    tiling.dhwAlignSize = tiling.d * tiling.hwAlignSize;
    if (tiling.dhwAlignSize != 0) {
        detail::SplitRows(tiling.n * tiling.g, tiling.dhwAlignSize, stackBufferSize, typeSize, isReuseSource, tiling);
        tiling.factor = 1.0F / static_cast<float>(tiling.d * tiling.hw);
    }
}

inline void GetNormalizeMaxMinTmpSize(const TensorShape &srcShape, const uint32_t /*typeSizeU*/,
                                      const uint32_t typeSizeT, const bool isReuseSource, const bool isComputeRstd,
                                      const bool isOnlyOutput, uint32_t &maxValue, uint32_t &minValue)
{
    GetLayerNormMaxMinTmpSize(srcShape, typeSizeT, isReuseSource, isComputeRstd, isOnlyOutput, maxValue, minValue);
}
inline void GetWelfordUpdateMaxMinTmpSize(const TensorShape &srcShape, const uint32_t typeSizeT,
                                          const uint32_t /*typeSizeU*/, const bool /*isReuseSource*/,
                                          const bool /*isInplace*/, uint32_t &maxValue, uint32_t &minValue)
{
    constexpr uint64_t step = 64;  // one repeat of floats
    minValue = static_cast<uint32_t>(twin::WelfordTemporary(step, typeSizeT));
    maxValue = std::max(minValue, static_cast<uint32_t>(twin::WelfordTemporary(detail::TailOf(srcShape), typeSizeT)));
}
inline void GetWelfordFinalizeMaxMinTmpSize(const TensorShape &srcShape, const uint32_t typeSize,
                                            const bool isReuseSource, uint32_t &maxValue, uint32_t &minValue)
{
    GetWelfordUpdateMaxMinTmpSize(srcShape, typeSize, typeSize, isReuseSource, false, maxValue, minValue);
}

}  // namespace AscendC
