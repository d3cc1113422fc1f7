#pragma once
#include <cstdint>

constexpr uint32_t WIDEST_STEP = 8; // of the narrowest type in 32 bytes
constexpr uint32_t TILE_ELEMENTS = 5376;
constexpr uint32_t COLUMN_CAPACITY = 2048;
constexpr uint32_t FLOATS_PER_BLOCK = 8;
constexpr uint32_t ROW_CAPACITY = 64;
constexpr uint32_t LANES = 64; // float32 elements of one repeat
constexpr uint32_t BLOCKS_PER_REPEAT = 8;
constexpr uint32_t FOLD_EVEN = 672;
constexpr uint32_t FOLD_ODD = 88;
constexpr uint64_t UB_BYTES_NEEDED = 92128;

struct OpTiling {
    uint32_t blockDim;
    uint64_t workspaceBytes;
    uint64_t rows;
    uint64_t rowsPerCore;
    uint32_t columns;
    uint32_t pitch;
    uint32_t rowsPerTile;
};

inline bool ComputeTiling(const int64_t *sizes, const float *scalars, uint32_t coreNum,
                          uint64_t ubBytes, OpTiling &tiling)
{
    const int64_t rows = sizes[0];
    const int64_t columns = sizes[1];
    tiling = {};
    if (ubBytes < UB_BYTES_NEEDED) {
        return false;
    }
    tiling.rows = static_cast<uint64_t>(rows);
    const uint64_t columnCount = static_cast<uint64_t>(columns);
    if (tiling.rows < 1 || columnCount < 1) {
        return false;
    }
    tiling.rowsPerCore = (tiling.rows + coreNum - 1) / coreNum;
    const uint64_t widestPitch = (columnCount + WIDEST_STEP - 1) / WIDEST_STEP * WIDEST_STEP;
    if (widestPitch > TILE_ELEMENTS || columnCount > COLUMN_CAPACITY) {
        return false;
    }
    tiling.columns = static_cast<uint32_t>(columnCount);
    tiling.pitch = static_cast<uint32_t>((columnCount + FLOATS_PER_BLOCK - 1) / FLOATS_PER_BLOCK * FLOATS_PER_BLOCK);
    const uint64_t most = TILE_ELEMENTS / widestPitch < ROW_CAPACITY ? TILE_ELEMENTS / widestPitch : ROW_CAPACITY;
    tiling.rowsPerTile = static_cast<uint32_t>((tiling.rowsPerCore + (tiling.rowsPerCore + most - 1) / most - 1) /
        ((tiling.rowsPerCore + most - 1) / most));
    tiling.blockDim = static_cast<uint32_t>((tiling.rows + tiling.rowsPerCore - 1) / tiling.rowsPerCore < coreNum ?
        (tiling.rows + tiling.rowsPerCore - 1) / tiling.rowsPerCore : coreNum);
    return true;
}
