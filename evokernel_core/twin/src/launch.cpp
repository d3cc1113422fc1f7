// Runs the blocks of a launch and puts their times together.
#include "launch.h"

#include <algorithm>

#include "blocks.h"
#include "core.h"
#include "crash.h"
#include "evokernel/twin/launch.h"
#include "synchronisation/cross_core.h"
#include "synchronisation/race.h"
#include "time/schedule.h"

namespace evokernel::twin {

namespace {

CoreTime TimeOf(const Core &core)
{
    CoreTime time;
    time.cycles = core.time.End();
    for (int p = 0; p < kPipes; ++p) {
        time.use[p] = core.time.Use(static_cast<Pipe>(p));
        time.lines[p] = core.time.Lines(static_cast<Pipe>(p));
    }
    return time;
}

// Blocks go round-robin to the cores; the launch ends with its slowest core. `balance`: the mean over all cores as
// a share of it.
double SlowestCore(const std::vector<CoreTime> &times, int cores, double *balance)
{
    std::vector<double> total(static_cast<size_t>(std::max(1, cores)), 0.0);
    double sum = 0;
    for (size_t block = 0; block < times.size(); ++block) {
        total[block % total.size()] += times[block].cycles;
        sum += times[block].cycles;
    }
    const double slowest = *std::max_element(total.begin(), total.end());
    *balance = slowest > 0 ? sum / (slowest * static_cast<double>(total.size())) : 1;
    return slowest;
}

// Collects what each core did as it ends: a block lasts as long as its slowest core.
class Collector {
public:
    Collector(uint32_t blocks, bool trace, LaunchReport *report) : times_(blocks), trace_(trace), report_(report) {}

    void Begin(Core &core)
    {
        core.events.clear();
        core.time.Trace(trace_ ? &core.events : nullptr);
        if (race::installed && !core.timing) {
            race::BeginBlock(core);
        }
    }

    void End(Core &core)
    {
        core.End();
        if (race::installed && !core.timing) {
            race::EndBlock(core);
        }
        const CoreTime time = TimeOf(core);
        AddWork(time);
        const auto block = static_cast<size_t>(core.block);
        times_[block].cycles = std::max(times_[block].cycles, time.cycles);
        if (!any_ || time.cycles > latest_) {
            any_ = true;
            latest_ = time.cycles;
            report_->slowest = static_cast<uint32_t>(core.block);
        }
        CoreTime &slowest = slowest_[core.kind == CoreKind::Cube ? 1 : 0];
        // In a mixed launch all cores end together where the kernel ends with a barrier.
        const bool mixed = core.cubes > 0 && core.subs > 0;
        const bool more = mixed ? MostBusy(time) > MostBusy(slowest) : time.cycles > slowest.cycles;
        slowest = more ? time : slowest;
        if (trace_) {
            keeper_.Add(core, time, core.events);
        }
        core.time.Trace(nullptr);
    }

    const std::vector<CoreTime> &Times() const { return times_; }

    // The core to tell about: of the slowest of each kind the one that worked more, for in a mixed launch one kind
    // often only waits for the other to end.
    const CoreTime &Slowest() const { return slowest_[MostBusy(slowest_[1]) > MostBusy(slowest_[0]) ? 1 : 0]; }
    std::vector<CoreTrace> Traces() { return keeper_.Take(); }

private:
    void AddWork(const CoreTime &time)
    {
        for (int p = 0; p < kPipes; ++p) {
            PipeWork &work = report_->work[p];
            work.instructions += time.use[p].instructions;
            work.bytes += time.use[p].bytes;
            work.busy_us += time.use[p].busy / CurrentChip().mhz;
        }
    }

    std::vector<CoreTime> times_;
    static double MostBusy(const CoreTime &time)
    {
        double most = 0;
        for (int p = 1; p < kPipes; ++p) {
            most = std::max(most, time.use[p].busy);
        }
        return most;
    }

    CoreTime slowest_[2];  // of the vector cores, of the cube cores
    double latest_ = 0;
    TraceKeeper keeper_;
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
    ReportCrashes();
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
    race::Install(!session.timing, session.auto_sync);
    blocks::counter.deepest = 0;
    blocks::counter.reported = false;
    LaunchReport report;
    report.kernel = name;
    report.blocks = blocks;
    Collector collector(blocks, session.trace, &report);
    crew.begin = [&collector](Core &core) { collector.Begin(core); };
    crew.end = [&collector](Core &core) { collector.End(core); };
    ResetCrossCore();
    if (RunCrew(crew)) {
        ReportOpenCrossCore();
    }
    if (race::installed && !session.timing) {
        race::EndLaunch();
    }
    const CoreTime &slowest = collector.Slowest();
    report.cores_started = active * (kind.cube + kind.vector);
    report.latency_us =
        chip.launch_us + chip.per_block_us * report.cores_started +
        SlowestCore(collector.Times(), static_cast<int>(at_once), &report.balance) / chip.mhz;
    for (int p = 0; p < kPipes; ++p) {
        report.busy_us[p] = slowest.use[p].busy / chip.mhz;
        report.lines[p] = slowest.lines[p];
    }
    report.bottleneck = Bottleneck(slowest);
    report.cores = collector.Traces();
    session.launches.push_back(std::move(report));
}

void LaunchBlocks(const char *name, uint32_t blocks, void *stream, KernelBody body, void *closure)
{
    LaunchBlocks(name, LaunchKind{}, blocks, stream, body, nullptr, closure);
}

}  // namespace evokernel::twin
