// DataCopy and DataCopyPad: GM to UB on MTE2, UB to GM on MTE3.
#include <algorithm>
#include <cstring>

#include "copies/atomics.h"
#include "copies/traffic.h"
#include "copies/tscm.h"
#include "core.h"
#include "cube/gm.h"
#include "cube/space.h"
#include "sampled.h"
#include "time/schedule.h"

namespace evokernel::twin {

namespace {

uint64_t Extent(const Burst &burst, uint32_t stride)
{
    return burst.count == 0 ? 0 : uint64_t{burst.count - 1} * stride + burst.length;
}

Burst Joined(Burst burst)
{
    if (burst.count > 1 && burst.src_stride == burst.length && burst.dst_stride == burst.length) {
        burst.length *= burst.count;
        burst.count = 1;
    }
    return burst;
}

}  // namespace

void AccountGlobal(Pipe pipe, bool load, const GlobalRef &tensor, Burst burst, uint32_t stride, double cycles,
                   const char *name, At at)
{
    TakeTurn(pipe, at);
    BeginInstruction(pipe, name, at);
    Move move = NoteTraffic(pipe, load, tensor, Span{burst.count, burst.length, stride});
    move.cycles = cycles;
    TheCore().time.RunMove(move, name, at.line, at.file);
}

namespace {

// Counts a transfer's time. `stride` is that of the GM side.
void Account(bool load, const GlobalRef &tensor, Burst burst, uint32_t stride, const char *name, At at)
{
    AccountGlobal(load ? Pipe::MTE2 : Pipe::MTE3, load, tensor, Joined(burst), stride, 0, name, at);
}

bool NothingToDo(const Burst &burst) { return burst.count == 0 || burst.length == 0; }

void CheckElementAligned(const GlobalRef &tensor, const char *api, At at)
{
    if (reinterpret_cast<uintptr_t>(tensor.address) % DTypeBytes(tensor.dtype) != 0) {
        ReportError("gm-misaligned-access", at, "%s needs its GM address aligned to the element size of %u bytes.",
                    api, DTypeBytes(tensor.dtype));
    }
}

// Whether the GM side of a transfer is inside its tensor; null where it is not.
Allocation *CheckGlobal(const GlobalRef &tensor, uint64_t extent, bool write, const char *api, At at)
{
    return Gm().Check(tensor, tensor.address, extent, write, api, at);
}

void CopyDefinedness(const Allocation &block, const uint8_t *from, uint32_t to, uint64_t bytes)
{
    ShadowFromGlobal(block, from, TheCore().undefined + to, bytes);
}

// Dense copies end in the unified buffer or in L1.
constexpr uint32_t kCopySpaces = SpaceBit(Space::UB) | SpaceBit(Space::L1);

// In sampled runs: whether none of the rows holds a value.
bool RowsEmpty(const Allocation &block, const GlobalRef &tensor, const Burst &burst, uint32_t stride)
{
    const auto offset = static_cast<uint64_t>(tensor.address - block.base);
    if (stride <= kSamplePage) {
        return sampled::Empty(block, offset, Extent(burst, stride));
    }
    for (uint32_t i = 0; i < burst.count; ++i) {
        if (!sampled::Empty(block, offset + uint64_t{i} * stride, burst.length)) {
            return false;
        }
    }
    return true;
}

void ClearRows(const LocalRef &dst, uint64_t length, uint32_t count, uint64_t stride)
{
    if (length >= stride) {
        return sampled::Clear(SpaceOf(dst), dst.address, (count - 1) * stride + length);
    }
    for (uint32_t i = 0; i < count; ++i) {
        sampled::Clear(SpaceOf(dst), dst.address + i * stride, length);
    }
}

// In sampled runs: a store of rows that hold no value makes nothing but bytes without one.
bool StoresNothing(const GlobalRef &dst, const LocalRef &src, const Burst &burst, Allocation &block)
{
    if (!sampled::active || !sampled::Empty(SpaceOf(src), src.address, Extent(burst, burst.src_stride))) {
        return false;
    }
    const auto offset = static_cast<uint64_t>(dst.address - block.base);
    for (uint32_t i = 0; i < burst.count; ++i) {
        sampled::Forget(block, offset + uint64_t{i} * burst.dst_stride, burst.length);
    }
    MarkProgress();
    return true;
}

void Load(const LocalRef &dst, const GlobalRef &src, const Burst &burst, const char *api, At at)
{
    Allocation *block = CheckGlobal(src, Extent(burst, burst.src_stride), false, api, at);
    if (sampled::active && block != nullptr && RowsEmpty(*block, src, burst, burst.src_stride)) {
        return ClearRows(dst, burst.length, burst.count, burst.dst_stride);
    }
    Cells to;
    if (!OpenCells(dst, Extent(burst, burst.dst_stride), 32, true, api, "dst", at, kCopySpaces, &to) ||
        block == nullptr) {
        return;
    }
    for (uint32_t i = 0; i < burst.count; ++i) {
        const uint64_t step = uint64_t{i} * burst.dst_stride;
        const uint8_t *from = src.address + uint64_t{i} * burst.src_stride;
        to.Touched(step, burst.length, true);
        TouchGm(from, burst.length, false);
        std::memcpy(to.data + step, from, burst.length);
        ShadowFromGlobal(*block, from, to.undefined + step, burst.length);
    }
}

}  // namespace

void StoreGlobal(Allocation &block, uint8_t *to, const uint8_t *from, uint32_t bytes, const char *api, At at)
{
    const Core &core = TheCore();
    MarkProgress();
    if (!sampled::Keeps(block, static_cast<uint64_t>(to - block.base), bytes)) {
        return;
    }
    TouchGm(to, bytes, true, core.atomic != Atomic::None);
    uint8_t *written = block.written == nullptr ? nullptr : block.written + (to - block.base);
    if (core.atomic == Atomic::None) {
        std::memcpy(to, from, bytes);
    } else {
        if (written != nullptr && std::memchr(written, 0, bytes) != nullptr) {
            (block.kind == Kind::Device ? ReportWarning : ReportError)(
                "uninitialised-read", at,
                "%s with atomics on adds to %s where nothing was written yet; clear it first.", api,
                block.name.c_str());
        }
        ApplyAtomic(core.atomic, core.atomic_type, to, from, bytes);
        if (sampled::active) {
            return;  // what had no value has none
        }
    }
    if (written != nullptr) {
        std::memset(written, 1, bytes);
    }
}

namespace {

// Outside a kernel's outputs bytes that hold nothing may travel, as the padding of a tile does, but what
// arrives is not written: a later read of it is the error.
void ForgetUndefined(const Allocation &block, const uint8_t *to, const LocalRef &from, uint64_t bytes,
                     const char *api, At at)
{
    const uint8_t *undefined = TheCore().In(SpaceOf(from)).undefined + from.address;
    if (sampled::active && !sampled::Keeps(const_cast<Allocation &>(block), static_cast<uint64_t>(to - block.base), bytes)) {
        return;
    }
    ReportWarning("uninitialised-store", at, "%s stores %lld of %llu bytes that the kernel never wrote.", api,
                  static_cast<long long>(MarkedCount(undefined, bytes)),
                  static_cast<unsigned long long>(bytes));
    for (uint64_t i = 0; block.written != nullptr && i < bytes; ++i) {
        uint8_t &written = block.written[to - block.base + i];
        written = static_cast<uint8_t>(written & (undefined[i] == 0));
    }
}

void Store(const GlobalRef &dst, const LocalRef &src, const Burst &burst, const char *api, At at)
{
    Allocation *block = CheckGlobal(dst, Extent(burst, burst.dst_stride), true, api, at);
    if (block != nullptr && block->kind != Kind::Input && StoresNothing(dst, src, burst, *block)) {
        return;
    }
    Cells from;
    if (!OpenCells(src, Extent(burst, burst.src_stride), 32, false, api, "src", at, kCopySpaces, &from) ||
        block == nullptr || block->kind == Kind::Input) {
        return;
    }
    for (uint32_t i = 0; i < burst.count; ++i) {
        LocalRef part = src;
        part.address += i * burst.src_stride;
        from.Touched(uint64_t{i} * burst.src_stride, burst.length, false);
        uint8_t *to = dst.address + uint64_t{i} * burst.dst_stride;
        const bool undefined = AnyUndefined(part.address, burst.length, from.space);
        const bool matters = block->kind == Kind::Output && !sampled::active;
        if (undefined && matters) {
            ReportUndefined(api, part, burst.length, at);
        }
        StoreGlobal(*block, to, from.data + uint64_t{i} * burst.src_stride, burst.length, api, at);
        if (undefined && !matters) {
            ForgetUndefined(*block, to, part, burst.length, api, at);
        }
    }
}

Burst CountBurst(DType dtype, int64_t count, At at)
{
    const uint64_t bytes = static_cast<uint64_t>(count) * BitsOf(dtype) / 8;
    const uint64_t whole = bytes / 32 * 32;
    if (whole != bytes) {
        ReportWarning("datacopy-truncation", at,
                      "DataCopy of %lld elements is %llu bytes and moves only %llu, a multiple of 32; use DataCopyPad.",
                      static_cast<long long>(count), static_cast<unsigned long long>(bytes),
                      static_cast<unsigned long long>(whole));
    }
    const uint32_t length = static_cast<uint32_t>(whole);
    return Burst{1, length, length, length};
}

void CheckPadParams(const AscendC::DataCopyExtParams &params, DType dtype, At at)
{
    constexpr int64_t blocks = LimitOf(Api::DataCopyPadIn, "blockCount").high;
    constexpr int64_t length = LimitOf(Api::DataCopyPadIn, "blockLen").high;
    if (params.blockCount > blocks || params.blockLen > length) {
        ReportError("stride-limit", at, "DataCopyPad takes at most %lld blocks of %lld bytes, not %u of %u.",
                    static_cast<long long>(blocks), static_cast<long long>(length), params.blockCount,
                    params.blockLen);
    }
    if (params.blockLen % DTypeBytes(dtype) != 0) {
        ReportError("alignment", at, "DataCopyPad's blockLen of %u bytes is no multiple of the element size %u.",
                    params.blockLen, DTypeBytes(dtype));
    }
}

void FillPattern(uint8_t *to, uint64_t bytes, uint64_t pattern, uint32_t width)
{
    for (uint64_t i = 0; i + width <= bytes; i += width) {
        std::memcpy(to + i, &pattern, width);
    }
}

// The bytes of one UB block before and after its data.
void PadBlock(const LocalRef &dst, uint32_t start, uint32_t left, uint32_t length, uint32_t end,
              const Padding &padding, uint64_t pattern)
{
    Core &core = TheCore();
    const uint32_t width = DTypeBytes(dst.dtype);
    const uint32_t tail = start + left + length;
    if (padding.enabled || (padding.left == 0 && padding.right == 0)) {
        FillPattern(core.ub + start, left, pattern, width);
        FillPattern(core.ub + tail, end - tail, pattern, width);
        std::memset(core.undefined + start, 0, left);
        std::memset(core.undefined + tail, 0, end - tail);
    } else {
        std::memset(core.undefined + start, kUndefined, left);
        std::memset(core.undefined + tail, kUndefined, end - tail);
    }
}

// In timing mode only known inputs have data, which arrives as it does otherwise.
void LoadKnown(const LocalRef &dst, const GlobalRef &src, const Burst &burst, uint32_t left)
{
    if (!Gm().HasKnown() || SpaceOf(dst) != Space::UB) {
        return;
    }
    const Allocation *block = Gm().Find(src.address);
    const bool booked = block != nullptr && block->written != nullptr;
    const bool known = booked ? Gm().WithData(src.address, Extent(burst, burst.src_stride)) != nullptr
                              : block != nullptr && block->known;
    if (!ComputesTo(dst.address + left, Extent(burst, burst.dst_stride), known)) {
        return;
    }
    const uint8_t *end = block->base + block->padded;
    for (uint32_t i = 0; i < burst.count; ++i) {
        const uint8_t *from = src.address + uint64_t{i} * burst.src_stride;
        const uint64_t to = dst.address + left + uint64_t{i} * burst.dst_stride;
        if (from + burst.length <= end && to + burst.length <= kUbCapacity) {
            std::memcpy(TheCore().ub + to, from, burst.length);
            MarkDefined(static_cast<uint32_t>(to), burst.length);
        }
    }
}

}  // namespace

void CopyIn(const LocalRef &dst, const GlobalRef &src, const Burst &burst, At at)
{
    if (NothingToDo(burst) ||
        PostedToCube(dst, [=](const LocalRef &seen) { CopyIn(seen, src, burst, at); }, at)) {
        return;
    }
    Account(true, src, burst, burst.src_stride, "DataCopy", at);
    if (TheCore().timing) {
        LoadKnown(dst, src, burst, 0);
        return;
    }
    CheckElementAligned(src, "DataCopy", at);
    Load(dst, src, Joined(burst), "DataCopy", at);
}

void CopyOut(const GlobalRef &dst, const LocalRef &src, const Burst &burst, At at)
{
    if (NothingToDo(burst)) {
        return;
    }
    Account(false, dst, burst, burst.dst_stride, "DataCopy", at);
    if (!TheCore().timing) {
        CheckElementAligned(dst, "DataCopy", at);
        Store(dst, src, Joined(burst), "DataCopy", at);
    }
}

void CopyCountIn(const LocalRef &dst, const GlobalRef &src, int64_t count, At at)
{
    CopyIn(dst, src, CountBurst(dst.dtype, count, at), at);
}

void CopyCountOut(const GlobalRef &dst, const LocalRef &src, int64_t count, At at)
{
    CopyOut(dst, src, CountBurst(src.dtype, count, at), at);
}

void CheckCopyParams(const AscendC::DataCopyParams &params, const char *name, At at)
{
    constexpr int64_t blocks = LimitOf(Api::DataCopyBlocksIn, "blockCount").high;
    if (params.blockCount > blocks) {
        ReportError("stride-limit", at, "%s takes at most %lld blocks, not %u.", name, static_cast<long long>(blocks),
                    params.blockCount);
    }
}

void CopyPadIn(const LocalRef &dst, const GlobalRef &src, const AscendC::DataCopyExtParams &params,
               const Padding &padding, At at)
{
    CheckPadParams(params, dst.dtype, at);
    if (params.blockCount == 0 || params.blockLen == 0) {
        return;
    }
    const uint32_t width = DTypeBytes(dst.dtype);
    const uint32_t left = padding.left * width;
    const uint32_t right = padding.right * width;
    constexpr int64_t side = LimitOf(Api::DataCopyPadIn, "padding").high;
    if (left > side || right > side) {
        ReportError("stride-limit", at, "DataCopyPad pads at most %lld bytes a side, not %u and %u.",
                    static_cast<long long>(side), left, right);
        return;
    }
    const uint32_t filled = (left + params.blockLen + right + 31) / 32 * 32;
    Burst burst{params.blockCount, params.blockLen, params.blockLen + params.srcStride,
                filled + params.dstStride * 32};
    Account(true, src, burst, burst.src_stride, "DataCopyPad", at);
    if (TheCore().timing) {
        LoadKnown(dst, src, burst, left);
        return;
    }
    Allocation *block = CheckGlobal(src, Extent(burst, burst.src_stride), false, "DataCopyPad", at);
    if (sampled::active && block != nullptr && RowsEmpty(*block, src, burst, burst.src_stride)) {
        return ClearRows(dst, filled, burst.count, burst.dst_stride);
    }
    LocalRef whole = dst;
    if (CheckRange(whole, uint64_t{burst.count - 1} * burst.dst_stride + filled, 32, true, "DataCopyPad", "dst", at,
                   SpaceBit(Space::UB)) == nullptr || block == nullptr) {
        return;
    }
    Padding filling = padding;
    const Registers &registers = TheCore().registers;
    // Where no padding is asked for, what fills the last block is the first element, also with isPad (DataCopyPad).
    const bool none_asked = padding.enabled && padding.left == 0 && padding.right == 0;
    if (!padding.enabled && registers.has_pad_pattern) {  // what SetPadValue set stands where isPad is false
        filling.enabled = true;
        filling.pattern = registers.pad_pattern;
    }
    for (uint32_t i = 0; i < burst.count; ++i) {
        const uint32_t start = dst.address + i * burst.dst_stride;
        const uint8_t *from = src.address + uint64_t{i} * burst.src_stride;
        Touch(Space::UB, start, filled, true);
        TouchGm(from, burst.length, false);
        std::memcpy(TheCore().ub + start + left, from, burst.length);
        CopyDefinedness(*block, from, start + left, burst.length);
        uint64_t pattern = filling.pattern;
        if (!filling.enabled || none_asked) {
            pattern = 0;
            std::memcpy(&pattern, from, width);
        }
        PadBlock(dst, start, left, burst.length, start + filled, filling, pattern);
    }
}

void CopyPadOut(const GlobalRef &dst, const LocalRef &src, const AscendC::DataCopyExtParams &params, At at)
{
    CheckPadParams(params, src.dtype, at);
    if (params.blockCount == 0 || params.blockLen == 0) {
        return;
    }
    const uint32_t filled = (params.blockLen + 31) / 32 * 32;
    const Burst burst{params.blockCount, params.blockLen, filled + params.srcStride * 32,
                      params.blockLen + params.dstStride};
    Account(false, dst, burst, burst.dst_stride, "DataCopyPad", at);
    if (!TheCore().timing) {
        Store(dst, src, Joined(burst), "DataCopyPad", at);
    }
}

void SetAtomic(Atomic op, DType dtype, At at)
{
    Core &core = TheCore();
    core.time.Scalar(CurrentChip().flag);
    core.last_at = at;
    core.atomic = op;
    core.atomic_type = dtype;
    switch (op) {
        case Atomic::Add:
            CheckTypes(Api::SetAtomicAdd, CallTypes(dtype), at);
            break;
        case Atomic::Max:
            CheckTypes(Api::SetAtomicMax, CallTypes(dtype), at);
            break;
        case Atomic::Min:
            CheckTypes(Api::SetAtomicMin, CallTypes(dtype), at);
            break;
        default:
            break;
    }
}

}  // namespace evokernel::twin
