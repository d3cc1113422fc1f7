// Fill (InitConstValue): one value over L1, L0A or L0B.
#include <cstring>

#include "cube/space.h"

namespace evokernel::twin {

namespace {

void FillBlocks(const Cells &to, uint64_t offset, uint64_t bytes, uint64_t bits, uint32_t width)
{
    to.Touched(offset, bytes, true);
    for (uint64_t i = 0; i < bytes; i += width) {
        std::memcpy(to.data + offset + i, &bits, width);
    }
    std::memset(to.undefined + offset, 0, bytes);
}

}  // namespace

void FillMatrix(const LocalRef &dst, const FillCall &fill, At at)
{
    constexpr const char *api = "Fill";
    if (fill.repeats == 0 || fill.blocks == 0) {
        return;
    }
    const bool l1 = SpaceOf(dst) == Space::L1;
    const uint32_t unit = l1 ? kC0Bytes : kFractalBytes;
    const uint64_t bytes = uint64_t{fill.blocks} * unit;
    const uint64_t step = bytes + uint64_t{fill.gap} * unit;
    RunCube(l1 ? Pipe::MTE2 : Pipe::MTE1, api,
            CurrentChip().load_overhead + fill.repeats * bytes / LoadRate(SpaceOf(dst)), at);
    if (TheCore().timing || !CheckTypes(Api::Fill, CallTypes(dst.dtype), at)) {
        return;
    }
    Cells to;
    const bool fits = CheckLimit(Api::Fill, "repeatTimes", fill.repeats, at) &&
                      CheckLimit(Api::Fill, "blockNum", fill.blocks, at) &&
                      CheckLimit(Api::Fill, "dstGap", fill.gap, at);
    if (!fits || !OpenCells(dst, (fill.repeats - 1) * step + bytes, unit, true, api, "dst", at,
                            SpaceBit(Space::L1) | SpaceBit(Space::L0A) | SpaceBit(Space::L0B), &to)) {
        return;
    }
    for (uint32_t i = 0; i < fill.repeats; ++i) {
        FillBlocks(to, i * step, bytes, fill.bits, DTypeBytes(dst.dtype));
    }
}

}  // namespace evokernel::twin
