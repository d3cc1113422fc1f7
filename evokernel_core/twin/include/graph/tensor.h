#pragma once
#include "evokernel/operator/types.h"
#include "evokernel/twin/host_types.h"
