// What every high-level function shares.
#include "advanced/advanced.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <string>
#include <type_traits>

#include "sampled.h"
#include "vector/convert.h"
#include "vector/rounding.h"
#include "vector/walk.h"

namespace evokernel::twin {

namespace {

std::string TypeNames(uint32_t types)
{
    std::string names;
    for (int i = 0; i <= static_cast<int>(DType::F64); ++i) {
        if ((types >> i & 1U) != 0) {
            names += (names.empty() ? "" : ", ") + std::string(DTypeName(static_cast<DType>(i)));
        }
    }
    return names;
}

template <typename T> void Widen(const uint8_t *from, float *to, uint64_t count)
{
    for (uint64_t i = 0; i < count; ++i) {
        T value;
        std::memcpy(&value, from + i * sizeof(T), sizeof(T));
        to[i] = static_cast<float>(value);
    }
}

template <typename T> void Narrow(const float *from, uint8_t *to, uint64_t count)
{
    for (uint64_t i = 0; i < count; ++i) {
        const double nearest = RoundToInteger(from[i], AscendC::RoundMode::CAST_RINT);
        const int bits = static_cast<int>(8 * sizeof(T));
        const T value = std::is_signed_v<T> ? static_cast<T>(SaturateSigned(nearest, bits))
                                            : static_cast<T>(SaturateUnsigned(nearest, bits));
        std::memcpy(to + i * sizeof(T), &value, sizeof(T));
    }
}

}  // namespace

bool TimingOnly() { return TheCore().timing; }

std::vector<float> Numbers(const LocalRef &tensor, uint64_t first, uint64_t count)
{
    std::vector<float> values(count);
    const uint8_t *from = TheCore().ub + tensor.address + first * DTypeBytes(tensor.dtype);
    switch (tensor.dtype) {
        case DType::F16: HalfToFloat(reinterpret_cast<const uint16_t *>(from), values.data(), count); break;
        case DType::BF16: BfloatToFloat(reinterpret_cast<const uint16_t *>(from), values.data(), count); break;
        case DType::F32: std::memcpy(values.data(), from, count * sizeof(float)); break;
        case DType::S8: Widen<int8_t>(from, values.data(), count); break;
        case DType::U8: Widen<uint8_t>(from, values.data(), count); break;
        case DType::S16: Widen<int16_t>(from, values.data(), count); break;
        case DType::U16: Widen<uint16_t>(from, values.data(), count); break;
        case DType::S32: Widen<int32_t>(from, values.data(), count); break;
        case DType::U32: Widen<uint32_t>(from, values.data(), count); break;
        default: break;
    }
    return values;
}

void SetNumbers(const LocalRef &tensor, uint64_t first, const float *values, uint64_t count)
{
    uint8_t *to = TheCore().ub + tensor.address + first * DTypeBytes(tensor.dtype);
    switch (tensor.dtype) {
        case DType::F16: FloatToHalf(values, reinterpret_cast<uint16_t *>(to), count); break;
        case DType::BF16: FloatToBfloat(values, reinterpret_cast<uint16_t *>(to), count); break;
        case DType::F32: std::memcpy(to, values, count * sizeof(float)); break;
        case DType::S8: Narrow<int8_t>(values, to, count); break;
        case DType::U8: Narrow<uint8_t>(values, to, count); break;
        case DType::S16: Narrow<int16_t>(values, to, count); break;
        case DType::U16: Narrow<uint16_t>(values, to, count); break;
        case DType::S32: Narrow<int32_t>(values, to, count); break;
        case DType::U32: Narrow<uint32_t>(values, to, count); break;
        default: break;
    }
}

float NumberAt(const LocalRef &tensor, uint64_t index) { return Numbers(tensor, index, 1)[0]; }
void SetNumber(const LocalRef &tensor, uint64_t index, float value) { SetNumbers(tensor, index, &value, 1); }

float RoundTo(DType type, float value)
{
    if (type == DType::F16) {
        return HalfValue(HalfBits(value));
    }
    if (type == DType::BF16) {
        uint16_t bits;
        FloatToBfloat(&value, &bits, 1);
        BfloatToFloat(&bits, &value, 1);
    }
    return value;
}

bool Undefined(const LocalRef &tensor, uint64_t first, uint64_t count)
{
    const uint32_t width = DTypeBytes(tensor.dtype);
    return count != 0 && AnyUndefined(static_cast<uint32_t>(tensor.address + first * width), count * width);
}

void MarkElements(const LocalRef &tensor, uint64_t first, uint64_t count, bool undefined)
{
    const uint32_t width = DTypeBytes(tensor.dtype);
    if (sampled::active) {
        sampled::Open(Space::UB, tensor.address + first * width, count * width);
    }
    std::memset(TheCore().undefined + tensor.address + first * width, undefined ? kUndefined : 0, count * width);
}

float PairSum(std::vector<float> values)
{
    if (values.empty()) {
        return 0;
    }
    for (size_t n = values.size(); n > 1; n = (n + 1) / 2) {
        for (size_t i = 0; 2 * i < n; ++i) {
            values[i] = 2 * i + 1 < n ? values[2 * i] + values[2 * i + 1] : values[2 * i];
        }
    }
    return values[0];
}

void Advanced::Simple(uint64_t elements, uint32_t width, int times) const
{
    const double cycles = static_cast<double>(AlignTo(elements * width, kRepeatBytes)) / width / SimpleRate(width);
    for (int i = 0; i < times && elements != 0; ++i) {
        RunVector(name_, cycles, at_);
    }
}

void Advanced::Slow(uint64_t elements, uint32_t width, int times) const
{
    const double cycles =
        static_cast<double>(AlignTo(elements * width, kRepeatBytes)) / width / CurrentChip().transcendental;
    for (int i = 0; i < times && elements != 0; ++i) {
        RunVector(name_, cycles, at_);
    }
}

void Advanced::ReduceRows(uint64_t rows, uint64_t n, uint32_t width) const
{
    const Chip &chip = CurrentChip();
    const uint64_t lanes = kRepeatBytes / width;
    const double rate = width == 2 ? chip.reduce_repeat_b16 : chip.reduce_repeat_b32;
    for (uint64_t left = (n + lanes - 1) / lanes; rows != 0; left = (left + lanes - 1) / lanes) {
        RunVector(name_, static_cast<double>(rows * left * lanes) / rate, at_);
        if (left <= 1) {
            return;
        }
    }
}

void Advanced::Fail(const char *code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    ReportError(code, at_, "%s %s", name_, Wording::Of(format, arguments).c_str());
    va_end(arguments);
    good_ = false;
}

void Advanced::Type(const LocalRef &tensor, uint32_t types, const char *operand)
{
    if ((types & TypeBit(tensor.dtype)) == 0) {
        Fail("dtype-unsupported", "supports %s for %s on this chip, not %s.", TypeNames(types).c_str(), operand,
             DTypeName(tensor.dtype));
    }
}

void Advanced::Same(const LocalRef &tensor, const LocalRef &other, const char *operand)
{
    if (tensor.dtype != other.dtype) {
        Fail("dtype-unsupported", "takes %s in the type of the destination, but it is %s and not %s.", operand,
             DTypeName(tensor.dtype), DTypeName(other.dtype));
    }
}

void Advanced::Claim(const LocalRef &tensor, uint64_t elements, bool write, const char *operand)
{
    const uint64_t bytes = elements * DTypeBytes(tensor.dtype);
    const bool inside = uint64_t{tensor.address} + bytes <= tensor.limit;
    if (LocalRange(tensor, bytes, kBlockBytes, write, name_, operand, at_) == nullptr || !inside) {
        good_ = false;
        return;
    }
    ranges_.push_back({tensor.address, static_cast<uint32_t>(tensor.address + bytes), operand, write});
}

bool Advanced::Good()
{
    const auto empty = [](const Range &range) {
        return !range.write && sampled::Empty(Space::UB, range.begin, range.end - range.begin);
    };
    if (!good_ || !sampled::active || std::none_of(ranges_.begin(), ranges_.end(), empty)) {
        return good_;
    }
    for (const Range &range : ranges_) {
        if (range.write) {
            sampled::Clear(Space::UB, range.begin, range.end - range.begin);
        }
    }
    return false;
}

void Advanced::In(const LocalRef &tensor, uint64_t elements, const char *operand)
{
    Claim(tensor, elements, false, operand);
}

void Advanced::Out(const LocalRef &tensor, uint64_t elements, const char *operand)
{
    Claim(tensor, elements, true, operand);
}

void Advanced::Blocks(uint64_t bytes, const char *what)
{
    if (bytes % kBlockBytes != 0) {
        Fail("alignment", "needs %s of a multiple of 32 bytes, but they have %llu; pad them.", what,
             static_cast<unsigned long long>(bytes));
    }
}

void Advanced::Apart(const LocalRef &a, uint64_t a_elements, const char *a_name, const LocalRef &b,
                     uint64_t b_elements, const char *b_name)
{
    const uint64_t a_end = a.address + a_elements * DTypeBytes(a.dtype);
    const uint64_t b_end = b.address + b_elements * DTypeBytes(b.dtype);
    if (a.address < b_end && b.address < a_end && a_elements != 0 && b_elements != 0) {
        ReportError("overlap", at_, "%s does not allow %s and %s to share memory; give each its own buffer.", name_,
                    a_name, b_name);
    }
}

void Advanced::Temporary(const LocalRef *buffer, uint64_t minimum)
{
    const Core &core = TheCore();
    if (buffer == nullptr) {
        const uint64_t total = CurrentChip().ub_total_bytes;
        const uint64_t used = core.used[static_cast<int>(Space::UB)];
        if (core.pipes_open > 0 && used + minimum > total) {
            ReportError("ub-capacity", at_,
                        "%s takes a temporary of %llu bytes from what is left of UB, but only %llu of %llu are free; "
                        "make the buffers smaller.",
                        name_, static_cast<unsigned long long>(minimum),
                        static_cast<unsigned long long>(total > used ? total - used : 0),
                        static_cast<unsigned long long>(total));
        }
        return;
    }
    if (buffer->bytes < minimum) {
        ReportError("temp-buffer", at_,
                    "%s got a temporary buffer of %u bytes but needs at least %llu; ask the GetXxxMaxMinTmpSize "
                    "function of the host for its size.",
                    name_, buffer->bytes, static_cast<unsigned long long>(minimum));
    }
    Spoil(buffer, std::min<uint64_t>(minimum, buffer->bytes));
}

void Advanced::Spoil(const LocalRef *buffer, uint64_t bytes)
{
    if (bytes == 0 || TimingOnly()) {
        return;
    }
    for (const Range &range : ranges_) {
        if (buffer->address < range.end && range.begin < buffer->address + bytes) {
            ReportError("overlap", at_, "%s does not allow its temporary buffer and %s to share memory.", name_,
                        range.operand);
            return;
        }
    }
    if (LocalRange(*buffer, bytes, kBlockBytes, true, name_, "sharedTmpBuffer", at_) != nullptr) {
        std::memset(TheCore().undefined + buffer->address, kUndefined, bytes);
    }
}

}  // namespace evokernel::twin
