#include "synchronisation/race.h"

#include <algorithm>

#include "synchronisation/race_state.h"

namespace evokernel::twin::race {

bool installed = false;

Detector &TheDetector()
{
    static Detector detector;
    return detector;
}

bool &Wanted()
{
    static bool wanted = true;
    return wanted;
}

void Install(bool listen, bool auto_sync)
{
    installed = listen && Wanted();
    TheDetector().auto_sync = auto_sync;
}

uint32_t SiteOf(const char *api, At at)
{
    struct Key {
        const char *api;
        const char *file;
        int line;
        bool operator==(const Key &other) const
        {
            return api == other.api && file == other.file && line == other.line;
        }
    };
    struct Hash {
        size_t operator()(const Key &key) const
        {
            return reinterpret_cast<uintptr_t>(key.api) * 31 + reinterpret_cast<uintptr_t>(key.file) * 7 +
                   static_cast<size_t>(key.line) * 2654435761U;
        }
    };
    static std::unordered_map<Key, uint32_t, Hash> known;
    std::vector<Site> &sites = TheDetector().sites;
    const auto [entry, fresh] = known.try_emplace(Key{api, at.file, at.line}, static_cast<uint32_t>(sites.size()));
    if (fresh) {
        sites.push_back(Site{api, at});
    }
    return entry->second;
}

namespace {

// Instructions of the pipe see the results of earlier ones by themselves: the scalar unit, and the
// vector unit where the compiler puts barriers between dependent instructions.
bool OrderedInItself(const CoreState &core, Pipe pipe)
{
    return pipe == Pipe::S || (pipe == Pipe::V && core.vector && TheDetector().auto_sync);
}

// The compiler puts flags between the scalar unit and the vector and copy pipes of a vector core.
bool InsertedByCompiler(const CoreState &core, Pipe from, Pipe to)
{
    if (!core.vector || !TheDetector().auto_sync || (from == Pipe::S) == (to == Pipe::S)) {
        return false;
    }
    const Pipe other = from == Pipe::S ? to : from;
    return other == Pipe::V || other == Pipe::MTE2 || other == Pipe::MTE3;
}

// Whether the current instruction comes after an earlier access. `listed`: the compiler looks at the
// scalar calls among the two.
bool InOrder(CoreState &core, const Access &earlier, bool wrote, bool listed)
{
    const Access &current = core.current;
    if (earlier.core != core.id) {
        return Over(core, earlier);
    }
    if (earlier.serial == current.serial || (earlier.unit && current.unit)) {
        return true;
    }
    if (earlier.pipe == current.pipe) {
        return !wrote || OrderedInItself(core, current.pipe) || core.pipelined || Over(core, earlier);
    }
    if (Over(core, earlier)) {
        return true;
    }
    if (listed && InsertedByCompiler(core, earlier.pipe, current.pipe)) {
        core.Order(earlier.pipe, current.pipe);
        return true;
    }
    return false;
}

// Whether the scalar unit reads what the vector unit wrote before a PipeBarrier<PIPE_V>, which does not hold it up:
// nothing but a barrier that the compiler inserts does.
bool BehindVectorBarrier(const CoreState &core, const Access &earlier)
{
    return core.current.pipe == Pipe::S && earlier.pipe == Pipe::V && earlier.core == core.id &&
           earlier.epoch <= core.vector_barrier && !Over(core, earlier) &&
           InsertedByCompiler(core, earlier.pipe, core.current.pipe);
}

// What another core had done when it wrote what this core polled.
void LearnFromWriter(CoreState &core, const Access &writer)
{
    const auto position = TheDetector().live.find(writer.core);
    Knowledge knowledge{writer.core, {}, nullptr};
    if (position == TheDetector().live.end()) {
        knowledge.clock.fill(~uint32_t{0});
    } else {
        CoreState &other = *position->second;
        other.Inherit(writer.pipe);
        knowledge.clock = other.known[static_cast<int>(writer.pipe)];
        knowledge.clock[static_cast<size_t>(writer.pipe)] = writer.epoch;
        knowledge.remote = other.remote;
    }
    core.Take(knowledge);
    core.Inherit(core.current.pipe);
}

struct GlobalTouch {
    bool write;
    bool atomic;
    bool polls;
};

void CheckGlobal(CoreState &core, const Access &earlier, bool wrote, GlobalTouch touch, uint64_t start, uint64_t end)
{
    const bool scalar_store = (core.current.pipe == Pipe::S && touch.write) || (earlier.pipe == Pipe::S && wrote);
    const bool own_store = earlier.core == core.id && earlier.pipe == Pipe::S && wrote;
    if (own_store || InOrder(core, earlier, wrote, !scalar_store)) {
        return;  // what becomes of the core's own scalar stores is up to its data cache
    }
    if (touch.polls && wrote && earlier.core != core.id) {
        LearnFromWriter(core, earlier);
        return;
    }
    if (touch.write && !earlier.atomic && !touch.atomic) {
        const auto *place = reinterpret_cast<const uint8_t *>(static_cast<uintptr_t>(start));
        Doubtful(core, Doubt{earlier, wrote, start, end, kGlobal, place, {}});
        return;
    }
    (earlier.core == core.id ? ReportSync : ReportRace)(core, earlier, ClashOf(wrote, touch.write),
                                                        GlobalBytes(start, end), Weight::Wrong);
}

}  // namespace

void Instruction(Core &core, Pipe pipe, const char *api, At at)
{
    CoreState *state = core.race;
    if (state == nullptr) {
        return;
    }
    Settle(*state);
    if (state->strict > 0) {
        state->OrderAll();
    }
    state->Inherit(pipe);
    state->pipelined = false;
    state->uncached = false;
    Access &current = state->current;
    current.core = state->id;
    current.pipe = pipe;
    current.epoch = state->now[static_cast<int>(pipe)];
    current.serial = ++TheDetector().serial;
    current.site = SiteOf(api, at);
    current.atomic = false;
    current.unit = false;
}

void Pipelined(Core &core)
{
    if (core.race != nullptr) {
        core.race->pipelined = true;
    }
}

void UnitFlagged(Core &core)
{
    if (core.race != nullptr) {
        core.race->current.unit = true;
    }
}

void Uncached(Core &core)
{
    if (core.race != nullptr) {
        core.race->uncached = true;
    }
}

namespace {

// An instruction in place: what it reads was in doubt when its destination was looked at.
void ReadInDoubt(CoreState &core, Space space, uint64_t start, uint64_t end)
{
    for (const Doubt &doubt : core.doubts) {
        if (doubt.wrote && doubt.space == static_cast<int>(space) && doubt.start < end && start < doubt.end) {
            const Wording bytes = LocalBytes(space, std::max(start, doubt.start), std::min(end, doubt.end));
            ReportSync(core, doubt.earlier, Clash::ReadAfterWrite, bytes);
        }
    }
}

}  // namespace

void Local(Core &core, Space space, uint32_t address, uint64_t bytes, bool write)
{
    CoreState *state = core.race;
    if (state == nullptr) {
        return;
    }
    Shadow &shadow = state->local[static_cast<int>(space)];
    const auto check = [&](const Access &earlier, bool wrote, uint64_t start, uint64_t end) {
        if (earlier.Nobody()) {
            return;
        }
        if (!write && wrote && BehindVectorBarrier(*state, earlier)) {
            ReportInserted(*state, earlier, LocalBytes(space, start, end));
        }
        if (InOrder(*state, earlier, wrote, true)) {
            return;
        }
        if (write && (wrote || state->vector)) {
            const int number = static_cast<int>(space);
            Doubtful(*state, Doubt{earlier, wrote, start, end, number, core.memory[number].data + start, {}});
        } else {
            ReportSync(*state, earlier, ClashOf(wrote, write), LocalBytes(space, start, end));
        }
    };
    shadow.Look(address, address + bytes, [&](uint64_t start, uint64_t end, const Cell &cell) {
        check(cell.writer, true, start, end);
        for (size_t i = 0; write && i < cell.others.Size(); ++i) {
            check(cell.others[i], false, start, end);
        }
    });
    if (!write) {
        ReadInDoubt(*state, space, address, address + bytes);
    }
    if (write) {
        shadow.Write(address, address + bytes, state->current, OrderedInItself(*state, state->current.pipe));
    } else {
        shadow.Add(address, address + bytes, state->current);
    }
}

void Global(Core &core, const uint8_t *address, uint64_t bytes, bool write, bool atomic)
{
    CoreState *state = core.race;
    const Allocation *block = state == nullptr ? nullptr : Gm().Find(address);
    if (block == nullptr || block->kind == Kind::Input) {
        return;  // nobody may write an input
    }
    const auto first = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(address));
    const GlobalTouch touch{write, atomic, VisitCaches(*state, first, first + bytes, write)};
    Shadow &shadow = TheDetector().global;
    shadow.Look(first, first + bytes, [&](uint64_t start, uint64_t end, const Cell &cell) {
        if (!cell.writer.Nobody()) {
            CheckGlobal(*state, cell.writer, true, touch, start, end);
        }
        for (size_t i = 0; i < cell.others.Size(); ++i) {
            const Access &other = cell.others[i];
            if (other.atomic ? !atomic : write) {
                CheckGlobal(*state, other, other.atomic, touch, start, end);
            }
        }
    });
    Access access = state->current;
    access.atomic = atomic;
    if (write && !atomic) {
        shadow.Write(first, first + bytes, access, OrderedInItself(*state, access.pipe));
    } else if (!touch.polls) {
        shadow.Add(first, first + bytes, access);
    }
}

void Flag(Core &core, Pipe from, Pipe to, int64_t id, bool set)
{
    CoreState *state = core.race;
    if (state == nullptr || (from == to && id >= kQueueIds)) {
        return;  // queues order different pipes only
    }
    Settle(*state);
    const int64_t key = (id * kPipes + static_cast<int>(from)) * kPipes + static_cast<int>(to);
    if (set) {
        state->flags[key] = state->Release(from);
        return;
    }
    const auto position = state->flags.find(key);
    if (position != state->flags.end()) {
        state->Acquire(to, position->second);
    }
}

void Barrier(Core &core, int pipe)
{
    CoreState *state = core.race;
    if (state == nullptr) {
        return;
    }
    Settle(*state);
    if (pipe == kAllPipes) {
        state->OrderAll();
    } else {
        if (static_cast<Pipe>(pipe) == Pipe::V) {
            state->vector_barrier = state->now[static_cast<size_t>(Pipe::V)];
        }
        state->Order(static_cast<Pipe>(pipe), static_cast<Pipe>(pipe));
    }
}

void CrossCore(Core &core, const void *channel, Pipe pipe, bool release)
{
    if (core.race == nullptr) {
        return;
    }
    Settle(*core.race);
    if (release) {
        TheDetector().channels.Release(channel, core.race->Publish(pipe));
    } else {
        TheDetector().channels.Acquire(channel, *core.race);
    }
}

std::shared_ptr<const Knowledge> Share(Core &core)
{
    return core.race == nullptr ? nullptr : std::make_shared<Knowledge>(core.race->Publish(Pipe::S));
}

void Learn(Core &core, const std::shared_ptr<const Knowledge> &knowledge)
{
    if (core.race != nullptr && knowledge != nullptr) {
        core.race->Take(*knowledge);
    }
}

Ordered::Ordered(Core &core) : core_(core)
{
    if (core_.race != nullptr) {
        ++core_.race->strict;
    }
}

Ordered::~Ordered()
{
    if (core_.race != nullptr) {
        core_.race->OrderAll();
        --core_.race->strict;
    }
}

void BeginBlock(Core &core)
{
    Detector &detector = TheDetector();
    std::unique_ptr<CoreState> state;
    if (detector.idle.empty()) {
        state = std::make_unique<CoreState>();
    } else {
        state = std::move(detector.idle.back());
        detector.idle.pop_back();
        *state = CoreState();
    }
    state->id = static_cast<uint32_t>(detector.names.size());
    state->vector = core.kind == CoreKind::Vector;
    state->now.fill(1);
    detector.names.push_back(CoreName{core.kind, core.Index()});
    core.race = state.release();
    detector.live[core.race->id] = core.race;
}

void EndBlock(Core &core)
{
    if (core.race == nullptr) {
        return;
    }
    Settle(*core.race);
    TheDetector().live.erase(core.race->id);
    TheDetector().idle.emplace_back(core.race);
    core.race = nullptr;
}

// A launch that was given up leaves cores behind that never ended.
void EndLaunch()
{
    Detector &detector = TheDetector();
    for (const auto &[id, state] : detector.live) {
        detector.idle.emplace_back(state);
    }
    detector.live.clear();
    detector.names.clear();
    detector.global.Clear();
    detector.channels.Clear();
    ForgetCaches();
}

}  // namespace evokernel::twin::race
