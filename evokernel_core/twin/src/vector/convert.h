// Arrays of 16-bit floats to float and back, rounding to nearest even.
#pragma once
#include <cstddef>
#include <cstdint>

namespace evokernel::twin {

void HalfToFloat(const uint16_t *from, float *to, size_t n);
void FloatToHalf(const float *from, uint16_t *to, size_t n);
void BfloatToFloat(const uint16_t *from, float *to, size_t n);
void FloatToBfloat(const float *from, uint16_t *to, size_t n);

}  // namespace evokernel::twin
