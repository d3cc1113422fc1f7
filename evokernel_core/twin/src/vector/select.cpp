// Compare and Select.
#include <algorithm>
#include <cstring>

#include "sampled.h"
#include "vector/convert.h"
#include "vector/walk.h"

namespace evokernel::twin {

namespace {

using AscendC::CMPMODE;
using AscendC::SELMODE;

// The lanes of a tile as doubles: exact for every type that Compare takes.
void LaneValues(DType type, const uint8_t *tile, uint32_t n, double *values)
{
    const auto convert = [&](auto zero, auto value_of) {
        using T = decltype(zero);
        for (uint32_t lane = 0; lane < n; ++lane) {
            T element;
            std::memcpy(&element, tile + lane * sizeof(T), sizeof(T));
            values[lane] = value_of(element);
        }
    };
    switch (type) {
        case DType::F16: return convert(uint16_t{0}, [](uint16_t bits) { return double{HalfValue(bits)}; });
        case DType::F32: return convert(0.0F, [](float value) { return double{value}; });
        default: return convert(int32_t{0}, [](int32_t value) { return double{1} * value; });
    }
}

template <typename Holds> void PutBits(const double *a, const double *b, uint32_t n, uint8_t *bits, Holds holds)
{
    for (uint32_t lane = 0; lane < n; ++lane) {
        bits[lane / 8] = static_cast<uint8_t>(bits[lane / 8] | (holds(a[lane], b[lane]) ? 1 : 0) << lane % 8);
    }
}

void CompareLanes(const double *left, const double *right, uint32_t n, CMPMODE mode, uint8_t *bits)
{
    switch (mode) {
        case CMPMODE::LT: return PutBits(left, right, n, bits, [](double a, double b) { return a < b; });
        case CMPMODE::GT: return PutBits(left, right, n, bits, [](double a, double b) { return a > b; });
        case CMPMODE::EQ: return PutBits(left, right, n, bits, [](double a, double b) { return a == b; });
        case CMPMODE::LE: return PutBits(left, right, n, bits, [](double a, double b) { return a <= b; });
        case CMPMODE::GE: return PutBits(left, right, n, bits, [](double a, double b) { return a >= b; });
        default: return PutBits(left, right, n, bits, [](double a, double b) { return a != b; });
    }
}

// How much of a repeat's lanes holds values.
enum class Held { All, Some, None };

Held HeldIn(const Operand &operand, const Walk &walk, uint32_t r)
{
    if (!operand.Dense(walk.lanes)) {
        return Held::Some;
    }
    const uint32_t address = operand.ref.address + r * operand.repeat;
    const uint64_t bytes = uint64_t{walk.LastLane(r)} * operand.width;
    if (sampled::active && sampled::Empty(Space::UB, address, bytes)) {
        return Held::None;
    }
    return AnyUndefined(address, bytes) ? Held::Some : Held::All;
}

bool CheckCompare(Api api, const CallTypes &types, CMPMODE mode, At at)
{
    static const char *const names[] = {"LT", "GT", "EQ", "LE", "GE", "NE"};
    return CheckTypes(api, types, at) && CheckMode(api, types, ModeBit(mode), names[static_cast<int>(mode)], at);
}

// The mask has no effect on these: every lane of every repeat is compared.
Walk AllLanes(Walk walk)
{
    if (!walk.counted) {
        walk.mask[0] = ~uint64_t{0};
        walk.mask[1] = walk.lanes > 64 ? ~uint64_t{0} : 0;
        walk.full = true;
    }
    return walk;
}

void CheckWholeRepeats(const Form &form, uint32_t width, const char *name, At at)
{
    if (form.kind == Form::Kind::Count && static_cast<uint64_t>(form.count) * width % kRepeatBytes != 0) {
        ReportError("alignment", at, "%s of %lld elements is %llu bytes; it must be a multiple of 256.", name,
                    static_cast<long long>(form.count),
                    static_cast<unsigned long long>(static_cast<uint64_t>(form.count) * width));
    }
}

struct ComparePlan {
    Api api;
    const char *name;
    Walk walk;
    Operand src0;
    const Operand *src1;  // null: scalar
    double scalar;
    CMPMODE mode;
};

bool LaneDefined(const ComparePlan &plan, uint32_t r, uint32_t lane)
{
    return !AnyUndefined(plan.src0.Address(r, lane), plan.src0.width) &&
           (plan.src1 == nullptr || !AnyUndefined(plan.src1->Address(r, lane), plan.src1->width));
}

// Which bits of a repeat are undefined, since a lane that they compare is.
void CompareShadow(const ComparePlan &plan, uint32_t r, uint8_t *shadow)
{
    const Held left = HeldIn(plan.src0, plan.walk, r);
    const Held right = plan.src1 != nullptr ? HeldIn(*plan.src1, plan.walk, r) : Held::All;
    std::memset(shadow, left == Held::None || right == Held::None ? kUndefined : 0, plan.walk.lanes / 8);
    if (left == Held::None || right == Held::None || (left == Held::All && right == Held::All)) {
        return;
    }
    for (uint32_t lane = 0; lane < plan.walk.LastLane(r); ++lane) {
        shadow[lane / 8] = static_cast<uint8_t>(shadow[lane / 8] | (LaneDefined(plan, r, lane) ? 0 : 1) << lane % 8);
    }
}

void CompareRepeat(const ComparePlan &plan, uint32_t r, uint8_t *bits)
{
    alignas(64) uint8_t tile[kRepeatBytes];
    double left[kMaxLanes];
    double right[kMaxLanes];
    const DType type = plan.src0.ref.dtype;
    const uint32_t last = plan.walk.LastLane(r);
    LoadTile(plan.src0, plan.walk, r, tile);
    LaneValues(type, tile, last, left);
    if (plan.src1 != nullptr) {
        LoadTile(*plan.src1, plan.walk, r, tile);
        LaneValues(type, tile, last, right);
    } else {
        std::fill_n(right, last, plan.scalar);
    }
    std::memset(bits, 0, plan.walk.lanes / 8);
    CompareLanes(left, right, last, plan.mode, bits);
}

// What has to be known of an operand in timing mode: of the last repeat one lane, since whole repeats are compared
// and what is behind the last element may be anything.
bool MostlyKnown(const Operand &operand, const Walk &walk)
{
    const uint64_t lanes = walk.elements > walk.lanes ? walk.elements - walk.lanes + 1 : 1;
    return !AnyUndefined(operand.ref.address, lanes * operand.width);
}

// Whether the bits are computed: in timing mode only where both sides are known.
bool Compared(const ComparePlan &plan, const LocalRef &dst)
{
    if (EmptyOperand(plan.src0, plan.walk) || (plan.src1 != nullptr && EmptyOperand(*plan.src1, plan.walk))) {
        sampled::Clear(Space::UB, dst.address, (plan.walk.elements + 7) / 8);
        return false;
    }
    if (!TheCore().timing) {
        return true;
    }
    const bool known =
        MostlyKnown(plan.src0, plan.walk) && (plan.src1 == nullptr || MostlyKnown(*plan.src1, plan.walk));
    return ComputesTo(dst.address, (plan.walk.elements + 7) / 8, known);
}

void RunCompare(const ComparePlan &plan, const LocalRef &dst, At at)
{
    Core &core = TheCore();
    const uint32_t bytes = plan.walk.lanes / 8;
    const uint64_t extent = (plan.walk.elements + 7) / 8;
    if (!CheckOperand(plan.src0, plan.walk, 32, false, plan.name, "src0", at) ||
        (plan.src1 != nullptr && !CheckOperand(*plan.src1, plan.walk, 32, false, plan.name, "src1", at)) ||
        LocalRange(dst, extent, 32, true, plan.name, "dst", at) == nullptr) {
        return;
    }
    const bool defined =
        AllDefined(plan.src0, plan.walk) && (plan.src1 == nullptr || AllDefined(*plan.src1, plan.walk));
    for (uint32_t r = 0; r < plan.walk.repeats; ++r) {
        uint8_t bits[kMaxLanes / 8];
        uint8_t shadow[kMaxLanes / 8] = {};
        if (!defined && !core.timing) {
            CompareShadow(plan, r, shadow);
        }
        CompareRepeat(plan, r, bits);
        const uint32_t place = dst.address + r * bytes;
        const uint32_t used = static_cast<uint32_t>(std::min<uint64_t>(bytes, extent - uint64_t{r} * bytes));
        std::memcpy(core.ub + place, bits, used);
        std::memcpy(core.undefined + place, shadow, used);
    }
}

}  // namespace

void Compare(const LocalRef &dst, const LocalRef &src0, const LocalRef &src1, CMPMODE mode, const Form &form, At at)
{
    ComparePlan plan{Api::Compare, "Compare", {}, {}, nullptr, 0, mode};
    const uint32_t width = DTypeBytes(src0.dtype);
    if (!ResolveWalk(form, width, plan.api, at, &plan.walk)) {
        return;
    }
    plan.walk = AllLanes(plan.walk);
    plan.src0 = MakeOperand(src0, plan.walk, form, form.src0_block, form.src0_repeat);
    const Operand other = MakeOperand(src1, plan.walk, form, form.src1_block, form.src1_repeat);
    plan.src1 = &other;
    const Operand *sources[] = {&plan.src0, &other};
    RunVector(plan.name, WalkCycles(plan.walk, SimpleRate(width), nullptr, sources, 2), at);
    CheckWholeRepeats(form, width, plan.name, at);
    if (Compared(plan, dst) && CheckCompare(plan.api, {dst.dtype, src0.dtype, src1.dtype}, mode, at)) {
        RunCompare(plan, dst, at);
    }
}

void CompareScalar(const LocalRef &dst, const LocalRef &src, Scalar scalar, CMPMODE mode, const Form &form, At at)
{
    ComparePlan plan{Api::Compares, "Compares", {}, {}, nullptr, scalar.value, mode};
    const uint32_t width = DTypeBytes(src.dtype);
    if (!ResolveWalk(form, width, plan.api, at, &plan.walk)) {
        return;
    }
    plan.walk = AllLanes(plan.walk);
    plan.src0 = MakeOperand(src, plan.walk, form, form.src0_block, form.src0_repeat);
    const Operand *sources[] = {&plan.src0};
    RunVector(plan.name, WalkCycles(plan.walk, SimpleRate(width), nullptr, sources, 1), at);
    CheckWholeRepeats(form, width, plan.name, at);
    if (Compared(plan, dst) && CheckCompare(plan.api, {dst.dtype, src.dtype}, mode, at)) {
        RunCompare(plan, dst, at);
    }
}

void CompareToRegister(const LocalRef &src0, const LocalRef &src1, CMPMODE mode, const Form &form, At at)
{
    ComparePlan plan{Api::Compare, "Compare", {}, {}, nullptr, 0, mode};
    const uint32_t width = DTypeBytes(src0.dtype);
    if (!ResolveWalk(form, width, plan.api, at, &plan.walk)) {
        return;
    }
    plan.src0 = MakeOperand(src0, plan.walk, form, form.src0_block, form.src0_repeat);
    const Operand other = MakeOperand(src1, plan.walk, form, form.src1_block, form.src1_repeat);
    plan.src1 = &other;
    const Operand *sources[] = {&plan.src0, &other};
    RunVector(plan.name, WalkCycles(plan.walk, SimpleRate(width), nullptr, sources, 2), at);
    Core &core = TheCore();
    if (core.timing || !CheckTypes(Api::CompareToRegister, {src0.dtype, src1.dtype}, at) ||
        !CheckOperand(plan.src0, plan.walk, 32, false, plan.name, "src0", at) ||
        !CheckOperand(other, plan.walk, 32, false, plan.name, "src1", at)) {
        return;
    }
    uint8_t bits[kMaxLanes / 8] = {};
    CompareRepeat(plan, 0, bits);
    uint8_t shadow[kMaxLanes / 8] = {};
    if (sampled::active) {
        CompareShadow(plan, 0, shadow);
    }
    core.compare_known = !AnyMarked(shadow, sizeof(shadow));
    std::memcpy(core.compare_mask, bits, sizeof(core.compare_mask));
}

void SetCompareMask(const LocalRef &src, At at)
{
    Core &core = TheCore();
    RunVector("SetCmpMask", 1, at);
    const uint8_t *from = core.timing ? nullptr : LocalRange(src, 16, 16, false, "SetCmpMask", "src", at);
    if (from != nullptr) {
        core.compare_known = !sampled::active || !AnyUndefined(src.address, sizeof(core.compare_mask));
        std::memcpy(core.compare_mask, from, sizeof(core.compare_mask));
    }
}

void GetCompareMask(const LocalRef &dst, At at)
{
    Core &core = TheCore();
    RunVector("GetCmpMask", 1, at);
    uint8_t *to = core.timing ? nullptr : LocalRange(dst, 16, 16, true, "GetCmpMask", "dst", at);
    if (to != nullptr) {
        std::memcpy(to, core.compare_mask, sizeof(core.compare_mask));
        MarkDefined(dst.address, sizeof(core.compare_mask));
        if (!core.compare_known) {
            sampled::Clear(Space::UB, dst.address, sizeof(core.compare_mask));
        }
    }
}

namespace {

struct SelectPlan {
    Walk walk;
    Operand dst;
    Operand src0;
    const Operand *src1;  // null: scalar
    LocalRef mask;
    bool reuse_mask;      // mode 0: every repeat reads the same bits
    uint64_t scalar;
};

uint64_t ScalarBits(DType type, Scalar scalar)
{
    const float value = static_cast<float>(scalar.value);
    return type == DType::F16 ? HalfBits(value) : BitsOf(value);
}

void CheckReserved(SELMODE mode, At at)
{
    const Core &core = TheCore();
    const Chip &chip = CurrentChip();
    if (mode != SELMODE::VSEL_CMPMASK_SPR && core.used[0] > chip.ub_bytes) {
        ReportError("ub-capacity", at, "Select in this mode uses the last 8 KB of UB, but the buffers reach byte %u.",
                    core.used[0]);
    }
}

// A repeat whose lanes are all chosen of what holds values, and lie side by side.
template <typename T>
void SelectLanes(const uint8_t *mask, const uint8_t *left, const uint8_t *right, uint32_t n, uint8_t *to)
{
    for (uint32_t lane = 0; lane < n; ++lane) {
        T a;
        T b;
        std::memcpy(&a, left + lane * sizeof(T), sizeof(T));
        std::memcpy(&b, right + lane * sizeof(T), sizeof(T));
        const T chosen = (mask[lane / 8] >> lane % 8 & 1) != 0 ? a : b;
        std::memcpy(to + lane * sizeof(T), &chosen, sizeof(T));
    }
}

// Whether a repeat was dealt with as a whole: since all of it holds values, or nothing of what is chosen does.
bool SelectWhole(const SelectPlan &plan, uint32_t r, uint32_t mask, const uint8_t *left, const uint8_t *right)
{
    if (!plan.walk.full || !plan.dst.Dense(plan.walk.lanes)) {
        return false;
    }
    const uint32_t last = plan.walk.LastLane(r);
    const uint32_t place = plan.dst.Address(r, 0);
    const Held first = HeldIn(plan.src0, plan.walk, r);
    const Held second = plan.src1 != nullptr ? HeldIn(*plan.src1, plan.walk, r) : Held::All;
    if (sampled::active &&
        ((first == Held::None && second == Held::None) || sampled::Empty(Space::UB, mask, (last + 7) / 8))) {
        sampled::Clear(Space::UB, place, uint64_t{last} * plan.dst.width);
        return true;
    }
    if (first != Held::All || second != Held::All || AnyUndefined(mask, (last + 7) / 8)) {
        return false;
    }
    uint8_t bits[kMaxLanes / 8];
    uint8_t *ub = TheCore().ub;
    std::memcpy(bits, ub + mask, (last + 7) / 8);
    (plan.dst.width == 2 ? SelectLanes<uint16_t> : SelectLanes<uint32_t>)(bits, left, right, last, ub + place);
    MarkDefined(place, uint64_t{last} * plan.dst.width);
    return true;
}

void SelectRepeat(const SelectPlan &plan, uint32_t r)
{
    Core &core = TheCore();
    alignas(64) uint8_t left[kRepeatBytes];
    alignas(64) uint8_t right[kRepeatBytes];
    LoadTile(plan.src0, plan.walk, r, left);
    const uint32_t width = plan.dst.width;
    if (plan.src1 != nullptr) {
        LoadTile(*plan.src1, plan.walk, r, right);
    } else {
        for (uint32_t lane = 0; lane < plan.walk.lanes; ++lane) {
            std::memcpy(right + lane * width, &plan.scalar, width);
        }
    }
    const uint32_t bits = plan.mask.address + (plan.reuse_mask ? 0 : r * plan.walk.lanes / 8);
    if (!core.timing && SelectWhole(plan, r, bits, left, right)) {
        return;
    }
    for (uint32_t lane = 0; lane < plan.walk.LastLane(r); ++lane) {
        if (!plan.walk.Active(r, lane)) {
            continue;
        }
        const uint32_t byte = bits + lane / 8;
        const bool first = (core.ub[byte] >> lane % 8 & 1) != 0;
        const Operand *chosen = first ? &plan.src0 : plan.src1;
        const bool undefined = (core.undefined[byte] >> lane % 8 & 1) != 0 ||
                               (chosen != nullptr && AnyUndefined(chosen->Address(r, lane), width));
        const uint32_t place = plan.dst.Address(r, lane);
        std::memcpy(core.ub + place, (first ? left : right) + lane * width, width);
        std::memset(core.undefined + place, undefined ? kUndefined : 0, width);
    }
}

}  // namespace

void Select(const LocalRef &dst, const LocalRef &mask, const LocalRef &src0, const LocalRef *src1, Scalar scalar,
            SELMODE mode, const Form &form, At at)
{
    SelectPlan plan;
    const uint32_t width = DTypeBytes(dst.dtype);
    if (!ResolveWalk(form, width, Api::Select, at, &plan.walk)) {
        return;
    }
    plan.dst = MakeOperand(dst, plan.walk, form, form.dst_block, form.dst_repeat);
    plan.src0 = MakeOperand(src0, plan.walk, form, form.src0_block, form.src0_repeat);
    Operand other{};
    const Operand *sources[] = {&plan.src0, &other};
    plan.src1 = nullptr;
    if (src1 != nullptr) {
        other = MakeOperand(*src1, plan.walk, form, form.src1_block, form.src1_repeat);
        plan.src1 = &other;
    }
    plan.mask = mask;
    plan.reuse_mask = mode == SELMODE::VSEL_CMPMASK_SPR;
    plan.scalar = ScalarBits(dst.dtype, scalar);
    RunVector("Select", WalkCycles(plan.walk, SimpleRate(width), &plan.dst, sources, src1 != nullptr ? 2 : 1), at);
    CheckReserved(mode, at);
    const uint64_t mask_bytes =
        plan.reuse_mask ? plan.walk.lanes / 8
                        : (uint64_t{plan.walk.repeats - 1} * plan.walk.lanes + plan.walk.LastLane(plan.walk.repeats - 1) + 7) / 8;
    const bool chooses_nothing =
        EmptyOperand(plan.src0, plan.walk) && plan.src1 != nullptr && EmptyOperand(other, plan.walk);
    if (sampled::active && (chooses_nothing || sampled::Empty(Space::UB, mask.address, mask_bytes))) {
        return ClearOperand(plan.dst, plan.walk);
    }
    const bool unknown_mask = TheCore().timing && AnyUndefined(mask.address, mask_bytes);
    const bool computes = unknown_mask      ? ComputesTo(dst.address, plan.walk.elements * width, false)
                          : sampled::active ? true
                                            : Computes(plan.dst, sources, src1 != nullptr ? 2 : 1, plan.walk);
    if (!computes || !CheckTypes(Api::Select, {dst.dtype, src0.dtype}, at)) {
        return;
    }
    if (!(CheckOperand(plan.dst, plan.walk, 32, true, "Select", "dst", at) &
          CheckOperand(plan.src0, plan.walk, 32, false, "Select", "src0", at)) ||
        (plan.src1 != nullptr && !CheckOperand(other, plan.walk, 32, false, "Select", "src1", at)) ||
        LocalRange(mask, mask_bytes, 32, false, "Select", "selMask", at) == nullptr) {
        return;
    }
    CheckOverlap(plan.dst, plan.src0, plan.walk, false, "Select", at);
    if (plan.src1 != nullptr) {
        CheckOverlap(plan.dst, other, plan.walk, false, "Select", at);
    }
    for (uint32_t r = 0; r < plan.walk.repeats; ++r) {
        SelectRepeat(plan, r);
    }
}

}  // namespace evokernel::twin
