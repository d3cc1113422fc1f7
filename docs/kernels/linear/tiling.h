#pragma once
#include <cstdint>

constexpr uint32_t BASE_M = 128; // rows of one result in L0C
constexpr uint32_t PARTS = 2; // results beside each other that make up a tile
constexpr uint32_t BASE_N = 128;
constexpr uint32_t FRACTAL = 16;
constexpr uint32_t STRIP = 8; // tiles below each other that are computed one after the other
constexpr uint32_t PANEL_K = 128; // depth of one step in L1
constexpr uint32_t BASE_K = 64; // depth of one step in L0A and L0B

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
};

inline bool ComputeTiling(const int64_t *sizes, const float *scalars, uint32_t coreNum,
                          uint64_t ubBytes, OpTiling &tiling)
{
    const int64_t rows = sizes[0];
    tiling = {};
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
    const uint64_t cubes = coreNum > 1 ? coreNum / 2 : 1; // one cube core beside two vector cores
    tiling.blockDim = static_cast<uint32_t>(tiling.tiles < cubes ? tiling.tiles : cubes);
    return true;
}
