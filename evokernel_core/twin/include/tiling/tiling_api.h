// Tiling functions of the high-level interfaces for the host.
#pragma once
#include "evokernel/twin/host_data.h"
#include "evokernel/twin/host_math.h"
#include "evokernel/twin/host_rows.h"
#include "evokernel/twin/host_vector.h"
#include "register/tilingdata_base.h"
