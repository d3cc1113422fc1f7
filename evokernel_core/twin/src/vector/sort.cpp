// Sort32, MrgSort and what is built on them. Results are pairs of 8 bytes: score low, index high.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "evokernel/twin/api_vector.h"
#include "sampled.h"
#include "vector/sort.h"
#include "vector/walk.h"

namespace evokernel::twin {

namespace {

constexpr uint32_t kGroup = 32;  // elements that Sort32 orders

// Reports what the kernel never wrote, without the two bytes that lie unused beside a half score.
void CheckPairs(const LocalRef &run, uint32_t pairs, const char *api, At at)
{
    const uint64_t bytes = uint64_t{pairs} * kPairBytes;
    if (AnyUndefined(run.address, bytes)) {
        ReportUndefined(api, run, bytes, at);
    }
}

struct Run {
    uint32_t address;
    uint32_t left;
};

// Moves the highest pair of the runs to `to`; equal scores leave the earlier run first.
void TakeHighest(std::vector<Run> &runs, DType dtype, uint8_t *to)
{
    const uint8_t *ub = TheCore().ub;
    Run *best = nullptr;
    for (Run &run : runs) {
        if (run.left != 0 && (best == nullptr || ScoreBefore(PairScore(ub + run.address, dtype),
                                                             PairScore(ub + best->address, dtype)))) {
            best = &run;
        }
    }
    std::memcpy(to, ub + best->address, kPairBytes);
    best->address += kPairBytes;
    --best->left;
}

bool CheckMergePlan(const MergePlan &plan, At at)
{
    if (plan.valid != 3 && plan.valid != 7 && plan.valid != 15) {
        ReportError("param-limit", at, "MrgSort's validBit must be 3, 7 or 15, not %u.", plan.valid);
        return false;
    }
    const auto *longest = std::max_element(plan.lengths, plan.lengths + 4);
    return CheckLimit(Api::MrgSort, "elementLengths", *longest, at) && CheckRepeats(Api::MrgSort, plan.repeats, at);
}

// Whether the hardware honours more than one repeat: four equal runs, one behind the other.
bool MayRepeat(const MergePlan &plan)
{
    bool regular = plan.valid == 15 && !plan.suspend;
    for (int i = 1; i < 4; ++i) {
        regular = regular && plan.lengths[i] == plan.lengths[0] &&
                  plan.runs[i].address == plan.runs[0].address + i * plan.lengths[0] * kPairBytes;
    }
    return regular;
}

// Whether timing mode, or a sampled run, knows what is merged.
bool RunsKnown(const MergePlan &plan, uint32_t repeats)
{
    bool known = sampled::active || Gm().HasKnown();
    for (int i = 0; i < 4; ++i) {
        const uint64_t pairs = (plan.valid >> i & 1) != 0 ? uint64_t{plan.lengths[i]} * repeats : 0;
        known = known && !AnyUndefined(plan.runs[i].address, pairs * kPairBytes);
    }
    return known;
}

bool UsableRuns(const LocalRef &dst, const MergePlan &plan, uint32_t repeats, At at)
{
    uint64_t total = 0;
    bool usable = true;
    for (int i = 0; i < 4; ++i) {
        if ((plan.valid >> i & 1) == 0) {
            continue;
        }
        static const char *const names[] = {"src1", "src2", "src3", "src4"};
        const uint64_t pairs = plan.lengths[i] + (i == 3 ? uint64_t{repeats - 1} * 4 * plan.lengths[0] : 0);
        total += plan.lengths[i];
        usable = LocalRange(plan.runs[i], pairs * kPairBytes, 8, false, "MrgSort", names[i], at) != nullptr && usable;
        const uint64_t bytes = plan.lengths[i] * uint64_t{kPairBytes} * repeats;
        if (dst.address < plan.runs[i].address + bytes && plan.runs[i].address < dst.address + bytes) {
            ReportError("overlap", at, "MrgSort writes over its run at byte %u of UB; give dst a place of its own.",
                        plan.runs[i].address);
        }
    }
    return LocalRange(dst, total * repeats * kPairBytes, 32, true, "MrgSort", "dst", at) != nullptr && usable;
}

// Merges one repeat and returns how many pairs it wrote.
uint32_t MergeOnce(const LocalRef &dst, const MergePlan &plan, uint32_t repeat, uint32_t written, At at)
{
    Core &core = TheCore();
    std::vector<Run> runs;
    uint32_t total = 0;
    for (int i = 0; i < 4; ++i) {
        const uint32_t length = (plan.valid >> i & 1) != 0 ? plan.lengths[i] : 0;
        const uint32_t shift = repeat * 4 * plan.lengths[0] * kPairBytes;
        runs.push_back(Run{plan.runs[i].address + shift, length});
        if (length != 0) {
            LocalRef part = plan.runs[i];
            part.address += shift;
            CheckPairs(part, length, "MrgSort", at);
        }
        total += length;
    }
    uint32_t done = 0;
    const auto used_up = [&] {
        return plan.suspend && std::any_of(runs.begin(), runs.end(), [&](const Run &run) {
                   return (plan.valid >> (&run - runs.data()) & 1) != 0 && run.left == 0;
               });
    };
    while (done < total && !used_up()) {
        TakeHighest(runs, dst.dtype, core.ub + dst.address + (written + done++) * kPairBytes);
    }
    for (int i = 0; i < 4; ++i) {
        const uint32_t length = (plan.valid >> i & 1) != 0 ? plan.lengths[i] : 0;
        core.registers.merged[i] = static_cast<uint16_t>(length - runs[static_cast<size_t>(i)].left);
    }
    return done;
}

// How many pairs each run loses where no data says it: a merge that ends with the first run that is used up
// leaves, of numbers in random order, what the others lag behind it. Each run is the first in its turn.
void TakeUsually(const MergePlan &plan)
{
    constexpr double kLeast[] = {0, 0, 0.564, 0.846, 1.029};  // mean of the least of so many normal numbers, negated
    Core &core = TheCore();
    std::copy(plan.lengths, plan.lengths + 4, core.registers.merged);
    const uint32_t runs = plan.valid == 3 ? 2 : plan.valid == 7 ? 3 : 4;
    const uint16_t length = *std::min_element(plan.lengths, plan.lengths + runs);
    if (!plan.suspend || length == 0) {
        return;
    }
    const double lag = kLeast[runs] * std::sqrt(static_cast<double>(length)) * runs / (runs - 1);
    const auto usual = static_cast<uint16_t>(std::max(0.0, length - std::round(lag)));
    const auto shortest = static_cast<uint32_t>(std::count(plan.lengths, plan.lengths + runs, length));
    uint32_t turn = core.registers.merges++ % shortest;
    for (uint32_t i = 0; i < runs; ++i) {
        const bool ends = plan.lengths[i] == length && turn-- == 0;
        core.registers.merged[i] = ends ? length : usual;
    }
}

}  // namespace

float PairScore(const uint8_t *pair, DType dtype)
{
    uint32_t bits = 0;
    std::memcpy(&bits, pair, DTypeBytes(dtype));
    return dtype == DType::F16 ? HalfValue(static_cast<uint16_t>(bits)) : FloatOf(bits);
}

bool ScoreBefore(float a, float b)
{
    const bool a_nan = a != a;
    const bool b_nan = b != b;
    return a_nan || b_nan ? a_nan && !b_nan : a > b;
}

double SortCycles(double elements) { return elements / CurrentChip().sort; }

void Sort32(const LocalRef &dst, const LocalRef &score, const LocalRef &index, int64_t repeats, At at)
{
    if (!CheckRepeats(Api::Sort32, repeats, at) || repeats == 0) {
        return;
    }
    RunVector("Sort32", SortCycles(static_cast<double>(repeats) * kGroup), at);
    Core &core = TheCore();
    const uint32_t width = DTypeBytes(score.dtype);
    const uint64_t count = static_cast<uint64_t>(repeats) * kGroup;
    const bool known =
        !core.timing || (!AnyUndefined(score.address, count * width) && !AnyUndefined(index.address, count * 4));
    if (!ComputesTo(dst.address, count * kPairBytes, known) ||
        !CheckTypes(Api::Sort32, {dst.dtype, score.dtype}, at) ||
        LocalRange(score, count * width, 32, false, "Sort32", "src0", at) == nullptr ||
        LocalRange(index, count * 4, 32, false, "Sort32", "src1", at) == nullptr ||
        LocalRange(dst, count * kPairBytes, 32, true, "Sort32", "dst", at) == nullptr) {
        return;
    }
    if (AnyUndefined(score.address, count * width)) {
        ReportUndefined("Sort32", score, count * width, at);
    }
    const auto value = [&](uint32_t i) { return PairScore(core.ub + score.address + i * width, score.dtype); };
    std::vector<uint8_t> pairs(count * kPairBytes, 0);  // dst may be the scores' own place
    for (uint32_t start = 0; start < count; start += kGroup) {
        std::array<uint32_t, kGroup> order;
        for (uint32_t i = 0; i < kGroup; ++i) {
            order[i] = start + i;
        }
        std::stable_sort(order.begin(), order.end(),
                         [&](uint32_t a, uint32_t b) { return ScoreBefore(value(a), value(b)); });
        for (uint32_t i = 0; i < kGroup; ++i) {
            uint8_t *to = pairs.data() + (start + i) * kPairBytes;
            std::memcpy(to, core.ub + score.address + order[i] * width, width);
            std::memcpy(to + 4, core.ub + index.address + order[i] * 4, 4);
        }
    }
    std::memcpy(core.ub + dst.address, pairs.data(), pairs.size());
    MarkDefined(dst.address, count * kPairBytes);
}

void MergeSorted(const LocalRef &dst, const MergePlan &plan, At at)
{
    Core &core = TheCore();
    if (plan.repeats == 0 || !CheckMergePlan(plan, at)) {
        return;
    }
    const uint32_t repeats = MayRepeat(plan) ? plan.repeats : 1;
    uint64_t total = 0;
    for (int i = 0; i < 4; ++i) {
        total += (plan.valid >> i & 1) != 0 ? plan.lengths[i] : 0;
    }
    RunVector("MrgSort", SortCycles(static_cast<double>(total * repeats)), at);
    if (core.timing && !ComputesTo(dst.address, total * repeats * kPairBytes, RunsKnown(plan, repeats))) {
        TakeUsually(plan);
        return;
    }
    if (repeats != plan.repeats) {
        ReportError("param-limit", at,
                    "MrgSort repeats only four equal runs that lie one behind the other; %u repeats are ignored.",
                    plan.repeats);
    }
    if (!CheckTypes(Api::MrgSort, CallTypes(dst.dtype), at) || !UsableRuns(dst, plan, repeats, at)) {
        return;
    }
    const bool known = !sampled::active || RunsKnown(plan, repeats);
    uint32_t written = 0;
    for (uint32_t r = 0; r < repeats; ++r) {
        written += MergeOnce(dst, plan, r, written, at);
    }
    MarkDefined(dst.address, uint64_t{written} * kPairBytes);
    if (sampled::active && !known) {
        sampled::Clear(Space::UB, dst.address, uint64_t{written} * kPairBytes);
    }
}

void MergeResult(uint16_t *taken, At at)
{
    Core &core = TheCore();
    core.last_at = at;
    core.time.ScalarWaits(Pipe::V);
    std::copy(core.registers.merged, core.registers.merged + 4, taken);
}

namespace {

// One pass of merges over runs of `length` pairs, four at a time; a run without partners is copied.
void MergePass(const LocalRef &dst, const LocalRef &src, uint32_t pairs, uint32_t length, At at)
{
    for (uint32_t start = 0; start < pairs; start += 4 * length) {
        MergePlan plan;
        uint32_t runs = 0;
        for (; runs < 4 && start + runs * length < pairs; ++runs) {
            plan.runs[runs] = src;
            plan.runs[runs].address += (start + runs * length) * kPairBytes;
            plan.lengths[runs] = static_cast<uint16_t>(std::min(length, pairs - start - runs * length));
        }
        LocalRef to = dst;
        to.address += start * kPairBytes;
        if (runs == 1) {
            const uint32_t bytes = plan.lengths[0] * kPairBytes;
            CopyLocal(to, plan.runs[0], Burst{1, bytes, bytes, bytes}, "Sort", at);
            continue;
        }
        plan.valid = static_cast<uint16_t>((1U << runs) - 1);
        MergeSorted(to, plan, at);
    }
}

}  // namespace

void SortAll(const LocalRef &dst, const LocalRef &score, const LocalRef &index, const LocalRef &tmp, int64_t repeats,
             bool full, At at)
{
    if (!CheckRepeats({Api::Sort32, "Sort"}, repeats, at) || repeats == 0) {
        return;
    }
    const auto pairs = static_cast<uint32_t>(repeats) * kGroup;
    int passes = 0;
    for (uint32_t length = kGroup; full && length < pairs; length *= 4) {
        ++passes;
    }
    if (passes > 0 && tmp.address + uint64_t{pairs} * kPairBytes > tmp.limit) {
        ReportError("temp-buffer", at, "Sort of %u elements needs %u bytes of temporary space, but gets %u; "
                    "take the size from GetSortTmpSize.", pairs, pairs * kPairBytes, tmp.limit - tmp.address);
        return;
    }
    LocalRef scratch = tmp;
    scratch.dtype = dst.dtype;
    LocalRef from = passes % 2 == 0 ? dst : scratch;  // so that the last pass ends in dst
    LocalRef to = passes % 2 == 0 ? scratch : dst;
    Sort32(from, score, index, repeats, at);
    for (uint32_t length = kGroup; full && length < pairs; length *= 4) {
        MergePass(to, from, pairs, length, at);
        std::swap(from, to);
    }
}

}  // namespace evokernel::twin
