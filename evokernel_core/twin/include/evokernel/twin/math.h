// High-level functions: mathematics, activations, row reductions and normalisations.
#pragma once
#include "evokernel/twin/tensor.h"

namespace AscendC {

// The four forms of a one-operand function: with and without a temporary buffer, with and without
// a count. Without a buffer the framework takes one from what the kernel left free.
#define EVK_MATH(Name)                                                                                               \
    template <typename T, bool isReuseSource = false>                                                                \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &,                    \
              const uint32_t count, EVK_AT)                                                                          \
    {                                                                                                                \
        twin::MathCall(twin::Math::Name, dst.Ref(), src.Ref(), nullptr, {}, count, at);                              \
    }                                                                                                                \
    template <typename T, bool isReuseSource = false>                                                                \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &, EVK_AT)            \
    {                                                                                                                \
        twin::MathCall(twin::Math::Name, dst.Ref(), src.Ref(), nullptr, {}, src.GetSize(), at);                      \
    }                                                                                                                \
    template <typename T, bool isReuseSource = false>                                                                \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t count, EVK_AT)                    \
    {                                                                                                                \
        twin::MathCall(twin::Math::Name, dst.Ref(), src.Ref(), nullptr, {}, count, at);                              \
    }                                                                                                                \
    template <typename T, bool isReuseSource = false>                                                                \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, EVK_AT)                                          \
    {                                                                                                                \
        twin::MathCall(twin::Math::Name, dst.Ref(), src.Ref(), nullptr, {}, src.GetSize(), at);                      \
    }
EVK_MATH(Tanh)
EVK_MATH(Sigmoid)
EVK_MATH(Erf)
EVK_MATH(Erfc)
EVK_MATH(Log)
EVK_MATH(Log2)
EVK_MATH(Log10)
EVK_MATH(Sin)
EVK_MATH(Cos)
EVK_MATH(Tan)
EVK_MATH(Asin)
EVK_MATH(Acos)
EVK_MATH(Atan)
EVK_MATH(Sinh)
EVK_MATH(Cosh)
EVK_MATH(Asinh)
EVK_MATH(Acosh)
EVK_MATH(Atanh)
EVK_MATH(Ceil)
EVK_MATH(Floor)
EVK_MATH(Round)
EVK_MATH(Trunc)
EVK_MATH(Frac)
EVK_MATH(Sign)
#undef EVK_MATH

#define EVK_GELU(Name)                                                                                               \
    template <typename T, bool highPrecision = false, bool highPerformance = false>                                  \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t count, EVK_AT)                    \
    {                                                                                                                \
        twin::MathCall(twin::Math::Name, dst.Ref(), src.Ref(), nullptr, {}, count, at);                              \
    }                                                                                                                \
    template <typename T, bool highPrecision = false, bool highPerformance = false>                                  \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &,                    \
              const uint32_t count, EVK_AT)                                                                          \
    {                                                                                                                \
        twin::MathCall(twin::Math::Name, dst.Ref(), src.Ref(), nullptr, {}, count, at);                              \
    }
EVK_GELU(Gelu)
EVK_GELU(FasterGelu)
EVK_GELU(FasterGeluV2)
#undef EVK_GELU

template <typename T, bool isReuseSource = false>
void Silu(const LocalTensor<T> &dst, const LocalTensor<T> &src, uint32_t count, EVK_AT)
{
    twin::MathCall(twin::Math::Silu, dst.Ref(), src.Ref(), nullptr, {}, count, at);
}
template <typename T, bool isReuseSource = false>
void Swish(const LocalTensor<T> &dst, const LocalTensor<T> &src, uint32_t count, const T scalarValue, EVK_AT)
{
    twin::MathCall(twin::Math::Swish, dst.Ref(), src.Ref(), nullptr, twin::MakeScalar(scalarValue), count, at);
}

#define EVK_CLAMP(Name)                                                                                              \
    template <typename T, bool isReuseSource = false>                                                                \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &, const T scalar,    \
              const uint32_t count, EVK_AT)                                                                          \
    {                                                                                                                \
        twin::MathCall(twin::Math::Name, dst.Ref(), src.Ref(), nullptr, twin::MakeScalar(scalar), count, at);        \
    }                                                                                                                \
    template <typename T, bool isReuseSource = false>                                                                \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T scalar, const uint32_t count, EVK_AT)    \
    {                                                                                                                \
        twin::MathCall(twin::Math::Name, dst.Ref(), src.Ref(), nullptr, twin::MakeScalar(scalar), count, at);        \
    }
EVK_CLAMP(ClampMax)
EVK_CLAMP(ClampMin)
#undef EVK_CLAMP

// Power(tensor, tensor), Power(tensor, scalar), Power(scalar, tensor), each in the four forms.
template <typename T, bool isReuseSource = false>
void Power(const LocalTensor<T> &dst, const LocalTensor<T> &base, const LocalTensor<T> &exponent,
           const LocalTensor<uint8_t> &, uint32_t count, EVK_AT)
{
    twin::MathCall(twin::Math::Power, dst.Ref(), base.Ref(), &exponent.Ref(), {}, count, at);
}
template <typename T, bool isReuseSource = false>
void Power(const LocalTensor<T> &dst, const LocalTensor<T> &base, const LocalTensor<T> &exponent, uint32_t count,
           EVK_AT)
{
    twin::MathCall(twin::Math::Power, dst.Ref(), base.Ref(), &exponent.Ref(), {}, count, at);
}
template <typename T, bool isReuseSource = false>
void Power(const LocalTensor<T> &dst, const LocalTensor<T> &base, const LocalTensor<T> &exponent, EVK_AT)
{
    twin::MathCall(twin::Math::Power, dst.Ref(), base.Ref(), &exponent.Ref(), {}, base.GetSize(), at);
}
template <typename T, bool isReuseSource = false>
void Power(const LocalTensor<T> &dst, const LocalTensor<T> &base, const T &exponent, const LocalTensor<uint8_t> &,
           uint32_t count, EVK_AT)
{
    twin::MathCall(twin::Math::PowerScalar, dst.Ref(), base.Ref(), nullptr, twin::MakeScalar(exponent), count, at);
}
template <typename T, bool isReuseSource = false>
void Power(const LocalTensor<T> &dst, const LocalTensor<T> &base, const T &exponent, uint32_t count, EVK_AT)
{
    twin::MathCall(twin::Math::PowerScalar, dst.Ref(), base.Ref(), nullptr, twin::MakeScalar(exponent), count, at);
}
template <typename T, bool isReuseSource = false>
void Power(const LocalTensor<T> &dst, const LocalTensor<T> &base, const T &exponent, EVK_AT)
{
    twin::MathCall(twin::Math::PowerScalar, dst.Ref(), base.Ref(), nullptr, twin::MakeScalar(exponent),
                   base.GetSize(), at);
}
template <typename T, bool isReuseSource = false>
void Power(const LocalTensor<T> &dst, const T &base, const LocalTensor<T> &exponent, const LocalTensor<uint8_t> &,
           uint32_t count, EVK_AT)
{
    twin::MathCall(twin::Math::ScalarPower, dst.Ref(), exponent.Ref(), nullptr, twin::MakeScalar(base), count, at);
}
template <typename T, bool isReuseSource = false>
void Power(const LocalTensor<T> &dst, const T &base, const LocalTensor<T> &exponent, uint32_t count, EVK_AT)
{
    twin::MathCall(twin::Math::ScalarPower, dst.Ref(), exponent.Ref(), nullptr, twin::MakeScalar(base), count, at);
}

struct SumParams {
    uint32_t outter = 0;
    uint32_t inner = 0;
    uint32_t n = 0;
};
struct MeanParams {
    uint32_t outter = 0;
    uint32_t inner = 0;
    uint32_t n = 0;
};

template <typename T, int32_t reduceDim = -1, bool isReuseSource = false, bool isBasicBlock = false>
void Sum(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &, const SumParams &params,
         EVK_AT)
{
    twin::RowReduce(twin::Reduce::Sum, false, dst.Ref(), src.Ref(), params.outter, params.inner, params.n, at);
}
template <typename T, int32_t reduceDim = -1, bool isReuseSource = false, bool isBasicBlock = false>
void Sum(const LocalTensor<T> &dst, const LocalTensor<T> &src, const SumParams &params, EVK_AT)
{
    twin::RowReduce(twin::Reduce::Sum, false, dst.Ref(), src.Ref(), params.outter, params.inner, params.n, at);
}
template <typename T, typename accType = T, bool isReuseSource = false, bool isBasicBlock = false,
          int32_t reduceDim = -1>
void Mean(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &, const MeanParams &params,
          EVK_AT)
{
    twin::RowReduce(twin::Reduce::Sum, true, dst.Ref(), src.Ref(), params.outter, params.inner, params.n, at);
}
template <typename T, typename accType = T, bool isReuseSource = false, bool isBasicBlock = false,
          int32_t reduceDim = -1>
void Mean(const LocalTensor<T> &dst, const LocalTensor<T> &src, const MeanParams &params, EVK_AT)
{
    twin::RowReduce(twin::Reduce::Sum, true, dst.Ref(), src.Ref(), params.outter, params.inner, params.n, at);
}

namespace Pattern::Reduce {
struct AR {};
struct RA {};
}  // namespace Pattern::Reduce

#define EVK_PATTERN_REDUCE(Name, Op, IsMean)                                                                         \
    template <class T, class pattern, bool isReuseSource = false>                                                    \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &,                    \
              const uint32_t srcShape[], bool srcInnerPad, EVK_AT)                                                   \
    {                                                                                                                \
        twin::PatternReduce(twin::Reduce::Op, IsMean, std::is_same_v<pattern, Pattern::Reduce::AR>, dst.Ref(),       \
                            src.Ref(), srcShape, srcInnerPad, at);                                                   \
    }                                                                                                                \
    template <class T, class pattern, bool isReuseSource = false>                                                    \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t srcShape[], bool srcInnerPad,     \
              EVK_AT)                                                                                                \
    {                                                                                                                \
        twin::PatternReduce(twin::Reduce::Op, IsMean, std::is_same_v<pattern, Pattern::Reduce::AR>, dst.Ref(),       \
                            src.Ref(), srcShape, srcInnerPad, at);                                                   \
    }
EVK_PATTERN_REDUCE(ReduceSum, Sum, false)
EVK_PATTERN_REDUCE(ReduceMax, Max, false)
EVK_PATTERN_REDUCE(ReduceMin, Min, false)
EVK_PATTERN_REDUCE(ReduceMean, Sum, true)
#undef EVK_PATTERN_REDUCE

template <typename T, int32_t dim, int32_t axis, bool isReuseSource = false>
void Broadcast(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t dstShape[dim],
               const uint32_t srcShape[dim], LocalTensor<uint8_t> &, EVK_AT)
{
    twin::BroadcastTensor(dst.Ref(), src.Ref(), dstShape, srcShape, dim, axis, at);
}
template <typename T, int32_t dim, int32_t axis, bool isReuseSource = false>
void Broadcast(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t dstShape[dim],
               const uint32_t srcShape[dim], EVK_AT)
{
    twin::BroadcastTensor(dst.Ref(), src.Ref(), dstShape, srcShape, dim, axis, at);
}

}  // namespace AscendC
