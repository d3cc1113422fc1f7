// What each element-wise instruction makes of one lane: a function for each row of the table whose `run` is "lanes",
// with the row's key for a name. It is compiled for the types that the row takes; half is computed in float.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "vector/rounding.h"

namespace evokernel::twin {

// The operands of one lane. `d` is the destination's old value where the instruction reads it.
template <typename T> struct Lane {
    T a;
    T b;
    T d;
    T scalar;
    int64_t bits;  // of a shift
    bool round;    // of a shift to the right
    int kept;      // bits of the result of an approximation
};

namespace execute {

namespace detail {

// Integers wrap around.
template <typename T> using Unsigned = std::make_unsigned_t<T>;
template <typename T> T Plus(T x, T y)
{
    if constexpr (std::is_integral_v<T>) {
        return static_cast<T>(static_cast<Unsigned<T>>(static_cast<Unsigned<T>>(x) + static_cast<Unsigned<T>>(y)));
    } else {
        return x + y;
    }
}
template <typename T> T Minus(T x, T y)
{
    if constexpr (std::is_integral_v<T>) {
        return static_cast<T>(static_cast<Unsigned<T>>(static_cast<Unsigned<T>>(x) - static_cast<Unsigned<T>>(y)));
    } else {
        return x - y;
    }
}
template <typename T> T Times(T x, T y)
{
    if constexpr (std::is_integral_v<T>) {
        return static_cast<T>(static_cast<Unsigned<T>>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y)));
    } else {
        return x * y;
    }
}

// A NaN stays.
template <typename T> T Larger(T x, T y) { return x != x ? x : y != y ? y : (x < y ? y : x); }
template <typename T> T Smaller(T x, T y) { return x != x ? x : y != y ? y : (y < x ? y : x); }
template <typename T> T Positive(T x) { return x < T(0) ? T(0) : x; }

// Rounded once.
inline float MultiplyAdd(float x, float y, float z)
{
    return static_cast<float>(static_cast<double>(x) * static_cast<double>(y) + static_cast<double>(z));
}

inline float KeepBits(float value, int bits)
{
    if (!std::isfinite(value) || value == 0) {
        return value;
    }
    const int dropped = 24 - bits;
    uint32_t raw = BitsOf(value);
    raw += 1U << (dropped - 1);
    raw &= ~((1U << dropped) - 1);
    return FloatOf(raw);
}

}  // namespace detail

template <typename T> T Add(const Lane<T> &lane) { return detail::Plus(lane.a, lane.b); }
template <typename T> T Sub(const Lane<T> &lane) { return detail::Minus(lane.a, lane.b); }
template <typename T> T Mul(const Lane<T> &lane) { return detail::Times(lane.a, lane.b); }
template <typename T> T Div(const Lane<T> &lane) { return lane.a / lane.b; }
template <typename T> T Max(const Lane<T> &lane) { return detail::Larger(lane.a, lane.b); }
template <typename T> T Min(const Lane<T> &lane) { return detail::Smaller(lane.a, lane.b); }
template <typename T> T AddRelu(const Lane<T> &lane) { return detail::Positive(detail::Plus(lane.a, lane.b)); }
template <typename T> T SubRelu(const Lane<T> &lane) { return detail::Positive(detail::Minus(lane.a, lane.b)); }
template <typename T> T And(const Lane<T> &lane) { return static_cast<T>(lane.a & lane.b); }
template <typename T> T Or(const Lane<T> &lane) { return static_cast<T>(lane.a | lane.b); }
template <typename T> T FusedMulAdd(const Lane<T> &lane) { return detail::MultiplyAdd(lane.a, lane.d, lane.b); }
template <typename T> T MulAddRelu(const Lane<T> &lane)
{
    return detail::Positive(detail::MultiplyAdd(lane.a, lane.d, lane.b));
}

template <typename T> T Exp(const Lane<T> &lane) { return std::exp(lane.a); }
template <typename T> T Ln(const Lane<T> &lane) { return std::log(lane.a); }
template <typename T> T Abs(const Lane<T> &lane) { return std::fabs(lane.a); }
template <typename T> T Sqrt(const Lane<T> &lane) { return std::sqrt(lane.a); }
template <typename T> T Rsqrt(const Lane<T> &lane) { return detail::KeepBits(1.0F / std::sqrt(lane.a), lane.kept); }
template <typename T> T Reciprocal(const Lane<T> &lane) { return detail::KeepBits(1.0F / lane.a, lane.kept); }
template <typename T> T Relu(const Lane<T> &lane) { return detail::Positive(lane.a); }
template <typename T> T Not(const Lane<T> &lane) { return static_cast<T>(~lane.a); }

template <typename T> T Adds(const Lane<T> &lane) { return detail::Plus(lane.a, lane.scalar); }
template <typename T> T Muls(const Lane<T> &lane) { return detail::Times(lane.a, lane.scalar); }
template <typename T> T Maxs(const Lane<T> &lane) { return detail::Larger(lane.a, lane.scalar); }
template <typename T> T Mins(const Lane<T> &lane) { return detail::Smaller(lane.a, lane.scalar); }
template <typename T> T LeakyRelu(const Lane<T> &lane) { return lane.a < 0 ? lane.a * lane.scalar : lane.a; }
template <typename T> T ShiftLeft(const Lane<T> &lane)
{
    return static_cast<T>(static_cast<uint64_t>(lane.a) << lane.bits);
}
template <typename T> T ShiftRight(const Lane<T> &lane)
{
    if (lane.bits <= 0) {
        return lane.a;
    }
    const int64_t wide = static_cast<int64_t>(lane.a);
    return static_cast<T>(lane.round ? (wide + (int64_t{1} << (lane.bits - 1))) >> lane.bits : wide >> lane.bits);
}

template <typename T> T Axpy(const Lane<T> &lane) { return detail::MultiplyAdd(lane.scalar, lane.a, lane.d); }
template <typename T> T MulAddDst(const Lane<T> &lane) { return detail::MultiplyAdd(lane.a, lane.b, lane.d); }

}  // namespace execute

}  // namespace evokernel::twin
