#pragma once
#include <cstdint>

struct OpTiling {
    uint32_t blockDim;
    uint64_t workspaceBytes;
    uint64_t total;
    uint64_t perBlock;
    uint32_t tile;
};

constexpr uint32_t BUFFERS = 2;
constexpr uint32_t LANES = 128; // half elements of one repeat

inline bool ComputeTiling(const int64_t *sizes, const float *scalars, uint32_t coreNum, uint64_t ubBytes,
                          OpTiling &tiling)
{
    (void)scalars;
    uint64_t total = static_cast<uint64_t>(sizes[0]) * static_cast<uint64_t>(sizes[1]);
    uint64_t repeats = (total + LANES - 1) / LANES;
    uint64_t perBlock = (repeats + coreNum - 1) / coreNum * LANES;
    uint64_t tile = ubBytes / (3 * BUFFERS * sizeof(uint16_t)) / LANES * LANES;
    tiling.total = total;
    tiling.perBlock = perBlock;
    tiling.tile = static_cast<uint32_t>(tile < perBlock ? tile : perBlock);
    tiling.blockDim = static_cast<uint32_t>((total + perBlock - 1) / perBlock);
    tiling.workspaceBytes = 0;
    return true;
}
