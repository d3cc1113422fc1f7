// Synchronisation of vector cores through workspaces in global memory. Who waits for whom is kept here;
// the workspaces get the marks, too, because a kernel must not find its own data there.
#include <algorithm>
#include <cstring>
#include <deque>
#include <unordered_map>

#include "evokernel/twin/cross.h"
#include "synchronisation/cross_core.h"
#include "time/schedule.h"

namespace evokernel::twin {

namespace {

constexpr uint64_t kSlot = 32;        // bytes of a mark
constexpr uint64_t kGroupSlot = 512;  // bytes of a group barrier's message

// Marks of one slot that are set and not yet waited for.
struct Marks {
    std::deque<double> times;
    bool checked = false;
};

// Blocks that go one after another, round after round.
struct Turns {
    uint64_t next = 0;
    double time = 0;
    std::unordered_map<int64_t, uint64_t> waited;  // rounds, by block index
    std::unordered_map<int64_t, uint64_t> notified;
};

// Arrivals at a group barrier: how often each member came, and when.
struct Group {
    std::unordered_map<uint32_t, std::deque<double>> arrivals;
    std::unordered_map<uint32_t, uint64_t> waits;
};

struct State {
    std::unordered_map<const uint8_t *, Meeting> meetings;
    std::unordered_map<const uint8_t *, Marks> marks;
    std::unordered_map<const uint8_t *, Turns> turns;
    std::unordered_map<const uint8_t *, Group> groups;
};

State &TheState()
{
    static State state;
    return state;
}

// A mark costs a store, seeing it a load: both pass through memory.
double StoreCycles() { return CurrentChip().store_latency + CurrentChip().min_copy; }
double LoadCycles() { return CurrentChip().load_latency + CurrentChip().min_copy; }

bool CheckLocal(const LocalRef &local, uint64_t bytes, const char *api, At at)
{
    if (TheCore().timing) {
        return true;
    }
    if (local.bytes < bytes) {
        ReportError("param-limit", at, "%s needs a ubWorkspace of %llu bytes, not %u.", api,
                    static_cast<unsigned long long>(bytes), local.bytes);
        return false;
    }
    return CheckRange(local, bytes, 32, true, api, "ubWorkspace", at, SpaceBit(Space::UB)) != nullptr;
}

// The block of memory behind a workspace, null where it is too small or none.
Allocation *CheckWorkspace(const GlobalRef &workspace, uint64_t offset, uint64_t bytes, const char *api, At at)
{
    if (TheCore().timing) {
        return nullptr;
    }
    return Gm().Check(workspace, workspace.address + offset, bytes, true, api, at);
}

// The marks must start as zero: another value lets a core pass that should wait.
void CheckZero(const Allocation &block, const uint8_t *slot, uint64_t bytes, const char *api, At at)
{
    const uint64_t offset = static_cast<uint64_t>(slot - block.base);
    const bool undefined = block.written != nullptr && std::memchr(block.written + offset, 0, bytes) != nullptr;
    const bool zero = std::all_of(slot, slot + bytes, [](uint8_t byte) { return byte == 0; });
    if (undefined || !zero) {
        ReportError("uninitialised-read", at, "%s finds values other than 0 in its gmWorkspace; clear it on the host.",
                    api);
    }
}

void WriteMark(Allocation *block, uint8_t *slot, int32_t value)
{
    if (block == nullptr || block->kind == Kind::Input) {
        return;
    }
    std::memset(slot, 0, kSlot);
    std::memcpy(slot, &value, sizeof(value));
    if (block->written != nullptr) {
        std::memset(block->written + (slot - block->base), 1, kSlot);
    }
}

bool OnVectorCore(const char *api, At at)
{
    if (TheCore().kind == CoreKind::Cube) {
        ReportError("wrong-core", at, "%s works on vector cores only; guard it with ASCEND_IS_AIV.", api);
        return false;
    }
    return true;
}

int64_t VectorCores() { return TheCore().blocks * TheCore().subs; }

struct MarkSlot {
    uint8_t *address;
    Allocation *block;
    Marks *marks;
};

bool FindSlot(const GlobalRef &workspace, const LocalRef &local, int32_t index, int32_t event, const char *api, At at,
              MarkSlot *slot)
{
    BeginInstruction(Pipe::MTE3, api, at);
    if (!OnVectorCore(api, at) || !CheckLocal(local, kSlot, api, at)) {
        return false;
    }
    if (index < 0 || index >= VectorCores() || event < 0) {
        ReportError("param-limit", at, "%s gets core %d and event %d; cores are 0 to %lld, events are not negative.",
                    api, index, event, static_cast<long long>(VectorCores() - 1));
        return false;
    }
    const uint64_t offset =
        (static_cast<uint64_t>(VectorCores()) * static_cast<uint64_t>(event) + static_cast<uint64_t>(index)) * kSlot;
    slot->block = CheckWorkspace(workspace, offset, kSlot, api, at);
    slot->address = workspace.address + offset;
    if (slot->block == nullptr && !TheCore().timing) {
        return false;
    }
    slot->marks = &TheState().marks[slot->address];
    if (slot->block != nullptr && !slot->marks->checked) {
        slot->marks->checked = true;
        CheckZero(*slot->block, slot->address, kSlot, api, at);
    }
    return true;
}

}  // namespace

void ResetCrossMemory() { TheState() = State{}; }

void SyncAllInMemory(const GlobalRef &workspace, const LocalRef &local, int32_t used_cores, At at)
{
    BeginInstruction(Pipe::MTE3, "SyncAll", at);
    const Core &core = TheCore();
    if (!OnVectorCore("SyncAll", at)) {
        return;
    }
    if (used_cores < 0 || used_cores > VectorCores()) {
        ReportError("param-limit", at, "SyncAll is to wait for %d cores, but the kernel runs on %lld.", used_cores,
                    static_cast<long long>(VectorCores()));
        return;
    }
    const int64_t members = used_cores == 0 ? VectorCores() : used_cores;
    const uint64_t bytes = static_cast<uint64_t>(VectorCores()) * kSlot;
    if (!CheckLocal(local, bytes, "SyncAll", at)) {
        return;
    }
    Allocation *block = CheckWorkspace(workspace, 0, bytes, "SyncAll", at);
    if (block == nullptr && !core.timing) {
        return;
    }
    Meeting &meeting = TheState().meetings[workspace.address];
    uint8_t *slot = workspace.address + static_cast<uint64_t>(core.Index()) * kSlot;
    if (block != nullptr && meeting.round == 0) {
        CheckZero(*block, slot, kSlot, "SyncAll", at);
    }
    WriteMark(block, slot, static_cast<int32_t>(meeting.round + 1));
    Meet(meeting, members, StoreCycles() + LoadCycles(), "SyncAll", at);
}

void BlockSet(const GlobalRef &workspace, const LocalRef &local, int32_t block, int32_t event, bool, At at)
{
    Core &core = TheCore();
    MarkSlot slot{};
    if (!FindSlot(workspace, local, block, event, "IBSet", at, &slot)) {
        return;
    }
    core.time.DrainAll();
    Order(core, slot.marks, Pipe::S, true);
    core.time.Run(Pipe::MTE3, StoreCycles(), "IBSet", at.line, at.file);
    slot.marks->times.push_back(core.time.Ready(Pipe::MTE3));
    WriteMark(slot.block, slot.address, 1);
    MarkProgress();
}

void BlockWait(const GlobalRef &workspace, const LocalRef &local, int32_t block, int32_t event, bool, At at)
{
    Core &core = TheCore();
    MarkSlot slot{};
    if (!FindSlot(workspace, local, block, event, "IBWait", at, &slot)) {
        return;
    }
    core.time.Scalar(LoadCycles());
    const auto marked = [](void *marks) { return !static_cast<Marks *>(marks)->times.empty(); };
    BlockUntil(marked, slot.marks, "IBWait", at);
    core.time.NotBefore(Pipe::S, slot.marks->times.front() + LoadCycles(), Pipe::MTE3);
    slot.marks->times.pop_front();
    WriteMark(slot.block, slot.address, slot.marks->times.empty() ? 0 : 1);
    Order(core, slot.marks, Pipe::S, false);
}

namespace {

uint64_t TurnBytes() { return static_cast<uint64_t>(TheCore().blocks) * kSlot; }

Turns *FindTurns(const GlobalRef &workspace, const LocalRef &local, const char *api, At at)
{
    BeginInstruction(Pipe::MTE3, api, at);
    if (!OnVectorCore(api, at) || !CheckLocal(local, TurnBytes() + kSlot, api, at)) {
        return nullptr;
    }
    const auto entry = TheState().turns.find(workspace.address);
    if (entry == TheState().turns.end()) {
        ReportError("event-misuse", at, "%s uses a workspace that InitDetermineComputeWorkspace did not prepare.", api);
        return nullptr;
    }
    return &entry->second;
}

struct TurnWait {
    const Turns *turns;
    uint64_t number;
};

}  // namespace

void TurnsInit(const GlobalRef &workspace, const LocalRef &local, At at)
{
    BeginInstruction(Pipe::MTE3, "InitDetermineComputeWorkspace", at);
    if (!OnVectorCore("InitDetermineComputeWorkspace", at) ||
        !CheckLocal(local, TurnBytes() + kSlot, "InitDetermineComputeWorkspace", at)) {
        return;
    }
    Core &core = TheCore();
    Allocation *block = CheckWorkspace(workspace, 0, TurnBytes(), "InitDetermineComputeWorkspace", at);
    if (block == nullptr && !core.timing) {
        return;
    }
    const bool first = TheState().turns.emplace(workspace.address, Turns{}).second;
    for (int64_t i = 0; first && i < core.blocks; ++i) {
        WriteMark(block, workspace.address + static_cast<uint64_t>(i) * kSlot, i == 0 ? 1 : 0);
    }
    core.time.Run(Pipe::MTE3, StoreCycles(), "InitDetermineComputeWorkspace", at.line, at.file);
}

void TurnsWait(const GlobalRef &workspace, const LocalRef &local, At at)
{
    Core &core = TheCore();
    Turns *turns = FindTurns(workspace, local, "WaitPreBlock", at);
    if (turns == nullptr) {
        return;
    }
    core.time.DrainAll();
    if (race::installed && !core.timing) {
        race::Barrier(core, race::kAllPipes);  // it reads its workspace with the copy engines and waits for them
    }
    core.time.Scalar(LoadCycles());
    const uint64_t round = turns->waited[core.Index()]++;
    TurnWait wait{turns, round * static_cast<uint64_t>(VectorCores()) + static_cast<uint64_t>(core.Index())};
    const auto reached = [](void *context) {
        const auto &expected = *static_cast<TurnWait *>(context);
        return expected.turns->next >= expected.number;
    };
    BlockUntil(reached, &wait, "WaitPreBlock", at);
    core.time.NotBefore(Pipe::S, turns->time, Pipe::MTE3);
    Order(core, turns, Pipe::S, false);
}

void TurnsNotify(const GlobalRef &workspace, const LocalRef &local, At at)
{
    Core &core = TheCore();
    Turns *turns = FindTurns(workspace, local, "NotifyNextBlock", at);
    if (turns == nullptr) {
        return;
    }
    core.time.DrainAll();
    core.time.Run(Pipe::MTE3, StoreCycles(), "NotifyNextBlock", at.line, at.file);
    Order(core, turns, Pipe::S, true);
    const uint64_t round = turns->notified[core.Index()]++;
    const uint64_t number = round * static_cast<uint64_t>(VectorCores()) + static_cast<uint64_t>(core.Index());
    if (turns->next != number) {
        ReportError("event-misuse", at,
                    "NotifyNextBlock is called out of turn by block %lld; call WaitPreBlock before it, once for each.",
                    static_cast<long long>(core.Index()));
    }
    turns->next = std::max(turns->next, number + 1);
    turns->time = std::max(turns->time, core.time.Ready(Pipe::MTE3) + LoadCycles());
    MarkProgress();
}

void GroupCheck(const uint8_t *workspace, uint32_t arrivers, uint32_t waiters, At at)
{
    BeginInstruction(Pipe::S, "GroupBarrier", at);
    if (reinterpret_cast<uintptr_t>(workspace) % kGroupSlot != 0 && !TheCore().timing) {
        const Allocation *block = Gm().Find(workspace);
        if (block != nullptr && static_cast<uint64_t>(workspace - block->base) % kGroupSlot != 0) {
            ReportError("alignment", at, "GroupBarrier needs its workspace at a multiple of 512 bytes.");
        }
    }
    if (arrivers == 0 || waiters == 0) {
        ReportError("param-limit", at, "GroupBarrier needs at least one core that arrives and one that waits.");
    }
}

namespace {

struct GroupArrival {
    Group *group;
    uint32_t arrivers;
    uint64_t round;
};

bool AllArrived(void *context)
{
    const auto &wait = *static_cast<GroupArrival *>(context);
    for (uint32_t i = 0; i < wait.arrivers; ++i) {
        const auto entry = wait.group->arrivals.find(i);
        if (entry == wait.group->arrivals.end() || entry->second.size() <= wait.round) {
            return false;
        }
    }
    return true;
}

bool ValidMember(uint32_t index, uint32_t members, const char *api, At at)
{
    BeginInstruction(Pipe::MTE3, api, at);
    if (index >= members) {
        ReportError("param-limit", at, "%s gets member %u of a group of %u.", api, index, members);
    }
    return index < members && OnVectorCore(api, at);
}

}  // namespace

void GroupArrive(const uint8_t *workspace, uint32_t arrivers, uint32_t index, At at)
{
    if (!ValidMember(index, arrivers, "GroupBarrier::Arrive", at)) {
        return;
    }
    Core &core = TheCore();
    core.time.DrainAll();
    core.time.Run(Pipe::MTE3, StoreCycles(), "Arrive", at.line, at.file);
    Group &group = TheState().groups[workspace];
    Order(core, &group, Pipe::S, true);
    group.arrivals[index].push_back(core.time.Ready(Pipe::MTE3));
    MarkProgress();
}

void GroupWait(const uint8_t *workspace, uint32_t arrivers, uint32_t waiters, uint32_t index, At at)
{
    if (!ValidMember(index, waiters, "GroupBarrier::Wait", at)) {
        return;
    }
    Core &core = TheCore();
    Group &group = TheState().groups[workspace];
    core.time.Scalar(LoadCycles());
    GroupArrival wait{&group, arrivers, group.waits[index]++};
    BlockUntil(AllArrived, &wait, "GroupBarrier::Wait", at);
    for (uint32_t i = 0; i < arrivers; ++i) {
        core.time.NotBefore(Pipe::S, group.arrivals[i][wait.round] + LoadCycles(), Pipe::MTE3);
    }
    Order(core, &group, Pipe::S, false);
}

}  // namespace evokernel::twin
