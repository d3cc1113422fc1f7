// half (IEEE binary16) and bfloat16_t as scalars: every conversion rounds to nearest even.
#pragma once
#include <cstdint>
#include <type_traits>

namespace evokernel::twin {

constexpr uint32_t BitsOf(float value) { return __builtin_bit_cast(uint32_t, value); }
constexpr float FloatOf(uint32_t bits) { return __builtin_bit_cast(float, bits); }

// The binary16 pattern nearest to `value`; overflow gives infinity, NaN stays a quiet NaN.
constexpr uint16_t HalfBits(float value)
{
    const uint32_t bits = BitsOf(value);
    const uint32_t sign = (bits >> 16) & 0x8000u;
    const uint32_t magnitude = bits & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u) {
        return static_cast<uint16_t>(sign | 0x7E00u);
    }
    if (magnitude >= 0x477FF000u) {
        return static_cast<uint16_t>(sign | 0x7C00u);
    }
    if (magnitude < 0x38800000u) {  // a subnormal half: let float addition round at 2^-24
        const float shifted = FloatOf(magnitude) + 0.5f;
        return static_cast<uint16_t>(sign | (BitsOf(shifted) - BitsOf(0.5f)));
    }
    const uint32_t odd = (magnitude >> 13) & 1u;
    return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xFFFu + odd) >> 13));
}

constexpr float HalfValue(uint16_t half)
{
    const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
    const uint32_t magnitude = half & 0x7FFFu;
    if (magnitude >= 0x7C00u) {
        return FloatOf(sign | 0x7F800000u | ((magnitude & 0x3FFu) << 13));
    }
    if (magnitude < 0x400u) {
        const float value = static_cast<float>(magnitude) * 5.9604644775390625e-8f;
        return FloatOf(sign | BitsOf(value));
    }
    return FloatOf(sign | ((magnitude << 13) + 0x38000000u));
}

constexpr uint16_t BfloatBits(float value)
{
    const uint32_t bits = BitsOf(value);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) {
        return static_cast<uint16_t>((bits >> 16) | 0x40u);
    }
    return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

constexpr float BfloatValue(uint16_t bits) { return FloatOf(static_cast<uint32_t>(bits) << 16); }

// Arithmetic between two of the same 16-bit type rounds after each operation. Mixed expressions
// (half * 2.0f) go through float by the built-in operators.
#define EVK_SCALAR16_OPERATORS(Type)                                                                    \
    template <typename A, typename B,                                                                   \
              std::enable_if_t<std::is_same_v<A, Type> && std::is_same_v<B, Type>, int> = 0>            \
    constexpr Type operator+(A a, B b) { return Type(float(a) + float(b)); }                            \
    template <typename A, typename B,                                                                   \
              std::enable_if_t<std::is_same_v<A, Type> && std::is_same_v<B, Type>, int> = 0>            \
    constexpr Type operator-(A a, B b) { return Type(float(a) - float(b)); }                            \
    template <typename A, typename B,                                                                   \
              std::enable_if_t<std::is_same_v<A, Type> && std::is_same_v<B, Type>, int> = 0>            \
    constexpr Type operator*(A a, B b) { return Type(float(a) * float(b)); }                            \
    template <typename A, typename B,                                                                   \
              std::enable_if_t<std::is_same_v<A, Type> && std::is_same_v<B, Type>, int> = 0>            \
    constexpr Type operator/(A a, B b) { return Type(float(a) / float(b)); }                            \
    template <typename A, std::enable_if_t<std::is_same_v<A, Type>, int> = 0>                           \
    constexpr Type operator-(A a) { return Type(-float(a)); }                                           \
    template <typename A, std::enable_if_t<std::is_same_v<A, Type>, int> = 0>                           \
    constexpr Type operator+(A a) { return a; }                                                         \
    template <typename A, std::enable_if_t<std::is_same_v<A, Type>, int> = 0>                           \
    constexpr Type &operator++(A &a) { return a = Type(float(a) + 1.0f); }                              \
    template <typename A, std::enable_if_t<std::is_same_v<A, Type>, int> = 0>                           \
    constexpr Type &operator--(A &a) { return a = Type(float(a) - 1.0f); }                              \
    template <typename A, std::enable_if_t<std::is_same_v<A, Type>, int> = 0>                           \
    constexpr Type operator++(A &a, int) { const Type old = a; ++a; return old; }                       \
    template <typename A, std::enable_if_t<std::is_same_v<A, Type>, int> = 0>                           \
    constexpr Type operator--(A &a, int) { const Type old = a; --a; return old; }

}  // namespace evokernel::twin

struct half {
    uint16_t bits;

    half() = default;
    template <typename T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
    constexpr half(T value) : bits(::evokernel::twin::HalfBits(static_cast<float>(value)))
    {
    }
    constexpr operator float() const { return ::evokernel::twin::HalfValue(bits); }

    template <typename T> constexpr half &operator+=(T other) { return *this = half(float(*this) + float(other)); }
    template <typename T> constexpr half &operator-=(T other) { return *this = half(float(*this) - float(other)); }
    template <typename T> constexpr half &operator*=(T other) { return *this = half(float(*this) * float(other)); }
    template <typename T> constexpr half &operator/=(T other) { return *this = half(float(*this) / float(other)); }

    static constexpr half FromBits(uint16_t bits)
    {
        half value{};
        value.bits = bits;
        return value;
    }
};

struct bfloat16_t {
    uint16_t bits;

    bfloat16_t() = default;
    template <typename T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
    constexpr bfloat16_t(T value) : bits(::evokernel::twin::BfloatBits(static_cast<float>(value)))
    {
    }
    constexpr explicit bfloat16_t(half value) : bits(::evokernel::twin::BfloatBits(static_cast<float>(value))) {}
    constexpr operator float() const { return ::evokernel::twin::BfloatValue(bits); }

    template <typename T> constexpr bfloat16_t &operator+=(T other)
    {
        return *this = bfloat16_t(float(*this) + float(other));
    }
    template <typename T> constexpr bfloat16_t &operator-=(T other)
    {
        return *this = bfloat16_t(float(*this) - float(other));
    }
    template <typename T> constexpr bfloat16_t &operator*=(T other)
    {
        return *this = bfloat16_t(float(*this) * float(other));
    }
    template <typename T> constexpr bfloat16_t &operator/=(T other)
    {
        return *this = bfloat16_t(float(*this) / float(other));
    }

    static constexpr bfloat16_t FromBits(uint16_t bits)
    {
        bfloat16_t value{};
        value.bits = bits;
        return value;
    }
};

EVK_SCALAR16_OPERATORS(half)
EVK_SCALAR16_OPERATORS(bfloat16_t)
#undef EVK_SCALAR16_OPERATORS

using float16_t = half;
using float32_t = float;

struct int4b_t {
    int8_t storage;
};
