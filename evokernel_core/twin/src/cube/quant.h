// How Fixpipe converts what it takes out of L0C.
#pragma once
#include <cstdint>

#include "evokernel/twin/cube_types.h"
#include "evokernel/twin/refs.h"

namespace evokernel::twin {

// Whether the mode turns `from` into `to` on this chip.
bool SupportsQuant(QuantMode_t mode, DType from, DType to);
bool IsVectorQuant(QuantMode_t mode);
bool NeedsScale(QuantMode_t mode);

// Converts `n` elements of L0C (float or int32) with one 64-bit parameter each; `step` 0: the same for all.
void Quantise(QuantMode_t mode, DType from, DType to, bool relu, const uint8_t *source, uint32_t n,
              const uint64_t *parameters, uint32_t step, uint8_t *target);

}  // namespace evokernel::twin
