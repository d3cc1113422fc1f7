// Many products of one shape in one call: where each one's operands lie in the layouts with batch axes.
#include "matmul/serve.h"
#include "matmul/state.h"

namespace evokernel::twin::matmul {

namespace {

struct Axes {
    int64_t b, s, n, g, d;
};

// Where element `index` begins, and the elements from one stored row to the next (0: as for one product).
struct Place {
    int64_t offset;
    int64_t lead;
};

Place PlaceOf(LayoutMode layout, const Axes &axes, int64_t index, int64_t dense)
{
    switch (layout) {
        case LayoutMode::BSNGD:
            return {index * axes.d, axes.n * axes.g * axes.d};
        case LayoutMode::SBNGD:
            return {index * axes.d, axes.b * axes.n * axes.g * axes.d};
        case LayoutMode::BNGS1S2:
            return {index * axes.s * axes.d, axes.d};
        default:
            return {index * dense, 0};
    }
}

Axes AxesA(const TCubeTiling &t)
{
    return {t.ALayoutInfoB, t.ALayoutInfoS, t.ALayoutInfoN, t.ALayoutInfoG, t.ALayoutInfoD};
}
Axes AxesB(const TCubeTiling &t)
{
    return {t.BLayoutInfoB, t.BLayoutInfoS, t.BLayoutInfoN, t.BLayoutInfoG, t.BLayoutInfoD};
}
Axes AxesC(const TCubeTiling &t)
{
    return {t.CLayoutInfoB, t.CLayoutInfoS1, t.CLayoutInfoN, t.CLayoutInfoG, t.CLayoutInfoS2};
}

GlobalRef Shifted(const GlobalRef &whole, int64_t elements, DType dtype)
{
    GlobalRef part = whole;
    const int64_t bytes = BytesOf(elements, dtype);
    part.address += bytes;
    part.bytes = static_cast<int64_t>(part.bytes) > bytes ? part.bytes - static_cast<uint64_t>(bytes) : 0;
    return part;
}

bool CheckBatch(const ObjectState &s, const BatchCall &call, At at)
{
    const uint32_t most = std::max(call.batch_a, call.batch_b);
    const uint32_t least = std::min(call.batch_a, call.batch_b);
    if (least == 0 || most % least != 0) {
        ReportError("tiling-misuse", at, "A batch product takes batch counts of which one divides the other, not %u and %u.",
                    call.batch_a, call.batch_b);
        return false;
    }
    if (s.spec.a.layout == LayoutMode::NONE || s.spec.a.layout != s.spec.b.layout) {
        ReportError("tiling-misuse", at, "A batch product needs one LayoutMode in the MatmulTypes of A and B.");
        return false;
    }
    const bool axes = s.spec.a.layout == LayoutMode::NORMAL || (s.tiling.ALayoutInfoD > 0 && s.tiling.BLayoutInfoD > 0);
    if (!axes) {
        ReportError("tiling-misuse", at, "The batch axes are not in the tiling; call SetALayout, SetBLayout and "
                                         "SetCLayout on the host.");
    }
    return axes;
}

// The job of one element out of `base`.
Job ElementJob(const ObjectState &s, const Job &base, const BatchCall &call, int64_t index)
{
    Job job = base;
    const int64_t most = std::max(call.batch_a, call.batch_b);
    const int64_t index_a = index / (most / call.batch_a);
    const int64_t index_b = index / (most / call.batch_b);
    const int64_t dense_a = call.stride_a != 0 ? call.stride_a : int64_t{s.m} * s.k;
    const int64_t dense_b = call.stride_b != 0 ? call.stride_b : int64_t{s.k} * s.n;
    const Place a = PlaceOf(s.spec.a.layout, AxesA(s.tiling), index_a, dense_a);
    const Place b = PlaceOf(s.spec.b.layout, AxesB(s.tiling), index_b, dense_b);
    job.a.global = Shifted(base.a.global, a.offset, s.spec.a.dtype);
    job.b.global = Shifted(base.b.global, b.offset, s.spec.b.dtype);
    job.lead_a = a.lead;
    job.lead_b = b.lead;
    if (s.spec.a.layout == LayoutMode::NORMAL) {
        job.org_m = s.m;
        job.org_n = s.n;
        job.org_ka = s.k;
        job.org_kb = s.k;
    }
    if (job.has_bias && s.spec.config.isBiasBatch) {
        job.bias.global = Shifted(base.bias.global, index * s.n, job.bias.global.dtype);
    }
    job.serial = (base.serial << 24) + static_cast<uint64_t>(index) + 1;
    return job;
}

void RunElement(ObjectState &s, Job &job, const Target &target, int64_t index, bool dense)
{
    const LayoutMode layout = dense ? LayoutMode::NORMAL : s.spec.c.layout;
    const Place c = PlaceOf(layout, AxesC(s.tiling), index, int64_t{s.m} * s.n);
    job.lead_c = c.lead != 0 ? c.lead : s.n;
    Target part = target;
    part.global = Shifted(target.global, c.offset, s.spec.c.dtype);
    if (!s.machine.Begin(job)) {
        return;
    }
    for (int32_t number = 0; number < job.Tiles(); ++number) {
        const Tile tile = TileAt(job, number);
        s.machine.Compute(job, tile, number, false, nullptr);
        s.machine.Store(job, tile, part);
    }
    s.machine.End(job.at);
}

void RunBatch(ObjectState &s, Role role, const Target &target, const BatchCall &call, uint32_t loops, bool dense, At at)
{
    const auto base = std::make_shared<Job>(s.MakeJob(at));
    if (!CheckJob(*base)) {
        return;
    }
    auto self = s.shared_from_this();
    s.OnCube(role, [self, base, target, call, loops, dense] {
        const int64_t count = int64_t{std::max(call.batch_a, call.batch_b)} * loops;
        for (int64_t i = 0; i < count; ++i) {
            Job job = ElementJob(*self, *base, call, i);
            RunElement(*self, job, target, i, dense);
        }
    }, at);
}

}  // namespace

void Object::IterateBatch(bool sync, const Target &target, const BatchCall &call, At at)
{
    ObjectState &s = *state_;
    const Role role = s.RoleHere(at);
    if (role == Role::Idle || !s.Ready(at) || !CheckBatch(s, call, at)) {
        return;
    }
    if (!target.to_local) {
        RunBatch(s, role, target, call, 1, false, at);
        if (sync && role == Role::Client) {
            WaitForCube(at);
        }
        return;
    }
    if (role == Role::Own) {
        ReportError("wrong-core", at, "A cube core cannot write to the unified buffer; take C to global memory.");
        return;
    }
    const int64_t size = DTypeBytes(s.spec.c.dtype);
    const int64_t rows = int64_t{std::max(call.batch_a, call.batch_b)} * s.m;
    Target scratch;
    scratch.to_global = true;
    scratch.global = s.scratch_c.Take(static_cast<uint64_t>(rows * s.n * size), s.spec.c.dtype);
    RunBatch(s, role, scratch, call, 1, true, at);
    WaitForCube(at);
    AscendC::DataCopyExtParams params;
    params.blockCount = static_cast<uint16_t>(rows);
    params.blockLen = static_cast<uint32_t>(s.n * size);
    CopyPadIn(target.local, scratch.global, params, Padding{}, at);
    TheCore().time.ScalarWaits(Pipe::MTE2);
}

void Object::IterateBatch(const Target &target, BatchCall call, At at)
{
    call.batch_a = static_cast<uint32_t>(state_->batch_a);
    call.batch_b = static_cast<uint32_t>(state_->batch_b);
    IterateBatch(true, target, call, at);
}

void Object::IterateNBatch(bool sync, uint32_t loops, const BatchCall &call, bool, At at)
{
    ObjectState &s = *state_;
    const Role role = s.RoleHere(at);
    if (role == Role::Idle || !s.Ready(at) || !CheckBatch(s, call, at)) {
        return;
    }
    if (!s.spec.config.isNBatch || s.workspace.address == nullptr) {
        ReportError("call-order", at, "IterateNBatch needs isNBatch = true in the MatmulConfig and SetWorkspace before it.");
        return;
    }
    Target target;
    target.to_global = true;
    target.global = s.workspace;
    target.global.dtype = s.spec.c.dtype;
    RunBatch(s, role, target, call, loops, false, at);
    s.taken = 0;
    if (sync && role == Role::Client) {
        WaitForCube(at);
    }
}

GlobalRef Object::GetBatchC(uint32_t batch_a, uint32_t batch_b, At at)
{
    ObjectState &s = *state_;
    if (s.RoleHere(at) == Role::Client) {
        WaitForCube(at);
    }
    const int64_t count = std::max(batch_a, batch_b);
    const Place c = PlaceOf(s.spec.c.layout, AxesC(s.tiling), s.taken++ * count, int64_t{s.m} * s.n);
    GlobalRef part = Shifted(s.workspace, c.offset, s.spec.c.dtype);
    part.dtype = s.spec.c.dtype;
    return part;
}

void Object::GetBatchC(const LocalRef &target, uint32_t batch_a, uint32_t batch_b, At at)
{
    ObjectState &s = *state_;
    const GlobalRef from = GetBatchC(batch_a, batch_b, at);
    const int64_t size = DTypeBytes(s.spec.c.dtype);
    AscendC::DataCopyExtParams params;
    params.blockCount = static_cast<uint16_t>(std::max(batch_a, batch_b) * static_cast<uint32_t>(s.m));
    params.blockLen = static_cast<uint32_t>(s.n * size);
    CopyPadIn(target, from, params, Padding{}, at);
}

}  // namespace evokernel::twin::matmul
