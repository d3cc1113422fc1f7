#pragma once
#include <cstdint>

constexpr uint32_t BASE_M = 128; // rows of one result in L0C
constexpr uint32_t BASE_N = 128;
constexpr uint32_t BASE_K = 64; // depth of one step in L0A and L0B
constexpr uint32_t PANEL_K = 128; // depth of one step in L1
constexpr uint32_t PARTS = 2; // results beside each other that make up a tile
constexpr uint32_t STRIP = 8; // tiles below each other that are computed one after the other
constexpr uint32_t FRACTAL = 16;
constexpr uint32_t HANDED = 4; // results of a cube core in the workspace at a time
constexpr uint64_t HANDED_BYTES = HANDED * BASE_M * BASE_N * 4;
constexpr uint64_t UB_BYTES_NEEDED = 132096;
constexpr uint32_t TILE_ELEMENTS = 8192; // of a vector core
constexpr uint32_t ROW_CAPACITY = 64;
constexpr uint32_t COLUMN_CAPACITY = 128;
constexpr uint32_t FLOATS_PER_BLOCK = 8;

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
    if (ubBytes < UB_BYTES_NEEDED) {
        return false;
    }
    tiling.workspaceBytes = tiling.blockDim * HANDED_BYTES;
    return true;
}
