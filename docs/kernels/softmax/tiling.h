#pragma once
#include <cstdint>

constexpr uint64_t UB_BYTES_NEEDED = 92128;
constexpr uint32_t TILE_ELEMENTS = 5376;
constexpr uint32_t ROW_CAPACITY = 64;
constexpr uint32_t COLUMN_CAPACITY = 2048;
constexpr uint64_t WIDEST_STEP = 8; // of the narrowest type in 32 bytes
constexpr uint32_t FLOATS_PER_BLOCK = 8;

struct OpTiling {
    uint32_t blockDim;
    uint64_t workspaceBytes;
    uint64_t rows;
    uint64_t rowsPerCore;
    uint32_t rowsPerTile;
    uint32_t columns;
    uint32_t pitch;
};

inline uint64_t CeilDiv(uint64_t value, uint64_t divisor)
{
    return (value + divisor - 1) / divisor;
}

inline uint64_t RoundUp(uint64_t value, uint64_t step)
{
    return CeilDiv(value, step) * step;
}

inline bool ComputeTiling(const int64_t *sizes, const float *scalars, uint32_t coreNum, uint64_t ubBytes,
                          OpTiling &tiling)
{
    const int64_t rows = sizes[0];
    const int64_t columns = sizes[1];
    const int64_t rowCount = rows;
    const int64_t columnCount = columns;
    if (rowCount < 1 || columnCount < 1 || ubBytes < UB_BYTES_NEEDED) {
        return false;
    }
    const uint64_t cores = coreNum;
    tiling.rows = static_cast<uint64_t>(rowCount);
    tiling.rowsPerCore = CeilDiv(tiling.rows, cores);
    tiling.blockDim = static_cast<uint32_t>(CeilDiv(tiling.rows, tiling.rowsPerCore));
    const uint64_t widestPitch = RoundUp(static_cast<uint64_t>(columnCount), WIDEST_STEP);
    if (widestPitch > TILE_ELEMENTS || columnCount > COLUMN_CAPACITY) {
        return false;
    }
    tiling.columns = static_cast<uint32_t>(columnCount);
    tiling.pitch = static_cast<uint32_t>(RoundUp(tiling.columns, FLOATS_PER_BLOCK));
    uint64_t most = TILE_ELEMENTS / widestPitch;
    most = most < ROW_CAPACITY ? most : ROW_CAPACITY;
    const uint64_t tiles = CeilDiv(tiling.rowsPerCore, most);
    tiling.rowsPerTile = static_cast<uint32_t>(CeilDiv(tiling.rowsPerCore, tiles));
    tiling.workspaceBytes = 0;
    return true;
}
