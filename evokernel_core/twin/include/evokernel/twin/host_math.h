// Host side of the element-wise high-level functions: sizes of their temporaries.
#pragma once
#include "evokernel/twin/advanced_math.h"
#include "evokernel/twin/host_types.h"
#include "evokernel/twin/math.h"

namespace platform_ascendc {

class PlatformAscendC;

}  // namespace platform_ascendc

namespace AscendC {

namespace detail {

inline void MathSizes(twin::Math op, const TensorShape &shape, uint32_t type_size, uint32_t &most, uint32_t &least)
{
    twin::MathTemporary(op, static_cast<uint64_t>(shape.GetShapeSize()), type_size, &most, &least);
}

}  // namespace detail

#define EVK_FACTOR(Name, Op)                                                                                         \
    inline void Get##Name##TmpBufferFactorSize(const uint32_t typeSize, uint32_t &maxLiveNodeCount,                  \
                                               uint32_t &extraBuf)                                                   \
    {                                                                                                                \
        maxLiveNodeCount = twin::MathLiveNodes(twin::Math::Op, typeSize);                                            \
        extraBuf = 0;                                                                                                \
    }
#define EVK_SIZES(Result, Name, Op, Done)                                                                            \
    inline Result Get##Name##MaxMinTmpSize(const TensorShape &srcShape, const uint32_t typeSize,                     \
                                           const bool /*isReuseSource*/, uint32_t &maxValue, uint32_t &minValue)     \
    {                                                                                                                \
        detail::MathSizes(twin::Math::Op, srcShape, typeSize, maxValue, minValue);                                   \
        return Done;                                                                                                 \
    }
#define EVK_MATH_SIZES(Name)         \
    EVK_SIZES(void, Name, Name, void()) \
    EVK_FACTOR(Name, Name)
EVK_MATH_SIZES(Acos)
EVK_MATH_SIZES(Acosh)
EVK_MATH_SIZES(Asin)
EVK_MATH_SIZES(Asinh)
EVK_MATH_SIZES(Atan)
EVK_MATH_SIZES(Atanh)
EVK_MATH_SIZES(Axpy)
EVK_MATH_SIZES(Ceil)
EVK_MATH_SIZES(Cos)
EVK_MATH_SIZES(Cosh)
EVK_MATH_SIZES(Digamma)
EVK_MATH_SIZES(Erf)
EVK_MATH_SIZES(Erfc)
EVK_MATH_SIZES(Floor)
EVK_MATH_SIZES(Fmod)
EVK_MATH_SIZES(Frac)
EVK_MATH_SIZES(GeGLU)
EVK_MATH_SIZES(Lgamma)
EVK_MATH_SIZES(Log)
EVK_MATH_SIZES(Log2)
EVK_MATH_SIZES(Log10)
EVK_MATH_SIZES(ReGlu)
EVK_MATH_SIZES(Sigmoid)
EVK_MATH_SIZES(Sign)
EVK_MATH_SIZES(Sin)
EVK_MATH_SIZES(Sinh)
EVK_MATH_SIZES(Tan)
EVK_MATH_SIZES(Tanh)
EVK_MATH_SIZES(Trunc)
EVK_MATH_SIZES(Xor)
EVK_SIZES(bool, Exp, Exp, true)
EVK_FACTOR(Exp, Exp)
EVK_SIZES(void, Clamp, ClampMax, void())
EVK_FACTOR(Clamp, ClampMax)
EVK_FACTOR(SwiGLU, SwiGLU)
#undef EVK_MATH_SIZES

inline void GetCosMaxMinTmpSize(const CosConfig &, const TensorShape &srcShape, const uint32_t typeSize,
                                const bool isReuseSource, uint32_t &maxValue, uint32_t &minValue)
{
    GetCosMaxMinTmpSize(srcShape, typeSize, isReuseSource, maxValue, minValue);
}
inline void GetCosTmpBufferFactorSize(const CosConfig &, const uint32_t typeSize, uint32_t &maxLiveNodeCount,
                                      uint32_t &extraBuf)
{
    GetCosTmpBufferFactorSize(typeSize, maxLiveNodeCount, extraBuf);
}
inline void GetSinMaxMinTmpSize(const SinConfig &, const TensorShape &srcShape, const uint32_t typeSize,
                                const bool isReuseSource, uint32_t &maxValue, uint32_t &minValue)
{
    GetSinMaxMinTmpSize(srcShape, typeSize, isReuseSource, maxValue, minValue);
}
inline void GetSinTmpBufferFactorSize(const SinConfig &, const uint32_t typeSize, uint32_t &maxLiveNodeCount,
                                      uint32_t &extraBuf)
{
    GetSinTmpBufferFactorSize(typeSize, maxLiveNodeCount, extraBuf);
}

inline void GetSwiGLUMaxMinTmpSize(const TensorShape &srcShape, const uint32_t typeSize, uint32_t &maxValue,
                                   uint32_t &minValue, const bool /*isReuseSource*/)
{
    detail::MathSizes(twin::Math::SwiGLU, srcShape, typeSize, maxValue, minValue);
}

inline void GetRoundMaxMinTmpSize(const platform_ascendc::PlatformAscendC &, const TensorShape &srcShape,
                                  const uint32_t typeSize, const bool /*isReuseSource*/, uint32_t &maxValue,
                                  uint32_t &minValue)
{
    detail::MathSizes(twin::Math::Round, srcShape, typeSize, maxValue, minValue);
}
inline void GetRoundTmpBufferFactorSize(const platform_ascendc::PlatformAscendC &, const uint32_t typeSize,
                                        uint32_t &maxLiveNodeCount, uint32_t &extraBuf)
{
    maxLiveNodeCount = twin::MathLiveNodes(twin::Math::Round, typeSize);
    extraBuf = 0;
}

inline void GetPowerMaxMinTmpSize(const TensorShape &srcShape1, const TensorShape &srcShape2, const bool /*typeIsInt*/,
                                  const uint32_t typeSize, const bool /*isReuseSource*/, uint32_t &maxValue,
                                  uint32_t &minValue)
{
    const bool first = srcShape1.GetShapeSize() >= srcShape2.GetShapeSize();
    detail::MathSizes(twin::Math::Power, first ? srcShape1 : srcShape2, typeSize, maxValue, minValue);
}
inline void GetPowerTmpBufferFactorSize(const bool /*baseIsTensor*/, const bool /*expIsTensor*/,
                                        const bool /*typeIsInt*/, const uint32_t typeSize, uint32_t &maxLiveNodeCount,
                                        uint32_t &extraBuffer)
{
    maxLiveNodeCount = twin::MathLiveNodes(twin::Math::Power, typeSize);
    extraBuffer = 0;
}

// Gelu, FasterGelu and FasterGeluV2 share these.
inline void GetGeluMaxMinTmpSize(const TensorShape &srcShape, const uint32_t typeSize, uint32_t &maxValue,
                                 uint32_t &minValue)
{
    detail::MathSizes(twin::Math::Gelu, srcShape, typeSize, maxValue, minValue);
}
inline uint32_t GetGeluMaxTmpSize(const TensorShape &srcShape, const uint32_t typeSize)
{
    uint32_t most = 0;
    uint32_t least = 0;
    GetGeluMaxMinTmpSize(srcShape, typeSize, most, least);
    return most;
}
inline uint32_t GetGeluMinTmpSize(const TensorShape &srcShape, const uint32_t typeSize)
{
    uint32_t most = 0;
    uint32_t least = 0;
    GetGeluMaxMinTmpSize(srcShape, typeSize, most, least);
    return least;
}

// Silu and Swish take no buffer of the caller.
inline void GetSiluTmpSize(const TensorShape &srcShape, const uint32_t typeSize, const bool /*isReuseSource*/,
                           uint32_t &maxValue, uint32_t &minValue)
{
    detail::MathSizes(twin::Math::Silu, srcShape, typeSize, maxValue, minValue);
}
inline void GetSwishTmpSize(const TensorShape &srcShape, const uint32_t typeSize, const bool /*isReuseSource*/,
                            uint32_t &maxValue, uint32_t &minValue)
{
    detail::MathSizes(twin::Math::Swish, srcShape, typeSize, maxValue, minValue);
}
#undef EVK_FACTOR
#undef EVK_SIZES

}  // namespace AscendC
