// The control register, saturation, padding value, atomic configuration and uncached access.
#include <cstring>
#include <deque>

#include "core.h"
#include "evokernel/twin/api_vector.h"
#include "evokernel/twin/shape.h"

namespace evokernel::twin {

namespace {

constexpr uint64_t Field(int first, int last)
{
    const int bits = last - first + 1;
    return bits >= 64 ? ~uint64_t{0} : ((uint64_t{1} << bits) - 1) << first;
}

GlobalRef RawRef(const void *address, uint32_t width)
{
    GlobalRef ref;
    ref.address = static_cast<uint8_t *>(const_cast<void *>(address));
    ref.bytes = width;
    return ref;
}

}  // namespace

void SetControl(int first, int last, int64_t value, At at)
{
    Core &core = TheCore();
    core.time.Scalar(CurrentChip().flag);
    if (first != kSaturationBit || last != kSaturationBit) {
        ReportError("param-limit", at, "SetCtrlSpr may set bit 48 only on this chip, not bits %d to %d.", first, last);
        return;
    }
    const uint64_t field = Field(first, last);
    core.registers.control =
        (core.registers.control & ~field) | (static_cast<uint64_t>(value) << first & field);
}

int64_t GetControl(int first, int last)
{
    Core &core = TheCore();
    core.time.Scalar(CurrentChip().flag);
    return static_cast<int64_t>((core.registers.control & Field(first, last)) >> first);
}

void SetSaturation(bool floats, bool enabled)
{
    Core &core = TheCore();
    core.time.Scalar(CurrentChip().flag);
    if (floats) {
        const uint64_t bit = uint64_t{1} << kSaturationBit;
        core.registers.control = enabled ? core.registers.control & ~bit : core.registers.control | bit;
    } else {
        core.registers.cast_wraps = !enabled;
    }
}

bool GetSaturation(bool floats)
{
    const Registers &registers = TheCore().registers;
    return floats ? registers.Saturates() : !registers.cast_wraps;
}

void SaturateFloats(DType type, uint16_t *values, uint64_t n)
{
    const uint16_t infinity = type == DType::F16 ? 0x7C00 : 0x7F80;
    for (uint64_t i = 0; i < n; ++i) {
        const uint16_t magnitude = values[i] & 0x7FFF;
        if (magnitude == infinity) {
            values[i] = static_cast<uint16_t>(values[i] - 1);
        } else if (magnitude > infinity) {
            values[i] = 0;
        }
    }
}

void SetPadPattern(uint64_t pattern)
{
    TheCore().time.Scalar(CurrentChip().flag);
    TheCore().registers.pad_pattern = pattern;
    TheCore().registers.has_pad_pattern = true;
}

void SetAtomicDType(DType dtype, At at)
{
    SetAtomic(TheCore().atomic, dtype, at);
}

void GetAtomic(Atomic *op, DType *dtype)
{
    *op = TheCore().atomic;
    *dtype = TheCore().atomic_type;
}

uint64_t GlobalWord(const uint64_t *address, At at)
{
    const Allocation *block =
        Gm().Check(RawRef(address, 8), reinterpret_cast<const uint8_t *>(address), 8, false, "ListTensorDesc", at);
    TheCore().time.Scalar(CurrentChip().gm_hit);
    if (block == nullptr || block->mapping == nullptr) {
        return 0;
    }
    uint64_t word;
    std::memcpy(&word, address, 8);
    return word;
}

void CheckTensorList(uint32_t length, uint32_t count, uint64_t found_length, uint32_t found_count, At at)
{
    constexpr uint32_t unchecked = 0xffffffff;
    if ((length != unchecked && length < found_length) || (count != unchecked && count != found_count)) {
        ReportError("param-limit", at,
                    "ListTensorDesc finds %u tensors in %llu bytes, but was told %u in %u; pass what the host wrote.",
                    found_count, static_cast<unsigned long long>(found_length), count, length);
    }
}

}  // namespace evokernel::twin
