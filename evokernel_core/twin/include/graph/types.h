// Data types and formats as host code names them.
#pragma once
#include <cstdint>

#include "evokernel/twin/data_types.h"

namespace ge {

#define EVOKERNEL_GE_DATA_TYPE(name, number) DT_##name = number,
#define EVOKERNEL_GE_FORMAT(name, number) FORMAT_##name = number,
enum DataType : int32_t { EVOKERNEL_DATA_TYPES(EVOKERNEL_GE_DATA_TYPE) };
enum Format : int32_t { EVOKERNEL_FORMATS(EVOKERNEL_GE_FORMAT) };
#undef EVOKERNEL_GE_DATA_TYPE
#undef EVOKERNEL_GE_FORMAT

}  // namespace ge
