// Global memory traffic of the matrix side.
#pragma once
#include "core.h"

namespace evokernel::twin {

// Counts the time of a transfer on any pipe. `stride` is that of the GM side; the instruction takes at least
// `cycles`.
void AccountGlobal(Pipe pipe, bool load, const GlobalRef &tensor, Burst burst, uint32_t stride, double cycles,
                   const char *name, At at);

// Writes one piece to global memory, under the core's atomic mode.
void StoreGlobal(Allocation &block, uint8_t *to, const uint8_t *from, uint32_t bytes, const char *api, At at);

}  // namespace evokernel::twin
