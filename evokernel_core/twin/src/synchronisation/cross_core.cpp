// Barriers and flags between cores.
#include "synchronisation/cross_core.h"

#include <algorithm>
#include <array>
#include <deque>
#include <unordered_map>

#include "core.h"
#include "evokernel/twin/cross.h"
#include "time/schedule.h"

namespace evokernel::twin {

namespace {

constexpr int kFlagIds = LimitOf(Api::CrossCoreSetFlag, "flagId").high + 1;
constexpr size_t kMaxCounter = 15;

// One signal on its way or arrived: when, and who gave it.
struct Signal {
    double time;
    Pipe pipe;
    int mode;
    const void *channel;  // of the race detector
    At at;
};

// The cores that a signal needs, and what each of them has given so far.
struct Gathering {
    std::unordered_map<int64_t, std::deque<Signal>> given;
    size_t ready = 0;  // members with at least one signal
};

struct State {
    std::unordered_map<int64_t, std::array<std::deque<Signal>, kFlagIds>> counters;  // by core
    std::unordered_map<int64_t, Gathering> gatherings;
    Meeting vectors;
    Meeting everyone;
};

State &TheState()
{
    static State state;
    return state;
}

int64_t IdOf(CoreKind kind, int64_t block, int sub) { return (block * 2 + (kind == CoreKind::Cube ? 1 : 0)) * 4 + sub; }
int64_t IdOf(const Core &core) { return IdOf(core.kind, core.block, core.sub); }

Pipe PipeOf(pipe_t pipe)
{
    static constexpr Pipe pipes[] = {Pipe::S,    Pipe::V,    Pipe::M, Pipe::MTE1,
                                     Pipe::MTE2, Pipe::MTE3, Pipe::S, Pipe::FIX};
    return pipes[static_cast<int>(pipe)];
}

int64_t MembersOf(const Core &core, int mode)
{
    const int per_block = core.kind == CoreKind::Cube ? core.cubes : core.subs;
    return mode == 0 ? core.blocks * per_block : per_block;
}

// What has to be complete before the signal counts: one gathering for each mode, flag and group of cores.
int64_t GatheringOf(const Core &core, int mode, int id)
{
    const int64_t group = mode == 0 ? 0 : core.block + 1;
    return ((group * 3 + mode) * 2 + (core.kind == CoreKind::Cube ? 1 : 0)) * kFlagIds + id;
}

void RaiseCore(CoreKind kind, int64_t block, int sub, const Signal &signal, int id, At at)
{
    std::deque<Signal> &counter = TheState().counters[IdOf(kind, block, sub)][static_cast<size_t>(id)];
    if (counter.size() >= kMaxCounter) {
        ReportError("event-misuse", at,
                    "Flag %d counts more than 15 signals that nobody waited for; call CrossCoreWaitFlag as often as "
                    "CrossCoreSetFlag.",
                    id);
        return;
    }
    if (!counter.empty() && counter.back().mode != signal.mode) {
        ReportError("event-misuse", at, "Flag %d is set in mode %d while signals of mode %d still wait; use another id.",
                    id, signal.mode, counter.back().mode);
    }
    counter.push_back(signal);
}

// The cores that a complete signal reaches.
void Deliver(const Core &core, const Signal &signal, int id, At at)
{
    const int64_t first = signal.mode == 0 ? 0 : core.block;
    const int64_t last = signal.mode == 0 ? core.blocks : core.block + 1;
    const CoreKind other = core.kind == CoreKind::Cube ? CoreKind::Vector : CoreKind::Cube;
    const CoreKind kind = signal.mode == 2 ? other : core.kind;
    const int per_block = kind == CoreKind::Cube ? core.cubes : core.subs;
    for (int64_t block = first; block < last; ++block) {
        for (int sub = 0; sub < per_block; ++sub) {
            RaiseCore(kind, block, sub, signal, id, at);
        }
    }
}

bool CheckMode(const Core &core, int mode, At at)
{
    if (mode > 0 && (core.cubes == 0 || core.subs == 0)) {
        ReportError("kernel-type", at,
                    "CrossCoreSetFlag in mode %d needs a kernel with both kinds of cores; launch it as "
                    "KERNEL_TYPE_MIX_AIC_1_1 or KERNEL_TYPE_MIX_AIC_1_2.",
                    mode);
        return false;
    }
    return true;
}

void CheckMixed(const char *api, At at)
{
    if (!CurrentCrew().kind.mixed && CurrentCrew().kind.cube + CurrentCrew().kind.vector == 1) {
        ReportWarning("kernel-type", at,
                      "%s needs a kernel type of the MIX family, because others do not start the scheduling unit; "
                      "declare the kernel __mix__(%d, %d).",
                      api, CurrentCrew().kind.cube, CurrentCrew().kind.vector);
    }
}

int ValidId(uint16_t id, const char *api, At at)
{
    if (id >= kFlagIds) {
        ReportError("event-misuse", at, "%s uses flag %u; ids are 0 to %d, and the chip keeps the low 4 bits only.",
                    api, id, kFlagIds - 1);
    }
    return id % kFlagIds;
}

struct FlagWait {
    int64_t core;
    int id;
};

bool FlagRaised(void *context)
{
    const auto &wait = *static_cast<FlagWait *>(context);
    return !TheState().counters[wait.core][static_cast<size_t>(wait.id)].empty();
}

struct MeetingWait {
    const Meeting *meeting;
    uint64_t round;
};

bool RoundOver(void *context)
{
    const auto &wait = *static_cast<MeetingWait *>(context);
    return wait.meeting->round != wait.round;
}

}  // namespace

void Order(Core &core, const void *channel, Pipe pipe, bool release)
{
    if (race::installed && !core.timing) {
        race::CrossCore(core, channel, pipe, release);
    }
}

// Arrives with all of this core's work done, and leaves when `members` cores have arrived.
void Meet(Meeting &meeting, int64_t members, double cost, const char *what, At at)
{
    Core &core = TheCore();
    core.time.DrainAll();
    Order(core, &meeting, Pipe::S, true);
    meeting.latest = std::max(meeting.latest, core.time.End());
    MeetingWait wait{&meeting, meeting.round};
    if (++meeting.arrived >= members) {
        meeting.leave = meeting.latest + cost;
        meeting.arrived = 0;
        meeting.latest = 0;
        ++meeting.round;
        MarkProgress();
    } else {
        BlockUntil(RoundOver, &wait, what, at);
    }
    core.time.NotBefore(Pipe::S, meeting.leave, Pipe::S);
    Order(core, &meeting, Pipe::S, false);
}

void ResetCrossCore()
{
    TheState() = State{};
    ResetCrossMemory();
}

void ReportOpenCrossCore()
{
    for (const auto &[core, flags] : TheState().counters) {
        for (int id = 0; id < kFlagIds; ++id) {
            if (!flags[static_cast<size_t>(id)].empty()) {
                ReportError("event-misuse", flags[static_cast<size_t>(id)].front().at,
                            "CrossCoreSetFlag %d has no CrossCoreWaitFlag; its count leaks into the next kernel.", id);
            }
        }
    }
    for (const auto &[key, gathering] : TheState().gatherings) {
        for (const auto &[core, signals] : gathering.given) {
            if (!signals.empty()) {
                ReportError("event-misuse", signals.front().at,
                            "CrossCoreSetFlag %lld in mode %d is not called by all cores of its group; the others' "
                            "signals never count.",
                            static_cast<long long>(key % kFlagIds), signals.front().mode);
            }
        }
    }
}

void CrossCoreSet(int mode, pipe_t pipe, uint16_t flag, At at)
{
    Core &core = TheCore();
    core.time.Scalar(CurrentChip().flag);
    core.last_at = at;
    CheckMixed("CrossCoreSetFlag", at);
    if (!CheckMode(core, mode, at)) {
        return;
    }
    const int id = ValidId(flag, "CrossCoreSetFlag", at);
    const Pipe which = PipeOf(pipe);
    Gathering &gathering = TheState().gatherings[GatheringOf(core, mode, id)];
    Order(core, &gathering, which, true);
    std::deque<Signal> &mine = gathering.given[IdOf(core)];
    mine.push_back(Signal{core.time.Ready(which), which, mode, &gathering, at});
    gathering.ready += mine.size() == 1 ? 1 : 0;
    while (static_cast<int64_t>(gathering.ready) >= MembersOf(core, mode)) {
        Signal whole{0, which, mode, &gathering, at};
        for (auto &[member, signals] : gathering.given) {
            if (!signals.empty() && signals.front().time >= whole.time) {
                whole.time = signals.front().time;
                whole.pipe = signals.front().pipe;
            }
            signals.pop_front();
            gathering.ready -= signals.empty() ? 1 : 0;
        }
        Deliver(core, whole, id, at);
    }
    MarkProgress();
}

void CrossCoreWait(uint16_t flag, At at)
{
    Core &core = TheCore();
    core.time.Scalar(CurrentChip().flag);
    core.last_at = at;
    CheckMixed("CrossCoreWaitFlag", at);
    FlagWait wait{IdOf(core), ValidId(flag, "CrossCoreWaitFlag", at)};
    static const char *const names[kFlagIds] = {
        "CrossCoreWaitFlag 0",  "CrossCoreWaitFlag 1",  "CrossCoreWaitFlag 2",  "CrossCoreWaitFlag 3",
        "CrossCoreWaitFlag 4",  "CrossCoreWaitFlag 5",  "CrossCoreWaitFlag 6",  "CrossCoreWaitFlag 7",
        "CrossCoreWaitFlag 8",  "CrossCoreWaitFlag 9",  "CrossCoreWaitFlag 10", "CrossCoreWaitFlag 11",
        "CrossCoreWaitFlag 12", "CrossCoreWaitFlag 13", "CrossCoreWaitFlag 14", "CrossCoreWaitFlag 15"};
    BlockUntil(FlagRaised, &wait, names[wait.id], at);
    std::deque<Signal> &counter = TheState().counters[wait.core][static_cast<size_t>(wait.id)];
    const Signal signal = counter.front();
    counter.pop_front();
    core.time.NotBefore(Pipe::S, signal.time + CurrentChip().cross_core, signal.pipe);
    Order(core, signal.channel, Pipe::S, false);
}

void SyncAllCores(bool vector_only, At at)
{
    Core &core = TheCore();
    BeginInstruction(Pipe::S, "SyncAll", at);
    CheckMixed("SyncAll", at);
    const int64_t vectors = core.blocks * core.subs;
    if (vector_only) {
        if (core.kind == CoreKind::Vector) {
            Meet(TheState().vectors, vectors, CurrentChip().sync_all, "SyncAll", at);
        }
        return;
    }
    if (core.cubes == 0 || core.subs == 0) {
        ReportError("kernel-type", at,
                    "SyncAll<false> waits for cube and vector cores, but the kernel has one kind only and would hang; "
                    "call SyncAll<true>.");
        return;
    }
    Meet(TheState().everyone, vectors + core.blocks * core.cubes, 2 * CurrentChip().sync_all, "SyncAll<false>", at);
}

}  // namespace evokernel::twin
