#pragma once
#include <cstdint>

constexpr uint32_t BASE_M = 128; // output channels of one tile
constexpr uint32_t FRACTAL = 16;
constexpr uint32_t PART_N = 32; // pixels of one result in L0C
constexpr uint32_t PARTS = 2; // results in L0C, side by side in one tile
constexpr uint32_t MOST_PITCH = 65535; // elements from row to row that one copy can step over
constexpr uint32_t PANEL_K = 64; // depth of one step in L1
constexpr uint32_t BASE_K = 64; // depth of one step in L0A and L0B
constexpr uint32_t DEPTH = 576; // of all weights of an output channel

struct OpTiling {
    uint32_t blockDim;
    uint64_t workspaceBytes;
    uint64_t batch;
    uint64_t channels; // of a group
    uint64_t outputs; // of a group
    uint64_t outD;
    uint64_t outH;
    uint64_t outW;
    uint64_t pixels; // of a channel of the result
    uint64_t depth; // channels and taps
    uint64_t rowStride; // elements of x from row to row
    uint32_t tileM;
    uint32_t tilesM;
    uint32_t panelPitch; // columns from row to row where they are those of memory, else 0
    uint32_t rowPitch; // columns from row to row
    uint32_t mostRows; // of a part
    uint32_t tileW;
    uint32_t tileRows; // of the result in one tile, each from a fractal on
    uint32_t partRows;
    uint32_t partColumns; // columns of a part, the gaps between rows included
    uint32_t tilesRows;
    uint32_t tilesW;
    uint64_t tilesOfImage;
    uint64_t tiles;
    uint64_t planeStride; // from plane to plane, and from channel to channel
    uint64_t channelStride;
    uint64_t tapStepH; // elements of x from tap to tap
    uint64_t tapStepD;
    uint64_t tapStepW;
    uint32_t run; // taps that one copy can fetch
    uint64_t runStep;
};

inline bool ComputeTiling(const int64_t *sizes, const float *scalars, uint32_t coreNum,
                          uint64_t ubBytes, OpTiling &tiling)
{
    const int64_t batch = sizes[0];
    tiling = {};
    tiling.batch = static_cast<uint64_t>(batch);
    tiling.channels = static_cast<uint64_t>(64);
    tiling.outputs = static_cast<uint64_t>(128);
    tiling.outD = static_cast<uint64_t>(1);
    tiling.outH = static_cast<uint64_t>(56);
    tiling.outW = static_cast<uint64_t>(56);
    if (static_cast<uint64_t>(batch) < 1 || static_cast<uint64_t>(64) < 1 || static_cast<uint64_t>(128) < 1 ||
        static_cast<uint64_t>(1) < 1 || static_cast<uint64_t>(56) < 1 || static_cast<uint64_t>(56) < 1) {
        return false;
    }
    tiling.pixels = tiling.outD * tiling.outH * tiling.outW;
    tiling.depth = tiling.channels * 9;
    tiling.rowStride = static_cast<uint64_t>(58);
    tiling.tileM = static_cast<uint32_t>(((tiling.outputs + (tiling.outputs + BASE_M - 1) / BASE_M - 1) /
        ((tiling.outputs + BASE_M - 1) / BASE_M) + FRACTAL - 1) / FRACTAL * FRACTAL);
    tiling.tilesM = static_cast<uint32_t>((tiling.outputs + tiling.tileM - 1) / tiling.tileM);
    tiling.panelPitch = static_cast<uint32_t>(tiling.outW > PART_N ? 0 : 0);
    tiling.rowPitch = static_cast<uint32_t>(tiling.panelPitch > 0 ? tiling.panelPitch : (tiling.outW + FRACTAL - 1)
        / FRACTAL * FRACTAL);
    tiling.mostRows = static_cast<uint32_t>(PART_N / tiling.rowPitch);
    tiling.tileW = static_cast<uint32_t>(tiling.outW > PART_N ? ((tiling.outW + (tiling.outW + PARTS * PART_N - 1) /
        (PARTS * PART_N) - 1) / ((tiling.outW + PARTS * PART_N - 1) / (PARTS * PART_N)) + FRACTAL - 1) / FRACTAL *
        FRACTAL : tiling.outW);
    tiling.tileRows = static_cast<uint32_t>(tiling.outW > PART_N ? 1 : (tiling.rowStride > MOST_PITCH ? 1 :
        (tiling.outH + (tiling.outH + PARTS * tiling.mostRows - 1) / (PARTS * tiling.mostRows) - 1) / ((tiling.outH +
        PARTS * tiling.mostRows - 1) / (PARTS * tiling.mostRows))));
    tiling.partRows = static_cast<uint32_t>(tiling.outW > PART_N ? 1 : (tiling.tileRows + (tiling.tileRows +
        tiling.mostRows - 1) / tiling.mostRows - 1) / ((tiling.tileRows + tiling.mostRows - 1) / tiling.mostRows));
    tiling.partColumns = static_cast<uint32_t>(tiling.outW > PART_N ? (tiling.tileW > PART_N ? ((tiling.tileW +
        PARTS - 1) / PARTS + FRACTAL - 1) / FRACTAL * FRACTAL : tiling.tileW) : tiling.partRows * tiling.rowPitch);
    tiling.tilesRows = static_cast<uint32_t>((tiling.outH + tiling.tileRows - 1) / tiling.tileRows);
    tiling.tilesW = static_cast<uint32_t>((tiling.outW + tiling.tileW - 1) / tiling.tileW);
    tiling.tilesOfImage = tiling.outD * tiling.tilesRows * tiling.tilesW;
    tiling.tiles = tiling.tilesM * (tiling.batch * tiling.tilesOfImage);
    tiling.planeStride = static_cast<uint64_t>(58) * tiling.rowStride;
    tiling.channelStride = static_cast<uint64_t>(1) * tiling.planeStride;
    tiling.tapStepH = static_cast<uint64_t>(1) * tiling.rowStride;
    tiling.tapStepD = static_cast<uint64_t>(1) * tiling.planeStride;
    tiling.tapStepW = static_cast<uint64_t>(1);
    tiling.run = static_cast<uint32_t>(tiling.tapStepW > MOST_PITCH ? 1 : 3);
    tiling.runStep = tiling.tapStepW;
    const uint64_t cubes = coreNum > 1 ? coreNum / 2 : 1; // one cube core beside two vector cores
    tiling.blockDim = static_cast<uint32_t>(tiling.tiles < cubes ? tiling.tiles : cubes);
    return true;
}
