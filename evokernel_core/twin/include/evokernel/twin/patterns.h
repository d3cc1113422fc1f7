// Which axes a reduction keeps (A) and which it reduces (R).
#pragma once
#include <cstdint>

namespace AscendC {

enum class ReducePattern : uint32_t {
    AR = 0, RA = 1, R, ARA, ARAR, ARARA, ARARAR, ARARARA, ARARARAR, ARARARARA, RAR, RARA, RARAR, RARARA, RARARAR,
    RARARARA,
};

}  // namespace AscendC
