// How long the instructions of the vector pipe take, by the class that the table gives them.
#pragma once
#include "evokernel/twin/api_table.h"

namespace evokernel::twin {

// Cycles before the first repeat.
double StartUpOf(Cost cost);

// Elements a cycle, of `width` bytes each (the wider of source and destination).
double RateOf(Cost cost, uint32_t width);

}  // namespace evokernel::twin
