// Pairs of a score and an index, and their order.
#pragma once
#include <cstdint>

#include "evokernel/twin/refs.h"

namespace evokernel::twin {

constexpr uint32_t kPairBytes = 8;

// The score of a pair, or of an element.
float PairScore(const uint8_t *pair, DType dtype);

// Whether a score comes before another in the descending order of the chip: NaN comes first of all.
bool ScoreBefore(float a, float b);

// Cycles of sorting or merging so many elements.
double SortCycles(double elements);

}  // namespace evokernel::twin
