#pragma once
#include <cstdint>

constexpr uint32_t TILE_ELEMENTS = 1024;

struct OpTiling {
    uint32_t blockDim;
    uint32_t tiles;
    uint32_t tail;
    float scale;
};

inline uint32_t TilesOf(uint32_t count)
{
    return (count + TILE_ELEMENTS - 1) / TILE_ELEMENTS;
}
