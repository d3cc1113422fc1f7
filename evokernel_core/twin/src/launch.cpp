// Runs the blocks of a launch and puts their times together.
#include "launch.h"

#include <algorithm>
#include <cstdio>

#include "core.h"
#include "evokernel/twin/launch.h"
#include "race.h"
#include "schedule.h"
#include "traffic.h"

namespace evokernel::twin {

namespace {

struct BlockTime {
    double cycles = 0;
    PipeUse use[kPipes];
};

BlockTime TimeOf(const Core &core)
{
    BlockTime time;
    time.cycles = core.time.End();
    for (int p = 0; p < kPipes; ++p) {
        time.use[p] = core.time.Use(static_cast<Pipe>(p));
    }
    return time;
}

std::string MainStall(const PipeUse &use, double cycles)
{
    double idle = cycles - use.busy;
    if (idle < 0.05 * cycles) {
        return "";
    }
    int cause = 0;
    for (int p = 1; p < kPipes; ++p) {
        cause = use.idle_for[p] > use.idle_for[cause] ? p : cause;
    }
    const double share = 100 * use.idle_for[cause] / cycles;
    if (share < 5) {
        return "";
    }
    char text[96];
    std::snprintf(text, sizeof(text), "idle %.0f %% of the time waiting for %s", share,
                  cause == 0 ? "the scalar unit to issue" : PipeName(static_cast<Pipe>(cause)));
    return text;
}

std::string CopySizes(const PipeUse &use)
{
    constexpr double efficient = 16 * 1024;  // documentation: copies of at least 16 KB reach the full rate
    if (use.instructions == 0) {
        return "";
    }
    const double bytes = static_cast<double>(use.bytes) / static_cast<double>(use.instructions);
    if (bytes >= 0.99 * efficient || bytes == 0) {
        return "";
    }
    char text[96];
    std::snprintf(text, sizeof(text), "; its copies average %.1f KB, below the efficient 16 KB", bytes / 1024);
    return text;
}

// The scalar unit counts as the bottleneck only where it hardly ever waits for another pipe.
int BusiestPipe(const BlockTime &time)
{
    int busiest = 1;
    for (int p = 2; p < kPipes; ++p) {
        busiest = time.use[p].busy > time.use[busiest].busy ? p : busiest;
    }
    const double scalar = time.use[0].busy;
    return scalar > time.use[busiest].busy && scalar > 0.5 * time.cycles ? 0 : busiest;
}

// One sentence: the busiest pipe, what it waits for, and what the vector pipe waits for.
std::string Bottleneck(const BlockTime &time)
{
    const int busiest = BusiestPipe(time);
    const double share = time.cycles > 0 ? 100 * time.use[busiest].busy / time.cycles : 0;
    char head[64];
    std::snprintf(head, sizeof(head), "%s-bound: %.0f %% busy", PipeName(static_cast<Pipe>(busiest)), share);
    std::string text = head;
    const auto pipe = static_cast<Pipe>(busiest);
    const std::string stall = MainStall(time.use[busiest], time.cycles);
    if (!stall.empty()) {
        text += ", " + stall;
    }
    if (pipe == Pipe::MTE2 || pipe == Pipe::MTE3) {
        text += CopySizes(time.use[busiest]);
        const PipeUse &vector = time.use[static_cast<int>(Pipe::V)];
        const std::string waiting = vector.instructions > 0 ? MainStall(vector, time.cycles) : "";
        text += waiting.empty() ? "" : "; V " + waiting;
    }
    return text + ".";
}

// Blocks go round-robin to the cores; the launch ends with its slowest core.
double SlowestCore(const std::vector<BlockTime> &times, int cores)
{
    std::vector<double> total(static_cast<size_t>(std::max(1, cores)), 0.0);
    for (size_t block = 0; block < times.size(); ++block) {
        total[block % total.size()] += times[block].cycles;
    }
    return *std::max_element(total.begin(), total.end());
}

// Collects what each core did as it ends: a block lasts as long as its slowest core.
class Collector {
public:
    Collector(uint32_t blocks, bool trace, LaunchReport *report) : times_(blocks), trace_(trace), report_(report) {}

    void Begin(Core &core)
    {
        BeginL2Block(core);
        core.events.clear();
        core.time.Trace(trace_ ? &core.events : nullptr);
        if (race::installed && !core.timing) {
            race::BeginBlock(core);
        }
    }

    void End(Core &core)
    {
        core.End();
        EndL2Block(core);
        if (race::installed && !core.timing) {
            race::EndBlock(core);
        }
        const BlockTime time = TimeOf(core);
        const auto block = static_cast<size_t>(core.block);
        times_[block].cycles = std::max(times_[block].cycles, time.cycles);
        if (!any_ || time.cycles > slowest_.cycles) {
            any_ = true;
            slowest_ = time;
            report_->slowest = static_cast<uint32_t>(core.block);
            report_->events.swap(core.events);
        }
        core.time.Trace(nullptr);
    }

    const std::vector<BlockTime> &Times() const { return times_; }
    const BlockTime &Slowest() const { return slowest_; }

private:
    std::vector<BlockTime> times_;
    BlockTime slowest_;
    bool any_ = false;
    bool trace_;
    LaunchReport *report_;
};

bool ValidKind(const char *name, LaunchKind kind, uint32_t blocks)
{
    if (blocks == 0) {
        ReportError("queue-misuse", At{"", 0}, "%s is launched with 0 blocks.", name);
        return false;
    }
    if (kind.cube < 0 || kind.cube > 1 || kind.vector < 0 || kind.vector > 2 || kind.cube + kind.vector == 0) {
        ReportError("wrong-core", At{"", 0}, "%s is launched with %d cube and %d vector cores a block; the chip has "
                    "1 cube core and 2 vector cores together.", name, kind.cube, kind.vector);
        return false;
    }
    return true;
}

}  // namespace

Session &TheSession()
{
    static Session session;
    return session;
}

void LaunchBlocks(const char *name, LaunchKind kind, uint32_t blocks, void *, KernelBody vector, KernelBody cube,
                  void *closure)
{
    Session &session = TheSession();
    const Chip &chip = CurrentChip();
    if (!ValidKind(name, kind, blocks)) {
        return;
    }
    const uint32_t at_once = BlocksAtOnce(kind);
    const int active = static_cast<int>(std::min(blocks, at_once));
    Crew crew;
    crew.name = name;
    crew.kind = kind;
    crew.blocks = blocks;
    crew.vector = vector;
    crew.cube = cube;
    crew.closure = closure;
    crew.active_blocks = active;
    crew.timing = session.timing;
    BeginL2Launch(active, kind);
    LaunchReport report;
    report.kernel = name;
    report.blocks = blocks;
    Collector collector(blocks, session.trace, &report);
    crew.begin = [&collector](Core &core) { collector.Begin(core); };
    crew.end = [&collector](Core &core) { collector.End(core); };
    RunCrew(crew);
    EndL2Launch();
    if (race::installed && !session.timing) {
        race::EndLaunch();
    }
    const BlockTime &slowest = collector.Slowest();
    report.latency_us =
        chip.launch_us + chip.per_block_us * active + SlowestCore(collector.Times(), static_cast<int>(at_once)) / chip.mhz;
    for (int p = 0; p < kPipes; ++p) {
        report.busy_us[p] = slowest.use[p].busy / chip.mhz;
    }
    report.bottleneck = Bottleneck(slowest);
    session.launches.push_back(std::move(report));
}

void LaunchBlocks(const char *name, uint32_t blocks, void *stream, KernelBody body, void *closure)
{
    LaunchBlocks(name, LaunchKind{}, blocks, stream, body, nullptr, closure);
}

}  // namespace evokernel::twin
