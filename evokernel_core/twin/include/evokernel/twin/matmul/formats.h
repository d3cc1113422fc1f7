// Formats, layouts and modes of a matrix product that host and kernel both name.
#pragma once
#include <cstdint>

#include "evokernel/twin/enums.h"

enum class CubeFormat : int8_t { ND = 0, NZ, ZN, ZZ, NN, ND_ALIGN, SCALAR, VECTOR, COLUMN_MAJOR };
enum class LayoutMode : int8_t { NONE = 0, BSNGD, SBNGD, BNGS1S2, NORMAL };
enum class ScheduleType : int8_t { INNER_PRODUCT = 0, OUTER_PRODUCT, N_BUFFER_33 };

namespace AscendC {

using ::CubeFormat;
using ::LayoutMode;
using ::ScheduleType;

}  // namespace AscendC
