#include "vector/rounding.h"

#include <cmath>

#include "evokernel/twin/half.h"

namespace evokernel::twin {

using AscendC::RoundMode;

double RoundToInteger(double value, RoundMode mode)
{
    switch (mode) {
        case RoundMode::CAST_FLOOR:
            return std::floor(value);
        case RoundMode::CAST_CEIL:
            return std::ceil(value);
        case RoundMode::CAST_ROUND:
            return std::round(value);
        case RoundMode::CAST_TRUNC:
            return std::trunc(value);
        case RoundMode::CAST_ODD: {
            const double whole = std::trunc(value);
            const bool odd = std::fmod(whole, 2.0) != 0;
            return whole == value || odd ? whole : whole + std::copysign(1.0, value);
        }
        default:
            return std::nearbyint(value);
    }
}

namespace {

// A 16-bit float format: its magnitudes are ordered as their patterns are, so the neighbour above a
// truncated magnitude is the next pattern.
struct Format {
    uint16_t (*nearest)(float);
    float (*value)(uint16_t);
    uint16_t infinity;
};

uint16_t Directed(float value, RoundMode mode, const Format &format)
{
    const uint16_t near = format.nearest(value);
    const float back = format.value(near);
    if (!(back != value) || value != value || std::isinf(value)) {
        return near;  // exact, NaN or infinite
    }
    const uint16_t sign = static_cast<uint16_t>(near & 0x8000U);
    const float size = std::fabs(value);
    uint16_t low = static_cast<uint16_t>(near & 0x7FFFU);
    if (std::fabs(back) > size) {
        low = static_cast<uint16_t>(low - 1);
    }
    const uint16_t high = static_cast<uint16_t>(low + 1);
    const bool negative = sign != 0;
    const auto pick = [&](uint16_t magnitude) { return static_cast<uint16_t>(sign | magnitude); };
    switch (mode) {
        case RoundMode::CAST_FLOOR:
            return pick(negative ? high : low);
        case RoundMode::CAST_CEIL:
            return pick(negative ? low : high);
        case RoundMode::CAST_TRUNC:
            return pick(low);
        case RoundMode::CAST_ODD:
            return pick(static_cast<uint16_t>(low | 1U));
        case RoundMode::CAST_ROUND: {
            if (high == format.infinity) {
                return near;
            }
            const double below = static_cast<double>(format.value(low));
            const double above = static_cast<double>(format.value(high));
            const double middle = (below + above) / 2;
            return pick(static_cast<double>(size) >= middle ? high : low);
        }
        default:
            return near;
    }
}

uint16_t NearestHalf(float value) { return HalfBits(value); }
uint16_t NearestBfloat(float value) { return BfloatBits(value); }
float ValueOfHalf(uint16_t bits) { return HalfValue(bits); }
float ValueOfBfloat(uint16_t bits) { return BfloatValue(bits); }

}  // namespace

uint16_t RoundToHalf(float value, RoundMode mode)
{
    return Directed(value, mode, Format{NearestHalf, ValueOfHalf, 0x7C00});
}

uint16_t RoundToBfloat(float value, RoundMode mode)
{
    return Directed(value, mode, Format{NearestBfloat, ValueOfBfloat, 0x7F80});
}

int64_t SaturateSigned(double value, int bits)
{
    if (value != value) {
        return 0;
    }
    const double limit = std::ldexp(1.0, bits - 1);
    const int64_t largest = bits == 64 ? INT64_MAX : (int64_t{1} << (bits - 1)) - 1;
    if (value >= limit) {
        return largest;
    }
    return value < -limit ? -largest - 1 : static_cast<int64_t>(value);
}

int64_t SaturateUnsigned(double value, int bits)
{
    if (!(value > 0)) {
        return 0;
    }
    const double limit = std::ldexp(1.0, bits);
    return value >= limit ? (int64_t{1} << bits) - 1 : static_cast<int64_t>(value);
}

}  // namespace evokernel::twin
