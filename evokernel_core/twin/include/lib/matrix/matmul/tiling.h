#pragma once
#include "lib/matmul/tiling.h"
