// Scalars of sampled runs that come from bytes without a value: numbers that a kernel cannot tell from others.
//
// A kernel that reads one could do less where it is told that nobody looks. So it is given what was read at the same
// place of its text before, a little smaller where that is a fraction, which keeps places and counts within bounds.
#pragma once
#include <cstdint>

#include "evokernel/twin/at.h"
#include "evokernel/twin/refs.h"

namespace evokernel::twin::sampled {

// Begins anew; what is drawn from then on depends on `seed`.
void ForgetScalars(uint64_t seed);
void SeedScalars(const uint8_t *data, uint64_t bytes);

// The scalar whose `bytes` a kernel reads at a place; `held` is 0 for each of them that has no value.
uint64_t ScalarOf(const uint8_t *bytes, const uint8_t *held, DType dtype, At at);
// The same of a result that is known or not.
uint64_t ScalarOf(uint64_t bits, bool known, DType dtype, At at);
// The same of a count of at most `most`, which is its half where none was known before.
uint64_t CountOf(uint64_t count, bool known, uint64_t most, At at);

}  // namespace evokernel::twin::sampled
