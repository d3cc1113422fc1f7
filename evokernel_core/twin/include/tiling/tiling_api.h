// Tiling functions of the high-level interfaces for the host.
#pragma once
#include <iostream>  // programs that include only this header print

#include "register/tilingdata_base.h"
#include "securec.h"
//
#include "evokernel/twin/host_data.h"
#include "evokernel/twin/host_math.h"
#include "evokernel/twin/host_rows.h"
#include "evokernel/twin/host_vector.h"
#include "evokernel/twin/matmul/host_tiling.h"
#include "tiling/platform/platform_ascendc.h"
