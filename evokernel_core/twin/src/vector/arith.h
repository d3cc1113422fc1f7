// The arithmetic of the element-wise instructions, over contiguous lanes.
#pragma once
#include <cstddef>

#include "evokernel/twin/api.h"

namespace evokernel::twin {

constexpr size_t kChunk = 1024;  // lanes handed to one call at most

// What the lanes of one call are: raw element arrays in the operands' own types. `dst` holds the old
// values where the instruction accumulates.
struct Lanes {
    const void *src0;
    const void *src1;
    void *dst;
    size_t n;
};

// Computes, for types that the instruction's row takes. Returns true where a finite input overflowed to infinity.
bool ComputeLanes(const VecCall &call, const Lanes &lanes);

}  // namespace evokernel::twin
