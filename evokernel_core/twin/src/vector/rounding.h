// Rounding of single values as the conversion instructions do it.
#pragma once
#include <cstdint>

#include "evokernel/twin/enums.h"

namespace evokernel::twin {

// To the integer grid; ties as the mode says (NONE acts as RINT).
double RoundToInteger(double value, AscendC::RoundMode mode);

// To binary16 and bfloat16 patterns. Overflow gives infinity for the nearest modes.
uint16_t RoundToHalf(float value, AscendC::RoundMode mode);
uint16_t RoundToBfloat(float value, AscendC::RoundMode mode);

// To an integer type of `bits` bits, saturating; NaN gives 0.
int64_t SaturateSigned(double value, int bits);
int64_t SaturateUnsigned(double value, int bits);

}  // namespace evokernel::twin
