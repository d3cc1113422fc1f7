// TransDataTo5HD and the transposes and layout changes that are built on it.
#include <algorithm>
#include <cstring>
#include <vector>

#include "evokernel/twin/api_vector.h"
#include "sampled.h"
#include "vector/walk.h"

namespace evokernel::twin {

namespace {

constexpr uint32_t kSide = 16;  // blocks of one TransDataTo5HD, and elements of a fractal's side

// One lane of an element move: value and definedness.
struct Lane {
    uint32_t from;
    uint32_t to;
};

// Moves elements all at once, so that source and destination may be one place.
void MoveLanes(const std::vector<Lane> &lanes, uint32_t width)
{
    Core &core = TheCore();
    std::vector<uint8_t> values(lanes.size() * width);
    std::vector<uint8_t> shadow(lanes.size() * width);
    for (size_t i = 0; i < lanes.size(); ++i) {
        std::memcpy(values.data() + i * width, core.ub + lanes[i].from, width);
        std::memcpy(shadow.data() + i * width, core.undefined + lanes[i].from, width);
    }
    for (size_t i = 0; i < lanes.size(); ++i) {
        std::memcpy(core.ub + lanes[i].to, values.data() + i * width, width);
        std::memcpy(core.undefined + lanes[i].to, shadow.data() + i * width, width);
    }
}

// Where element `column` of source block `row` goes: the list entry and the element in it.
struct Target {
    uint32_t entry;
    uint32_t element;
};

Target TargetOf(uint32_t width, uint32_t row, uint32_t column, bool dst_high)
{
    if (width == 1) {
        return {column, row + (dst_high ? kSide : 0)};
    }
    if (width == 2) {
        return {column, row};
    }
    return {2 * column + row / 8, row % 8};
}

bool BlocksUsable(const LocalRef *list, uint32_t shift, bool write, const char *name, At at)
{
    bool usable = true;
    for (uint32_t i = 0; i < kSide; ++i) {
        LocalRef block = list[i];
        block.address += shift;
        usable = LocalRange(block, kBlockBytes, 32, write, "TransDataTo5HD", name, at) != nullptr && usable;
    }
    return usable;
}

void TransposeOnce(const LocalRef *dst, const LocalRef *src, const BlockTranspose &params, uint32_t dst_shift,
                   uint32_t src_shift)
{
    const uint32_t width = DTypeBytes(src[0].dtype);
    const uint32_t columns = width == 4 ? 8 : kSide;
    const uint32_t first = width == 1 && params.src_high ? kSide : 0;
    std::vector<Lane> lanes;
    lanes.reserve(kSide * kSide);
    for (uint32_t row = 0; row < kSide; ++row) {
        for (uint32_t column = 0; column < columns; ++column) {
            const Target target = TargetOf(width, row, column, params.dst_high);
            lanes.push_back(Lane{src[row].address + src_shift + (first + column) * width,
                                 dst[target.entry].address + dst_shift + target.element * width});
        }
    }
    MoveLanes(lanes, width);
}

double MoveCycles(uint64_t bytes) { return static_cast<double>((bytes + kRepeatBytes - 1) / kRepeatBytes); }

bool Overlap(const LocalRef &a, uint64_t a_bytes, const LocalRef &b, uint64_t b_bytes, const char *api, At at)
{
    if (a.address + a_bytes <= b.address || b.address + b_bytes <= a.address) {
        return false;
    }
    ReportError("overlap", at,
                "%s has overlapping operands at bytes %u and %u of UB; give dst a place of its own.", api,
                a.address, b.address);
    return true;
}

bool TmpFits(const LocalRef *tmp, uint64_t needed, const char *api, At at)
{
    if (tmp == nullptr || tmp->address + needed <= tmp->limit) {
        return true;
    }
    ReportError("temp-buffer", at, "%s needs %llu bytes of temporary space, but gets %u.", api,
                static_cast<unsigned long long>(needed), tmp->limit - tmp->address);
    return false;
}

}  // namespace

namespace {

// In sampled runs: whether none of the blocks that are read holds a value, and that none written does then.
bool ListEmpty(const LocalRef *src, const BlockTranspose &params)
{
    for (uint32_t i = 0; i < 16u * params.repeats; ++i) {
        const uint32_t step = params.repeats == 1 ? 1 : i / 16;
        if (!sampled::Empty(Space::UB, src[i % 16].address + uint64_t{step} * params.src_repeat * kBlockBytes,
                            kBlockBytes)) {
            return false;
        }
    }
    return true;
}

void ClearList(const LocalRef *dst, const BlockTranspose &params)
{
    for (uint32_t i = 0; i < 16u * params.repeats; ++i) {
        const uint32_t step = params.repeats == 1 ? 1 : i / 16;
        sampled::Clear(Space::UB, dst[i % 16].address + uint64_t{step} * params.dst_repeat * kBlockBytes, kBlockBytes);
    }
}

}  // namespace

void TransposeBlocks(const LocalRef *dst, const LocalRef *src, const BlockTranspose &params, At at)
{
    if (params.repeats == 0) {
        return;
    }
    RunVector("TransDataTo5HD", 2.0 * params.repeats, at);  // 16 blocks of 32 bytes
    if (TheCore().timing || !CheckTypes(Api::TransDataTo5HD, {dst[0].dtype, src[0].dtype}, at)) {
        return;
    }
    if (sampled::active && ListEmpty(src, params)) {
        return ClearList(dst, params);
    }
    for (uint32_t r = 0; r < params.repeats; ++r) {
        const uint32_t step = params.repeats == 1 ? 1 : r;  // a single repeat is one stride away, as documented
        const uint32_t dst_shift = step * params.dst_repeat * kBlockBytes;
        const uint32_t src_shift = step * params.src_repeat * kBlockBytes;
        if (!(BlocksUsable(src, src_shift, false, "srcList", at) & BlocksUsable(dst, dst_shift, true, "dstList", at))) {
            return;
        }
        TransposeOnce(dst, src, params, dst_shift, src_shift);
    }
}

void SetBlockAddresses(uint32_t reg, const uint64_t *addresses)
{
    std::copy_n(addresses, 8, TheCore().block_addresses[reg & 7]);
}

// Sixteen addresses are two registers, of which an instruction names the first.
void TransposeRegisters(uint32_t dst, uint32_t src, DType dtype, const BlockTranspose &params, const char *api, At at)
{
    LocalRef to[16];
    LocalRef from[16];
    for (uint32_t i = 0; i < 16; ++i) {
        to[i] = LocalAt(TheCore().block_addresses[(dst + i / 8) & 7][i % 8], dtype, api, at);
        from[i] = LocalAt(TheCore().block_addresses[(src + i / 8) & 7][i % 8], dtype, api, at);
    }
    TransposeBlocks(to, from, params, at);
}

LocalRef LocalAt(uint64_t address, DType dtype, const char *api, At at)
{
    LocalRef ref;
    ref.dtype = dtype;
    ref.position = static_cast<uint8_t>(AscendC::TPosition::VECCALC);
    const uint64_t offset = address - reinterpret_cast<uint64_t>(TheCore().ub);
    const uint64_t capacity = CurrentChip().ub_total_bytes;
    if (offset >= capacity) {
        ReportError("out-of-bounds", at,
                    "%s gets an address outside the unified buffer; take it from GetPhyAddr.", api);
        return ref;
    }
    ref.address = static_cast<uint32_t>(offset);
    ref.limit = static_cast<uint32_t>(capacity);
    ref.bytes = ref.limit - ref.address;
    return ref;
}

void LocalWords(const LocalRef &list, uint64_t *words, uint32_t count, const char *api, At at)
{
    std::fill(words, words + count, reinterpret_cast<uint64_t>(TheCore().ub));
    if (TheCore().timing) {
        return;
    }
    const uint8_t *from = LocalRange(list, uint64_t{count} * 8, 32, false, api, Word("the list of addresses"), at);
    if (from != nullptr && AnyUndefined(list.address, uint64_t{count} * 8)) {
        ReportUndefined(api, list, uint64_t{count} * 8, at);
    } else if (from != nullptr) {
        std::memcpy(words, from, uint64_t{count} * 8);
    }
}

namespace {

bool CheckImage(const uint32_t *nchw, uint32_t width, At at)
{
    const uint64_t area = uint64_t{nchw[2]} * nchw[3];
    if (!CheckLimit(Api::TransposeImage, "cSize", nchw[1], at) ||
        !CheckLimit(Api::TransposeImage, "hSize * wSize", static_cast<int64_t>(area), at)) {
        return false;
    }
    if (area * width % kBlockBytes != 0) {
        ReportError("alignment", at, "Transpose needs images of a multiple of 32 bytes, not %llu.",
                    static_cast<unsigned long long>(area * width));
        return false;
    }
    return true;
}

}  // namespace

void UnknownTranspose(uint32_t type, At at)
{
    ReportError("param-limit", at,
                "Transpose of images takes TRANSPOSE_ND2ND_B16, NCHW2NHWC or NHWC2NCHW, not type %u.",
                type);
}

void TransposeImage(Reshape kind, const LocalRef &dst, const LocalRef &src, const LocalRef &tmp, const uint32_t *nchw,
                    At at)
{
    if (kind == Reshape::Nd2Nd) {
        if (!TheCore().timing && (nchw[2] != kSide || nchw[3] != kSide)) {
            ReportError("param-limit", at, "Transpose of a matrix needs hSize and wSize 16, not %u and %u.", nchw[2],
                        nchw[3]);
            return;
        }
        Transpose16(dst, src, at);
        return;
    }
    const uint32_t width = DTypeBytes(src.dtype);
    const uint32_t channels = nchw[1];
    const uint32_t area = nchw[2] * nchw[3];
    const uint64_t bytes = uint64_t{nchw[0]} * channels * area * width;
    if (bytes == 0) {
        return;
    }
    RunVector("Transpose", 2 * MoveCycles(bytes), at);
    const bool to_last = kind == Reshape::Nchw2Nhwc;
    const uint64_t tile = uint64_t{width == 1 ? 32U : 16U} * (kBlockBytes / width) * width;
    if (TheCore().timing || !CheckTypes(Api::TransposeImage, {dst.dtype, src.dtype}, at) ||
        !CheckImage(nchw, width, at) ||
        !TmpFits(&tmp, to_last ? (channels + 2) * tile : (channels * 2 + 1) * tile, "Transpose", at) ||
        LocalRange(src, bytes, 32, false, "Transpose", "src", at) == nullptr ||
        LocalRange(dst, bytes, 32, true, "Transpose", "dst", at) == nullptr ||
        Overlap(dst, bytes, src, bytes, "Transpose", at)) {
        return;
    }
    std::vector<Lane> lanes;
    for (uint32_t n = 0; n < nchw[0]; ++n) {
        for (uint32_t c = 0; c < channels; ++c) {
            for (uint32_t i = 0; i < area; ++i) {
                const uint32_t first = ((n * channels + c) * area + i) * width;
                const uint32_t last = ((n * area + i) * channels + c) * width;
                lanes.push_back(Lane{src.address + (to_last ? first : last), dst.address + (to_last ? last : first)});
            }
        }
    }
    MoveLanes(lanes, width);
}

}  // namespace evokernel::twin
