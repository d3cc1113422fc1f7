// Cast and the instructions that convert as they compute.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "vector/arith.h"
#include "vector/convert.h"
#include "vector/rounding.h"
#include "vector/walk.h"

namespace evokernel::twin {

namespace {

using AscendC::RoundMode;

const char *const kModeNames[] = {"CAST_NONE",  "CAST_RINT",  "CAST_FLOOR", "CAST_CEIL",
                                  "CAST_ROUND", "CAST_TRUNC", "CAST_ODD"};

// A conversion in a mode that it does not take is reported and done.
bool CheckPair(DType dst, DType src, RoundMode mode, At at)
{
    CheckMode(Api::Cast, {dst, src}, ModeBit(mode), kModeNames[static_cast<int>(mode)], at);
    return CheckTypes(Api::Cast, {dst, src}, at);
}

// A source element as a double; every source type of the table is exact in it but large int64.
double LoadElement(DType type, const uint8_t *from, size_t i)
{
    switch (type) {
        case DType::S8:
            return static_cast<int8_t>(from[i]);
        case DType::U8:
            return from[i];
        case DType::S16: {
            int16_t value;
            std::memcpy(&value, from + 2 * i, 2);
            return value;
        }
        case DType::F16: {
            uint16_t bits;
            std::memcpy(&bits, from + 2 * i, 2);
            return HalfValue(bits);
        }
        case DType::BF16: {
            uint16_t bits;
            std::memcpy(&bits, from + 2 * i, 2);
            return BfloatValue(bits);
        }
        case DType::S32: {
            int32_t value;
            std::memcpy(&value, from + 4 * i, 4);
            return value;
        }
        case DType::F32: {
            float value;
            std::memcpy(&value, from + 4 * i, 4);
            return value;
        }
        default: {
            int64_t value;
            std::memcpy(&value, from + 8 * i, 8);
            return static_cast<double>(value);
        }
    }
}

template <typename T> void Put(uint8_t *to, size_t i, T value) { std::memcpy(to + i * sizeof(T), &value, sizeof(T)); }

// A double to float under a directed mode.
float RoundToFloat(double value, RoundMode mode)
{
    const float near = static_cast<float>(value);
    const double back = near;
    const float infinity = HUGE_VALF;
    switch (mode) {
        case RoundMode::CAST_FLOOR:
            return back > value ? std::nextafter(near, -infinity) : near;
        case RoundMode::CAST_CEIL:
            return back < value ? std::nextafter(near, infinity) : near;
        case RoundMode::CAST_TRUNC:
            return std::fabs(back) > std::fabs(value) ? std::nextafter(near, 0.0F) : near;
        case RoundMode::CAST_ROUND: {
            const float away = std::nextafter(near, value < 0 ? -infinity : infinity);
            const bool tie = std::fabs(value) > std::fabs(back) &&
                             std::fabs(static_cast<double>(away) - value) == std::fabs(value - back);
            return tie ? away : near;
        }
        default:
            return near;
    }
}

// A whole number in an integer type of so many bits: saturated, or its low bits where the kernel asked for that.
int64_t Fitted(double value, RoundMode mode, int bits, bool is_signed)
{
    const double whole = RoundToInteger(value, mode);
    if (TheCore().registers.cast_wraps && std::fabs(whole) < 9.2e18) {
        return static_cast<int64_t>(whole);
    }
    return is_signed ? SaturateSigned(whole, bits) : static_cast<int64_t>(SaturateUnsigned(whole, bits));
}

void StoreElement(DType type, uint8_t *to, size_t i, double value, RoundMode mode, DType src)
{
    switch (type) {
        case DType::S8:
            return Put(to, i, static_cast<int8_t>(Fitted(value, mode, 8, true)));
        case DType::U8:
            return Put(to, i, static_cast<uint8_t>(Fitted(value, mode, 8, false)));
        case DType::S16:
            return Put(to, i, static_cast<int16_t>(Fitted(value, mode, 16, true)));
        case DType::S32:
            return Put(to, i, static_cast<int32_t>(Fitted(value, mode, 32, true)));
        case DType::S64:
            return Put(to, i, Fitted(value, mode, 64, true));
        case DType::F16:
            return Put(to, i, RoundToHalf(static_cast<float>(value), mode));
        case DType::BF16:
            return Put(to, i, RoundToBfloat(static_cast<float>(value), mode));
        default:
            return Put(to, i, src == DType::F32 ? static_cast<float>(RoundToInteger(value, mode))
                                                : RoundToFloat(value, mode));
    }
}

// int4: two to a byte, the low half first.
double LoadNibble(const uint8_t *from, size_t i)
{
    const int nibble = from[i / 2] >> (i % 2 * 4) & 0xF;
    return nibble >= 8 ? nibble - 16 : nibble;
}

void StoreNibble(uint8_t *to, size_t i, double value, RoundMode mode)
{
    const int nibble = static_cast<int>(Fitted(value, mode, 4, true)) & 0xF;
    const int shift = static_cast<int>(i % 2 * 4);
    to[i / 2] = static_cast<uint8_t>((to[i / 2] & ~(0xF << shift)) | nibble << shift);
}

bool Nearest(RoundMode mode) { return mode == RoundMode::CAST_NONE || mode == RoundMode::CAST_RINT; }

// Converts `n` contiguous elements; the common pairs go through wide loops.
void ConvertRun(DType dst, DType src, uint8_t *to, const uint8_t *from, size_t n, RoundMode mode)
{
    if (src == DType::F16 && dst == DType::F32) {
        return HalfToFloat(reinterpret_cast<const uint16_t *>(from), reinterpret_cast<float *>(to), n);
    }
    if (src == DType::BF16 && dst == DType::F32) {
        return BfloatToFloat(reinterpret_cast<const uint16_t *>(from), reinterpret_cast<float *>(to), n);
    }
    if (src == DType::F32 && dst == DType::F16 && Nearest(mode)) {
        return FloatToHalf(reinterpret_cast<const float *>(from), reinterpret_cast<uint16_t *>(to), n);
    }
    if (src == DType::F32 && dst == DType::BF16 && Nearest(mode)) {
        return FloatToBfloat(reinterpret_cast<const float *>(from), reinterpret_cast<uint16_t *>(to), n);
    }
    for (size_t i = 0; i < n; ++i) {
        const double value = src == DType::S4 ? LoadNibble(from, i) : LoadElement(src, from, i);
        if (dst == DType::S4) {
            StoreNibble(to, i, value, mode);
        } else {
            StoreElement(dst, to, i, value, mode, src);
        }
    }
}

// int64 to int32 and int32 to int16 keep the value where it fits and saturate where it does not.
void ConvertChunked(DType dst, DType src, uint8_t *to, const uint8_t *from, size_t n, RoundMode mode, float scale)
{
    if (src == DType::S32 && dst == DType::F16) {
        for (size_t i = 0; i < n; ++i) {
            Put(to, i, HalfBits(static_cast<float>(LoadElement(src, from, i)) * scale));
        }
        return;
    }
    ConvertRun(dst, src, to, from, n, mode);
    if ((dst == DType::F16 || dst == DType::BF16) && TheCore().registers.Saturates()) {
        SaturateFloats(dst, reinterpret_cast<uint16_t *>(to), n);
    }
}

bool NewInfinity(DType dst, DType src, const uint8_t *to, const uint8_t *from, size_t n)
{
    if (src != DType::F32 || (dst != DType::F16 && dst != DType::BF16)) {
        return false;
    }
    const uint16_t infinity = dst == DType::F16 ? 0x7C00 : 0x7F80;
    for (size_t i = 0; i < n; ++i) {
        uint16_t bits;
        std::memcpy(&bits, to + 2 * i, 2);
        if ((bits & 0x7FFF) == infinity && std::isfinite(LoadElement(src, from, i))) {
            return true;
        }
    }
    return false;
}

struct CastPlan {
    Walk walk;
    Operand dst;
    Operand src;
    RoundMode mode;
};

// Widths in bytes; int4 packs two to a byte, so its lanes follow the other type and its run is halved.
uint64_t RunBytes(const Operand &operand, uint64_t elements)
{
    return operand.ref.dtype == DType::S4 ? (elements + 1) / 2 : elements * operand.width;
}

void CastDense(const CastPlan &plan, At at)
{
    Core &core = TheCore();
    const DType dst = plan.dst.ref.dtype;
    const DType src = plan.src.ref.dtype;
    bool overflow = false;
    uint8_t copy[kChunk * 8];
    for (uint64_t done = 0; done < plan.walk.elements; done += kChunk) {
        const size_t n = std::min<uint64_t>(kChunk, plan.walk.elements - done);
        const uint8_t *from = core.ub + plan.src.ref.address + RunBytes(plan.src, done);
        uint8_t *to = core.ub + plan.dst.ref.address + RunBytes(plan.dst, done);
        std::memcpy(copy, from, RunBytes(plan.src, n));  // in-place narrowing reads before it writes
        ConvertChunked(dst, src, to, copy, n, plan.mode, core.deq_scale);
        overflow = NewInfinity(dst, src, to, copy, n) || overflow;
    }
    if (overflow) {
        ReportWarning("overflow-inf", at, "Cast overflows to infinity from finite %s values.", DTypeName(src));
    }
}

void CastRepeats(const CastPlan &plan)
{
    alignas(64) uint8_t from[kRepeatBytes * 2];
    alignas(64) uint8_t to[kRepeatBytes * 2];
    for (uint32_t r = 0; r < plan.walk.repeats; ++r) {
        LoadTile(plan.src, plan.walk, r, from);
        LoadTile(plan.dst, plan.walk, r, to);
        ConvertChunked(plan.dst.ref.dtype, plan.src.ref.dtype, to, from, plan.walk.LastLane(r), plan.mode,
                       TheCore().deq_scale);
        StoreTile(plan.dst, plan.walk, r, to);
    }
}

bool CheckSide(const CastPlan &plan, const Operand &operand, bool write, const char *name, const char *what, At at)
{
    if (operand.ref.dtype == DType::S4) {
        return LocalRange(operand.ref, RunBytes(operand, plan.walk.elements), 32, write, name, what, at) != nullptr;
    }
    return CheckOperand(operand, plan.walk, 32, write, name, what, at);
}

// Of int4 the bytes are those of the run: its walk is that of the other operand, whose lanes it has.
void CheckNibbles(const CastPlan &plan, const char *name, At at)
{
    const uint64_t dst = RunBytes(plan.dst, plan.walk.elements);
    const uint64_t src = RunBytes(plan.src, plan.walk.elements);
    const uint32_t to = plan.dst.ref.address;
    const uint32_t from = plan.src.ref.address;
    const bool disjoint = to + dst <= from || from + src <= to;
    if (!disjoint && (to != from || dst > src)) {
        ReportError("overlap", at, "%s has overlapping operands at bytes %u and %u of UB; give dst a place of its own.",
                    name, to, from);
    }
}

bool CheckCast(const CastPlan &plan, const char *name, At at)
{
    const bool usable =
        CheckSide(plan, plan.src, false, name, "src", at) & CheckSide(plan, plan.dst, true, name, "dst", at);
    if (!usable) {
        return false;
    }
    if (plan.dst.ref.dtype == DType::S4 || plan.src.ref.dtype == DType::S4) {
        CheckNibbles(plan, name, at);
    } else {
        CheckOverlap(plan.dst, plan.src, plan.walk, false, name, at);
    }
    return true;
}

}  // namespace

void Cast(const LocalRef &dst, const LocalRef &src, RoundMode mode, const Form &form, At at)
{
    CastPlan plan;
    const uint32_t width = std::max(DTypeBytes(dst.dtype), DTypeBytes(src.dtype));
    if (!ResolveWalk(form, width, Api::Cast, at, &plan.walk)) {
        return;
    }
    plan.mode = mode;
    plan.dst = MakeOperand(dst, plan.walk, form, form.dst_block, form.dst_repeat);
    plan.src = MakeOperand(src, plan.walk, form, form.src0_block, form.src0_repeat);
    const Operand *sources[] = {&plan.src};
    RunVector("Cast", WalkCycles(plan.walk, SimpleRate(width == 1 ? 2 : width), &plan.dst, sources, 1), at);
    if (!Computes(plan.dst, sources, 1, plan.walk) || !CheckPair(dst.dtype, src.dtype, mode, at) ||
        !CheckCast(plan, "Cast", at)) {
        return;
    }
    Propagate(plan.dst, sources, 1, plan.walk);
    const uint32_t lanes = plan.walk.lanes;
    const bool nibbles = dst.dtype == DType::S4 || src.dtype == DType::S4;
    if (nibbles || (plan.walk.full && plan.dst.Dense(lanes) && plan.src.Dense(lanes))) {
        CastDense(plan, at);
    } else {
        CastRepeats(plan);
    }
}

namespace {

// The instruction that computes what is converted then.
Api ComputedBy(Api fusion)
{
    switch (fusion) {
        case Api::AddReluCast:
            return Api::AddRelu;
        case Api::SubReluCast:
            return Api::SubRelu;
        default:
            return Api::Mul;
    }
}

}  // namespace

void FusedCast(Api fusion, const LocalRef &dst, const LocalRef &src0, const LocalRef &src1, const Form &form, At at)
{
    const char *name = RowOf(fusion).name;
    Walk walk;
    if (!ResolveWalk(form, DTypeBytes(src0.dtype), fusion, at, &walk)) {
        return;
    }
    const Operand to = MakeOperand(dst, walk, form, form.dst_block, form.dst_repeat);
    const Operand a = MakeOperand(src0, walk, form, form.src0_block, form.src0_repeat);
    const Operand b = MakeOperand(src1, walk, form, form.src1_block, form.src1_repeat);
    const Operand *sources[] = {&a, &b};
    RunVector(name, WalkCycles(walk, SimpleRate(a.width), &to, sources, 2), at);
    if (TheCore().timing || LeavesEmpty(to, sources, 2, walk) || !CheckTypes(fusion, {dst.dtype, src0.dtype, src1.dtype}, at)) {
        return;
    }
    if (!(CheckOperand(to, walk, 32, true, name, "dst", at) &
          CheckOperand(a, walk, 32, false, name, "src0", at) &
          CheckOperand(b, walk, 32, false, name, "src1", at))) {
        return;
    }
    Propagate(to, sources, 2, walk);
    alignas(64) uint8_t left[kRepeatBytes];
    alignas(64) uint8_t right[kRepeatBytes];
    alignas(64) uint8_t between[kRepeatBytes];
    alignas(64) uint8_t out[kRepeatBytes];
    const VecCall call{ComputedBy(fusion), src0, src0, src1, {}, false};
    for (uint32_t r = 0; r < walk.repeats; ++r) {
        LoadTile(a, walk, r, left);
        LoadTile(b, walk, r, right);
        const uint32_t n = walk.LastLane(r);
        ComputeLanes(call, Lanes{left, right, between, n});
        ConvertRun(dst.dtype, src0.dtype, out, between, n, RoundMode::CAST_RINT);
        StoreTile(to, walk, r, out);
    }
}

}  // namespace evokernel::twin
