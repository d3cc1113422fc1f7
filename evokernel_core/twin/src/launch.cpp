// Runs the blocks of a launch one after another and puts their times together.
#include "launch.h"

#include <algorithm>
#include <cstdio>

#include "core.h"
#include "evokernel/twin/launch.h"

namespace evokernel::twin {

namespace {

bool inside = false;

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

void RunBlock(uint32_t block, uint32_t blocks, int active, bool timing, KernelBody body, void *closure)
{
    Core &core = TheCore();
    core.Begin(block, blocks, active, timing);
    inside = true;
    body(closure);
    inside = false;
}

// In timing mode the first block runs once more before the others, to learn how much of the traffic
// passes through L2: written data stays there where all of it fits.
void Probe(uint32_t blocks, int active, KernelBody body, void *closure)
{
    Core &core = TheCore();
    const uint64_t counted = InstructionCount();
    core.time.Trace(nullptr);
    L2() = L2State{true, active};
    RunBlock(0, blocks, active, true, body, closure);
    const uint64_t estimate = std::min(core.cached_bytes * blocks, Gm().TotalBytes());
    L2().writes_stay = estimate <= CurrentChip().l2_bytes;
    Gm().ForgetLines();
    InstructionCount() = counted;
}

}  // namespace

bool InKernel() { return inside; }

Session &TheSession()
{
    static Session session;
    return session;
}

void LaunchBlocks(const char *name, uint32_t blocks, void *, KernelBody body, void *closure)
{
    Session &session = TheSession();
    const Chip &chip = CurrentChip();
    Core &core = TheCore();
    const int active = static_cast<int>(std::min<uint32_t>(blocks, static_cast<uint32_t>(chip.aiv)));
    if (blocks == 0) {
        ReportError("queue-misuse", At{"", 0}, "%s is launched with 0 blocks.", name);
        return;
    }
    Gm().ForgetLines();
    L2() = L2State{Gm().TotalBytes() <= chip.l2_bytes, active};
    if (session.timing) {
        Probe(blocks, active, body, closure);
    }
    LaunchReport report;
    report.kernel = name;
    report.blocks = blocks;
    std::vector<BlockTime> times(blocks);
    std::vector<TraceEvent> events;
    for (uint32_t block = 0; block < blocks; ++block) {
        events.clear();
        core.time.Trace(session.trace ? &events : nullptr);
        RunBlock(block, blocks, active, session.timing, body, closure);
        core.End();
        times[block] = TimeOf(core);
        if (block == 0 || times[block].cycles > times[report.slowest].cycles) {
            report.slowest = block;
            report.events.swap(events);
        }
    }
    core.time.Trace(nullptr);
    const BlockTime &slowest = times[report.slowest];
    report.latency_us = chip.launch_us + chip.per_block_us * active + SlowestCore(times, chip.aiv) / chip.mhz;
    for (int p = 0; p < kPipes; ++p) {
        report.busy_us[p] = slowest.use[p].busy / chip.mhz;
    }
    report.bottleneck = Bottleneck(slowest);
    session.launches.push_back(std::move(report));
}

}  // namespace evokernel::twin
