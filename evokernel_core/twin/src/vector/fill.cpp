// Duplicate, Copy, UB-to-UB DataCopy, Brcb and CreateVecIndex.
#include <algorithm>
#include <cstring>

#include "evokernel/twin/cube_api.h"
#include "sampled.h"
#include "vector/walk.h"

namespace evokernel::twin {

namespace {

void FillRun(uint8_t *to, uint64_t pattern, uint32_t width, uint64_t n)
{
    if (width == 2) {
        std::fill_n(reinterpret_cast<uint16_t *>(to), n, static_cast<uint16_t>(pattern));
    } else {
        std::fill_n(reinterpret_cast<uint32_t *>(to), n, static_cast<uint32_t>(pattern));
    }
}

}  // namespace

void Duplicate(const LocalRef &dst, Scalar, uint64_t pattern, const Form &form, At at)
{
    Walk walk;
    const uint32_t width = DTypeBytes(dst.dtype);
    if (!ResolveWalk(form, width, Api::Duplicate, at, &walk)) {
        return;
    }
    const Operand to = MakeOperand(dst, walk, form, form.dst_block, form.dst_repeat);
    RunVector("Duplicate", WalkCycles(walk, SimpleRate(width), &to, nullptr, 0), at);
    if (!Computes(to, nullptr, 0, walk) || !CheckTypes(Api::Duplicate, CallTypes(dst.dtype), at) ||
        !CheckOperand(to, walk, 32, true, "Duplicate", "dst", at)) {
        return;
    }
    Propagate(to, nullptr, 0, walk);
    if (walk.full && to.Dense(walk.lanes)) {
        FillRun(TheCore().ub + dst.address, pattern, width, walk.elements);
        return;
    }
    alignas(64) uint8_t tile[kRepeatBytes];
    FillRun(tile, pattern, width, walk.lanes);
    for (uint32_t r = 0; r < walk.repeats; ++r) {
        StoreTile(to, walk, r, tile);
    }
}

namespace {

// In counter mode each of Copy's repeats moves the mask's elements, in as many blocks as they fill.
void CopyCounted(const LocalRef &dst, const LocalRef &src, const Form &form, uint64_t elements, At at)
{
    const uint32_t width = DTypeBytes(dst.dtype);
    const uint32_t per_block = kBlockBytes / width;
    const auto blocks = static_cast<uint32_t>((elements + per_block - 1) / per_block);
    const auto repeats = static_cast<uint32_t>(form.count);
    RunVector("Copy", static_cast<double>(repeats) * ((blocks + 7) / 8), at);
    if (TheCore().timing || !CheckTypes(Api::Copy, {dst.dtype, src.dtype}, at)) {
        return;
    }
    Core &core = TheCore();
    for (uint32_t r = 0; r < repeats; ++r) {
        for (uint32_t b = 0; b < blocks; ++b) {
            LocalRef from = src;
            LocalRef to = dst;
            from.address += (r * form.src0_repeat + b * form.src0_block) * kBlockBytes;
            to.address += (r * form.dst_repeat + b * form.dst_block) * kBlockBytes;
            const auto bytes = static_cast<uint32_t>(std::min<uint64_t>(per_block, elements - b * per_block)) * width;
            if (LocalRange(from, bytes, 32, false, "Copy", "src", at) == nullptr ||
                LocalRange(to, bytes, 32, true, "Copy", "dst", at) == nullptr) {
                return;
            }
            std::memmove(core.ub + to.address, core.ub + from.address, bytes);
            std::memmove(core.undefined + to.address, core.undefined + from.address, bytes);
        }
    }
}

}  // namespace

void CopyVector(const LocalRef &dst, const LocalRef &src, const Form &form, At at)
{
    Walk walk;
    const uint32_t width = DTypeBytes(dst.dtype);
    if (!ResolveWalk(form, width, Api::Copy, at, &walk)) {
        return;
    }
    if (form.kind != Form::Kind::Count && (!CheckLimit(Api::Copy, "dstRepeatSize", form.dst_repeat, at) ||
                                           !CheckLimit(Api::Copy, "srcRepeatSize", form.src0_repeat, at))) {
        return;
    }
    if (form.kind != Form::Kind::Count && walk.counted) {
        CopyCounted(dst, src, form, walk.elements, at);
        return;
    }
    const Operand to = MakeOperand(dst, walk, form, form.dst_block, form.dst_repeat);
    const Operand from = MakeOperand(src, walk, form, form.src0_block, form.src0_repeat);
    const Operand *sources[] = {&from};
    RunVector("Copy", WalkCycles(walk, SimpleRate(width), &to, sources, 1), at);
    if (TheCore().timing || LeavesEmpty(to, sources, 1, walk) || !CheckTypes(Api::Copy, {dst.dtype, src.dtype}, at) ||
        !(CheckOperand(to, walk, 32, true, "Copy", "dst", at) &
          CheckOperand(from, walk, 32, false, "Copy", "src", at))) {
        return;
    }
    CheckOverlap(to, from, walk, false, "Copy", at);
    Propagate(to, sources, 1, walk);
    alignas(64) uint8_t tile[kRepeatBytes];
    for (uint32_t r = 0; r < walk.repeats; ++r) {
        LoadTile(from, walk, r, tile);
        StoreTile(to, walk, r, tile);
    }
}

void CopyLocal(const LocalRef &dst, const LocalRef &src, const Burst &burst, const char *name, At at)
{
    if (burst.count == 0 || burst.length == 0) {
        return;
    }
    const double cycles = (uint64_t{burst.count} * burst.length + kRepeatBytes - 1) / kRepeatBytes;
    RunVector(name, cycles, at);
    Core &core = TheCore();
    const uint64_t last = burst.count - 1;
    if (sampled::active && sampled::Empty(Space::UB, src.address, last * burst.src_stride + burst.length)) {
        for (uint32_t i = 0; i < burst.count; ++i) {
            sampled::Clear(Space::UB, dst.address + i * burst.dst_stride, burst.length);
        }
        return;
    }
    if (core.timing ||
        LocalRange(src, last * burst.src_stride + burst.length, 32, false, name, "src", at) == nullptr ||
        LocalRange(dst, last * burst.dst_stride + burst.length, 32, true, name, "dst", at) == nullptr) {
        return;
    }
    for (uint32_t i = 0; i < burst.count; ++i) {
        const uint32_t from = src.address + i * burst.src_stride;
        const uint32_t to = dst.address + i * burst.dst_stride;
        std::memmove(core.ub + to, core.ub + from, burst.length);
        std::memmove(core.undefined + to, core.undefined + from, burst.length);
    }
}

void CopyLocalCount(const LocalRef &dst, const LocalRef &src, int64_t count, At at)
{
    const uint64_t bytes = static_cast<uint64_t>(count) * DTypeBytes(dst.dtype);
    const uint32_t whole = static_cast<uint32_t>(bytes / 32 * 32);
    if (whole != bytes) {
        ReportWarning("datacopy-truncation", at, "DataCopy of %lld elements is %llu bytes and moves only %u.",
                      static_cast<long long>(count), static_cast<unsigned long long>(bytes), whole);
    }
    if (IsCubePosition(dst)) {
        return CopyLocalDense(dst, src, whole, at);
    }
    CopyLocal(dst, src, Burst{1, whole, whole, whole}, "DataCopy", at);
}

void Brcb(const LocalRef &dst, const LocalRef &src, int64_t repeats, uint16_t dst_block, uint16_t dst_repeat, At at)
{
    constexpr uint32_t elements = 8;  // one block is filled from each
    if (repeats <= 0 || !CheckRepeats(Api::Brcb, repeats, at)) {
        return;
    }
    const uint32_t width = DTypeBytes(dst.dtype);
    Form form;
    form.dst_block = dst_block;
    form.dst_repeat = dst_repeat;
    form.kind = Form::Kind::Register;
    Walk walk;
    walk.lanes = kRepeatBytes / width;
    walk.repeats = static_cast<uint32_t>(repeats);
    walk.mask[0] = walk.mask[1] = ~uint64_t{0};
    walk.mask[1] = walk.lanes > 64 ? ~uint64_t{0} : 0;
    walk.full = true;
    walk.elements = uint64_t{walk.repeats} * walk.lanes;
    const Operand to = MakeOperand(dst, walk, form, form.dst_block, form.dst_repeat);
    RunVector("Brcb", WalkCycles(walk, SimpleRate(width), &to, nullptr, 0), at);
    Core &core = TheCore();
    if (sampled::active && sampled::Empty(Space::UB, src.address, uint64_t{walk.repeats} * elements * width)) {
        return ClearOperand(to, walk);
    }
    if (core.timing || !CheckTypes(Api::Brcb, {dst.dtype, src.dtype}, at) ||
        !CheckOperand(to, walk, 32, true, "Brcb", "dst", at) ||
        LocalRange(src, uint64_t{walk.repeats} * elements * width, 32, false, "Brcb", "src", at) == nullptr) {
        return;
    }
    for (uint32_t r = 0; r < walk.repeats; ++r) {
        for (uint32_t i = 0; i < elements; ++i) {
            const uint32_t from = src.address + (r * elements + i) * width;
            const uint32_t start = to.ref.address + r * to.repeat + i * to.block;
            uint64_t pattern = 0;
            std::memcpy(&pattern, core.ub + from, width);
            FillRun(core.ub + start, pattern, width, kBlockBytes / width);
            std::memset(core.undefined + start, AnyUndefined(from, width) ? kUndefined : 0, kBlockBytes);
        }
    }
}

namespace {

template <typename T> void PutSequence(uint8_t *tile, uint32_t lanes, uint64_t start, Scalar first, Scalar step)
{
    for (uint32_t lane = 0; lane < lanes; ++lane) {
        const double position = static_cast<double>(start + lane);
        const T value = std::is_integral_v<T>
                            ? static_cast<T>(first.integer + static_cast<int64_t>(start + lane) * step.integer)
                            : static_cast<T>(static_cast<float>(first.value + position * step.value));
        std::memcpy(tile + lane * sizeof(T), &value, sizeof(T));
    }
}

void SequenceTile(DType type, uint8_t *tile, uint32_t lanes, uint64_t start, Scalar first, Scalar step)
{
    switch (type) {
        case DType::S16:
            return PutSequence<int16_t>(tile, lanes, start, first, step);
        case DType::S32:
            return PutSequence<int32_t>(tile, lanes, start, first, step);
        case DType::F16:
            return PutSequence<half>(tile, lanes, start, first, step);
        default:
            return PutSequence<float>(tile, lanes, start, first, step);
    }
}

}  // namespace

void CreateVecIndex(const LocalRef &dst, Scalar first, Scalar step, const Form &form, const char *name, At at)
{
    Walk walk;
    const uint32_t width = DTypeBytes(dst.dtype);
    if (!ResolveWalk(form, width, {Api::CreateVecIndex, name}, at, &walk)) {
        return;
    }
    const Operand to = MakeOperand(dst, walk, form, form.dst_block, form.dst_repeat);
    RunVector(name, WalkCycles(walk, SimpleRate(width), &to, nullptr, 0), at);
    const DType type = dst.dtype;
    if (!Computes(to, nullptr, 0, walk) || !CheckTypes({Api::CreateVecIndex, name}, CallTypes(type), at) ||
        !CheckOperand(to, walk, 32, true, name, "dst", at)) {
        return;
    }
    Propagate(to, nullptr, 0, walk);
    alignas(64) uint8_t tile[kRepeatBytes];
    for (uint32_t r = 0; r < walk.repeats; ++r) {
        SequenceTile(type, tile, walk.lanes, uint64_t{r} * walk.lanes, first, step);
        StoreTile(to, walk, r, tile);
    }
}

}  // namespace evokernel::twin
