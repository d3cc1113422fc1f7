#include "time/trace.h"

#include <algorithm>
#include <cstdio>

#include "core.h"
#include "launch.h"
#include "result.h"

namespace evokernel::twin {

namespace {

constexpr size_t kMaxEvents = 400000;  // of all cores; a browser still shows this many
constexpr size_t kMaxArrows = 20000;

class Writer {
public:
    explicit Writer(std::FILE *file) : file_(file) {}

    void Launch(const LaunchReport &launch)
    {
        for (const CoreTrace &core : launch.cores) {
            Names(launch, core);
            for (std::vector<const TraceEvent *> &row : rows_) {
                row.clear();
            }
            for (const TraceEvent &event : core.events) {
                Arrow(event);
                Event(event);
                rows_[static_cast<int>(event.pipe)].push_back(&event);
            }
            ++process_;
        }
        ++launch_;
    }

private:
    void Begin()
    {
        std::fputs(first_ ? "" : ",\n", file_);
        first_ = false;
    }

    void Names(const LaunchReport &launch, const CoreTrace &core)
    {
        Begin();
        char where[64];
        std::snprintf(where, sizeof(where), " block %u of %u", core.block, launch.blocks);
        const std::string kind = core.cube ? ", cube core" : core.sub > 0 ? ", second vector core" : "";
        const bool slowest = core.block == launch.slowest && &core == launch.SlowestTrace();
        std::fprintf(file_, "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"args\":{\"name\":%s,\"launch\":%d}}",
                     process_, Quoted(launch.kernel + where + kind + (slowest ? " (slowest)" : "")).c_str(), launch_);
        for (int p = 0; p < kPipes; ++p) {
            const PipeUse &use = core.time.use[p];
            if (use.busy == 0) {
                continue;
            }
            Begin();
            std::fprintf(file_,
                         "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":\"%s\","
                         "\"busy_us\":%.4f,\"total_us\":%.4f}}",
                         process_, p, PipeName(static_cast<Pipe>(p)), use.busy * scale_, core.time.cycles * scale_);
        }
    }

    void Event(const TraceEvent &event)
    {
        Begin();
        std::fprintf(file_,
                     "{\"ph\":\"X\",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,\"ts\":%.4f,\"dur\":%.4f,\"args\":{"
                     "\"at\":%s,\"bytes\":%u",
                     event.name, process_, static_cast<int>(event.pipe), event.start * scale_, event.cycles * scale_,
                     Quoted(std::string(event.file) + ":" + std::to_string(event.line)).c_str(), event.bytes);
        if (event.idle * scale_ >= 0.0005 || event.pipe == Pipe::S) {
            std::fprintf(file_, ",\"idle_us\":%.4f,\"waited_for\":\"%s\"", event.idle * scale_, PipeName(event.cause));
        }
        std::fputs("}}", file_);
    }

    // The last instruction of the pipe that a stalled one waited for, of those over before it began.
    const TraceEvent *SourceOf(const TraceEvent &event) const
    {
        const std::vector<const TraceEvent *> &row = rows_[static_cast<int>(event.cause)];
        const auto over = [&event](const TraceEvent *other) { return other->start + other->cycles <= event.start; };
        const auto covering = std::find_if(row.rbegin(), row.rend(), over);
        return covering == row.rend() ? nullptr : *covering;
    }

    void Arrow(const TraceEvent &event)
    {
        if (event.idle < 1 || event.cause == event.pipe || event.cause == Pipe::S) {
            return;
        }
        const TraceEvent *source = SourceOf(event);
        if (source == nullptr || arrows_ == kMaxArrows) {
            return;
        }
        ++arrows_;
        Begin();
        const char *arrow = "{\"ph\":\"%s\",\"name\":\"waits\",\"cat\":\"stall\",\"id\":%zu,\"pid\":%d,\"tid\":%d,"
                            "\"ts\":%.4f%s}";
        std::fprintf(file_, arrow, "s", arrows_, process_, static_cast<int>(source->pipe),
                     (source->start + source->cycles / 2) * scale_, "");
        Begin();
        std::fprintf(file_, arrow, "f", arrows_, process_, static_cast<int>(event.pipe), event.start * scale_,
                     ",\"bp\":\"e\"");
    }

    std::FILE *file_;
    const double scale_ = 1.0 / CurrentChip().mhz;
    std::vector<const TraceEvent *> rows_[kPipes];
    size_t arrows_ = 0;
    int process_ = 0;
    int launch_ = 0;
    bool first_ = true;
};

}  // namespace

void TraceKeeper::Add(const Core &core, const CoreTime &time, std::vector<TraceEvent> &events)
{
    const bool slowest = kept_.empty() || time.cycles > kept_[slowest_].time.cycles;
    if (!slowest && events_ + events.size() > kMaxEvents) {
        return;
    }
    CoreTrace trace;
    trace.block = static_cast<uint32_t>(core.block);
    trace.sub = core.sub;
    trace.cube = core.kind == CoreKind::Cube;
    trace.time = time;
    trace.events.swap(events);
    events_ += trace.events.size();
    if (slowest && events_ > kMaxEvents && !kept_.empty()) {
        events_ -= kept_[slowest_].events.size();
        kept_[slowest_] = std::move(trace);
        return;
    }
    slowest_ = slowest ? kept_.size() : slowest_;
    kept_.push_back(std::move(trace));
}

std::vector<CoreTrace> TraceKeeper::Take()
{
    std::sort(kept_.begin(), kept_.end(), [](const CoreTrace &a, const CoreTrace &b) {
        return a.block != b.block ? a.block < b.block : a.cube != b.cube ? a.cube : a.sub < b.sub;
    });
    return std::move(kept_);
}

bool WriteTrace(const std::string &path)
{
    const std::string temporary = path + ".part";
    std::FILE *file = std::fopen(temporary.c_str(), "wb");
    if (file == nullptr) {
        return false;
    }
    std::fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", file);
    Writer writer(file);
    for (const LaunchReport &launch : TheSession().launches) {
        writer.Launch(launch);
    }
    std::fputs("\n]}\n", file);
    const bool complete = std::ferror(file) == 0;
    return std::fclose(file) == 0 && complete && std::rename(temporary.c_str(), path.c_str()) == 0;
}

}  // namespace evokernel::twin
