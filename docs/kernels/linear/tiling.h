#pragma once
#include <cstdint>

constexpr uint32_t BASE_M = 128; // rows of one result in L0C
constexpr uint32_t PARTS = 2; // results beside each other that make up a tile
constexpr uint32_t BASE_N = 128;
constexpr uint32_t FRACTAL = 16;
constexpr uint32_t STRIP = 8; // tiles below each other that are computed one after the other
constexpr uint32_t PANEL_K = 128; // depth of one step in L1
constexpr uint32_t BASE_K = 64; // depth of one step in L0A and L0B
constexpr uint32_t HANDED = 4; // results of a cube core in the workspace at a time
constexpr uint32_t TILE_ELEMENTS = 8192;
constexpr uint32_t WIDEST_STEP = 8; // of the narrowest type in 32 bytes
constexpr uint32_t ROW_CAPACITY = 64;
constexpr uint32_t FLOATS_PER_BLOCK = 8;
constexpr uint32_t LANES = 64; // float32 elements of one repeat
constexpr uint32_t COLUMN_CAPACITY = 128;
constexpr uint32_t RING_UNIT = 512; // bytes of which the workspace of a ring is a multiple
constexpr uint64_t UB_BYTES_NEEDED = 132096;

struct OpTiling {
    uint32_t blockDim;
    uint64_t workspaceBytes;
    uint64_t m;
    uint64_t n;
    uint64_t k;
    uint64_t tilesM;
    uint64_t tilesN;
    uint32_t tileM; // equal tiles in whole fractals
    uint32_t tileN;
    uint32_t partsN; // results of a tile
    uint32_t partN; // columns of one result
    uint64_t strip;
    uint64_t tiles;
    uint64_t aPitch; // elements from one row of memory to the next
    uint64_t bPitch; // elements from one row of memory to the next
    uint64_t cOffset;
    uint64_t coreBytes;
};

inline bool ComputeTiling(const int64_t *sizes, const float *scalars, uint32_t coreNum,
                          uint64_t ubBytes, OpTiling &tiling)
{
    const int64_t rows = sizes[0];
    tiling = {};
    if (ubBytes < UB_BYTES_NEEDED) {
        return false;
    }
    tiling.m = static_cast<uint64_t>(rows);
    tiling.n = static_cast<uint64_t>(4096);
    tiling.k = static_cast<uint64_t>(1024);
    if (tiling.m < 1 || tiling.n < 1 || tiling.k < 1) {
        return false;
    }
    tiling.tilesM = (tiling.m + BASE_M - 1) / BASE_M;
    tiling.tilesN = (tiling.n + PARTS * BASE_N - 1) / (PARTS * BASE_N);
    tiling.tileM = static_cast<uint32_t>(((tiling.m + tiling.tilesM - 1) / tiling.tilesM + FRACTAL - 1) / FRACTAL *
        FRACTAL);
    tiling.tileN = static_cast<uint32_t>(((tiling.n + tiling.tilesN - 1) / tiling.tilesN + FRACTAL - 1) / FRACTAL *
        FRACTAL);
    tiling.partsN = static_cast<uint32_t>((tiling.tileN + BASE_N - 1) / BASE_N);
    tiling.partN = static_cast<uint32_t>(((tiling.tileN + tiling.partsN - 1) / tiling.partsN + FRACTAL - 1) /
        FRACTAL * FRACTAL);
    tiling.strip = STRIP < tiling.tilesM ? STRIP : tiling.tilesM;
    tiling.tiles = tiling.tilesM * tiling.tilesN;
    tiling.aPitch = static_cast<uint64_t>(1024);
    tiling.bPitch = static_cast<uint64_t>(1024);
    tiling.cOffset = 0;
    tiling.coreBytes = (HANDED * (BASE_M * BASE_N) * 4 + RING_UNIT - 1) / RING_UNIT * RING_UNIT;
    const uint64_t cubes = coreNum > 1 ? coreNum / 2 : 1; // one cube core beside two vector cores
    tiling.blockDim = static_cast<uint32_t>(tiling.tiles < cubes ? tiling.tiles : cubes);
    tiling.workspaceBytes = tiling.blockDim * tiling.coreBytes;
    return true;
}
