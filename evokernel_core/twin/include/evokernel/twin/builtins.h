// Names that kernels use without a namespace.
#pragma once
#include <cstdint>

#include "evokernel/twin/branches.h"
#include "evokernel/twin/control.h"
#include "evokernel/twin/cross.h"
#include "evokernel/twin/instructions.h"
#include "evokernel/twin/pipe.h"
#include "evokernel/twin/reduce.h"
#include "evokernel/twin/sync.h"

namespace AscendC {

struct AscendCUtils {
    // Bit 48 of the control register: 1 keeps infinities and NaN, 0 saturates.
    static void SetOverflow(uint64_t mode, EVK_AT) { twin::SetControl(48, 48, static_cast<int64_t>(mode), at); }
    // The mask of the first `length` elements of a repeat, and a mask by its bits.
    template <typename T> static void SetMask(int32_t length) { SetVectorMask<T, MaskMode::NORMAL>(length); }
    template <typename T> static void SetMask(uint64_t high, uint64_t low)
    {
        SetVectorMask<T, MaskMode::NORMAL>(high, low);
    }
    template <typename T> static void SetMaskCount() { AscendC::SetMaskCount(); }
    template <typename T> static void SetMaskNorm() { AscendC::SetMaskNorm(); }
    static void ResetMask() { AscendC::ResetMask(); }
    // Elements of a block of 32 bytes.
    static constexpr int32_t GetC0Count(int32_t bytes) { return 32 / bytes; }
    static constexpr int32_t GetBitSize(int32_t bytes) { return 8 * bytes; }
};

}  // namespace AscendC

// The instructions by which kernels of older versions set flags and masks, each on its own core type.
inline void set_flag(pipe_t from, pipe_t to, int64_t id, EVK_AT)
{
    const auto event = evokernel::twin::EventOf(from, to);
    if (event == AscendC::HardEvent::MAX) {
        return evokernel::twin::NoSuchFlag("set_flag", at);
    }
    evokernel::twin::SetFlag(event, id, at);
}
inline void wait_flag(pipe_t from, pipe_t to, int64_t id, EVK_AT)
{
    const auto event = evokernel::twin::EventOf(from, to);
    if (event == AscendC::HardEvent::MAX) {
        return evokernel::twin::NoSuchFlag("wait_flag", at);
    }
    evokernel::twin::WaitFlag(event, id, at);
}
// Flags between cores. `config`: the mode from bit 4 on, the flag from bit 8 on.
inline void ffts_cross_core_sync(pipe_t pipe, uint64_t config, EVK_AT)
{
    evokernel::twin::CrossCoreSet(static_cast<uint8_t>(config >> 4 & 3), pipe, static_cast<uint16_t>(config >> 8 & 15),
                                  at);
}
inline void wait_flag_dev(int64_t id, EVK_AT) { evokernel::twin::CrossCoreWait(static_cast<uint16_t>(id), at); }
// The register of the last maximum or minimum: the value's bits, and its index above them.
inline int64_t get_max_min_cnt()
{
    float value = 0;
    uint32_t index = 0;
    evokernel::twin::LastMaxMin(&value, &index);
    return static_cast<int64_t>(uint64_t{index} << 32 | __builtin_bit_cast(uint32_t, value));
}
// A word with one bit cleared or set.
inline constexpr uint64_t sbitset0(uint64_t word, int64_t bit) { return word & ~(uint64_t{1} << bit); }
inline constexpr uint64_t sbitset1(uint64_t word, int64_t bit) { return word | uint64_t{1} << bit; }
inline void set_mask_count() { AscendC::SetMaskCount(); }
inline void set_mask_norm() { AscendC::SetMaskNorm(); }
inline void set_vector_mask(uint64_t high, uint64_t low)
{
    AscendC::SetVectorMask<uint8_t, AscendC::MaskMode::NORMAL>(high, low);
}

// No templates, so that a program that also says `using namespace std` still finds one best function.
#define EVK_MIN_MAX(Type)                                                  \
    inline constexpr Type min(Type a, Type b) { return b < a ? b : a; }    \
    inline constexpr Type max(Type a, Type b) { return a < b ? b : a; }
EVK_MIN_MAX(int32_t)
EVK_MIN_MAX(uint32_t)
EVK_MIN_MAX(int64_t)
EVK_MIN_MAX(uint64_t)
EVK_MIN_MAX(float)
#undef EVK_MIN_MAX
