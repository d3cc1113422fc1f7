// Names that kernels use without a namespace.
#pragma once
#include <cstdint>

#include "evokernel/twin/control.h"
#include "evokernel/twin/pipe.h"

namespace AscendC {

struct AscendCUtils {
    // Bit 48 of the control register: 1 keeps infinities and NaN, 0 saturates.
    static void SetOverflow(uint64_t mode, EVK_AT) { twin::SetControl(48, 48, static_cast<int64_t>(mode), at); }
};

}  // namespace AscendC

// Hints about branches.
inline constexpr bool likely(bool condition) { return condition; }
inline constexpr bool unlikely(bool condition) { return condition; }

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
