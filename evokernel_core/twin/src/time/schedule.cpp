#include "time/schedule.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <unordered_map>
#include <vector>

#include "blocks.h"
#include "fiber.h"
#include "matmul/serve.h"
#include "synchronisation/race.h"
#include "time/shared_port.h"

namespace evokernel::twin {

namespace {

constexpr int kMaxIdleSweeps = 20000;  // sweeps in which cores only poll, before that is called a deadlock

enum class State : uint8_t { Free, Running, Turn, Blocked, Yielded, Ended };

struct Worker {
    Core core;
    Fiber fiber;
    State state = State::Free;
    bool (*ready)(void *) = nullptr;
    void *context = nullptr;
    const char *what = "";
    At at{"", 0};
};

class Scheduler {
public:
    bool Run(const Crew &crew);
    void Wait(State state, bool (*ready)(void *), void *context, const char *what, At at);
    [[noreturn]] void Finish();
    [[noreturn]] void Abandon();

    const Crew *crew = nullptr;
    Worker *running = nullptr;
    uint64_t progress = 0;
    std::vector<Worker *> live;

private:
    void StartBlock(uint32_t block);
    Worker &Take(CoreKind kind);
    void Start(Worker &worker, CoreKind kind, uint32_t block, int sub);
    void Continue(Worker &worker);
    void StartBlocks();
    double Horizon() const;
    bool Sweep();
    void Retire();
    void ReportDeadlock();
    uint32_t LiveBlocks() const;

    static void Body(void *worker);

    std::vector<std::unique_ptr<Worker>> all_;
    std::vector<Worker *> free_[2];
    std::unordered_map<uint32_t, SharedPort> ports_;  // of blocks with cores of both kinds
    uint32_t next_block_ = 0;
    uint32_t at_once_ = 1;
    double last_end_ = 0;  // the launch's cycle in which a core last ended
    int idle_sweeps_ = 0;
    uint64_t seen_progress_ = 0;
    bool abandoned_ = false;
};

Scheduler &TheScheduler()
{
    static Scheduler scheduler;
    return scheduler;
}

Wording NameOf(const Core &core)
{
    const auto index = static_cast<unsigned long long>(core.Index());
    return core.kind == CoreKind::Cube ? Wording("cube core %llu", index) : Wording("vector core %llu", index);
}

// Where a core waits; library code without a place of its own stands for the core's latest call.
At PlaceOf(const Worker &worker) { return worker.at.line > 0 ? worker.at : worker.core.last_at; }

Worker &Scheduler::Take(CoreKind kind)
{
    std::vector<Worker *> &spare = free_[static_cast<int>(kind)];
    if (spare.empty()) {
        all_.push_back(std::make_unique<Worker>());
        return *all_.back();
    }
    Worker &worker = *spare.back();
    spare.pop_back();
    return worker;
}

void Scheduler::Body(void *argument)
{
    auto &worker = *static_cast<Worker *>(argument);
    Scheduler &self = TheScheduler();
    const bool cube = worker.core.kind == CoreKind::Cube;
    const KernelBody body = cube ? self.crew->cube : self.crew->vector;
    try {
        if (body != nullptr) {
            body(self.crew->closure);
        }
        if (cube && worker.core.subs > 0) {
            ServeVectorCores();
        }
    } catch (const std::bad_alloc &) {
        std::fprintf(stderr, "bad_alloc: the kernel's process is out of memory\n");
        std::abort();
    } catch (const std::exception &error) {
        ReportError("crash", worker.core.last_at, "The kernel throws %s; device code has no exceptions.", error.what());
        self.abandoned_ = true;
    } catch (...) {
        ReportError("crash", worker.core.last_at, "The kernel throws; device code has no exceptions.");
        self.abandoned_ = true;
    }
}

void Scheduler::Start(Worker &worker, CoreKind kind, uint32_t block, int sub)
{
    CorePlace place;
    place.kind = kind;
    place.block = block;
    place.blocks = crew->blocks;
    place.sub = sub;
    place.subs = crew->kind.vector;
    place.cubes = crew->kind.cube;
    place.base = block < at_once_ ? 0 : last_end_;
    worker.core.Begin(place, crew->active_blocks, crew->timing);
    if (place.cubes > 0 && place.subs > 0) {
        worker.core.time.Share(&ports_[block], kind == CoreKind::Cube ? place.cubes : place.subs);
    }
    if (!worker.fiber.Prepare(&Scheduler::Body, &worker, blocks::Undefined())) {
        std::fprintf(stderr, "There is no memory for the stack of %s.\n", NameOf(worker.core).c_str());
        std::abort();
    }
    crew->begin(worker.core);
    live.push_back(&worker);
}

void Scheduler::Continue(Worker &worker)
{
    worker.state = State::Running;
    running = &worker;
    current_core = &worker.core;
    blocks::Enter(worker.fiber.Top());
    worker.fiber.Resume();
    running = nullptr;
    current_core = &HostCore();
    const bool done = worker.fiber.Done();
    if (done) {
        worker.core.time.TakeBlocks();
    }
    blocks::Enter(0);
    if (done) {
        worker.state = State::Ended;
        ++progress;
        last_end_ = worker.core.base + worker.core.time.End();
        crew->end(worker.core);
    }
}

void Scheduler::StartBlock(uint32_t block)
{
    const size_t first = live.size();
    for (int i = 0; i < crew->kind.cube; ++i) {
        Start(Take(CoreKind::Cube), CoreKind::Cube, block, i);
    }
    for (int i = 0; i < crew->kind.vector; ++i) {
        Start(Take(CoreKind::Vector), CoreKind::Vector, block, i);
    }
    const size_t last = live.size();
    for (size_t i = first; i < last && !abandoned_; ++i) {
        Continue(*live[i]);
    }
}

// Gives back the cores of blocks that have ended altogether.
void Scheduler::Retire()
{
    const size_t per_block = static_cast<size_t>(crew->kind.cube + crew->kind.vector);
    size_t kept = 0;
    for (size_t i = 0; i < live.size(); i += per_block) {
        const auto first = live.begin() + static_cast<std::ptrdiff_t>(i);
        const bool ended = std::all_of(first, first + static_cast<std::ptrdiff_t>(per_block),
                                       [](const Worker *worker) { return worker->state == State::Ended; });
        if (ended) {
            ports_.erase(static_cast<uint32_t>(live[i]->core.block));
        }
        for (size_t j = i; j < i + per_block; ++j) {
            if (ended) {
                live[j]->state = State::Free;
                free_[static_cast<int>(live[j]->core.kind)].push_back(live[j]);
            } else {
                live[kept++] = live[j];
            }
        }
    }
    live.resize(kept);
}

uint32_t Scheduler::LiveBlocks() const
{
    return static_cast<uint32_t>(live.size()) / static_cast<uint32_t>(crew->kind.cube + crew->kind.vector);
}

void Scheduler::StartBlocks()
{
    Retire();
    while (!abandoned_ && next_block_ < crew->blocks && LiveBlocks() < at_once_) {
        StartBlock(next_block_++);
        Retire();
    }
}

// The end of the turn of the core that is furthest behind.
double Scheduler::Horizon() const
{
    double horizon = std::numeric_limits<double>::infinity();
    for (const Worker *worker : live) {
        horizon = worker->state == State::Turn ? std::min(horizon, worker->core.turn_ends) : horizon;
    }
    return horizon;
}

// Lets every core go on that can; false where none does anything but poll.
bool Scheduler::Sweep()
{
    bool moved = false;
    const double horizon = Horizon();
    for (size_t i = 0; i < live.size() && !abandoned_; ++i) {
        Worker &worker = *live[i];
        if (worker.state == State::Blocked && worker.ready(worker.context)) {
            moved = true;
            Continue(worker);
        } else if (worker.state == State::Turn) {
            moved = true;
            if (worker.core.turn_ends <= horizon) {
                Continue(worker);
            }
        } else if (worker.state == State::Yielded) {
            const uint64_t before = progress;
            Continue(worker);
            moved = moved || worker.state != State::Yielded || progress != before;
        }
    }
    return moved;
}

void Scheduler::ReportDeadlock()
{
    Wording list;
    int waiting = 0;
    const Worker *first = nullptr;
    for (const Worker *worker : live) {
        const bool waits = worker->state == State::Blocked && worker->what != kServing;
        if (!waits && worker->state != State::Yielded) {
            continue;
        }
        first = first == nullptr ? worker : first;
        if (++waiting <= 4) {
            const Wording one("%s waits in %s (line %d)", NameOf(worker->core).c_str(), worker->what, PlaceOf(*worker).line);
            list = waiting == 1 ? one : Wording("%s, %s", list.c_str(), one.c_str());
        }
    }
    if (waiting > 4) {
        list = Wording("%s and %d more", list.c_str(), waiting - 4);
    }
    const Wording rest = next_block_ >= crew->blocks
                           ? Wording()
                           : Wording("; %lld of %lld blocks cannot start before one of them ends, because the chip runs "
                                   "%lld at a time: launch at most that many",
                                   static_cast<long long>(crew->blocks - next_block_),
                                   static_cast<long long>(crew->blocks), static_cast<long long>(at_once_));
    if (first == nullptr) {
        first = live.front();
        list = Wording("%s waits in %s", NameOf(first->core).c_str(), first->what);
    }
    ReportError("deadlock", PlaceOf(*first), "No core can go on: %s%s.", list.c_str(), rest.c_str());
}

bool Scheduler::Run(const Crew &plan)
{
    crew = &plan;
    next_block_ = 0;
    last_end_ = 0;
    at_once_ = std::max<uint32_t>(1, BlocksAtOnce(plan.kind));
    idle_sweeps_ = 0;
    abandoned_ = false;
    ClearPosts();
    while (true) {
        StartBlocks();
        if (abandoned_ || live.empty()) {
            break;
        }
        idle_sweeps_ = Sweep() ? 0 : idle_sweeps_ + 1;
        const bool polls = std::any_of(live.begin(), live.end(),
                                       [](const Worker *worker) { return worker->state == State::Yielded; });
        const bool stuck = idle_sweeps_ > (polls ? kMaxIdleSweeps : 0);
        if (stuck && !abandoned_) {
            ReportDeadlock();
            abandoned_ = true;
        }
    }
    for (Worker *worker : live) {
        worker->state = State::Free;
        free_[static_cast<int>(worker->core.kind)].push_back(worker);
    }
    live.clear();
    ports_.clear();
    ClearPosts();
    crew = nullptr;
    return !abandoned_;
}

void Scheduler::Wait(State state, bool (*ready)(void *), void *context, const char *what, At at)
{
    Worker &worker = *running;
    worker.core.time.TakeBlocks();
    worker.state = state;
    worker.ready = ready;
    worker.context = context;
    worker.what = what;
    worker.at = at;
    worker.fiber.Leave();
}

void Scheduler::Finish() { running->fiber.Quit(); }

void Scheduler::Abandon()
{
    abandoned_ = true;
    Finish();
}

}  // namespace

uint32_t BlocksAtOnce(LaunchKind kind)
{
    const Chip &chip = CurrentChip();
    const int by_vector = kind.vector > 0 ? chip.aiv / kind.vector : chip.aic;
    const int by_cube = kind.cube > 0 ? chip.aic / kind.cube : by_vector;
    return static_cast<uint32_t>(std::max(1, std::min(by_vector, by_cube)));
}

bool RunCrew(const Crew &crew) { return TheScheduler().Run(crew); }

bool InKernel() { return TheScheduler().running != nullptr; }

const Crew &CurrentCrew() { return *TheScheduler().crew; }

void BlockUntil(bool (*ready)(void *), void *context, const char *what, At at)
{
    if (!ready(context)) {
        TheScheduler().Wait(State::Blocked, ready, context, what, at);
    }
}

void YieldCore(At at)
{
    if (InKernel()) {
        TheScheduler().Wait(State::Yielded, nullptr, nullptr, Word("a loop that reads memory again and again"), at);
    }
}

void EndTurn(double now, At at)
{
    Core &core = TheCore();
    core.turn_ends = (static_cast<double>(static_cast<int64_t>(now / kTurn)) + 1) * kTurn;
    if (InKernel()) {
        TheScheduler().Wait(State::Turn, nullptr, nullptr, Word("its turn"), at);
    }
}

void MarkProgress() { ++TheScheduler().progress; }

void EndCore()
{
    if (!InKernel()) {
        std::abort();
    }
    TheScheduler().Finish();
}

void GiveUpLaunch()
{
    if (!InKernel()) {
        std::abort();
    }
    TheScheduler().Abandon();
}

Core *PeerOf(const Core &core, CoreKind kind, int sub)
{
    for (Worker *worker : TheScheduler().live) {
        if (worker->core.block == core.block && worker->core.kind == kind && worker->core.sub == sub) {
            return &worker->core;
        }
    }
    return nullptr;
}

bool VectorCoresDone(const Core &core)
{
    for (const Worker *worker : TheScheduler().live) {
        if (worker->core.block == core.block && worker->core.kind == CoreKind::Vector &&
            worker->state != State::Ended) {
            return false;
        }
    }
    return true;
}

bool StackOverrun(const void *address)
{
    const Worker *worker = TheScheduler().running;
    return worker != nullptr && worker->fiber.InGuard(address);
}

}  // namespace evokernel::twin
