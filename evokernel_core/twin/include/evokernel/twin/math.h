// High-level element-wise functions: mathematics and activations.
#pragma once
#include "evokernel/twin/advanced_math.h"
#include "evokernel/twin/tensor.h"

namespace AscendC {

// What selects an algorithm of a function; its result is the same here.
enum class AtanAlgo { TAYLOR_EXPANSION = 0, POLYNOMIAL_APPROXIMATION };
enum class CosAlgo { POLYNOMIAL_APPROXIMATION = 0, RADIAN_REDUCTION };
enum class SinAlgo { POLYNOMIAL_APPROXIMATION = 0, RADIAN_REDUCTION };
enum class ErfAlgo { PADE_APPROXIMATION = 0, SUBSECTION_POLYNOMIAL_APPROXIMATION };
enum class TanhAlgo { INTRINSIC = 0, SUBSECTION_COMPENSATION };
enum class PowerAlgo { INTRINSIC = 0, DOUBLE_FLOAT_TECH };
enum class FmodAlgo { NORMAL = 0, ITERATION_COMPENSATION = 1 };

constexpr uint32_t FMOD_ITERATION_NUM_MAX = 11;

struct AtanConfig {
    AtanAlgo algo = AtanAlgo::TAYLOR_EXPANSION;
};
struct CosConfig {
    CosAlgo algo = CosAlgo::POLYNOMIAL_APPROXIMATION;
};
struct SinConfig {
    SinAlgo algo = SinAlgo::POLYNOMIAL_APPROXIMATION;
};
struct ErfConfig {
    ErfAlgo algo = ErfAlgo::PADE_APPROXIMATION;
};
struct TanhConfig {
    TanhAlgo algo = TanhAlgo::INTRINSIC;
};
struct PowerConfig {
    PowerAlgo algo = PowerAlgo::INTRINSIC;
};
struct FmodConfig {
    FmodAlgo algo = FmodAlgo::NORMAL;
    uint32_t iterationNum = FMOD_ITERATION_NUM_MAX;
};

inline constexpr AtanConfig defaultAtanConfig{};
inline constexpr CosConfig defaultCosConfig{};
inline constexpr SinConfig defaultSinConfig{};
inline constexpr ErfConfig defaultErfConfig{};
inline constexpr TanhConfig DEFAULT_TANH_CONFIG{};
inline constexpr PowerConfig defaultPowerConfig{};
inline constexpr FmodConfig DEFAULT_FMOD_CONFIG{};

namespace detail {

template <typename T>
void Unary(twin::Math op, const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> *temporary,
           int64_t count, twin::At at, twin::Scalar scalar = {}, int terms = 0)
{
    const twin::LocalRef *ref = temporary != nullptr ? &temporary->Ref() : nullptr;
    twin::MathCall({op, dst.Ref(), src.Ref(), nullptr, scalar, ref, count, terms}, at);
}

template <typename T>
void Binary(twin::Math op, const LocalTensor<T> &dst, const LocalTensor<T> &a, const LocalTensor<T> &b,
            const LocalTensor<uint8_t> *temporary, int64_t count, twin::At at, twin::Scalar scalar = {})
{
    const twin::LocalRef *ref = temporary != nullptr ? &temporary->Ref() : nullptr;
    twin::MathCall({op, dst.Ref(), a.Ref(), &b.Ref(), scalar, ref, count, 0}, at);
}

}  // namespace detail

// The four forms of a one-operand function: with and without a temporary buffer, with and without
// a count. Without a buffer the framework takes one from what the kernel left free.
#define EVK_MATH_FORMS(Name, Parameters)                                                                             \
    template <typename T, bool isReuseSource = false Parameters>                                                     \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &temporary,           \
              const uint32_t count, EVK_AT)                                                                          \
    {                                                                                                                \
        detail::Unary(twin::Math::Name, dst, src, &temporary, count, at);                                            \
    }                                                                                                                \
    template <typename T, bool isReuseSource = false Parameters>                                                     \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &temporary, EVK_AT)   \
    {                                                                                                                \
        detail::Unary(twin::Math::Name, dst, src, &temporary, src.GetSize(), at);                                    \
    }                                                                                                                \
    template <typename T, bool isReuseSource = false Parameters>                                                     \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t count, EVK_AT)                    \
    {                                                                                                                \
        detail::Unary(twin::Math::Name, dst, src, nullptr, count, at);                                               \
    }                                                                                                                \
    template <typename T, bool isReuseSource = false Parameters>                                                     \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, EVK_AT)                                          \
    {                                                                                                                \
        detail::Unary(twin::Math::Name, dst, src, nullptr, src.GetSize(), at);                                       \
    }                                                                                                                \
    template <typename T, bool isReuseSource = false Parameters, typename C, EVK_ONLY(C, uint32_t)>                  \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const C count)                                   \
    {                                                                                                                \
        detail::Unary(twin::Math::Name, dst, src, nullptr, count, twin::LastPlace());                                \
    }
#define EVK_COMMA ,
#define EVK_MATH(Name) EVK_MATH_FORMS(Name, )
#define EVK_MATH_CONFIG(Name, Kind, Default) EVK_MATH_FORMS(Name, EVK_COMMA const Kind &config = Default)
EVK_MATH(Sigmoid)
EVK_MATH(Erfc)
EVK_MATH(Log)
EVK_MATH(Log2)
EVK_MATH(Log10)
EVK_MATH(Tan)
EVK_MATH(Asin)
EVK_MATH(Acos)
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
EVK_MATH(Lgamma)
EVK_MATH(Digamma)
EVK_MATH_CONFIG(Tanh, TanhConfig, DEFAULT_TANH_CONFIG)
EVK_MATH_CONFIG(Erf, ErfConfig, defaultErfConfig)
EVK_MATH_CONFIG(Sin, SinConfig, defaultSinConfig)
EVK_MATH_CONFIG(Cos, CosConfig, defaultCosConfig)
EVK_MATH_CONFIG(Atan, AtanConfig, defaultAtanConfig)
#undef EVK_MATH
#undef EVK_MATH_CONFIG
#undef EVK_MATH_FORMS

#define EVK_GELU(Name)                                                                                               \
    template <typename T, bool highPrecision = false, bool highPerformance = false>                                  \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t count, EVK_AT)                    \
    {                                                                                                                \
        detail::Unary(twin::Math::Name, dst, src, nullptr, count, at);                                               \
    }                                                                                                                \
    template <typename T, bool highPrecision = false, bool highPerformance = false>                                  \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &temporary,           \
              const uint32_t count, EVK_AT)                                                                          \
    {                                                                                                                \
        detail::Unary(twin::Math::Name, dst, src, &temporary, count, at);                                            \
    }
EVK_GELU(Gelu)
EVK_GELU(FasterGelu)
EVK_GELU(FasterGeluV2)
#undef EVK_GELU

template <typename T, bool isReuseSource = false>
void Silu(const LocalTensor<T> &dst, const LocalTensor<T> &src, uint32_t count, EVK_AT)
{
    detail::Unary(twin::Math::Silu, dst, src, nullptr, count, at);
}
template <typename T, bool isReuseSource = false>
void Swish(const LocalTensor<T> &dst, const LocalTensor<T> &src, uint32_t count, const T scalarValue, EVK_AT)
{
    detail::Unary(twin::Math::Swish, dst, src, nullptr, count, at, twin::MakeScalar(scalarValue));
}

#define EVK_CLAMP(Name)                                                                                              \
    template <typename T, bool isReuseSource = false>                                                                \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &temporary,           \
              const T scalar, const uint32_t count, EVK_AT)                                                          \
    {                                                                                                                \
        detail::Unary(twin::Math::Name, dst, src, &temporary, count, at, twin::MakeScalar(scalar));                  \
    }                                                                                                                \
    template <typename T, bool isReuseSource = false>                                                                \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T scalar, const uint32_t count, EVK_AT)    \
    {                                                                                                                \
        detail::Unary(twin::Math::Name, dst, src, nullptr, count, at, twin::MakeScalar(scalar));                     \
    }
EVK_CLAMP(ClampMax)
EVK_CLAMP(ClampMin)
#undef EVK_CLAMP

// exp by a Taylor expansion of so many terms.
template <typename T, uint8_t taylorExpandLevel, bool isReuseSource = false>
void Exp(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &temporary,
         const uint32_t count, EVK_AT)
{
    detail::Unary(twin::Math::Exp, dst, src, &temporary, count, at, {}, taylorExpandLevel);
}
template <typename T, uint8_t taylorExpandLevel, bool isReuseSource = false>
void Exp(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t count, EVK_AT)
{
    detail::Unary(twin::Math::Exp, dst, src, nullptr, count, at, {}, taylorExpandLevel);
}

// The four forms of a two-operand function.
#define EVK_BINARY_FORMS(Name, Parameters)                                                                           \
    template <typename T, bool isReuseSource = false Parameters>                                                     \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,                     \
              const LocalTensor<uint8_t> &temporary, const uint32_t count, EVK_AT)                                   \
    {                                                                                                                \
        detail::Binary(twin::Math::Name, dst, src0, src1, &temporary, count, at);                                    \
    }                                                                                                                \
    template <typename T, bool isReuseSource = false Parameters>                                                     \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,                     \
              const LocalTensor<uint8_t> &temporary, EVK_AT)                                                         \
    {                                                                                                                \
        detail::Binary(twin::Math::Name, dst, src0, src1, &temporary, src0.GetSize(), at);                           \
    }                                                                                                                \
    template <typename T, bool isReuseSource = false Parameters>                                                     \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,                     \
              const uint32_t count, EVK_AT)                                                                          \
    {                                                                                                                \
        detail::Binary(twin::Math::Name, dst, src0, src1, nullptr, count, at);                                       \
    }                                                                                                                \
    template <typename T, bool isReuseSource = false Parameters>                                                     \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1, EVK_AT)             \
    {                                                                                                                \
        detail::Binary(twin::Math::Name, dst, src0, src1, nullptr, src0.GetSize(), at);                              \
    }
EVK_BINARY_FORMS(Xor, )
EVK_BINARY_FORMS(GeGLU, )
EVK_BINARY_FORMS(ReGlu, )
EVK_BINARY_FORMS(Fmod, EVK_COMMA const FmodConfig &config = DEFAULT_FMOD_CONFIG)
EVK_BINARY_FORMS(Power, EVK_COMMA const PowerConfig &config = defaultPowerConfig)
#undef EVK_BINARY_FORMS

// dst = src0 * src1 * sigmoid(beta * src1)
template <typename T, bool isReuseSource = false>
void SwiGLU(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1, const float &beta,
            const LocalTensor<uint8_t> &temporary, const uint32_t count, EVK_AT)
{
    detail::Binary(twin::Math::SwiGLU, dst, src0, src1, &temporary, count, at, twin::MakeScalar(beta));
}
template <typename T, bool isReuseSource = false>
void SwiGLU(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1, const float &beta,
            const LocalTensor<uint8_t> &temporary, EVK_AT)
{
    detail::Binary(twin::Math::SwiGLU, dst, src0, src1, &temporary, src0.GetSize(), at, twin::MakeScalar(beta));
}
template <typename T, bool isReuseSource = false>
void SwiGLU(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1, const float &beta,
            const uint32_t count, EVK_AT)
{
    detail::Binary(twin::Math::SwiGLU, dst, src0, src1, nullptr, count, at, twin::MakeScalar(beta));
}
template <typename T, bool isReuseSource = false>
void SwiGLU(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1, const float &beta,
            EVK_AT)
{
    detail::Binary(twin::Math::SwiGLU, dst, src0, src1, nullptr, src0.GetSize(), at, twin::MakeScalar(beta));
}

// Power with a scalar exponent or a scalar base, each in the four forms.
#define EVK_POWER_SCALAR(Op, First, Second, tensor, scalar)                                                          \
    template <typename T, bool isReuseSource = false, const PowerConfig &config = defaultPowerConfig>                \
    void Power(const LocalTensor<T> &dst, First, Second, const LocalTensor<uint8_t> &temporary, uint32_t count,      \
               EVK_AT)                                                                                               \
    {                                                                                                                \
        detail::Unary(twin::Math::Op, dst, tensor, &temporary, count, at, twin::MakeScalar(scalar));                 \
    }                                                                                                                \
    template <typename T, bool isReuseSource = false, const PowerConfig &config = defaultPowerConfig>                \
    void Power(const LocalTensor<T> &dst, First, Second, const LocalTensor<uint8_t> &temporary, EVK_AT)              \
    {                                                                                                                \
        detail::Unary(twin::Math::Op, dst, tensor, &temporary, tensor.GetSize(), at, twin::MakeScalar(scalar));      \
    }                                                                                                                \
    template <typename T, bool isReuseSource = false, const PowerConfig &config = defaultPowerConfig>                \
    void Power(const LocalTensor<T> &dst, First, Second, uint32_t count, EVK_AT)                                     \
    {                                                                                                                \
        detail::Unary(twin::Math::Op, dst, tensor, nullptr, count, at, twin::MakeScalar(scalar));                    \
    }                                                                                                                \
    template <typename T, bool isReuseSource = false, const PowerConfig &config = defaultPowerConfig>                \
    void Power(const LocalTensor<T> &dst, First, Second, EVK_AT)                                                     \
    {                                                                                                                \
        detail::Unary(twin::Math::Op, dst, tensor, nullptr, tensor.GetSize(), at, twin::MakeScalar(scalar));         \
    }
EVK_POWER_SCALAR(PowerScalar, const LocalTensor<T> &base, const T &exponent, base, exponent)
EVK_POWER_SCALAR(ScalarPower, const T &base, const LocalTensor<T> &exponent, exponent, base)
#undef EVK_POWER_SCALAR
#undef EVK_COMMA

// dst += scalar * src with a temporary; half sources may add to a float destination.
template <typename T, typename U, bool isReuseSource = false>
void Axpy(const LocalTensor<T> &dst, const LocalTensor<U> &src, const U scalarValue,
          const LocalTensor<uint8_t> &temporary, const uint32_t count, EVK_AT)
{
    twin::MathCall({twin::Math::Axpy, dst.Ref(), src.Ref(), nullptr, twin::MakeScalar(scalarValue), &temporary.Ref(),
                    static_cast<int64_t>(count), 0},
                   at);
}

}  // namespace AscendC
