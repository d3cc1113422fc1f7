#pragma once
#include "evokernel/twin/matmul/host_tiling.h"
