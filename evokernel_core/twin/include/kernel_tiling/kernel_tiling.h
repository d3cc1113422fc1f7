// Tiling structures of the high-level interfaces.
#pragma once
#include "evokernel/twin/matmul/cube_tiling.h"
#include "evokernel/twin/tiling_structs.h"
#include "evokernel/twin/tiling_vector.h"
