// Flags, barriers, mask register and the core's own registers.
#include "core.h"

namespace evokernel::twin {

namespace {

bool ValidEvent(int64_t id, const char *api, At at)
{
    if (id < 0 || id >= kEvents) {
        ReportError("event-misuse", at, "%s uses event id %lld; valid ids are 0 to %d.", api,
                    static_cast<long long>(id), kEvents - 1);
        return false;
    }
    return true;
}

// Ids 6 and 7 belong to the library: whoever got one from it may use it, others may not write it down.
void CheckReserved(AscendC::HardEvent event, int64_t id, const char *api, At at)
{
    constexpr int64_t first_reserved = 6;
    const int given = TheCore().given_ids[static_cast<int>(event)];
    if (id >= first_reserved && (given >> id & 1) == 0) {
        const PipePair pair = PipesOf(event);
        ReportWarning("event-misuse", at,
                      "%s %s_%s uses event id %lld, which the library keeps for itself; use 0 to 5 or AllocEventID.",
                      api, PipeName(pair.from), PipeName(pair.to), static_cast<long long>(id));
    }
}

// A cube core has no vector pipe, a vector core none of the matrix unit: what names one there waits for nothing that
// ever comes.
bool HasPipe(CoreKind kind, Pipe pipe)
{
    const bool of_cube = pipe == Pipe::M || pipe == Pipe::MTE1 || pipe == Pipe::FIX;
    return kind == CoreKind::Cube ? pipe != Pipe::V : !of_cube;
}

const char *KindName(CoreKind kind) { return kind == CoreKind::Cube ? Word("cube") : Word("vector"); }
const char *GuardOf(CoreKind kind) { return kind == CoreKind::Cube ? "AIV" : "AIC"; }

// Whether the core has both pipes of a flag.
bool HasPipes(const Core &core, PipePair pair, const char *api, At at)
{
    if (HasPipe(core.kind, pair.from) && HasPipe(core.kind, pair.to)) {
        return true;
    }
    ReportError("wrong-core", at, "%s %s_%s names pipe %s, which a %s core does not have; guard it with ASCEND_IS_%s.",
                api, PipeName(pair.from), PipeName(pair.to),
                PipeName(HasPipe(core.kind, pair.from) ? pair.to : pair.from), KindName(core.kind), GuardOf(core.kind));
    return false;
}

int8_t Give(AscendC::HardEvent event, int id)
{
    uint8_t &given = TheCore().given_ids[static_cast<int>(event)];
    given = static_cast<uint8_t>(given | 1 << id);
    return static_cast<int8_t>(id);
}

void Raise(Core &core, AscendC::HardEvent event, int64_t id, At at)
{
    FlagState &flags = core.flags[static_cast<int>(event)];
    const PipePair pair = PipesOf(event);
    flags.set[id] = true;
    flags.by_pipe[id] = false;
    flags.at[id] = at;
    flags.time[id] = core.time.Ready(pair.from);
    if (race::installed && !core.timing) {
        race::Flag(core, pair.from, pair.to, id, true);
    }
}

void Lower(Core &core, AscendC::HardEvent event, int64_t id)
{
    FlagState &flags = core.flags[static_cast<int>(event)];
    const PipePair pair = PipesOf(event);
    flags.set[id] = false;
    flags.by_pipe[id] = false;
    core.time.NotBefore(pair.to, flags.time[id], pair.from);
    if (race::installed && !core.timing) {
        race::Flag(core, pair.from, pair.to, id, false);
    }
}

// On a cube core the library's TPipe takes the first ids of M_MTE1 for itself: it sets them when it is opened and
// waits for them when it is destroyed.
constexpr AscendC::HardEvent kPipeEvent = AscendC::HardEvent::M_MTE1;
constexpr int kPipeFlags = 3;

}  // namespace

void SetFlag(AscendC::HardEvent event, int64_t id, At at)
{
    Core &core = TheCore();
    core.time.Scalar(CurrentChip().flag);
    if (!ValidEvent(id, "SetFlag", at)) {
        return;
    }
    const PipePair pair = PipesOf(event);
    if (!HasPipes(core, pair, "SetFlag", at)) {
        return;
    }
    CheckReserved(event, id, "SetFlag", at);
    FlagState &flags = core.flags[static_cast<int>(event)];
    if (flags.by_pipe[id]) {
        ReportError("event-misuse", at,
                    "SetFlag %s_%s with event id %lld, which the TPipe of a cube core has set. Call Destroy() "
                    "before, use no TPipe there, or take an id from AllocEventID.",
                    PipeName(pair.from), PipeName(pair.to), static_cast<long long>(id));
    } else if (flags.set[id]) {
        ReportError("event-misuse", at, "SetFlag %s_%s with event id %lld twice without a WaitFlag between.",
                    PipeName(pair.from), PipeName(pair.to), static_cast<long long>(id));
    } else if (((core.queue_ids[static_cast<int>(event)] & ~core.given_ids[static_cast<int>(event)]) >> id & 1) != 0) {
        ReportError("event-misuse", at,
                    "SetFlag %s_%s with event id %lld, which the flag of a queue's buffer has at this time; take an id "
                    "from AllocEventID.",
                    PipeName(pair.from), PipeName(pair.to), static_cast<long long>(id));
    }
    Raise(core, event, id, at);
}

void WaitFlag(AscendC::HardEvent event, int64_t id, At at)
{
    Core &core = TheCore();
    core.time.Scalar(CurrentChip().flag);
    if (!ValidEvent(id, "WaitFlag", at)) {
        return;
    }
    const PipePair pair = PipesOf(event);
    if (!HasPipes(core, pair, "WaitFlag", at)) {
        return;
    }
    CheckReserved(event, id, "WaitFlag", at);
    FlagState &flags = core.flags[static_cast<int>(event)];
    if (!flags.set[id]) {
        ReportError("event-misuse", at, "WaitFlag %s_%s with event id %lld waits for a SetFlag that never came.",
                    PipeName(pair.from), PipeName(pair.to), static_cast<long long>(id));
        return;
    }
    Lower(core, event, id);
}

void NoSuchFlag(const char *api, At at)
{
    ReportError("event-misuse", at, "%s names two pipes between which there is no flag.", api);
}

void SetPipeFlags(At at)
{
    Core &core = TheCore();
    if (core.kind != CoreKind::Cube) {
        return;
    }
    for (int id = 0; id < kPipeFlags; ++id) {
        FlagState &flags = core.flags[static_cast<int>(kPipeEvent)];
        if (flags.set[id]) {
            ReportError("event-misuse", at, "A TPipe sets M_MTE1 with event id %d on a cube core, which is set already.",
                        id);
        }
        uint8_t &taken = core.event_ids[static_cast<int>(kPipeEvent)];
        taken = static_cast<uint8_t>(taken | 1 << id);
        Raise(core, kPipeEvent, id, at);
        flags.by_pipe[id] = true;
    }
}

void AwaitPipeFlags()
{
    Core &core = TheCore();
    if (core.kind != CoreKind::Cube) {
        return;
    }
    for (int id = 0; id < kPipeFlags; ++id) {
        uint8_t &taken = core.event_ids[static_cast<int>(kPipeEvent)];
        taken = static_cast<uint8_t>(taken & ~(1 << id));
        if (core.flags[static_cast<int>(kPipeEvent)].set[id]) {
            Lower(core, kPipeEvent, id);
        } else {
            ReportError("event-misuse", core.pipe_at,
                        "The TPipe of a cube core finally waits for M_MTE1 with event id %d, which the kernel "
                        "has waited for and not set again.",
                        id);
        }
    }
}

void Barrier(pipe_t pipe, At at)
{
    Core &core = TheCore();
    core.time.Scalar(CurrentChip().flag);
    if (pipe == PIPE_S) {
        ReportError("event-misuse", at, "PipeBarrier<PIPE_S> is not allowed.");
    }
    if (pipe == PIPE_ALL) {
        core.time.DrainAll();
        if (race::installed && !core.timing) {
            race::Barrier(core, race::kAllPipes);
        }
        return;
    }
    static constexpr Pipe pipes[] = {Pipe::S,    Pipe::V,    Pipe::M, Pipe::MTE1,
                                     Pipe::MTE2, Pipe::MTE3, Pipe::S, Pipe::FIX};
    const Pipe which = pipes[static_cast<int>(pipe)];
    if (!HasPipe(core.kind, which)) {
        ReportError("wrong-core", at, "PipeBarrier<PIPE_%s> names a pipe that a %s core does not have; guard it with "
                    "ASCEND_IS_%s.", PipeName(which), KindName(core.kind), GuardOf(core.kind));
        return;
    }
    core.time.NotBefore(which, core.time.Ready(which), which);
    if (race::installed && !core.timing) {
        race::Barrier(core, static_cast<int>(which));
    }
}

int8_t AllocEvent(AscendC::HardEvent event, At at)
{
    uint8_t &taken = TheCore().event_ids[static_cast<int>(event)];
    for (int id = 0; id < kEvents; ++id) {
        if ((taken >> id & 1) == 0) {
            taken = static_cast<uint8_t>(taken | 1 << id);
            return Give(event, id);
        }
    }
    ReportError("event-misuse", at, "AllocEventID finds all 8 ids taken; release one with ReleaseEventID.");
    return 0;
}

void ReleaseEvent(AscendC::HardEvent event, int64_t id, At at)
{
    if (ValidEvent(id, "ReleaseEventID", at)) {
        uint8_t &taken = TheCore().event_ids[static_cast<int>(event)];
        taken = static_cast<uint8_t>(taken & ~(1 << id));
    }
}

int8_t FetchEvent(AscendC::HardEvent event)
{
    const uint8_t taken = TheCore().event_ids[static_cast<int>(event)];
    for (int id = 0; id < kEvents; ++id) {
        if ((taken >> id & 1) == 0) {
            return Give(event, id);
        }
    }
    return 0;
}

void SetMaskMode(bool counter)
{
    TheCore().time.Scalar(CurrentChip().flag);
    TheCore().mask.counter = counter;
}

void SetMaskRegister(uint64_t high, uint64_t low)
{
    Core &core = TheCore();
    core.time.Scalar(CurrentChip().flag);
    core.mask.high = high;
    core.mask.low = low;
}

void SetMaskLength(int64_t lanes, DType dtype, bool counter)
{
    (void)dtype;
    if (counter) {
        SetMaskRegister(0, static_cast<uint64_t>(lanes));
        return;
    }
    const auto ones = [](int64_t n) {
        return n <= 0 ? uint64_t{0} : n >= 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1;
    };
    SetMaskRegister(ones(lanes - 64), ones(lanes));
}

void SetDeqScale(float scale)
{
    TheCore().time.Scalar(CurrentChip().flag);
    TheCore().deq_scale = scale;
}

int64_t BlockIdx() { return TheCore().Index(); }
int64_t BlockNum() { return TheCore().blocks; }
int64_t SubBlockIdx() { return TheCore().kind == CoreKind::Vector ? TheCore().sub : 0; }
int64_t SubBlockNum() { return TheCore().kind == CoreKind::Vector ? TheCore().subs : 1; }
int64_t TaskRatio() { return SubBlockNum(); }
bool OnCubeCore() { return TheCore().kind == CoreKind::Cube; }

int64_t SystemCycle()
{
    constexpr double counter_mhz = 50;  // the A2 counter; documentation of GetSystemCycle
    return static_cast<int64_t>(TheCore().time.Now() * counter_mhz / CurrentChip().mhz);
}

void InitSocState()
{
    Core &core = TheCore();
    core.mask = MaskState{false, ~uint64_t{0}, ~uint64_t{0}};
    core.atomic = Atomic::None;
    core.time.Scalar(CurrentChip().issue);
}

uint64_t UsableUbBytes() { return CurrentChip().ub_bytes; }

namespace {

// The one that the kernel named, null before.
uint8_t *&SetWorkspace()
{
    static uint8_t *workspace = nullptr;
    return workspace;
}

}  // namespace

void SetSystemWorkspace(uint8_t *workspace) { SetWorkspace() = workspace; }

uint8_t *SystemWorkspace()
{
    static uint8_t own[4096];
    return SetWorkspace() == nullptr ? own : SetWorkspace();
}

}  // namespace evokernel::twin
