// Functions on scalars: bits, conversions and access to global memory past the data cache.
#pragma once
#include <type_traits>

#include "evokernel/twin/api_vector.h"
#include "evokernel/twin/tensor.h"

namespace AscendC {

// No template, so that a kernel's own template of the name is another function.
constexpr uint64_t AlignUp(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }
// With a pack that is empty, so that a kernel's own template of the name fits better.
template <typename T, typename U, typename... None> constexpr auto CeilAlign(T value, U unit, None...)
{
    static_assert(sizeof...(None) == 0, "CeilAlign takes a value and a unit.");
    return (value + unit - 1) / unit * unit;
}
template <typename T, typename U, typename... None> constexpr auto DivCeil(T value, U unit, None...)
{
    static_assert(sizeof...(None) == 0, "DivCeil takes a value and a unit.");
    return (value + unit - 1) / unit;
}
template <typename T, typename U, typename... None>
constexpr std::enable_if_t<std::is_integral_v<T> && std::is_integral_v<U> && sizeof...(None) == 0, uint32_t>
Ceil(T value, U unit, None...)
{
    return static_cast<uint32_t>((value + unit - 1) / unit);
}
template <typename T, typename U, typename... None>
constexpr std::enable_if_t<std::is_integral_v<T> && std::is_integral_v<U> && sizeof...(None) == 0,
                           std::common_type_t<T, U>>
CeilDiv(T value, U unit, None...)
{
    using Both = std::common_type_t<T, U>;
    return unit == 0 ? 0 : (static_cast<Both>(value) + static_cast<Both>(unit) - 1) / static_cast<Both>(unit);
}
constexpr int32_t CeilDivision(int32_t value, int32_t unit) { return unit == 0 ? 0 : (value + unit - 1) / unit; }

namespace detail {

// Rounds to an integer; halves go to even, away from zero, or as the mode says.
template <RoundMode mode> float Rounded(float value)
{
    if constexpr (mode == RoundMode::CAST_FLOOR) {
        return __builtin_floorf(value);
    } else if constexpr (mode == RoundMode::CAST_CEIL) {
        return __builtin_ceilf(value);
    } else if constexpr (mode == RoundMode::CAST_TRUNC) {
        return __builtin_truncf(value);
    } else if constexpr (mode == RoundMode::CAST_ROUND) {
        return __builtin_roundf(value);
    } else {
        return __builtin_rintf(value);
    }
}

// The integer nearest to a whole float; values that do not fit saturate, NaN becomes zero.
template <typename U> U Saturated(float value)
{
    if (value != value) {
        return 0;
    }
    if (value >= static_cast<float>(__INT32_MAX__)) {
        return sizeof(U) == 4 ? static_cast<U>(__INT32_MAX__) : static_cast<U>(value);
    }
    if (value <= -static_cast<float>(__INT32_MAX__) && sizeof(U) == 4) {
        return static_cast<U>(-__INT32_MAX__ - 1);
    }
    return static_cast<U>(value);
}

// Truncates to half; where bits are lost, the last one is set.
inline half OddHalf(float value)
{
    uint16_t bits = twin::HalfBits(value);
    const float near = twin::HalfValue(bits);
    if (near != value && value == value) {
        bits = static_cast<uint16_t>(__builtin_fabsf(near) > __builtin_fabsf(value) ? bits - 1 : bits);
        bits |= 1u;
    }
    return half::FromBits(bits);
}

}  // namespace detail

template <typename T, typename U, RoundMode mode = RoundMode::CAST_ROUND> U Cast(T value)
{
    if constexpr (std::is_integral_v<U>) {
        return detail::Saturated<U>(detail::Rounded<mode>(static_cast<float>(value)));
    } else if constexpr (std::is_same_v<U, half> && mode == RoundMode::CAST_ODD) {
        return detail::OddHalf(static_cast<float>(value));
    } else {
        return static_cast<U>(static_cast<float>(value));
    }
}
template <typename T, typename U, RoundMode mode = RoundMode::CAST_ROUND> U ScalarCast(T value)
{
    return Cast<T, U, mode>(value);
}
inline bfloat16_t Cast(const float &value) { return bfloat16_t(value); }
inline float Cast(const bfloat16_t &value) { return value; }
inline bfloat16_t ToBfloat16(const float &value) { return bfloat16_t(value); }
inline float ToFloat(const bfloat16_t &value) { return value; }

// The bits of a scalar in another type of the same width.
template <typename T, typename U> constexpr U GetScalarBitcodeValue(T value)
{
    static_assert(sizeof(T) == sizeof(U), "GetScalarBitcodeValue needs two types of one width.");
    return __builtin_bit_cast(U, value);
}

// Without a type of its own, as fields of bits have them.
template <typename T> constexpr uint64_t GetScalarBitcodeValue(T value)
{
    using Bits = std::conditional_t<sizeof(T) == 1, uint8_t,
                                    std::conditional_t<sizeof(T) == 2, uint16_t,
                                                       std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;
    return __builtin_bit_cast(Bits, value);
}

template <int bit> int64_t GetBitCount(uint64_t value)
{
    static_assert(bit == 0 || bit == 1, "GetBitCount counts bits of value 0 or 1.");
    return bit == 1 ? __builtin_popcountll(value) : 64 - __builtin_popcountll(value);
}
template <int bit> int64_t ScalarGetCountOfValue(uint64_t value) { return GetBitCount<bit>(value); }
inline int64_t CountLeadingZero(uint64_t value) { return value == 0 ? 64 : __builtin_clzll(value); }
inline int64_t ScalarCountLeadingZero(uint64_t value) { return CountLeadingZero(value); }
template <int bit> int64_t GetSFFValue(uint64_t value)
{
    static_assert(bit == 0 || bit == 1, "GetSFFValue looks for a bit of value 0 or 1.");
    const uint64_t wanted = bit == 1 ? value : ~value;
    return wanted == 0 ? -1 : __builtin_ctzll(wanted);
}
template <int bit> int64_t ScalarGetSFFValue(uint64_t value) { return GetSFFValue<bit>(value); }
inline int64_t CountBitsCntSameAsSignBit(int64_t value)
{
    const uint64_t folded = static_cast<uint64_t>(value < 0 ? ~value : value);
    return folded == 0 ? -1 : __builtin_clzll(folded) - 1;
}

template <int count = 1> void Nop() { twin::ScalarCycles(count); }

template <typename T> T ReadGmByPassDCache(__gm__ T *address, EVK_AT)
{
    static_assert(std::is_integral_v<T>, "ReadGmByPassDCache takes integers of 8 to 64 bits.");
    return FromBits<T>(twin::ReadUncached(address, sizeof(T), at));
}
template <typename T> void WriteGmByPassDCache(__gm__ T *address, T value, EVK_AT)
{
    static_assert(std::is_integral_v<T>, "WriteGmByPassDCache takes integers of 8 to 64 bits.");
    twin::WriteUncached(address, ToBits<T>(value), sizeof(T), at);
}

}  // namespace AscendC
