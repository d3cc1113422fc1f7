// Reductions inside a repeat, a block or a pair, and over whole tensors.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "sampled.h"
#include "stand_in.h"
#include "vector/convert.h"
#include "vector/cost.h"
#include "vector/walk.h"

namespace evokernel::twin {

namespace {

using AscendC::ReduceOrder;

float Rounded(float value, bool half_type) { return half_type ? HalfValue(HalfBits(value)) : value; }

void LoadFloats(const Operand &src, const Walk &walk, uint32_t repeat, float *values)
{
    alignas(64) uint8_t tile[kRepeatBytes];
    LoadTile(src, walk, repeat, tile);
    if (src.width == 2) {
        HalfToFloat(reinterpret_cast<const uint16_t *>(tile), values, walk.lanes);
    } else {
        std::memcpy(values, tile, walk.lanes * sizeof(float));
    }
}

// Adjacent pairs, then pairs of those: inactive lanes count as zero. Each half sum rounds.
float TreeSum(const float *values, uint32_t n, bool half_type)
{
    float level[kMaxLanes];
    std::memcpy(level, values, n * sizeof(float));
    for (; n > 1; n /= 2) {
        for (uint32_t i = 0; i < n / 2; ++i) {
            level[i] = Rounded(level[2 * i] + level[2 * i + 1], half_type);
        }
    }
    return level[0];
}

struct Extreme {
    float value = 0;
    uint32_t index = 0;
    bool is_set = false;
};

void Offer(Extreme &best, Reduce op, float value, uint32_t index)
{
    const bool better = !best.is_set || (op == Reduce::Max ? value > best.value : value < best.value) ||
                        (std::isnan(value) && !std::isnan(best.value));
    if (better) {
        best = Extreme{value, index, true};
    }
}

void PutFloat(uint32_t address, float value, uint32_t width)
{
    Core &core = TheCore();
    if (width == 2) {
        const uint16_t bits = HalfBits(value);
        std::memcpy(core.ub + address, &bits, 2);
    } else {
        std::memcpy(core.ub + address, &value, 4);
    }
}

void SetState(uint32_t address, uint32_t bytes, bool undefined)
{
    std::memset(TheCore().undefined + address, undefined ? kUndefined : 0, bytes);
}

bool RangeUndefined(const Operand &src, const Walk &walk, uint32_t repeat, uint32_t first, uint32_t end)
{
    for (uint32_t lane = first; lane < end; ++lane) {
        if (walk.Active(repeat, lane) && AnyUndefined(src.Address(repeat, lane), src.width)) {
            return true;
        }
    }
    return false;
}

// Reduces lanes [first, end) of a repeat. `is_set` is false where none is active.
Extreme ReduceLanes(Reduce op, const float *values, const Walk &walk, uint32_t repeat, uint32_t first, uint32_t end,
                    bool half_type)
{
    Extreme best;
    if (op != Reduce::Sum) {
        for (uint32_t lane = first; lane < end; ++lane) {
            if (walk.Active(repeat, lane)) {
                Offer(best, op, values[lane], lane);
            }
        }
        return best;
    }
    float active[kMaxLanes];
    for (uint32_t lane = first; lane < end; ++lane) {
        const bool on = walk.Active(repeat, lane);
        active[lane - first] = on ? values[lane] : 0.0F;
        best.is_set = best.is_set || on;
    }
    best.value = TreeSum(active, end - first, half_type);
    return best;
}

struct WholeLayout {
    uint32_t unit;       // bytes of one repeat's result
    uint32_t alignment;
    int value_at;        // byte offsets, -1 absent
    int index_at;
    uint32_t index_bytes;
};

WholeLayout LayoutOf(ReduceOrder order, uint32_t width)
{
    const int w = static_cast<int>(width);
    switch (order) {
        case ReduceOrder::ORDER_VALUE_INDEX:
            return {2 * width, 2 * width, 0, w, width};
        case ReduceOrder::ORDER_INDEX_VALUE:
            return {2 * width, 2 * width, w, 0, width};
        case ReduceOrder::ORDER_ONLY_INDEX:
            return {4, 4, -1, 0, 4};
        default:
            return {width, width, 0, -1, 0};
    }
}

const char *const kWholeNames[] = {"WholeReduceSum", "WholeReduceMax", "WholeReduceMin"};
const char *const kBlockNames[] = {"BlockReduceSum", "BlockReduceMax", "BlockReduceMin"};

void RememberResult(Reduce op, Extreme result, bool known, At at)
{
    Core &core = TheCore();
    if (sampled::active) {
        uint64_t bits = 0;
        std::memcpy(&bits, &result.value, sizeof(result.value));
        bits = sampled::ScalarOf(bits, known, DType::F32, at);
        std::memcpy(&result.value, &bits, sizeof(result.value));
        result.index = static_cast<uint32_t>(sampled::ScalarOf(result.index, known, DType::U32, at));
    }
    if (op == Reduce::Sum) {
        core.last_sum = result.value;
    } else {
        core.last_value = result.value;
        core.last_index = result.index;
    }
}

}  // namespace

namespace {

// In sampled runs: each repeat's result, which no value came to.
void ClearResults(const LocalRef &dst, uint32_t repeats, uint32_t step, uint64_t bytes)
{
    for (uint32_t r = 0; r < repeats; ++r) {
        sampled::Clear(Space::UB, dst.address + uint64_t{r} * step, bytes);
    }
}

}  // namespace

void WholeReduce(Reduce op, const LocalRef &dst, const LocalRef &src, const Form &form, int32_t dst_repeat,
                 ReduceOrder order, At at)
{
    const char *name = kWholeNames[static_cast<int>(op)];
    const Checked instruction(Api::ReduceRepeat, name);
    const uint32_t width = DTypeBytes(src.dtype);
    Walk walk;
    if (!ResolveWalk(form, width, instruction, at, &walk)) {
        return;
    }
    const Operand from = MakeOperand(src, walk, form, form.src0_block, form.src0_repeat);
    const Operand *sources[] = {&from};
    const Cost cost = instruction.row->cost;
    RunVector(name, StartUpOf(cost), WalkCycles(walk, RateOf(cost, width), nullptr, sources, 1), at);
    const WholeLayout layout = LayoutOf(order, width);
    const uint64_t extent = (uint64_t{walk.repeats} - 1) * static_cast<uint32_t>(dst_repeat) * layout.unit + layout.unit;
    if (EmptyOperand(from, walk)) {
        RememberResult(op, {}, false, at);
        return ClearResults(dst, walk.repeats, static_cast<uint32_t>(dst_repeat) * layout.unit, layout.unit);
    }
    if (TheCore().timing || !CheckTypes(instruction, CallTypes(src.dtype), at) ||
        !CheckOperand(from, walk, 32, false, name, "src", at) ||
        LocalRange(dst, extent, layout.alignment, true, name, "dst", at) == nullptr) {
        return;
    }
    const bool defined = AllDefined(from, walk);
    for (uint32_t r = 0; r < walk.repeats; ++r) {
        float values[kMaxLanes];
        LoadFloats(from, walk, r, values);
        const Extreme result = ReduceLanes(op, values, walk, r, 0, walk.lanes, width == 2);
        const uint32_t place = dst.address + r * static_cast<uint32_t>(dst_repeat) * layout.unit;
        const bool undefined = !defined && RangeUndefined(from, walk, r, 0, walk.LastLane(r));
        if (layout.value_at >= 0) {
            PutFloat(place + static_cast<uint32_t>(layout.value_at), result.value, width);
        }
        if (layout.index_at >= 0) {
            std::memcpy(TheCore().ub + place + layout.index_at, &result.index, layout.index_bytes);
        }
        SetState(place, layout.unit, undefined);
        if (r + 1 == walk.repeats) {
            RememberResult(op, result, !undefined, at);
        }
    }
}

void SumIntoRegister(const LocalRef &src, const Form &form, const char *name, At at)
{
    const Checked instruction(Api::ReduceRepeat, name);
    const uint32_t width = DTypeBytes(src.dtype);
    Walk walk;
    if (!ResolveWalk(form, width, instruction, at, &walk)) {
        return;
    }
    const Operand from = MakeOperand(src, walk, form, form.src0_block, form.src0_repeat);
    const Operand *sources[] = {&from};
    const Cost cost = instruction.row->cost;
    RunVector(name, StartUpOf(cost), WalkCycles(walk, RateOf(cost, width), nullptr, sources, 1), at);
    if (TheCore().timing || !CheckTypes(instruction, CallTypes(src.dtype), at) ||
        !CheckOperand(from, walk, 32, false, name, "src", at)) {
        return;
    }
    Extreme sum;
    for (uint32_t r = 0; r < walk.repeats; ++r) {
        float values[kMaxLanes];
        LoadFloats(from, walk, r, values);
        const float part = ReduceLanes(Reduce::Sum, values, walk, r, 0, walk.lanes, width == 2).value;
        sum.value = r == 0 ? part : Rounded(sum.value + part, width == 2);
    }
    RememberResult(Reduce::Sum, sum, AllDefined(from, walk), at);
}

void BlockReduce(Reduce op, const LocalRef &dst, const LocalRef &src, const Form &form, int32_t dst_repeat, At at)
{
    const char *name = kBlockNames[static_cast<int>(op)];
    const Checked instruction(Api::ReduceDataBlock, name);
    const uint32_t width = DTypeBytes(src.dtype);
    Walk walk;
    if (!ResolveWalk(form, width, instruction, at, &walk)) {
        return;
    }
    constexpr uint32_t blocks = 8;
    const Operand from = MakeOperand(src, walk, form, form.src0_block, form.src0_repeat);
    const Operand *sources[] = {&from};
    const Cost cost = instruction.row->cost;
    RunVector(name, StartUpOf(cost), WalkCycles(walk, RateOf(cost, width), nullptr, sources, 1), at);
    const uint32_t unit = blocks * width;
    const uint64_t extent = (uint64_t{walk.repeats} - 1) * static_cast<uint32_t>(dst_repeat) * unit + unit;
    if (walk.full && walk.elements % walk.lanes == 0 && EmptyOperand(from, walk)) {
        return ClearResults(dst, walk.repeats, static_cast<uint32_t>(dst_repeat) * unit, unit);
    }
    if (TheCore().timing || !CheckTypes(instruction, CallTypes(src.dtype), at) ||
        !CheckOperand(from, walk, 32, false, name, "src", at) ||
        LocalRange(dst, extent - unit, unit, true, name, "dst", at) == nullptr) {
        return;
    }
    const uint32_t per_block = walk.lanes / blocks;
    const bool defined = AllDefined(from, walk);
    for (uint32_t r = 0; r < walk.repeats; ++r) {
        float values[kMaxLanes];
        LoadFloats(from, walk, r, values);
        for (uint32_t b = 0; b < blocks; ++b) {
            const uint32_t first = b * per_block;
            const Extreme result = ReduceLanes(op, values, walk, r, first, first + per_block, width == 2);
            const uint32_t place = dst.address + r * static_cast<uint32_t>(dst_repeat) * unit + b * width;
            if (!result.is_set) {
                continue;  // a block with no active lane leaves its result alone
            }
            LocalRef element = dst;
            element.address = place;
            if (LocalRange(element, width, width, true, name, "dst", at) != nullptr) {
                PutFloat(place, result.value, width);
                SetState(place, width, !defined && RangeUndefined(from, walk, r, first, first + per_block));
            }
        }
    }
}

void PairReduce(Reduce op, const LocalRef &dst, const LocalRef &src, const Form &form, int32_t dst_repeat, At at)
{
    const char *name = op == Reduce::Sum ? "PairReduceSum" : "ReducePairElem";
    const Checked instruction(Api::ReducePairElem, name);
    const uint32_t width = DTypeBytes(src.dtype);
    Walk walk;
    if (!ResolveWalk(form, width, instruction, at, &walk)) {
        return;
    }
    constexpr uint32_t unit = kRepeatBytes / 2;
    const Operand from = MakeOperand(src, walk, form, form.src0_block, form.src0_repeat);
    const Operand *sources[] = {&from};
    RunVector(name, WalkCycles(walk, RateOf(instruction.row->cost, width), nullptr, sources, 1), at);
    const uint32_t step = static_cast<uint32_t>(dst_repeat) * unit;
    const uint64_t extent =
        uint64_t{walk.repeats - 1} * step + (walk.LastLane(walk.repeats - 1) + 1) / 2 * uint64_t{width};
    if (walk.full && walk.elements % walk.lanes == 0 && EmptyOperand(from, walk)) {
        return ClearResults(dst, walk.repeats, step, walk.lanes / 2 * uint64_t{width});
    }
    if (TheCore().timing || !CheckTypes(instruction, CallTypes(src.dtype), at) ||
        !CheckOperand(from, walk, 32, false, name, "src", at) ||
        LocalRange(dst, extent, 32, true, name, "dst", at) == nullptr) {
        return;
    }
    const bool defined = AllDefined(from, walk);
    for (uint32_t r = 0; r < walk.repeats; ++r) {
        float values[kMaxLanes];
        LoadFloats(from, walk, r, values);
        for (uint32_t pair = 0; pair < walk.lanes / 2; ++pair) {
            const Extreme result = ReduceLanes(op, values, walk, r, 2 * pair, 2 * pair + 2, width == 2);
            if (result.is_set) {
                const uint32_t place = dst.address + r * step + pair * width;
                PutFloat(place, result.value, width);
                SetState(place, width, !defined && RangeUndefined(from, walk, r, 2 * pair, 2 * pair + 2));
            }
        }
    }
}

namespace {

constexpr Api kAll[] = {Api::ReduceSum, Api::ReduceMax, Api::ReduceMin};

// Elements of the temporary buffer that the documentation asks for.
uint64_t TmpElements(Reduce op, uint64_t repeats, uint32_t width, bool counted, bool index)
{
    const uint64_t block = kBlockBytes / width;
    const uint64_t lanes = kRepeatBytes / width;
    const auto up = [](uint64_t n, uint64_t unit) { return (n + unit - 1) / unit * unit; };
    if (op == Reduce::Sum) {
        return counted ? 0 : up(repeats, block);
    }
    const uint64_t first = std::max<uint64_t>(1, repeats);
    const uint64_t round1 = up(2 * first, block);
    if (!index) {
        return round1;
    }
    const uint64_t out2 = (2 * first + lanes - 1) / lanes * 2;
    const uint64_t round3 = out2 > 2 ? up((out2 + lanes - 1) / lanes * 2, block) : 0;
    return round1 + up(out2, block) + round3;
}

// Instructions that the function stands for: reductions of a repeat each, round after round.
double AllCycles(uint64_t repeats, uint32_t width, At at, const ApiRow &row)
{
    const uint32_t lanes = kRepeatBytes / width;
    const double cycle = lanes / RateOf(row.cost, width);
    uint64_t left = repeats;
    while (left > 1) {
        RunVector(row.name, static_cast<double>(left) * cycle, at);
        left = (left + lanes - 1) / lanes;
    }
    return cycle;
}

// The function's repeats are cut into instructions, which have as many as those of one repeat's reduction.
bool ResolveAll(const Form &form, uint32_t width, const char *name, At at, Walk *walk)
{
    const Checked part(Api::ReduceRepeat, name);
    Form limited = form;
    if (form.kind != Form::Kind::Count && form.count > part.row->repeats) {
        limited.count = part.row->repeats;
        if (!ResolveWalk(limited, width, part, at, walk)) {
            return false;
        }
        walk->repeats = static_cast<uint32_t>(form.count);
        walk->elements = uint64_t{walk->repeats} * walk->lanes;
        return true;
    }
    return ResolveWalk(form, width, part, at, walk);
}

float SumOfParts(std::vector<float> parts, bool counted, bool half_type)
{
    if (counted) {  // one after another
        float sum = parts[0];
        for (size_t i = 1; i < parts.size(); ++i) {
            sum = Rounded(sum + parts[i], half_type);
        }
        return sum;
    }
    const uint32_t lanes = half_type ? 128 : 64;
    while (parts.size() > 1) {  // trees over the repeats' results
        std::vector<float> next;
        for (size_t i = 0; i < parts.size(); i += lanes) {
            float tile[kMaxLanes] = {};
            std::copy_n(parts.begin() + static_cast<std::ptrdiff_t>(i), std::min<size_t>(lanes, parts.size() - i), tile);
            next.push_back(TreeSum(tile, lanes, half_type));
        }
        parts = std::move(next);
    }
    return parts[0];
}

Extreme ReduceEverything(Reduce op, const Operand &from, const Walk &walk, bool counted)
{
    const bool half_type = from.width == 2;
    std::vector<float> parts;
    Extreme best;
    for (uint32_t r = 0; r < walk.repeats; ++r) {
        float values[kMaxLanes];
        LoadFloats(from, walk, r, values);
        const Extreme part = ReduceLanes(op, values, walk, r, 0, walk.lanes, half_type);
        if (op == Reduce::Sum) {
            parts.push_back(part.value);
        } else if (part.is_set) {
            Offer(best, op, part.value, r * walk.lanes + part.index);
        }
    }
    if (op == Reduce::Sum) {
        best.value = SumOfParts(std::move(parts), counted, half_type);
        best.is_set = true;
    }
    return best;
}

bool CheckTmp(const LocalRef &tmp, uint64_t elements, uint32_t width, const char *name, At at)
{
    if (elements == 0) {
        return true;
    }
    if (uint64_t{tmp.address} + elements * width > tmp.limit) {
        ReportError("out-of-bounds", at, "%s needs a temporary buffer of %llu elements; it has %lld.", name,
                    static_cast<unsigned long long>(elements),
                    (static_cast<long long>(tmp.limit) - static_cast<long long>(tmp.address)) /
                        static_cast<long long>(width));
        return false;
    }
    return LocalRange(tmp, elements * width, 32, true, name, "sharedTmpBuffer", at) != nullptr;
}

}  // namespace

void ReduceAll(Reduce op, const LocalRef &dst, const LocalRef &src, const LocalRef &tmp, const Form &form, bool index,
               At at)
{
    const Api api = kAll[static_cast<int>(op)];
    const char *name = RowOf(api).name;
    const uint32_t width = DTypeBytes(src.dtype);
    const bool counted = form.kind == Form::Kind::Count;
    Walk walk;
    if (!ResolveAll(form, width, name, at, &walk)) {
        return;
    }
    const Operand from = MakeOperand(src, walk, form, 1, form.src0_repeat);
    const double last = AllCycles(walk.repeats, width, at, RowOf(api));
    RunVector(name, last, at);
    Core &core = TheCore();
    const uint64_t repeats = counted ? walk.elements / walk.lanes : walk.repeats;
    const uint64_t wanted = TmpElements(op, repeats, width, counted, index);
    const uint32_t results = index ? 2 : 1;
    if (EmptyOperand(from, walk)) {
        if (wanted > 0 && tmp.address != src.address) {
            sampled::Clear(Space::UB, tmp.address, wanted * width);
        }
        RememberResult(op, {}, false, at);
        return sampled::Clear(Space::UB, dst.address, uint64_t{results} * width);
    }
    if (core.timing || !CheckTypes(api, CallTypes(src.dtype), at) ||
        !CheckOperand(from, walk, 32, false, name, "src", at) ||
        LocalRange(dst, uint64_t{results} * width, results * width, true, name, "dst", at) == nullptr ||
        !CheckTmp(tmp, wanted, width, name, at)) {
        return;
    }
    const bool defined = AllDefined(from, walk);
    bool undefined = false;
    for (uint32_t r = 0; r < walk.repeats && !defined; ++r) {
        if (RangeUndefined(from, walk, r, 0, walk.LastLane(r))) {
            undefined = sampled::active;
            LocalRef part = src;
            part.address = src.address + r * from.repeat;
            ReportUndefined(name, part, uint64_t{walk.LastLane(r)} * width, at);
            break;
        }
    }
    const Extreme result = ReduceEverything(op, from, walk, counted);
    if (wanted > 0 && tmp.address != src.address) {
        std::memset(core.undefined + tmp.address, kUndefined, wanted * width);  // what stays in it is not documented
    }
    PutFloat(dst.address, result.value, width);
    if (index) {
        std::memcpy(core.ub + dst.address + width, &result.index, width);
    }
    SetState(dst.address, results * width, undefined);
    RememberResult(op, result, !undefined, at);
}

float LastSum()
{
    Core &core = TheCore();
    core.time.ScalarWaits(Pipe::V);
    core.time.Scalar(CurrentChip().local_access);
    return core.timing ? 0 : core.last_sum;
}

void LastMaxMin(float *value, uint32_t *index)
{
    Core &core = TheCore();
    core.time.ScalarWaits(Pipe::V);
    core.time.Scalar(CurrentChip().local_access);
    *value = core.timing ? 0 : core.last_value;
    *index = core.timing ? 0 : core.last_index;
}

}  // namespace evokernel::twin
