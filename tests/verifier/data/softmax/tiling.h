#pragma once
#include <cstdint>

struct OpTiling {
    uint32_t blockDim;
    uint64_t workspaceBytes;
    uint32_t rows;
    uint32_t columns;
};

// One row at a time: half in and out (both double-buffered), one float copy and scratch for the reductions.
inline bool ComputeTiling(const int64_t *sizes, const float *, uint32_t coreNum, uint64_t ubBytes, OpTiling &tiling)
{
    uint64_t columns = static_cast<uint64_t>(sizes[1]);
    uint64_t padded = (columns + 63) / 64 * 64;
    if (padded * (4 * sizeof(uint16_t) + 2 * sizeof(float)) + 1024 > ubBytes) {
        return false;
    }
    tiling.rows = static_cast<uint32_t>(sizes[0]);
    tiling.columns = static_cast<uint32_t>(columns);
    tiling.blockDim = tiling.rows < coreNum ? tiling.rows : coreNum;
    tiling.workspaceBytes = 0;
    return true;
}
