// LoadData and LoadDataWithTranspose: fractals from L1 or global memory to L0A and L0B.
#include <algorithm>
#include <cstring>

#include "cube/gm.h"
#include "cube/space.h"
#include "sampled.h"

namespace evokernel::twin {

namespace {

constexpr uint32_t kL0 = SpaceBit(Space::L0A) | SpaceBit(Space::L0B);

// Where iteration `i` begins in a source that steps forward or backward.
int64_t SourceAt(int64_t start, int64_t stride, uint32_t i, bool backward, uint32_t unit)
{
    return (backward ? start - stride * i : start + stride * i) * unit;
}

// The last byte that any iteration reads; negative where the first ones step below the start.
bool SourceExtent(int64_t start, int64_t stride, uint32_t repeats, bool backward, uint32_t unit, const char *api,
                  At at, uint64_t *bytes)
{
    const int64_t last = SourceAt(start, stride, repeats - 1, backward, unit);
    if (last < 0) {
        ReportError("out-of-bounds", at, "%s steps below the start of its source; raise startIndex.", api);
        return false;
    }
    *bytes = static_cast<uint64_t>(std::max(last, SourceAt(start, stride, 0, backward, unit))) + unit;
    return true;
}

void MoveFractal(const Cells &from, int64_t source, const Cells &to, uint64_t target, bool transpose)
{
    if (transpose) {
        TransposeSquare<uint16_t>(from.data + source, to.data + target, 0);
        TransposeSquare<uint16_t>(from.undefined + source, to.undefined + target, 0);
    } else {
        std::memcpy(to.data + target, from.data + source, kFractalBytes);
        std::memcpy(to.undefined + target, from.undefined + source, kFractalBytes);
    }
}

bool CheckLoad2D(const LocalRef &dst, DType src, const AscendC::LoadData2DParams &params, bool global, At at)
{
    const Api row = global ? Api::LoadData2DGlobal : Api::LoadData2D;
    bool good = CheckTypes(row, {dst.dtype, src}, at);
    good = CheckLimit(row, "repeatTimes", params.repeatTimes, at) && good;
    if (params.ifTranspose && (global || BitsOf(src) != 16)) {
        ReportError("dtype-unsupported", at,
                    "LoadData transposes 16-bit types from L1 only, not %s; use LoadDataWithTranspose.", DTypeName(src));
        good = false;
    }
    if (params.addrMode != 0 && SpaceOf(dst) != Space::L1) {
        ReportError("param-limit", at, "LoadData takes an addrMode of 0 on this chip, not %u.", params.addrMode);
        good = false;
    }
    return good;
}

}  // namespace

void Load2D(const LocalRef &dst, const LocalRef &src, const AscendC::LoadData2DParams &params, At at)
{
    if (params.repeatTimes == 0) {
        return;
    }
    RunCube(Pipe::MTE1, "LoadData", CurrentChip().load_overhead +
            params.repeatTimes * kFractalBytes / LoadRate(SpaceOf(dst)), at);
    if (TheCore().timing || !CheckLoad2D(dst, src.dtype, params, false, at)) {
        return;
    }
    const uint64_t step = (uint64_t{params.dstGap} + 1) * kFractalBytes;
    uint64_t reach = 0;
    Cells from;
    Cells to;
    if (!SourceExtent(params.startIndex, params.srcStride, params.repeatTimes, false, kFractalBytes, "LoadData", at,
                      &reach) ||
        !OpenCells(src, reach, kC0Bytes, false, "LoadData", "src", at, SpaceBit(Space::L1), &from) ||
        !OpenCells(dst, (params.repeatTimes - 1) * step + kFractalBytes, kFractalBytes, true, "LoadData", "dst", at,
                   kL0, &to)) {
        return;
    }
    if (sampled::active && sampled::Empty(Space::L1, src.address, reach)) {
        for (uint32_t i = 0; i < params.repeatTimes; ++i) {
            sampled::Clear(to.space, to.address + i * step, kFractalBytes);
        }
        return;
    }
    Touches reads(from.space, false);
    Touches writes(to.space, true);
    for (uint32_t i = 0; i < params.repeatTimes; ++i) {
        reads.Add(from.address + SourceAt(params.startIndex, params.srcStride, i, false, kFractalBytes), kFractalBytes);
        writes.Add(to.address + i * step, kFractalBytes);
    }
    reads.Tell();
    writes.Tell();
    for (uint32_t i = 0; i < params.repeatTimes; ++i) {
        const int64_t source = SourceAt(params.startIndex, params.srcStride, i, false, kFractalBytes);
        MoveFractal(from, source, to, i * step, params.ifTranspose);
    }
}

void Load2DGlobal(const LocalRef &dst, const GlobalRef &src, const AscendC::LoadData2DParams &params, At at)
{
    if (params.repeatTimes == 0) {
        return;
    }
    const uint32_t stride = params.srcStride * kFractalBytes;
    AccountGlobal(Pipe::MTE2, true, src, Burst{params.repeatTimes, kFractalBytes, stride, stride}, stride, 0, "LoadData",
                  at);
    if (TheCore().timing || !CheckLoad2D(dst, src.dtype, params, true, at)) {
        return;
    }
    const bool backward = params.addrMode != 0;
    const uint64_t step = (uint64_t{params.dstGap} + 1) * kFractalBytes;
    const uint32_t alignment = SpaceOf(dst) == Space::L1 ? kC0Bytes : kFractalBytes;
    uint64_t reach = 0;
    Cells to;
    if (!SourceExtent(params.startIndex, params.srcStride, params.repeatTimes, backward, kFractalBytes, "LoadData", at,
                      &reach) ||
        !OpenCells(dst, (params.repeatTimes - 1) * step + kFractalBytes, alignment, true, "LoadData", "dst", at,
                   kL0 | SpaceBit(Space::L1), &to)) {
        return;
    }
    Allocation *block = Gm().Check(src, src.address, reach, false, "LoadData", at);
    if (block == nullptr) {
        return;
    }
    for (uint32_t i = 0; i < params.repeatTimes; ++i) {
        const uint8_t *from =
            src.address + SourceAt(params.startIndex, params.srcStride, i, backward, kFractalBytes);
        TouchGm(from, kFractalBytes, false);
        to.Touched(i * step, kFractalBytes, true);
        std::memcpy(to.data + i * step, from, kFractalBytes);
        ShadowFromGlobal(*block, from, to.undefined + i * step, kFractalBytes);
    }
}

void Load2DV2(At at)
{
    ReportError("dtype-unsupported", at,
                "LoadData with LoadData2DParamsV2 does not exist on this chip; use LoadData2DParams.");
}

namespace {

void TransposeBlock(DType dtype, const Cells &from, int64_t source, const Cells &to, uint64_t target, uint64_t step)
{
    const uint8_t *data = from.data + source;
    const uint8_t *shadow = from.undefined + source;
    switch (BitsOf(dtype)) {
        case 4:
            TransposeNibbles(data, to.data + target, step);
            return TransposeNibbleShadow(shadow, to.undefined + target, step);
        case 8:
            TransposeSquare<uint8_t>(data, to.data + target, step);
            return TransposeSquare<uint8_t>(shadow, to.undefined + target, step);
        case 16:
            TransposeSquare<uint16_t>(data, to.data + target, step);
            return TransposeSquare<uint16_t>(shadow, to.undefined + target, step);
        default:
            TransposeSquare<uint32_t>(data, to.data + target, step);
            return TransposeSquare<uint32_t>(shadow, to.undefined + target, step);
    }
}

bool CheckTransposed(const LocalRef &dst, const LocalRef &src, const AscendC::LoadData2dTransposeParams &params, At at)
{
    bool good = CheckTypes(Api::LoadDataWithTranspose, {dst.dtype, src.dtype}, at);
    good = CheckLimit(Api::LoadDataWithTranspose, "repeatTimes", params.repeatTimes, at) && good;
    if (src.dtype == DType::S4 && SpaceOf(dst) != Space::L0B) {
        ReportError("dtype-unsupported", at, "LoadDataWithTranspose moves int4b_t to L0B only.");
        good = false;
    }
    return good;
}

}  // namespace

void LoadTransposed(const LocalRef &dst, const LocalRef &src, const AscendC::LoadData2dTransposeParams &params, At at)
{
    constexpr const char *api = "LoadDataWithTranspose";
    if (params.repeatTimes == 0) {
        return;
    }
    const uint32_t fractals = SquareFractals(src.dtype);
    const uint32_t square = fractals * kFractalBytes;
    RunCube(Pipe::MTE1, api, CurrentChip().load_overhead + params.repeatTimes * square / LoadRate(SpaceOf(dst)), at);
    if (TheCore().timing || !CheckTransposed(dst, src, params, at)) {
        return;
    }
    const uint64_t step = (uint64_t{params.dstGap} + 1) * kFractalBytes;
    const uint64_t inner = fractals == 1 ? 0 : (uint64_t{params.dstFracGap} + 1) * kFractalBytes;
    const uint64_t extent = (params.repeatTimes - 1) * step + (fractals - 1) * inner + kFractalBytes;
    uint64_t reach = 0;
    Cells from;
    Cells to;
    if (!SourceExtent(params.startIndex, params.srcStride, params.repeatTimes, params.addrMode, square, api, at,
                      &reach) ||
        !OpenCells(src, reach, kC0Bytes, false, api, "src", at, SpaceBit(Space::L1), &from) ||
        !OpenCells(dst, extent, kFractalBytes, true, api, "dst", at, kL0, &to)) {
        return;
    }
    Touches reads(from.space, false);
    Touches writes(to.space, true);
    for (uint32_t i = 0; i < params.repeatTimes; ++i) {
        reads.Add(from.address + SourceAt(params.startIndex, params.srcStride, i, params.addrMode, square), square);
        for (uint32_t f = 0; f < fractals; ++f) {
            writes.Add(to.address + i * step + f * inner, kFractalBytes);
        }
    }
    reads.Tell();
    writes.Tell();
    for (uint32_t i = 0; i < params.repeatTimes; ++i) {
        const int64_t source = SourceAt(params.startIndex, params.srcStride, i, params.addrMode, square);
        TransposeBlock(src.dtype, from, source, to, i * step, inner);
    }
}

void LoadSparse(const LocalRef &dst, const LocalRef &src, const LocalRef &index,
                const AscendC::LoadData2DParams &params, At at)
{
    constexpr const char *api = "LoadDataWithSparse";
    constexpr uint32_t index_bytes = kFractalBytes / 4;
    if (params.repeatTimes == 0) {
        return;
    }
    RunCube(Pipe::MTE1, api,
            CurrentChip().load_overhead + params.repeatTimes * kFractalBytes / LoadRate(Space::L0B), at);
    if (TheCore().timing || !CheckTypes(Api::LoadDataWithSparse, {dst.dtype, src.dtype}, at) ||
        !CheckLimit(Api::LoadDataWithSparse, "repeatTimes", params.repeatTimes, at)) {
        return;
    }
    const uint64_t skip = uint64_t{params.startIndex} * kFractalBytes;
    const uint64_t bytes = uint64_t{params.repeatTimes} * kFractalBytes;
    Cells from;
    Cells indices;
    Cells to;
    if (!OpenCells(src, skip + bytes, kC0Bytes, false, api, "src", at, SpaceBit(Space::L1), &from) ||
        !OpenCells(index, (skip + bytes) / 4, kC0Bytes, false, api, "idx", at, SpaceBit(Space::L1), &indices) ||
        !OpenCells(dst, bytes, kFractalBytes, true, api, "dst", at, SpaceBit(Space::L0B), &to)) {
        return;
    }
    from.Touched(skip, bytes, false);
    indices.Touched(skip / 4, bytes / 4, false);
    to.Touched(0, bytes, true);
    std::memcpy(to.data, from.data + skip, bytes);
    std::memcpy(to.undefined, from.undefined + skip, bytes);
    if (AnyMarked(indices.undefined + skip / 4, bytes / 4)) {
        LocalRef part = index;
        part.address += params.startIndex * index_bytes;
        ReportUndefined(api, part, bytes / 4, at);
    }
    std::memcpy(TheCore().matrix.index + dst.address / 4, indices.data + skip / 4, bytes / 4);
}

}  // namespace evokernel::twin
