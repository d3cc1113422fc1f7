#pragma once
#include <cstdint>

namespace stage0 {

constexpr uint32_t BASE_M = 128; // rows of one result in L0C
constexpr uint32_t BASE_N = 128;
constexpr uint32_t BASE_K = 64; // depth of one step in L0A and L0B
constexpr uint32_t PANEL_K = 128; // depth of one step in L1
constexpr uint32_t PARTS = 2; // results beside each other that make up a tile
constexpr uint32_t STRIP = 8; // tiles below each other that are computed one after the other
constexpr uint32_t FRACTAL = 16;

struct OpTiling {
    uint32_t blockDim;
    uint64_t workspaceBytes;
    uint64_t m;
    uint64_t n;
    uint64_t k;
    uint64_t aPitch; // elements from one row of memory to the next
    uint64_t bPitch;
    uint32_t tileM;
    uint32_t tileN;
    uint32_t partN; // columns of one result
    uint32_t tilesM;
    uint32_t tilesN;
    uint32_t strip;
    uint64_t tiles;
};

inline uint64_t CeilDiv(uint64_t value, uint64_t divisor)
{
    return (value + divisor - 1) / divisor;
}

// Equal tiles in whole fractals.
inline uint32_t TileLength(uint64_t length, uint32_t most)
{
    return static_cast<uint32_t>(CeilDiv(CeilDiv(length, CeilDiv(length, most)), FRACTAL) * FRACTAL);
}

inline bool ComputeTiling(const int64_t *sizes, const float *scalars, uint32_t coreNum, uint64_t ubBytes,
                          OpTiling &tiling)
{
    const int64_t rows = sizes[0];
    tiling.m = static_cast<uint64_t>(rows);
    tiling.n = static_cast<uint64_t>(4096);
    tiling.k = static_cast<uint64_t>(1024);
    const uint64_t batch = static_cast<uint64_t>(1);
    if (tiling.m < 1 || tiling.n < 1 || tiling.k < 1 || batch < 1) {
        return false;
    }
    tiling.aPitch = static_cast<uint64_t>(1024);
    tiling.bPitch = static_cast<uint64_t>(1024);
    tiling.tileM = TileLength(tiling.m, BASE_M);
    tiling.tileN = TileLength(tiling.n, PARTS * BASE_N);
    tiling.partN = TileLength(tiling.tileN, BASE_N);
    tiling.tilesM = static_cast<uint32_t>(CeilDiv(tiling.m, tiling.tileM));
    tiling.tilesN = static_cast<uint32_t>(CeilDiv(tiling.n, tiling.tileN));
    tiling.strip = STRIP < tiling.tilesM ? STRIP : tiling.tilesM;
    tiling.tiles = batch * tiling.tilesM * tiling.tilesN;
    const uint64_t cubes = coreNum > 1 ? coreNum / 2 : 1; // one cube core beside two vector cores
    tiling.blockDim = static_cast<uint32_t>(tiling.tiles < cubes ? tiling.tiles : cubes);
    tiling.workspaceBytes = 0;
    return true;
}

} // namespace stage0

namespace stage1 {

constexpr uint64_t UB_BYTES_NEEDED = 98304;
constexpr uint32_t TILE_ELEMENTS = 5120;
constexpr uint32_t ROW_CAPACITY = 64;
constexpr uint32_t COLUMN_CAPACITY = 4096;
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
    const int64_t rowCount = rows;
    const int64_t columnCount = 4096;
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

} // namespace stage1

// The tiling of each kernel, and where in the workspace the values between them lie.
struct OpTiling {
    uint32_t blockDim;
    uint64_t workspaceBytes;
    stage0::OpTiling stage0;
    stage1::OpTiling stage1;
    uint64_t slot0; // mm
    uint64_t scratch; // of the kernel that runs
};

inline uint64_t Aligned(uint64_t bytes)
{
    return (bytes + 511) / 512 * 512;
}

inline uint64_t Larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

inline bool ComputeTiling(const int64_t *sizes, const float *scalars, uint32_t coreNum, uint64_t ubBytes,
                          OpTiling &tiling)
{
    if (!stage0::ComputeTiling(sizes, scalars, coreNum, ubBytes, tiling.stage0)) {
        return false;
    }
    if (!stage1::ComputeTiling(sizes, scalars, coreNum, ubBytes, tiling.stage1)) {
        return false;
    }
    const int64_t rows = sizes[0];
    uint64_t offset = 0;
    tiling.slot0 = offset;
    offset += Aligned(static_cast<uint64_t>(rows * 4096) * 4);
    tiling.scratch = offset;
    uint64_t scratch = 0;
    scratch = Larger(scratch, tiling.stage0.workspaceBytes);
    scratch = Larger(scratch, tiling.stage1.workspaceBytes);
    tiling.workspaceBytes = offset + scratch;
    uint64_t blocks = 1;
    blocks = Larger(blocks, tiling.stage0.blockDim);
    blocks = Larger(blocks, (tiling.stage1.blockDim + 1) / 2);
    tiling.blockDim = static_cast<uint32_t>(blocks);
    return true;
}
