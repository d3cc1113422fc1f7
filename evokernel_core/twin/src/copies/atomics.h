// Element-wise accumulation of a copy into global memory.
#pragma once
#include <cstdint>

#include "evokernel/twin/api.h"

namespace evokernel::twin {

void ApplyAtomic(Atomic op, DType dtype, uint8_t *to, const uint8_t *from, uint32_t bytes);

}  // namespace evokernel::twin
