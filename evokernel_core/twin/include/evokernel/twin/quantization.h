// Quantisation, and selection by masks.
#pragma once
#include <type_traits>

#include "evokernel/twin/advanced_data.h"
#include "evokernel/twin/tensor.h"

namespace AscendC {

struct AscendQuantConfig {
    uint32_t calcCount = 0;
    uint32_t offsetCount = 0;
    uint32_t scaleCount = 0;
    uint32_t workLocalSize = 0;
};
inline constexpr AscendQuantConfig ASCEND_QUANT_DEFAULT_CFG = {0, 0, 0, 0};

#define EVK_TEMPORARY const LocalTensor<uint8_t> &temporary,
#define EVK_QUANT(TemporaryParameter, TemporaryRef)                                                                  \
    template <typename T, bool isReuseSource = false, const AscendQuantConfig &config = ASCEND_QUANT_DEFAULT_CFG>    \
    void AscendQuant(const LocalTensor<int8_t> &dst, const LocalTensor<T> &src, TemporaryParameter const float scale,\
                     const float offset, const uint32_t calCount, EVK_AT)                                            \
    {                                                                                                                \
        twin::Quantise({dst.Ref(), src.Ref(), nullptr, nullptr, scale, offset, TemporaryRef, 0, calCount}, at);      \
    }                                                                                                                \
    template <typename T, bool isReuseSource = false, const AscendQuantConfig &config = ASCEND_QUANT_DEFAULT_CFG>    \
    void AscendQuant(const LocalTensor<int8_t> &dst, const LocalTensor<T> &src, TemporaryParameter const float scale,\
                     const float offset, EVK_AT)                                                                     \
    {                                                                                                                \
        twin::Quantise({dst.Ref(), src.Ref(), nullptr, nullptr, scale, offset, TemporaryRef, 0,                      \
                        config.calcCount != 0 ? config.calcCount : src.GetSize()},                                   \
                       at);                                                                                          \
    }                                                                                                                \
    template <typename T, bool isReuseSource = false, const AscendQuantConfig &config = ASCEND_QUANT_DEFAULT_CFG>    \
    void AscendQuant(const LocalTensor<int8_t> &dst, const LocalTensor<T> &src,                                      \
                     TemporaryParameter const LocalTensor<T> &scale, const T offset, const uint32_t scaleCount,      \
                     const uint32_t calCount, EVK_AT)                                                                \
    {                                                                                                                \
        twin::Quantise({dst.Ref(), src.Ref(), &scale.Ref(), nullptr, 1, static_cast<float>(offset), TemporaryRef,    \
                        scaleCount, calCount},                                                                       \
                       at);                                                                                          \
    }                                                                                                                \
    template <typename T, bool isReuseSource = false, const AscendQuantConfig &config = ASCEND_QUANT_DEFAULT_CFG>    \
    void AscendQuant(const LocalTensor<int8_t> &dst, const LocalTensor<T> &src,                                      \
                     TemporaryParameter const LocalTensor<T> &scale, const T offset, EVK_AT)                         \
    {                                                                                                                \
        twin::Quantise({dst.Ref(), src.Ref(), &scale.Ref(), nullptr, 1, static_cast<float>(offset), TemporaryRef,    \
                        scale.GetSize(), src.GetSize()},                                                             \
                       at);                                                                                          \
    }                                                                                                                \
    template <typename T, bool isReuseSource = false, const AscendQuantConfig &config = ASCEND_QUANT_DEFAULT_CFG>    \
    void AscendQuant(const LocalTensor<int8_t> &dst, const LocalTensor<T> &src,                                      \
                     TemporaryParameter const LocalTensor<T> &scale, const LocalTensor<T> &offset,                   \
                     const uint32_t scaleCount, const uint32_t offsetCount, const uint32_t calCount, EVK_AT)         \
    {                                                                                                                \
        static_cast<void>(offsetCount);                                                                              \
        twin::Quantise({dst.Ref(), src.Ref(), &scale.Ref(), &offset.Ref(), 1, 0, TemporaryRef, scaleCount, calCount},\
                       at);                                                                                          \
    }                                                                                                                \
    template <typename T, bool isReuseSource = false, const AscendQuantConfig &config = ASCEND_QUANT_DEFAULT_CFG>    \
    void AscendQuant(const LocalTensor<int8_t> &dst, const LocalTensor<T> &src,                                      \
                     TemporaryParameter const LocalTensor<T> &scale, const LocalTensor<T> &offset, EVK_AT)           \
    {                                                                                                                \
        twin::Quantise({dst.Ref(), src.Ref(), &scale.Ref(), &offset.Ref(), 1, 0, TemporaryRef, scale.GetSize(),      \
                        src.GetSize()},                                                                              \
                       at);                                                                                          \
    }
EVK_QUANT(EVK_TEMPORARY, &temporary.Ref())
EVK_QUANT(, nullptr)
#undef EVK_QUANT

struct DequantParams {
    uint32_t m;
    uint32_t n;
    uint32_t calCount;
};
enum class DeQuantMode { DEQUANT_WITH_SINGLE_ROW = 0, DEQUANT_WITH_MULTI_ROW };

namespace detail {

template <typename T> constexpr bool IsScale = std::is_same_v<T, float> || std::is_same_v<T, bfloat16_t>;

template <DeQuantMode mode>
void Dequantise(const twin::LocalRef &dst, const twin::LocalRef &src, const twin::LocalRef *scale, float value,
                twin::DType type, const twin::LocalRef *temporary, const DequantParams &params, twin::At at)
{
    twin::Dequantise({dst, src, scale, value, type, temporary, params.m, params.n, params.calCount,
                      mode == DeQuantMode::DEQUANT_WITH_SINGLE_ROW},
                     at);
}

}  // namespace detail

#define EVK_DEQUANT(TemporaryParameter, TemporaryRef)                                                                \
    template <typename dstT, typename scaleT, DeQuantMode mode = DeQuantMode::DEQUANT_WITH_SINGLE_ROW>               \
    void AscendDequant(const LocalTensor<dstT> &dst, const LocalTensor<int32_t> &src,                                \
                       const LocalTensor<scaleT> &deqScale, TemporaryParameter DequantParams params, EVK_AT)         \
    {                                                                                                                \
        detail::Dequantise<mode>(dst.Ref(), src.Ref(), &deqScale.Ref(), 1, twin::kDType<scaleT>, TemporaryRef,       \
                                 params, at);                                                                        \
    }                                                                                                                \
    template <typename dstT, typename scaleT, DeQuantMode mode = DeQuantMode::DEQUANT_WITH_SINGLE_ROW,               \
              typename = std::enable_if_t<detail::IsScale<scaleT>>>                                                  \
    void AscendDequant(const LocalTensor<dstT> &dst, const LocalTensor<int32_t> &src, const scaleT deqScale,         \
                       TemporaryParameter DequantParams params, EVK_AT)                                              \
    {                                                                                                                \
        detail::Dequantise<mode>(dst.Ref(), src.Ref(), nullptr, static_cast<float>(deqScale), twin::kDType<scaleT>,  \
                                 TemporaryRef, params, at);                                                          \
    }                                                                                                                \
    template <typename dstT, typename scaleT, DeQuantMode mode = DeQuantMode::DEQUANT_WITH_SINGLE_ROW>               \
    void AscendDequant(const LocalTensor<dstT> &dst, const LocalTensor<int32_t> &src,                                \
                       const LocalTensor<scaleT> &deqScale, TemporaryParameter const uint32_t calCount, EVK_AT)      \
    {                                                                                                                \
        detail::Dequantise<mode>(dst.Ref(), src.Ref(), &deqScale.Ref(), 1, twin::kDType<scaleT>, TemporaryRef,       \
                                 {1, src.GetSize(), calCount}, at);                                                  \
    }
EVK_DEQUANT(EVK_TEMPORARY, &temporary.Ref())
EVK_DEQUANT(, nullptr)
#undef EVK_DEQUANT
template <typename dstT, typename scaleT, DeQuantMode mode = DeQuantMode::DEQUANT_WITH_SINGLE_ROW>
void AscendDequant(const LocalTensor<dstT> &dst, const LocalTensor<int32_t> &src, const LocalTensor<scaleT> &deqScale,
                   const LocalTensor<uint8_t> &temporary, EVK_AT)
{
    detail::Dequantise<mode>(dst.Ref(), src.Ref(), &deqScale.Ref(), 1, twin::kDType<scaleT>, &temporary.Ref(),
                             {1, src.GetSize(), deqScale.GetSize()}, at);
}
template <typename dstT, typename scaleT, DeQuantMode mode = DeQuantMode::DEQUANT_WITH_SINGLE_ROW>
void AscendDequant(const LocalTensor<dstT> &dst, const LocalTensor<int32_t> &src, const LocalTensor<scaleT> &deqScale,
                   EVK_AT)
{
    detail::Dequantise<mode>(dst.Ref(), src.Ref(), &deqScale.Ref(), 1, twin::kDType<scaleT>, nullptr,
                             {1, src.GetSize(), deqScale.GetSize()}, at);
}

struct AntiQuantShapeInfo {
    uint32_t offsetHeight{0};
    uint32_t offsetWidth{0};
    uint32_t scaleHeight{0};
    uint32_t scaleWidth{0};
};

namespace detail {

// The shape of a scale: as told, else as noted on the tensor.
template <typename T> AntiQuantShapeInfo ScaleShape(const LocalTensor<T> &scale, const AntiQuantShapeInfo &told)
{
    AntiQuantShapeInfo shape = told;
    const ShapeInfo noted = scale.GetShapeInfo();
    if ((told.scaleHeight == 0 || told.scaleWidth == 0) && noted.shapeDim == 2) {
        shape.scaleHeight = noted.shape[0];
        shape.scaleWidth = noted.shape[1];
    }
    return shape;
}

}  // namespace detail

#define EVK_ANTI_QUANT(TemporaryParameter, TemporaryRef)                                                             \
    template <typename InputDataType, typename OutputDataType, bool isTranspose>                                     \
    void AscendAntiQuant(const LocalTensor<OutputDataType> &dst, const LocalTensor<InputDataType> &src,              \
                         const LocalTensor<OutputDataType> &offset, const LocalTensor<OutputDataType> &scale,        \
                         TemporaryParameter const uint32_t k, const AntiQuantShapeInfo &info = {}, EVK_AT)           \
    {                                                                                                                \
        twin::AntiQuantise({dst.Ref(), src.Ref(), &scale.Ref(), &offset.Ref(), 1, 0, TemporaryRef, k,                \
                            detail::ScaleShape(scale, info).scaleHeight, detail::ScaleShape(scale, info).scaleWidth, \
                            isTranspose},                                                                            \
                           at);                                                                                      \
    }                                                                                                                \
    template <typename InputDataType, typename OutputDataType, bool isTranspose>                                     \
    void AscendAntiQuant(const LocalTensor<OutputDataType> &dst, const LocalTensor<InputDataType> &src,              \
                         const OutputDataType offset, const OutputDataType scale, TemporaryParameter                 \
                         const uint32_t k, const AntiQuantShapeInfo & = {}, EVK_AT)                                  \
    {                                                                                                                \
        twin::AntiQuantise({dst.Ref(), src.Ref(), nullptr, nullptr, static_cast<float>(scale),                       \
                            static_cast<float>(offset), TemporaryRef, k, 0, 0, isTranspose},                         \
                           at);                                                                                      \
    }
EVK_ANTI_QUANT(EVK_TEMPORARY, &temporary.Ref())
EVK_ANTI_QUANT(, nullptr)
#undef EVK_ANTI_QUANT
#undef EVK_TEMPORARY
template <typename InputDataType, typename OutputDataType, bool isTranspose>
void AscendAntiQuant(const LocalTensor<OutputDataType> &dst, const LocalTensor<InputDataType> &src,
                     const LocalTensor<OutputDataType> &scale, const LocalTensor<uint8_t> &temporary, const uint32_t k,
                     const AntiQuantShapeInfo &info = {}, EVK_AT)
{
    const AntiQuantShapeInfo shape = detail::ScaleShape(scale, info);
    twin::AntiQuantise({dst.Ref(), src.Ref(), &scale.Ref(), nullptr, 1, 0, &temporary.Ref(), k, shape.scaleHeight,
                        shape.scaleWidth, isTranspose},
                       at);
}
template <typename InputDataType, typename OutputDataType, bool isTranspose>
void AscendAntiQuant(const LocalTensor<OutputDataType> &dst, const LocalTensor<InputDataType> &src,
                     const OutputDataType scale, const LocalTensor<uint8_t> &temporary, const uint32_t k,
                     const AntiQuantShapeInfo & = {}, EVK_AT)
{
    twin::AntiQuantise({dst.Ref(), src.Ref(), nullptr, nullptr, static_cast<float>(scale), 0, &temporary.Ref(), k, 0,
                        0, isTranspose},
                       at);
}

struct DropOutShapeInfo {
    uint32_t firstAxis = 0;
    uint32_t srcLastAxis = 0;
    uint32_t maskLastAxis = 0;
};
template <typename T, bool isInitBitMode = false, uint32_t dropOutMode = 0>
void DropOut(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &mask,
             const LocalTensor<uint8_t> &temporary, const float keepProb, const DropOutShapeInfo &info, EVK_AT)
{
    twin::DropElements(dst.Ref(), src.Ref(), mask.Ref(), &temporary.Ref(), keepProb,
                       {info.firstAxis, info.srcLastAxis, info.maskLastAxis}, dropOutMode, at);
}
template <typename T, bool isInitBitMode = false, uint32_t dropOutMode = 0>
void DropOut(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &mask,
             const float keepProb, const DropOutShapeInfo &info, EVK_AT)
{
    twin::DropElements(dst.Ref(), src.Ref(), mask.Ref(), nullptr, keepProb,
                       {info.firstAxis, info.srcLastAxis, info.maskLastAxis}, dropOutMode, at);
}

struct SelectWithBytesMaskShapeInfo {
    uint32_t firstAxis = 0;
    uint32_t srcLastAxis = 0;
    uint32_t maskLastAxis = 0;
};
// Where the mask is 0, the first operand; elsewhere the second.
#define EVK_SELECT_BYTES(Name)                                                                                       \
    template <typename T, typename U, bool isReuseMask = true>                                                       \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src0, T src1, const LocalTensor<U> &mask,             \
              const LocalTensor<uint8_t> &temporary, const SelectWithBytesMaskShapeInfo &info, EVK_AT)               \
    {                                                                                                                \
        twin::SelectBytes(dst.Ref(), src0.Ref(), twin::MakeScalar(src1), false, mask.Ref(), temporary.Ref(),         \
                          {info.firstAxis, info.srcLastAxis, info.maskLastAxis}, isReuseMask, at);                   \
    }                                                                                                                \
    template <typename T, typename U, bool isReuseMask = true>                                                       \
    void Name(const LocalTensor<T> &dst, T src0, const LocalTensor<T> &src1, const LocalTensor<U> &mask,             \
              const LocalTensor<uint8_t> &temporary, const SelectWithBytesMaskShapeInfo &info, EVK_AT)               \
    {                                                                                                                \
        twin::SelectBytes(dst.Ref(), src1.Ref(), twin::MakeScalar(src0), true, mask.Ref(), temporary.Ref(),          \
                          {info.firstAxis, info.srcLastAxis, info.maskLastAxis}, isReuseMask, at);                   \
    }
EVK_SELECT_BYTES(Select)
EVK_SELECT_BYTES(SelectWithBytesMask)
#undef EVK_SELECT_BYTES

}  // namespace AscendC
