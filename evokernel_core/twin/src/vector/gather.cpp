// Instructions that pick elements: GatherMask, Gather, Gatherb and Transpose.
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "sampled.h"
#include "stand_in.h"
#include "vector/cost.h"
#include "vector/walk.h"

namespace evokernel::twin {

namespace {

bool FixedPattern(uint8_t pattern, uint64_t element)
{
    switch (pattern) {
        case 1:
            return element % 2 == 0;
        case 2:
            return element % 2 == 1;
        case 7:
            return true;
        default:
            return element % 4 == pattern - 3U;
    }
}

struct MaskGather {
    uint32_t width;
    uint32_t lanes;
    uint64_t per_repeat;
    const AscendC::GatherMaskParams *params;
};

uint64_t CountFixed(const MaskGather &plan, uint8_t pattern)
{
    uint64_t kept = 0;
    for (uint64_t e = 0; e < plan.per_repeat; ++e) {
        kept += FixedPattern(pattern, e) ? 1 : 0;
    }
    return kept * plan.params->repeatTimes;
}

uint32_t SourceAddress(const MaskGather &plan, const LocalRef &src, uint32_t repeat, uint64_t element)
{
    const uint32_t per_block = kBlockBytes / plan.width;
    const uint32_t block = static_cast<uint32_t>(element / per_block);
    return src.address + repeat * plan.params->src0RepeatStride * kBlockBytes +
           block * plan.params->src0BlockStride * kBlockBytes +
           static_cast<uint32_t>(element % per_block) * plan.width;
}

bool CheckGatherMask(const LocalRef &dst, const LocalRef &src, const LocalRef *pattern, uint8_t fixed, At at)
{
    const uint32_t width = DTypeBytes(src.dtype);
    if (!CheckTypes(Api::GatherMask, {dst.dtype, src.dtype}, at)) {
        return false;
    }
    if (pattern != nullptr && DTypeBytes(pattern->dtype) != width) {
        ReportError("dtype-unsupported", at, "GatherMask needs a pattern of uint%u_t for this source.", width * 8);
        return false;
    }
    constexpr Limit patterns = LimitOf(Api::GatherMask, "src1Pattern");
    if (pattern == nullptr && (fixed < patterns.low || fixed > patterns.high)) {
        ReportError("mask-limit", at, "GatherMask's fixed pattern must be 1 to 7, not %u.", fixed);
        return false;
    }
    return true;
}

// The bits that the repeats read: inside their buffer, and written before.
bool PatternUsable(const MaskGather &plan, const LocalRef &pattern, At at)
{
    const uint64_t bytes = (plan.per_repeat + 7) / 8;
    for (uint32_t r = 0; r < plan.params->repeatTimes; ++r) {
        LocalRef part = pattern;
        part.address += r * plan.params->src1RepeatStride * kBlockBytes;
        if (LocalRange(part, bytes, 32, false, "GatherMask", "src1Pattern", at) == nullptr) {
            return false;
        }
        if (AnyUndefined(part.address, bytes)) {
            ReportUndefined("GatherMask", part, bytes, at);
            return false;
        }
        if (plan.params->src1RepeatStride == 0) {
            return true;
        }
    }
    return true;
}

bool Kept(const MaskGather &plan, const LocalRef *pattern, uint8_t fixed, uint32_t repeat, uint64_t element)
{
    if (pattern == nullptr) {
        return FixedPattern(fixed, element);
    }
    const uint32_t byte =
        pattern->address + repeat * plan.params->src1RepeatStride * kBlockBytes + static_cast<uint32_t>(element / 8);
    return byte < kUbCapacity && (TheCore().ub[byte] >> element % 8 & 1) != 0;
}

// What is kept where it can be told without the source: not of a pattern that nobody knows in timing mode.
uint64_t CountKnown(const MaskGather &plan, const LocalRef *pattern, uint8_t fixed)
{
    if (pattern == nullptr) {
        return CountFixed(plan, fixed);
    }
    uint64_t kept = 0;
    const uint64_t bytes = (plan.per_repeat + 7) / 8;
    for (uint32_t r = 0; Gm().HasKnown() && r < plan.params->repeatTimes; ++r) {
        if (AnyUndefined(pattern->address + r * plan.params->src1RepeatStride * kBlockBytes, bytes)) {
            return 0;
        }
        for (uint64_t e = 0; e < plan.per_repeat; ++e) {
            kept += Kept(plan, pattern, fixed, r, e) ? 1 : 0;
        }
    }
    return kept;
}

}  // namespace

uint64_t GatherMask(const LocalRef &dst, const LocalRef &src, const LocalRef *pattern, uint8_t fixed_pattern,
                    bool counter, uint32_t mask, const AscendC::GatherMaskParams &params, At at)
{
    Core &core = TheCore();
    MaskGather plan{DTypeBytes(src.dtype), 0, 0, &params};
    plan.lanes = kRepeatBytes / plan.width;
    plan.per_repeat = counter ? mask : plan.lanes;
    core.mask = MaskState{false, ~uint64_t{0}, ~uint64_t{0}};
    if (params.repeatTimes == 0 || plan.per_repeat == 0) {
        return 0;
    }
    const double rate = RateOf(RowOf(Api::GatherMask).cost, plan.width);
    const double rounds = static_cast<double>((plan.per_repeat + plan.lanes - 1) / plan.lanes);
    RunVector("GatherMask", params.repeatTimes * rounds * plan.lanes / rate, at);
    if (!CheckGatherMask(dst, src, pattern, fixed_pattern, at)) {
        return 0;
    }
    const uint32_t last = SourceAddress(plan, src, params.repeatTimes - 1U, plan.per_repeat - 1);
    if (core.timing) {
        const uint64_t counted = CountKnown(plan, pattern, fixed_pattern);
        const bool known = Gm().HasKnown() && counted != 0 && !AnyUndefined(src.address, last + plan.width - src.address);
        if (!ComputesTo(dst.address, counted * plan.width, known)) {
            return counted;
        }
    }
    if (LocalRange(src, last + plan.width - src.address, 32, false, "GatherMask", "src0", at) == nullptr) {
        return 0;
    }
    if (pattern != nullptr && !PatternUsable(plan, *pattern, at)) {
        const uint64_t most = params.repeatTimes * plan.per_repeat;
        if (!sampled::active) {
            return 0;
        }
        sampled::Clear(Space::UB, dst.address, most * plan.width);
        return sampled::CountOf(0, false, most, at);
    }
    if (sampled::active) {
        sampled::Open(Space::UB, dst.address, params.repeatTimes * plan.per_repeat * plan.width);
    }
    uint64_t kept = 0;
    for (uint32_t r = 0; r < params.repeatTimes; ++r) {
        for (uint64_t e = 0; e < plan.per_repeat; ++e) {
            if (!Kept(plan, pattern, fixed_pattern, r, e)) {
                continue;
            }
            const uint32_t from = SourceAddress(plan, src, r, e);
            const uint32_t to = dst.address + static_cast<uint32_t>(kept++) * plan.width;
            if (to + plan.width <= kUbCapacity) {
                std::memmove(core.ub + to, core.ub + from, plan.width);
                std::memmove(core.undefined + to, core.undefined + from, plan.width);
            }
        }
    }
    LocalRange(dst, kept * plan.width, 32, true, "GatherMask", "dst", at);
    return sampled::active ? sampled::CountOf(kept, true, params.repeatTimes * plan.per_repeat, at) : kept;
}

namespace {

// In sampled runs: whether a tensor from which elements are chosen holds no value anywhere.
bool SourceEmpty(const LocalRef &src)
{
    return sampled::active && src.limit > src.address &&
           sampled::Empty(Space::UB, src.address, src.limit - src.address);
}

// Whether an element lies inside of a tensor of which another one was checked.
bool Inside(const LocalRef &element, uint32_t width)
{
    const uint64_t end = uint64_t{element.address} + width;
    return element.address % width == 0 && end <= element.limit && end <= TheCore().In(Space::UB).capacity;
}

}  // namespace

void Gather(const LocalRef &dst, const LocalRef &src, const LocalRef &offsets, uint32_t base, const Form &form, At at)
{
    Walk walk;
    const uint32_t width = DTypeBytes(dst.dtype);
    if (!ResolveWalk(form, width, Api::Gather, at, &walk)) {
        return;
    }
    const Operand to = MakeOperand(dst, walk, form, form.dst_block, form.dst_repeat);
    RunVector("Gather", static_cast<double>(walk.elements) / RateOf(RowOf(Api::Gather).cost, width), at);
    Core &core = TheCore();
    const uint64_t count = walk.counted ? walk.elements : uint64_t{walk.repeats} * walk.lanes;
    if (core.timing) {
        ComputesTo(dst.address, count * width, false);  // what is gathered is data
        return;
    }
    if (sampled::active && (SourceEmpty(src) || sampled::Empty(Space::UB, offsets.address, count * 4))) {
        return ClearOperand(to, walk);
    }
    if (!CheckTypes(Api::Gather, {dst.dtype, src.dtype}, at) ||
        !CheckOperand(to, walk, 32, true, "Gather", "dst", at) ||
        LocalRange(offsets, count * 4, 32, false, "Gather", "srcOffset", at) == nullptr) {
        return;
    }
    const bool known = !AnyUndefined(offsets.address, count * 4);
    if (sampled::active && src.limit > src.address) {
        sampled::Open(Space::UB, src.address, src.limit - src.address);
    }
    bool checked = false;
    for (uint32_t r = 0; r < walk.repeats; ++r) {
        const uint32_t last = walk.LastLane(r);
        for (uint32_t lane = 0; lane < last; ++lane) {
            if (!walk.full && !walk.Active(r, lane)) {
                continue;
            }
            const uint32_t entry = offsets.address + (r * walk.lanes + lane) * 4;
            if (!known && AnyUndefined(entry, 4)) {
                LocalRef part = offsets;
                part.address = entry;
                ReportUndefined("Gather", part, 4, at);
                return;
            }
            uint32_t offset;
            std::memcpy(&offset, core.ub + entry, 4);
            LocalRef element = src;
            element.address = src.address + base + offset;
            if (checked && Inside(element, width)) {
                Touch(Space::UB, element.address, width, false);
            } else if (LocalRange(element, width, width, false, "Gather", "src", at) == nullptr) {
                return;
            }
            checked = true;
            const uint32_t place = to.Address(r, lane);
            std::memcpy(core.ub + place, core.ub + element.address, width);
            std::memcpy(core.undefined + place, core.undefined + element.address, width);
        }
    }
}

void Gatherb(const LocalRef &dst, const LocalRef &src, const LocalRef &offsets, int64_t repeats, uint16_t dst_block,
             uint16_t dst_repeat, At at)
{
    constexpr uint32_t blocks = 8;
    const uint32_t width = DTypeBytes(dst.dtype);
    if (repeats <= 0 || !CheckRepeats(Api::Gatherb, repeats, at)) {
        return;
    }
    const double lanes = kRepeatBytes / static_cast<double>(width);
    RunVector("Gatherb", static_cast<double>(repeats) * lanes / RateOf(RowOf(Api::Gatherb).cost, width), at);
    Core &core = TheCore();
    if (SourceEmpty(src)) {
        for (uint32_t i = 0; i < static_cast<uint32_t>(repeats) * blocks; ++i) {
            sampled::Clear(Space::UB, dst.address + (i / blocks * dst_repeat + i % blocks * dst_block) * kBlockBytes,
                           kBlockBytes);
        }
        return;
    }
    if (core.timing || !CheckTypes(Api::Gatherb, {dst.dtype, src.dtype}, at) ||
        LocalRange(offsets, static_cast<uint64_t>(repeats) * blocks * 4, 32, false, "Gatherb", "offset", at) == nullptr) {
        return;
    }
    for (uint32_t r = 0; r < static_cast<uint32_t>(repeats); ++r) {
        for (uint32_t i = 0; i < blocks; ++i) {
            LocalRef entry = offsets;
            entry.address += (r * blocks + i) * 4;
            if (AnyUndefined(entry.address, 4)) {
                ReportUndefined("Gatherb", entry, 4, at);
                return;
            }
            uint32_t offset;
            std::memcpy(&offset, core.ub + entry.address, 4);
            LocalRef from = src;
            from.address = src.address + offset;
            LocalRef to = dst;
            to.address = dst.address + (r * dst_repeat + i * dst_block) * kBlockBytes;
            if (LocalRange(from, kBlockBytes, 32, false, "Gatherb", "src0", at) == nullptr ||
                LocalRange(to, kBlockBytes, 32, true, "Gatherb", "dst", at) == nullptr) {
                return;
            }
            std::memcpy(core.ub + to.address, core.ub + from.address, kBlockBytes);
            std::memcpy(core.undefined + to.address, core.undefined + from.address, kBlockBytes);
        }
    }
}

void Transpose16(const LocalRef &dst, const LocalRef &src, At at)
{
    constexpr uint32_t side = 16;
    constexpr uint32_t bytes = side * side * 2;
    RunVector("Transpose", bytes / kRepeatBytes, at);
    Core &core = TheCore();
    if (core.timing) {
        return;
    }
    if (!CheckTypes(Api::Transpose, {dst.dtype, src.dtype}, at)) {
        return;
    }
    if (LocalRange(src, bytes, 32, false, "Transpose", "src", at) == nullptr ||
        LocalRange(dst, bytes, 32, true, "Transpose", "dst", at) == nullptr) {
        return;
    }
    std::array<uint8_t, bytes> data;
    std::array<uint8_t, bytes> shadow;
    std::memcpy(data.data(), core.ub + src.address, bytes);
    std::memcpy(shadow.data(), core.undefined + src.address, bytes);
    for (uint32_t i = 0; i < side; ++i) {
        for (uint32_t j = 0; j < side; ++j) {
            std::memcpy(core.ub + dst.address + (j * side + i) * 2, data.data() + (i * side + j) * 2, 2);
            std::memcpy(core.undefined + dst.address + (j * side + i) * 2, shadow.data() + (i * side + j) * 2, 2);
        }
    }
}

}  // namespace evokernel::twin
