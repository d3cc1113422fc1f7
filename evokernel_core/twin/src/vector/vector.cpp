// Element-wise instructions: account their time, check them, run them.
#include <algorithm>
#include <cstring>

#include "vector/arith.h"
#include "vector/cost.h"
#include "vector/walk.h"

namespace evokernel::twin {

namespace {

// A destination that does not advance and is its own second source.
bool Accumulates(const Operand &dst, const Operand &src1)
{
    return dst.ref.address == src1.ref.address && (dst.repeat == 0 || src1.repeat == 0);
}

void Overflow(const VecCall &call, At at)
{
    ReportWarning("overflow-inf", at, "%s overflows to infinity from finite %s values.", RowOf(call.op).name,
                  DTypeName(call.src0.dtype));
}

struct Plan {
    Walk walk;
    Operand dst;
    Operand src0;
    Operand src1;
    bool two;
};

bool Check(const VecCall &call, const Plan &plan, At at)
{
    const ApiRow &row = RowOf(call.op);
    const char *name = row.name;
    if (!CheckTypes(call.op, {call.dst.dtype, call.src0.dtype}, at)) {
        return false;
    }
    const int64_t bits = 8 * int64_t{DTypeBytes(call.src0.dtype)};
    const bool shifts = call.op == Api::ShiftLeft || call.op == Api::ShiftRight;
    if (shifts && (call.scalar.integer < 0 || call.scalar.integer > bits)) {
        ReportError("param-limit", at, "%s shifts %s by 0 to %lld bits, not by %lld.", name,
                    DTypeName(call.src0.dtype), static_cast<long long>(bits),
                    static_cast<long long>(call.scalar.integer));
        return false;
    }
    bool usable = CheckOperand(plan.dst, plan.walk, row.alignment, true, name, "dst", at);
    usable = CheckOperand(plan.src0, plan.walk, row.alignment, false, name, plan.two ? "src0" : "src", at) && usable;
    if (plan.two) {
        usable = CheckOperand(plan.src1, plan.walk, row.alignment, false, name, "src1", at) && usable;
    }
    if (!usable) {
        return false;
    }
    const bool accumulates = plan.two && row.Has(kAccumulates) && Accumulates(plan.dst, plan.src1);
    CheckOverlap(plan.dst, plan.src0, plan.walk, false, name, at);
    if (plan.two) {
        CheckOverlap(plan.dst, plan.src1, plan.walk, accumulates, name, at);
    }
    return true;
}

// Computes lanes; half results saturate where the kernel asked for that. Returns whether one overflowed.
bool Compute(const VecCall &call, const Lanes &lanes)
{
    const bool overflow = ComputeLanes(call, lanes);
    if (call.dst.dtype != DType::F16 || !TheCore().registers.Saturates()) {
        return overflow;
    }
    SaturateFloats(DType::F16, static_cast<uint16_t *>(lanes.dst), lanes.n);
    return false;
}

bool IsDense(const Plan &plan)
{
    const uint32_t lanes = plan.walk.lanes;
    return plan.walk.full && plan.dst.Dense(lanes) && plan.src0.Dense(lanes) && (!plan.two || plan.src1.Dense(lanes));
}

void RunDense(const VecCall &call, const Plan &plan, At at)
{
    uint8_t *ub = TheCore().ub;
    bool overflow = false;
    for (uint64_t done = 0; done < plan.walk.elements; done += kChunk) {
        Lanes lanes;
        lanes.n = std::min<uint64_t>(kChunk, plan.walk.elements - done);
        lanes.src0 = ub + plan.src0.ref.address + done * plan.src0.width;
        lanes.src1 = plan.two ? ub + plan.src1.ref.address + done * plan.src1.width : nullptr;
        lanes.dst = ub + plan.dst.ref.address + done * plan.dst.width;
        overflow = Compute(call, lanes) || overflow;
    }
    if (overflow) {
        Overflow(call, at);
    }
}

void RunRepeats(const VecCall &call, const Plan &plan, At at)
{
    alignas(64) uint8_t src0[kRepeatBytes];
    alignas(64) uint8_t src1[kRepeatBytes];
    alignas(64) uint8_t dst[kRepeatBytes];
    bool overflow = false;
    for (uint32_t r = 0; r < plan.walk.repeats; ++r) {
        LoadTile(plan.src0, plan.walk, r, src0);
        if (plan.two) {
            LoadTile(plan.src1, plan.walk, r, src1);
        }
        if (RowOf(call.op).Has(kReadsDst)) {
            LoadTile(plan.dst, plan.walk, r, dst);
        }
        const bool exceeded = Compute(call, Lanes{src0, plan.two ? src1 : nullptr, dst, plan.walk.LastLane(r)});
        overflow = overflow || (exceeded && plan.walk.full);
        StoreTile(plan.dst, plan.walk, r, dst);
    }
    if (overflow) {
        Overflow(call, at);
    }
}

}  // namespace

void Vector(const VecCall &call, const Form &form, At at)
{
    const ApiRow &row = RowOf(call.op);
    const uint32_t width = std::max(DTypeBytes(call.dst.dtype), DTypeBytes(call.src0.dtype));
    Plan plan;
    if (!ResolveWalk(form, width, call.op, at, &plan.walk)) {
        return;
    }
    plan.two = row.Has(kTwoSources);
    plan.dst = MakeOperand(call.dst, plan.walk, form, form.dst_block, form.dst_repeat);
    plan.src0 = MakeOperand(call.src0, plan.walk, form, form.src0_block, form.src0_repeat);
    const Operand *sources[3] = {&plan.src0, &plan.src1, &plan.dst};
    if (plan.two) {
        plan.src1 = MakeOperand(call.src1, plan.walk, form, form.src1_block, form.src1_repeat);
    }
    const int count = plan.two ? 2 : 1;
    RunVector(row.name, StartUpOf(row.cost),
              WalkCycles(plan.walk, RateOf(row.cost, width), &plan.dst, sources, count), at);
    const Operand *read[3] = {&plan.src0, plan.two ? &plan.src1 : &plan.src0, &plan.dst};
    const int read_count = row.Has(kReadsDst) ? 3 : count;
    if (!Computes(plan.dst, read, read_count, plan.walk) || !Check(call, plan, at)) {
        return;
    }
    // Definedness first: in-place instructions must see their sources' old state.
    Propagate(plan.dst, read, read_count, plan.walk, call.op == Api::And || call.op == Api::Or || call.op == Api::Not);
    if (IsDense(plan)) {
        RunDense(call, plan, at);
    } else {
        RunRepeats(call, plan, at);
    }
}

}  // namespace evokernel::twin
