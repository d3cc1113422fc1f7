#pragma once
#include "evokernel/operator/tiling_class.h"
