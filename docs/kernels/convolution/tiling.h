#pragma once
#include <cstdint>

constexpr uint32_t BASE_M = 128; // output channels of one tile
constexpr uint32_t PART_N = 32; // pixels of one result in L0C
constexpr uint32_t PARTS = 2; // results in L0C, side by side in one tile
constexpr uint32_t BASE_K = 64; // depth of one step in L0A and L0B
constexpr uint32_t PANEL_K = 64; // depth of one step in L1
constexpr uint32_t FRACTAL = 16;
constexpr uint32_t KERNEL_D = 1;
constexpr uint32_t KERNEL_H = 3;
constexpr uint32_t KERNEL_W = 3;
constexpr uint32_t TAPS = KERNEL_D * KERNEL_H * KERNEL_W;
constexpr uint32_t STRIDE_D = 1;
constexpr uint32_t STRIDE_H = 1;
constexpr uint64_t MOST_PITCH = 65535; // elements that one copy can step over from row to row

struct OpTiling {
    uint32_t blockDim;
    uint64_t workspaceBytes;
    uint64_t batch;
    uint64_t channels; // of a group
    uint64_t outputs; // of a group
    uint64_t depth; // channels and taps
    uint64_t rowStride; // elements of x from row to row, from plane to plane, from channel to channel
    uint64_t planeStride;
    uint64_t channelStride;
    uint64_t tapStepW; // elements of x from tap to tap
    uint64_t tapStepH;
    uint64_t tapStepD;
    uint64_t outD;
    uint64_t outH;
    uint64_t outW;
    uint64_t pixels; // of a channel of the result
    uint32_t run; // taps that one copy can fetch
    uint64_t runStep;
    uint32_t tileM;
    uint32_t tileRows; // rows of the result in one tile, each from a fractal on
    uint32_t tileW;
    uint32_t pitch; // columns from row to row where they are those of memory, else 0
    uint32_t partRows;
    uint32_t partColumns; // columns of a part, the gaps between rows included
    uint32_t tilesM;
    uint32_t tilesRows;
    uint32_t tilesW;
    uint64_t tilesOfImage;
    uint64_t tiles;
};

inline uint64_t CeilDiv(uint64_t value, uint64_t divisor)
{
    return (value + divisor - 1) / divisor;
}

inline uint32_t WholeFractals(uint64_t length)
{
    return static_cast<uint32_t>(CeilDiv(length, FRACTAL) * FRACTAL);
}

// Equal pieces of at most `most`.
inline uint64_t Equal(uint64_t length, uint64_t most)
{
    return CeilDiv(length, CeilDiv(length, most));
}

// Wide rows are cut; of narrow ones several make a tile.
inline void ComputeTiles(OpTiling &tiling)
{
    tiling.tileM = WholeFractals(Equal(tiling.outputs, BASE_M));
    tiling.tilesM = static_cast<uint32_t>(CeilDiv(tiling.outputs, tiling.tileM));
    if (tiling.outW > PART_N) {
        tiling.tileW = WholeFractals(Equal(tiling.outW, PARTS * PART_N));
        tiling.tileRows = 1;
        tiling.partRows = 1;
        tiling.pitch = 0;
        tiling.partColumns = tiling.tileW > PART_N ? WholeFractals(CeilDiv(tiling.tileW, PARTS)) : tiling.tileW;
    } else {
        tiling.pitch = 0;
        const uint32_t pitch = tiling.pitch > 0 ? tiling.pitch : WholeFractals(tiling.outW);
        const uint64_t most = PART_N / pitch;
        const bool isFar = tiling.rowStride * STRIDE_H > MOST_PITCH; // rows that no copy steps over
        tiling.tileW = static_cast<uint32_t>(tiling.outW);
        tiling.tileRows = isFar ? 1 : static_cast<uint32_t>(Equal(tiling.outH, PARTS * most));
        tiling.partRows = static_cast<uint32_t>(Equal(tiling.tileRows, most));
        tiling.partColumns = tiling.partRows * pitch;
    }
    tiling.tilesRows = static_cast<uint32_t>(CeilDiv(tiling.outH, tiling.tileRows));
    tiling.tilesW = static_cast<uint32_t>(CeilDiv(tiling.outW, tiling.tileW));
    tiling.tilesOfImage = tiling.outD * tiling.tilesRows * tiling.tilesW;
    tiling.tiles = 1 * tiling.tilesM * tiling.batch * tiling.tilesOfImage;
}

inline bool ComputeTiling(const int64_t *sizes, const float *scalars, uint32_t coreNum, uint64_t ubBytes,
                          OpTiling &tiling)
{
    const int64_t batch = sizes[0];
    const int64_t made[] = {batch, 64, 128, 1, 56, 56};
    for (const int64_t size : made) {
        if (size < 1) {
            return false;
        }
    }
    tiling.batch = static_cast<uint64_t>(made[0]);
    tiling.channels = static_cast<uint64_t>(made[1]);
    tiling.outputs = static_cast<uint64_t>(made[2]);
    tiling.outD = static_cast<uint64_t>(made[3]);
    tiling.outH = static_cast<uint64_t>(made[4]);
    tiling.outW = static_cast<uint64_t>(made[5]);
    tiling.pixels = tiling.outD * tiling.outH * tiling.outW;
    tiling.depth = tiling.channels * TAPS;
    const uint64_t width = static_cast<uint64_t>(58);
    tiling.rowStride = width;
    tiling.planeStride = static_cast<uint64_t>(58) * tiling.rowStride;
    tiling.channelStride = static_cast<uint64_t>(1) * tiling.planeStride;
    tiling.tapStepH = static_cast<uint64_t>(1) * tiling.rowStride;
    tiling.tapStepD = static_cast<uint64_t>(1) * tiling.planeStride;
    tiling.tapStepW = static_cast<uint64_t>(1);
    tiling.run = KERNEL_W;
    tiling.runStep = tiling.tapStepW;
    if (tiling.runStep > MOST_PITCH) {
        tiling.run = 1;
    }
    ComputeTiles(tiling);
    const uint64_t cubes = coreNum > 1 ? coreNum / 2 : 1; // one cube core beside two vector cores
    tiling.blockDim = static_cast<uint32_t>(tiling.tiles < cubes ? tiling.tiles : cubes);
    tiling.workspaceBytes = 0;
    return true;
}
