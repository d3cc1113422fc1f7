#pragma once
#include <algorithm>
#include <cstdint>

struct OpTiling {
    uint32_t blockDim;
    uint64_t workspaceBytes;
    uint32_t total;
    uint32_t perBlock;
    uint32_t tile;
};

inline bool ComputeTiling(const int64_t *sizes, const float *, uint32_t coreNum, uint64_t ubBytes, OpTiling &tiling)
{
    constexpr uint32_t LANES = 64; // float elements of one repeat
    if (sizes[0] >> 32) {
        return false;
    }
    uint32_t total = static_cast<uint32_t>(sizes[0]);
    uint32_t repeats = (total + LANES - 1) / LANES;
    tiling.total = total;
    tiling.perBlock = (repeats + coreNum - 1) / coreNum * LANES;
    tiling.tile = std::min(tiling.perBlock, static_cast<uint32_t>(ubBytes / 16) / LANES * LANES);
    tiling.blockDim = (total + tiling.perBlock - 1) / tiling.perBlock;
    tiling.workspaceBytes = 0;
    return true;
}
