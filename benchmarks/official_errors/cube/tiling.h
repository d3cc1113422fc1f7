#pragma once
#include <cstdint>

struct OpTiling {
    uint32_t blockDim;
    uint32_t k;
};
