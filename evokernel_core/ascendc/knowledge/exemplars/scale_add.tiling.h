#pragma once
#include <cstdint>

struct OpTiling {
    uint32_t blockDim;
    uint64_t workspaceBytes;
    uint64_t elements;
    uint64_t perCore;  // elements of each core but the last, a multiple of 16
    uint32_t tile;     // elements per copy, a multiple of 16
};

inline bool ComputeTiling(const int64_t *sizes, const float *scalars, uint32_t coreNum, uint64_t ubBytes,
                          OpTiling &tiling)
{
    (void)scalars;
    constexpr uint64_t ALIGN = 16;             // 32 bytes of half: cores must not share a block
    constexpr uint64_t BYTES_PER_ELEMENT = 12; // three queues of two half buffers
    constexpr uint64_t SMALLEST_SHARE = 2048;  // below this a further core costs more than it gives
    if (sizes[0] <= 0) {
        return false;
    }
    tiling.elements = static_cast<uint64_t>(sizes[0]);
    tiling.tile = static_cast<uint32_t>(ubBytes / BYTES_PER_ELEMENT / ALIGN * ALIGN);
    uint64_t share = (tiling.elements + coreNum - 1) / coreNum;
    share = share < SMALLEST_SHARE ? SMALLEST_SHARE : share;
    tiling.perCore = (share + ALIGN - 1) / ALIGN * ALIGN;
    tiling.blockDim = static_cast<uint32_t>((tiling.elements + tiling.perCore - 1) / tiling.perCore);
    tiling.workspaceBytes = 0;
    return tiling.tile > 0;
}
