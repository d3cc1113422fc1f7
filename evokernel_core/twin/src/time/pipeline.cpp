#include "time/pipeline.h"

#include <algorithm>

#include "core.h"

namespace evokernel::twin {

namespace {

constexpr size_t kMaxTraceEvents = 200000;
constexpr Pipe S = Pipe::S, V = Pipe::V, M = Pipe::M, T1 = Pipe::MTE1, T2 = Pipe::MTE2, T3 = Pipe::MTE3, F = Pipe::FIX;

// In the order of AscendC::HardEvent.
constexpr PipePair kPairs[] = {
    {T2, T1}, {T1, T2}, {T1, M}, {M, T1}, {T2, V}, {V, T2}, {T3, V}, {V, T3}, {M, V},  {V, M},
    {V, V},   {T3, T1}, {T1, T3}, {T1, V}, {T2, M}, {M, T2}, {V, T1}, {M, F},  {F, M},  {T3, T2},
    {T2, T3}, {S, V},   {V, S},   {S, T2}, {T2, S}, {S, T3}, {T3, S}, {T2, F}, {F, T2}, {F, S},
    {M, S},   {F, T3},  {T1, F},  {F, T1}, {F, F},  {F, V},  {V, F},
};
static_assert(sizeof(kPairs) / sizeof(kPairs[0]) == static_cast<size_t>(AscendC::HardEvent::MAX));

}  // namespace

const char *PipeName(Pipe pipe)
{
    static const char *const names[] = {"S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX"};
    return names[static_cast<int>(pipe)];
}

PipePair PipesOf(AscendC::HardEvent event) { return kPairs[static_cast<int>(event)]; }

void LineTally::Add(const char *file, int line, double cycles)
{
    const size_t count = lines_.size();
    for (size_t step = 0; step < count; ++step) {
        const size_t at = next_ + step < count ? next_ + step : next_ + step - count;
        LineUse &known = lines_[at];
        if (known.line == line && known.file == file) {
            known.cycles += cycles;
            ++known.instructions;
            next_ = at + 1 < count ? at + 1 : 0;
            return;
        }
    }
    if (count < kMaxLines) {
        lines_.push_back({file, line, cycles, 1});
        next_ = 0;
    }
}

void Pipeline::Start(const Chip &chip, int active_cores, bool cube)
{
    std::vector<TraceEvent> *events = events_;
    *this = Pipeline();
    events_ = events;
    chip_ = &chip;
    depth_ = static_cast<uint32_t>(std::clamp(chip.pipe_queue_depth, 1, kMaxDepth));
    const double cores = std::max(1, active_cores);
    hbm_share_ = chip.hbm_gbps * 1e3 / chip.mhz / cores;
    l2_share_ = chip.l2_gbps * 1e3 / chip.mhz / cores;
    request_share_ = chip.requests_per_cycle / cores;
    hit_rate_ = cube ? chip.cube_load_hit_rate : chip.load_hit_rate;
    scalar_ = chip.start_us * chip.mhz;
    covered_ = kCoveredBlocks * chip.issue;
}

void Pipeline::Share(SharedPort *port, int alike)
{
    shared_ = port;
    block_share_ = hbm_share_ * alike;
}

void Pipeline::TakeBlocks()
{
    const uint64_t executed = blocks::counter.pending;
    blocks::counter.pending = 0;
    if (executed == 0 || chip_ == nullptr) {
        return;
    }
    const double cycles = static_cast<double>(executed) * chip_->issue;
    const double paid = std::min(covered_, cycles);
    covered_ -= paid;
    Spend(cycles - paid);
    CheckStack();
}

double Pipeline::NextStart(Pipe pipe) const
{
    const int p = static_cast<int>(pipe);
    return std::max({scalar_, free_[p], not_before_[p]});
}

double Pipeline::Ready(Pipe pipe) const
{
    const int p = static_cast<int>(pipe);
    return pipe == Pipe::S ? scalar_ : std::max(done_[p], not_before_[p]);
}

void Pipeline::NotBefore(Pipe pipe, double time, Pipe cause)
{
    const int p = static_cast<int>(pipe);
    if (pipe == Pipe::S) {
        if (time > scalar_) {
            use_[0].idle_for[static_cast<int>(cause)] += time - scalar_;
            Note({"wait", "", scalar_, time - scalar_, 0, 0, 0, Pipe::S, cause});
            scalar_ = time;
        }
        return;
    }
    if (time > not_before_[p]) {
        not_before_[p] = time;
        cause_[p] = cause;
    }
}

// Issues from the scalar unit and returns when the instruction can begin.
double Pipeline::Begin(Pipe pipe)
{
    const int p = static_cast<int>(pipe);
    Scalar(chip_->issue);
    const uint32_t slot = slot_[p];
    slot_[p] = slot + 1 == depth_ ? 0 : slot + 1;
    NotBefore(Pipe::S, begun_[p][slot], pipe);
    const double start = std::max({scalar_, free_[p], not_before_[p]});
    begun_[p][slot] = start;
    idle_ = start - free_[p];
    if (idle_ > 0) {
        idle_for_ = not_before_[p] >= scalar_ ? cause_[p] : Pipe::S;
        use_[p].idle_for[static_cast<int>(idle_for_)] += idle_;
    }
    return start;
}

void Pipeline::Note(const TraceEvent &event)
{
    if (events_ != nullptr && events_->size() < kMaxTraceEvents) {
        events_->push_back(event);
    }
}

void Pipeline::Finish(Pipe pipe, double start, double occupied_until, double done, const char *name, int line,
                      const char *file, uint64_t bytes)
{
    const int p = static_cast<int>(pipe);
    free_[p] = occupied_until;
    done_[p] = std::max(done_[p], done);
    use_[p].busy += occupied_until - start;
    use_[p].bytes += bytes;
    ++use_[p].instructions;
    lines_[p].Add(file, line, occupied_until - start);
    Note({name, file, start, occupied_until - start, idle_, line, static_cast<uint32_t>(bytes), pipe, idle_for_});
}

void Pipeline::Run(Pipe pipe, double cycles, const char *name, int line, const char *file, double tail)
{
    const double start = Begin(pipe);
    tail += pipe == Pipe::V ? chip_->vector_tail : 0;
    Finish(pipe, start, start + cycles, start + cycles + tail, name, line, file, 0);
}

void Pipeline::RunMove(const Move &move, const char *name, int line, const char *file)
{
    const double start = Begin(move.pipe);
    const Chip &chip = *chip_;
    const double waste = static_cast<double>(move.wire_bytes) / static_cast<double>(move.bytes);
    const double hbm_bytes = static_cast<double>(move.hbm_bytes) * waste;
    const double l2_bytes = static_cast<double>(move.bytes - move.hbm_bytes) * waste;
    const double own = move.load ? l2_bytes / hit_rate_ + hbm_bytes / chip.load_rate
                                 : (l2_bytes + hbm_bytes) /
                                       (move.pipe == Pipe::FIX ? chip.fixpipe_gm_rate : chip.store_rate);
    const double occupied = std::max({own, move.cycles, chip.min_copy, chip.min_burst * move.bursts});
    const double latency = !move.load            ? chip.store_latency
                           : move.hbm_bytes == 0 ? chip.load_hit_latency
                                                 : chip.load_latency;
    const double device = ((move.load ? hbm_bytes : 0) + move.write_back * chip.write_back_cost) / hbm_share_;
    const double cache = (l2_bytes + hbm_bytes) / l2_share_;
    const double asked = static_cast<double>(move.requests) / request_share_;
    double until = std::max({start + occupied, device_.Take(start, device), l2_.Take(start, std::max(cache, asked))});
    if (shared_ != nullptr && device > 0) {
        until = std::max(until, shared_->Take(start, device * hbm_share_ / block_share_));
    }
    Finish(move.pipe, start, until, until + latency, name, line, file, move.bytes);
}

double Port::Take(double start, double cycles)
{
    if (cycles <= 0) {
        return start;
    }
    if (start < free_) {
        for (uint32_t i = 0; i < kGaps; ++i) {
            Gap &gap = gaps_[(oldest_ + i) % kGaps];
            if (start >= gap.end) {
                continue;
            }
            const double begin = std::max(start, gap.start);
            const double used = std::min(cycles, gap.end - begin);
            gap.start = begin + used;
            cycles -= used;
            if (cycles <= 0) {
                return gap.start;
            }
        }
    } else if (start > free_) {
        gaps_[oldest_] = {free_, start};
        oldest_ = (oldest_ + 1) % kGaps;
        free_ = start;
    }
    free_ += cycles;
    return free_;
}

void Pipeline::DrainAll()
{
    for (int p = 1; p < kPipes; ++p) {
        NotBefore(Pipe::S, std::max(done_[p], not_before_[p]), static_cast<Pipe>(p));
    }
}

double Pipeline::End() const
{
    double end = scalar_;
    for (int p = 1; p < kPipes; ++p) {
        end = std::max(end, done_[p]);
    }
    return end;
}

}  // namespace evokernel::twin
