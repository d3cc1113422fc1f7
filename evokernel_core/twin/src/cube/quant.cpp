#include "cube/quant.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "vector/convert.h"
#include "vector/rounding.h"

namespace evokernel::twin {

namespace {

constexpr float kHalfMax = 65504;

// The fields of a quantisation parameter.
struct Parameter {
    float scale;    // 1 sign, 8 exponent and 10 mantissa bits
    int shift;      // 1 to 16
    bool shifts;    // the integer is shifted to 16 bits first
    int offset;     // 9 bits
    bool is_signed;
};

Parameter Decode(uint64_t bits)
{
    Parameter parameter{};
    const uint32_t scale = static_cast<uint32_t>(bits) & ~((1U << 13) - 1);
    std::memcpy(&parameter.scale, &scale, sizeof(scale));
    parameter.shift = static_cast<int>((bits >> 32) & 15) + 1;
    parameter.shifts = ((bits >> 36) & 1) != 0;
    const int offset = static_cast<int>((bits >> 37) & 511);
    parameter.offset = offset >= 256 ? offset - 512 : offset;
    parameter.is_signed = ((bits >> 46) & 1) != 0;
    return parameter;
}

float SourceValue(DType from, const uint8_t *source, const Parameter &parameter)
{
    if (from == DType::F32) {
        float value;
        std::memcpy(&value, source, sizeof(value));
        return value;
    }
    int32_t value;
    std::memcpy(&value, source, sizeof(value));
    if (parameter.shifts) {
        value = static_cast<int32_t>(SaturateSigned(static_cast<double>(value >> parameter.shift), 16));
    }
    return static_cast<float>(value);
}

// ReLU is a scale of 0 for what is negative.
float Scaled(float value, const Parameter &parameter, bool relu)
{
    return value < 0 && relu ? 0.0F : value * parameter.scale;
}

// To 9 bits, then the offset, then 8 bits.
uint8_t ToByte(float value, const Parameter &parameter)
{
    const double rounded = RoundToInteger(value, AscendC::RoundMode::CAST_RINT);
    const double shifted = static_cast<double>(SaturateSigned(rounded, 9) + parameter.offset);
    return static_cast<uint8_t>(parameter.is_signed ? SaturateSigned(shifted, 8) : SaturateUnsigned(shifted, 8));
}

void Plain(bool relu, DType from, const uint8_t *source, uint32_t n, uint8_t *target)
{
    std::memcpy(target, source, n * 4);
    for (uint32_t i = 0; relu && i < n; ++i) {
        // Both types are negative exactly where the top bit is set; -0 becomes 0, and NaN stays as it is.
        float value;
        std::memcpy(&value, target + i * 4, 4);
        if ((target[i * 4 + 3] & 0x80) != 0 && !(from == DType::F32 && std::isnan(value))) {
            std::memset(target + i * 4, 0, 4);
        }
    }
}

void Cast(QuantMode_t mode, bool relu, const uint8_t *source, uint32_t n, uint8_t *target)
{
    float values[256];
    for (uint32_t done = 0; done < n; done += 256) {
        const uint32_t count = std::min(n - done, 256U);
        Plain(relu, DType::F32, source + done * 4, count, reinterpret_cast<uint8_t *>(values));
        auto *to = reinterpret_cast<uint16_t *>(target) + done;
        if (mode == QuantMode_t::F322F16) {
            FloatToHalf(values, to, count);
        } else {
            FloatToBfloat(values, to, count);
        }
    }
}

}  // namespace

bool SupportsQuant(QuantMode_t mode, DType from, DType to)
{
    const bool real = from == DType::F32;
    const bool byte = to == DType::S8 || to == DType::U8;
    switch (mode) {
        case QuantMode_t::NoQuant:
            return from == to && (real || from == DType::S32);
        case QuantMode_t::F322F16:
            return real && to == DType::F16;
        case QuantMode_t::F322BF16:
            return real && to == DType::BF16;
        case QuantMode_t::DEQF16:
        case QuantMode_t::VDEQF16:
            return from == DType::S32 && to == DType::F16;
        case QuantMode_t::QF322B8_PRE:
        case QuantMode_t::VQF322B8_PRE:
            return real && byte;
        default:
            return from == DType::S32 && byte;
    }
}

bool IsVectorQuant(QuantMode_t mode)
{
    return mode == QuantMode_t::VDEQF16 || mode == QuantMode_t::VQF322B8_PRE || mode == QuantMode_t::VREQ8;
}

bool NeedsScale(QuantMode_t mode)
{
    return mode != QuantMode_t::NoQuant && mode != QuantMode_t::F322F16 && mode != QuantMode_t::F322BF16;
}

void Quantise(QuantMode_t mode, DType from, DType to, bool relu, const uint8_t *source, uint32_t n,
              const uint64_t *parameters, uint32_t step, uint8_t *target)
{
    if (mode == QuantMode_t::NoQuant) {
        return Plain(relu, from, source, n, target);
    }
    if (!NeedsScale(mode)) {
        return Cast(mode, relu, source, n, target);
    }
    for (uint32_t i = 0; i < n; ++i) {
        const Parameter parameter = Decode(parameters[i * step]);
        const float value = Scaled(SourceValue(from, source + i * 4, parameter), parameter, relu);
        if (to == DType::F16) {
            const uint16_t half = RoundToHalf(std::clamp(value, -kHalfMax, kHalfMax), AscendC::RoundMode::CAST_RINT);
            std::memcpy(target + i * 2, &half, sizeof(half));
        } else {
            target[i] = ToByte(value, parameter);
        }
    }
}

}  // namespace evokernel::twin
