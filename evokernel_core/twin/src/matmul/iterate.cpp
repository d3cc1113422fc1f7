// Iterate, GetTensorC and IterateAll.
#include "matmul/serve.h"
#include "matmul/state.h"
#include "time/schedule.h"

namespace evokernel::twin::matmul {

namespace {

uint64_t TileBytes(const ObjectState &s)
{
    const int32_t lanes = DTypeBytes(s.spec.c.dtype) == 1 ? 32 : 16;
    return static_cast<uint64_t>(Align(s.tiling.baseM, kRows)) * static_cast<uint64_t>(Align(s.tiling.baseN, lanes)) *
           DTypeBytes(s.spec.c.dtype);
}

// Where the block with this number lies in a workspace.
GlobalRef SlotOf(const ObjectState &s, int32_t number)
{
    GlobalRef ref = s.workspace;
    const uint64_t skip = static_cast<uint64_t>(number) * static_cast<uint64_t>(s.tiling.baseM) *
                          static_cast<uint64_t>(s.tiling.baseN) * DTypeBytes(s.spec.c.dtype);
    ref.address += skip;
    ref.bytes = ref.bytes > skip ? ref.bytes - skip : 0;
    ref.dtype = s.spec.c.dtype;
    return ref;
}

Target ToWorkspace(const ObjectState &s, int32_t number)
{
    Target target;
    target.to_global = true;
    target.global = SlotOf(s, number);
    target.sequential = true;
    return target;
}

bool Start(ObjectState &s, Role role, At at)
{
    if (role == Role::Client && TheCore().cubes == 0) {
        PostToCube([] {}, at);  // says that this launch has no cube core
        return false;
    }
    s.job = std::make_shared<Job>(s.MakeJob(at));
    s.started = true;
    return CheckJob(*s.job);
}

// What the vector core may read next after its copy: the vector unit waits.
void VectorWaitsForCopy(At at)
{
    const int8_t id = AllocEvent(AscendC::HardEvent::MTE2_V, at);
    SetFlag(AscendC::HardEvent::MTE2_V, id, at);
    WaitFlag(AscendC::HardEvent::MTE2_V, id, at);
    ReleaseEvent(AscendC::HardEvent::MTE2_V, id, at);
}

void PostAll(ObjectState &s, Role role, At at)
{
    auto self = s.shared_from_this();
    const std::shared_ptr<Job> job = s.job;
    Tile tile;
    int32_t number = 0;
    int32_t slot = 0;
    while (s.NextTile(*job, &tile, &number)) {
        const Target target = ToWorkspace(s, slot++);
        s.OnCube(role, [self, job, tile, number, target] {
            if (self->machine.Begin(*job)) {
                self->machine.Compute(*job, tile, number, false, nullptr);
                self->machine.Store(*job, tile, target);
            }
        }, at);
    }
    s.Finish(role, at);
    s.posted = true;
    s.taken = 0;
}

}  // namespace

bool Object::Iterate(bool sync, bool accumulate, const LocalRef *co1, At at)
{
    ObjectState &s = *state_;
    const Role role = s.RoleHere(at);
    if (role == Role::Idle || !s.Ready(at)) {
        return false;
    }
    if (!s.started && !Start(s, role, at)) {
        return false;
    }
    if (!sync && co1 == nullptr) {
        if (s.workspace.address == nullptr) {
            ReportError("call-order", at, "An asynchronous Iterate keeps its results in global memory; call SetWorkspace "
                                          "first.");
            return false;
        }
        if (!s.posted) {
            PostAll(s, role, at);
        }
        return false;
    }
    int32_t number = 0;
    if (!s.NextTile(*s.job, &s.tile, &number)) {
        s.cursor = 0;
        s.started = false;
        s.Finish(role, at);
        return false;
    }
    s.job->at = at;
    auto self = state_;
    const std::shared_ptr<Job> job = s.job;
    const Tile tile = s.tile;
    LocalRef sum;
    if (co1 != nullptr) {
        sum = *co1;
    }
    const bool own_sum = co1 != nullptr;
    auto work = [self, job, tile, number, accumulate, sum, own_sum] {
        if (self->machine.Begin(*job)) {
            self->machine.Compute(*job, tile, number, accumulate, own_sum ? &sum : nullptr);
        }
    };
    if (role == Role::Own) {
        work();
    } else {
        s.waiting.push_back(work);
    }
    return true;
}

void Object::GetTensorC(bool sync, const Target &target, At at)
{
    ObjectState &s = *state_;
    const Role role = s.RoleHere(at);
    if (role == Role::Idle) {
        return;
    }
    if (s.posted) {
        WaitForCube(at);
        s.job->at = at;
        const int32_t slot = s.taken++;
        const Tile tile = TileAt(*s.job, slot);
        Target local = target;
        local.sequential = true;
        if (target.to_local) {
            s.CopyToLocal(*s.job, tile, local, SlotOf(s, slot), at);
        }
        return;
    }
    if (!s.started) {
        ReportError("call-order", at, "GetTensorC comes before Iterate; there is no result to take.");
        return;
    }
    const std::shared_ptr<Job> job = s.job;
    const Tile tile = s.tile;
    if (role == Role::Own) {
        if (target.to_local) {
            ReportError("wrong-core", at, "A cube core cannot write to the unified buffer; take C to global memory.");
        }
        if (target.to_global && s.machine.Begun()) {
            s.machine.Store(*job, tile, target);
        }
        return;
    }
    Target first = target;
    if (!target.to_global) {
        first = Target{};
        first.to_global = true;
        first.global = s.scratch_c.Take(TileBytes(s), s.spec.c.dtype);
        first.sequential = true;
    }
    auto self = state_;
    auto work = s.waiting;
    s.waiting.clear();
    const bool also_local = target.to_global && target.to_local;
    Target second;
    second.to_global = true;
    second.sequential = true;
    if (also_local) {
        second.global = s.scratch_c.Take(TileBytes(s), s.spec.c.dtype);
    }
    s.OnCube(role, [self, job, tile, first, second, also_local, work] {
        for (const auto &step : work) {
            step();
        }
        if (!self->machine.Begun()) {
            return;
        }
        self->machine.Store(*job, tile, first);
        if (also_local) {
            self->machine.Store(*job, tile, second);
        }
    }, at);
    if (sync || target.to_local) {
        WaitForCube(at);
    }
    if (target.to_local) {
        s.CopyToLocal(*job, tile, target, also_local ? second.global : first.global, at);
        if (sync) {
            VectorWaitsForCopy(at);
        }
    }
}

GlobalRef Object::GetWorkspaceC(At at)
{
    ObjectState &s = *state_;
    if (!s.posted) {
        ReportError("call-order", at, "GetTensorC without a target takes from the workspace of an asynchronous Iterate; "
                                      "call Iterate<false> first.");
        return GlobalRef{};
    }
    if (s.RoleHere(at) == Role::Client) {
        WaitForCube(at);
    }
    return SlotOf(s, s.taken++);
}

namespace {

// With A and B shared by a block's vector cores, the first one's call computes for both.
bool SharesBoth(const ObjectState &s) { return s.spec.a.shared && s.spec.b.shared; }

struct PartnerWait {
    const Core *self;
    uint32_t calls;
};

bool PartnerCalled(void *context)
{
    const auto &wait = *static_cast<PartnerWait *>(context);
    const Core *first = PeerOf(*wait.self, CoreKind::Vector, 0);
    return first == nullptr || first->matmul_calls >= wait.calls;
}

bool WaitForPartner(ObjectState &s, At at)
{
    Core &core = TheCore();
    if (!SharesBoth(s) || core.subs < 2) {
        return false;
    }
    ++core.matmul_calls;
    if (core.sub == 0) {
        return false;
    }
    PartnerWait wait{&core, core.matmul_calls};
    BlockUntil(PartnerCalled, &wait, Word("the other vector core's Matmul call"), at);
    PostToCube([] {}, at);  // done after the partner's work
    WaitForCube(at);
    return true;
}

void AllToLocal(ObjectState &s, const Target &target, At at)
{
    const std::shared_ptr<Job> job = s.job;
    Tile tile;
    int32_t number = 0;
    auto self = s.shared_from_this();
    while (s.NextTile(*job, &tile, &number)) {
        Target part;
        part.to_global = true;
        part.sequential = true;
        part.global = s.scratch_c.Take(TileBytes(s), s.spec.c.dtype);
        s.OnCube(Role::Client, [self, job, tile, number, part] {
            if (self->machine.Begin(*job)) {
                self->machine.Compute(*job, tile, number, false, nullptr);
                self->machine.Store(*job, tile, part);
            }
        }, at);
        WaitForCube(at);
        s.CopyToLocal(*job, tile, target, part.global, at);
        // The next block overwrites what this copy reads.
        TheCore().time.ScalarWaits(Pipe::MTE2);
    }
    VectorWaitsForCopy(at);
    s.Finish(Role::Client, at);
}

void RunAll(ObjectState &s, const Job &job, const Target &target)
{
    if (!s.machine.Begin(job)) {
        return;
    }
    for (int32_t number = 0; number < job.Tiles(); ++number) {
        const Tile tile = TileAt(job, number);
        if (!tile.skipped) {
            s.machine.Compute(job, tile, number, false, nullptr);
            s.machine.Store(job, tile, target);
        }
    }
    s.machine.End(job.at);
}

}  // namespace

void Object::IterateAll(bool sync, const Target &target, bool, bool fake, At at)
{
    ObjectState &s = *state_;
    const Role role = s.RoleHere(at);
    if (role == Role::Idle || fake || !s.Ready(at)) {
        return;
    }
    if (role == Role::Client && WaitForPartner(s, at)) {
        return;
    }
    s.cursor = 0;
    if (!Start(s, role, at)) {
        return;
    }
    if (target.to_local) {
        if (role == Role::Own) {
            ReportError("wrong-core", at, "A cube core cannot write to the unified buffer; take C to global memory.");
            return;
        }
        AllToLocal(s, target, at);
    } else {
        auto self = state_;
        const std::shared_ptr<Job> job = s.job;
        s.OnCube(role, [self, job, target] { RunAll(*self, *job, target); }, at);
        if (sync && role == Role::Client) {
            WaitForCube(at);
        }
    }
    s.cursor = 0;
    s.started = false;
}

}  // namespace evokernel::twin::matmul
