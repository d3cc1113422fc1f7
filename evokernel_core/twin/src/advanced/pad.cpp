// Pad and UnPad: rows of a matrix to and from whole data blocks.
#include <algorithm>
#include <cstring>
#include <vector>

#include "evokernel/twin/api_vector.h"
#include "vector/walk.h"

namespace evokernel::twin {

namespace {

// shape: height, width, valid width, temporary bytes that the tiling counts on.
struct Rows {
    uint32_t height, width, valid, tmp_bytes;
};

bool Ready(const LocalRef &src, const LocalRef *tmp, const Rows &rows, const char *api, At at)
{
    const uint32_t width = DTypeBytes(src.dtype);
    if ((width != 2 && width != 4) || src.dtype == DType::BF16) {
        ReportError("dtype-unsupported", at, "%s does not support %s on this chip.", api, DTypeName(src.dtype));
        return false;
    }
    if (tmp != nullptr && uint64_t{tmp->address} + rows.tmp_bytes > tmp->limit) {
        ReportError("temp-buffer", at, "%s needs %u bytes of temporary space, but gets %u; take the size from "
                    "Get%sMaxMinTmpSize.", api, rows.tmp_bytes, tmp->limit - tmp->address, api);
        return false;
    }
    return true;
}

void MoveRows(const LocalRef &dst, uint32_t dst_pitch, const LocalRef &src, uint32_t src_pitch, uint32_t rows,
              uint32_t bytes)
{
    Core &core = TheCore();
    for (uint32_t r = 0; r < rows; ++r) {
        std::memcpy(core.ub + dst.address + r * dst_pitch, core.ub + src.address + r * src_pitch, bytes);
        std::memcpy(core.undefined + dst.address + r * dst_pitch, core.undefined + src.address + r * src_pitch, bytes);
    }
}

bool Separate(const LocalRef &dst, uint64_t dst_bytes, const LocalRef &src, uint64_t src_bytes, const char *api, At at)
{
    if (dst.address + dst_bytes <= src.address || src.address + src_bytes <= dst.address) {
        return true;
    }
    ReportError("overlap", at,
                "%s has overlapping operands at bytes %u and %u of UB; give dst a place of its own.", api,
                dst.address, src.address);
    return false;
}

void FillElements(const LocalRef &dst, uint64_t first, uint64_t count, uint64_t pattern)
{
    const uint32_t width = DTypeBytes(dst.dtype);
    for (uint64_t i = first; i < first + count; ++i) {
        std::memcpy(TheCore().ub + dst.address + i * width, &pattern, width);
    }
    MarkDefined(static_cast<uint32_t>(dst.address + first * width), count * width);
}

}  // namespace

void PadRows(const LocalRef &dst, const LocalRef &src, const LocalRef *tmp, const uint32_t *shape, uint32_t left,
             uint32_t right, uint64_t pattern, At at)
{
    const Rows rows{shape[0], shape[1], shape[2], shape[3]};
    const uint32_t width = DTypeBytes(src.dtype);
    const uint32_t per_block = kBlockBytes / width;
    const uint32_t aligned = (rows.width + per_block - 1) / per_block * per_block;
    if (rows.height == 0 || rows.width == 0) {
        return;
    }
    const uint64_t bytes = uint64_t{rows.height} * aligned * width;
    // Two transposes of blocks and a copy.
    RunVector("Pad", 3.0 * static_cast<double>((bytes + kRepeatBytes - 1) / kRepeatBytes), at);
    if (TheCore().timing || !Ready(src, tmp, rows, "Pad", at)) {
        return;
    }
    const bool whole = aligned == rows.width;
    if ((whole && (left != 0 || rows.valid + right > aligned)) || (!whole && left + rows.width + right > aligned)) {
        ReportError("param-limit", at,
                    "Pad fills rows of %u elements up to %u, on the right only where they are whole blocks already; "
                    "it cannot add %u and %u.", whole ? rows.valid : rows.width, aligned, left, right);
        return;
    }
    const uint64_t src_bytes = uint64_t{rows.height} * rows.width * width;
    if (LocalRange(src, src_bytes, 32, false, "Pad", "src", at) == nullptr ||
        LocalRange(dst, bytes, 32, true, "Pad", "dst", at) == nullptr ||
        !Separate(dst, bytes, src, src_bytes, "Pad", at)) {
        return;
    }
    LocalRef inner = dst;
    inner.address += left * width;
    MoveRows(inner, aligned * width, src, rows.width * width, rows.height, rows.width * width);
    const uint32_t end = whole ? rows.valid : left + rows.width;
    for (uint64_t r = 0; r < rows.height; ++r) {
        FillElements(dst, r * aligned, left, pattern);
        FillElements(dst, r * aligned + end, right, pattern);
    }
}

void UnPadRows(const LocalRef &dst, const LocalRef &src, const LocalRef *tmp, const uint32_t *shape, uint32_t right,
               At at)
{
    const Rows rows{shape[0], shape[1], shape[1], shape[3]};
    const uint32_t width = DTypeBytes(src.dtype);
    if (rows.height == 0 || rows.width == 0) {
        return;
    }
    const uint64_t bytes = uint64_t{rows.height} * rows.width * width;
    RunVector("UnPad", 3.0 * static_cast<double>((bytes + kRepeatBytes - 1) / kRepeatBytes), at);
    if (TheCore().timing || !Ready(src, tmp, rows, "UnPad", at)) {
        return;
    }
    if (rows.width * width % kBlockBytes != 0 || right == 0 || right * width >= kBlockBytes || right >= rows.width) {
        ReportError("param-limit", at,
                    "UnPad takes 1 element to less than 32 bytes off rows of whole data blocks, not %u of %u.",
                    right, rows.width);
        return;
    }
    const uint32_t kept = rows.width - right;
    const uint64_t dst_bytes = uint64_t{rows.height} * kept * width;
    if (LocalRange(src, bytes, 32, false, "UnPad", "src", at) == nullptr ||
        LocalRange(dst, dst_bytes, 32, true, "UnPad", "dst", at) == nullptr ||
        !Separate(dst, dst_bytes, src, bytes, "UnPad", at)) {
        return;
    }
    MoveRows(dst, kept * width, src, rows.width * width, rows.height, kept * width);
}

}  // namespace evokernel::twin
