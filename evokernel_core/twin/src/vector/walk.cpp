#include "vector/walk.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "sampled.h"

namespace evokernel::twin {

bool Walk::Active(uint32_t repeat, uint32_t lane) const
{
    if (counted) {
        return uint64_t{repeat} * lanes + lane < elements;
    }
    return lane >= 128 || (mask[lane / 64] >> (lane % 64) & 1) != 0;
}

uint32_t Walk::LastLane(uint32_t repeat) const
{
    if (counted) {
        const uint64_t left = elements - std::min<uint64_t>(elements, uint64_t{repeat} * lanes);
        return static_cast<uint32_t>(std::min<uint64_t>(left, lanes));
    }
    if (mask[1] != 0 && lanes > 64) {
        return 128 - static_cast<uint32_t>(__builtin_clzll(mask[1]));
    }
    return mask[0] == 0 ? 0 : 64 - static_cast<uint32_t>(__builtin_clzll(mask[0]));
}

namespace {

uint64_t Ones(uint64_t n) { return n >= 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1; }

void CountWalk(uint64_t count, Walk *walk)
{
    walk->counted = true;
    walk->full = true;
    walk->elements = count;
    walk->repeats = static_cast<uint32_t>((count + walk->lanes - 1) / walk->lanes);
    walk->empty = count == 0;
}

// The count form leaves the register in its normal state, all lanes on.
void ResetRegister(MaskState &mask)
{
    mask = MaskState{false, ~uint64_t{0}, ~uint64_t{0}};
}

void MaskWalk(const MaskState &mask, Walk *walk)
{
    const uint32_t lanes = walk->lanes;
    walk->mask[0] = mask.low & Ones(lanes);
    walk->mask[1] = lanes > 64 ? mask.high & Ones(lanes - 64) : 0;
    walk->full = walk->mask[0] == Ones(std::min(lanes, 64U)) && (lanes <= 64 || walk->mask[1] == Ones(lanes - 64));
    walk->elements = uint64_t{walk->repeats} * lanes;
    walk->empty = walk->repeats == 0 || (walk->mask[0] == 0 && walk->mask[1] == 0);
}

void LoadRegister(const Form &form, uint32_t lanes, MaskState &mask, const char *api, At at)
{
    if (form.kind == Form::Kind::Bits) {
        mask.low = form.mask[0];
        mask.high = form.mask[1];
    } else if (mask.counter) {
        mask.low = form.mask[0];
        mask.high = 0;
    } else {
        const uint64_t active = form.mask[0];
        if (active > lanes) {
            ReportWarning("mask-limit", at, "%s gets a mask of %llu lanes; a repeat has %u, all of them are used.", api,
                          static_cast<unsigned long long>(active), lanes);
        }
        mask.low = Ones(active);
        mask.high = active > 64 ? Ones(active - 64) : 0;
    }
}

}  // namespace

bool ResolveWalk(const Form &form, uint32_t width, const Checked &api, At at, Walk *walk)
{
    Core &core = TheCore();
    const Chip &chip = CurrentChip();
    walk->lanes = kRepeatBytes / width;
    if (form.count < 0) {
        ReportError("repeat-limit", at, "%s gets a negative count of %lld.", api.name,
                    static_cast<long long>(form.count));
        return false;
    }
    if (form.kind == Form::Kind::Count) {
        core.time.Scalar(4 * chip.flag);  // set counter mode and length, reset both
        ResetRegister(core.mask);
        CountWalk(static_cast<uint64_t>(form.count), walk);
        return !walk->empty;
    }
    if (!CheckRepeats(api, form.count, at)) {
        return false;
    }
    if (form.kind != Form::Kind::Register) {
        core.time.Scalar(chip.flag);
        LoadRegister(form, walk->lanes, core.mask, api.name, at);
    }
    walk->repeats = static_cast<uint32_t>(form.count);
    if (core.mask.counter) {
        CountWalk(core.mask.low, walk);
    } else {
        MaskWalk(core.mask, walk);
    }
    return !walk->empty;
}

Operand MakeOperand(const LocalRef &ref, const Walk &walk, const Form &form, uint16_t block, uint16_t repeat)
{
    Operand operand;
    operand.ref = ref;
    operand.width = DTypeBytes(ref.dtype);
    operand.blocks = std::max(1U, walk.lanes * operand.width / kBlockBytes);
    if (form.kind == Form::Kind::Count) {
        operand.block = kBlockBytes;
        operand.repeat = walk.lanes * operand.width;
    } else {
        operand.block = block * kBlockBytes;
        operand.repeat = repeat * kBlockBytes;
    }
    return operand;
}

namespace {

// One past the last byte that the walk touches, from the operand's start.
uint64_t ExtentOf(const Operand &operand, const Walk &walk)
{
    if (walk.empty) {
        return 0;
    }
    if (walk.counted && operand.Dense(walk.lanes)) {
        return walk.elements * operand.width;
    }
    uint64_t extent = 0;
    const uint32_t first = walk.counted && walk.repeats > 1 ? walk.repeats - 2 : walk.repeats - 1;
    for (uint32_t r = first; r < walk.repeats; ++r) {
        const uint32_t last = walk.LastLane(r);
        const uint32_t per_block = kBlockBytes / operand.width;
        for (uint32_t lane = 0; lane < last; lane += per_block) {
            const uint32_t bytes = std::min(per_block, last - lane) * operand.width;
            extent = std::max<uint64_t>(extent, uint64_t{r} * operand.repeat + lane / per_block * operand.block + bytes);
        }
    }
    return extent;
}

bool Disjoint(const Operand &a, uint64_t a_bytes, const Operand &b, uint64_t b_bytes)
{
    return a.ref.address + a_bytes <= b.ref.address || b.ref.address + b_bytes <= a.ref.address;
}

// Walks the blocks in order and looks for a destination that a later read needs.
const char *OverlapFault(const Operand &dst, const Operand &src, const Walk &walk, bool accumulates)
{
    static uint16_t written[kUbCapacity / kBlockBytes];
    static uint16_t epoch = 0;
    if (epoch > 60000 || epoch == 0) {
        std::memset(written, 0, sizeof(written));
        epoch = 1;
    }
    const uint16_t start = epoch;
    const uint32_t limit = kUbCapacity / kBlockBytes;
    const char *fault = nullptr;
    for (uint32_t r = 0; r < walk.repeats && fault == nullptr; ++r) {
        const uint32_t last = walk.LastLane(r);
        const uint32_t src_blocks = (last * src.width + kBlockBytes - 1) / kBlockBytes;
        const uint32_t dst_blocks = (last * dst.width + kBlockBytes - 1) / kBlockBytes;
        for (uint32_t i = 0; i < src_blocks; ++i) {
            const uint32_t at = (src.ref.address + r * src.repeat + i * src.block) / kBlockBytes;
            if (at < limit && written[at] >= start && !accumulates) {
                fault = Word("a later repeat reads what an earlier one wrote");
            }
        }
        for (uint32_t i = 0; i < dst_blocks; ++i) {
            const uint32_t place = dst.ref.address + r * dst.repeat + i * dst.block;
            for (uint32_t j = 0; j < src_blocks && dst.width == src.width; ++j) {
                const uint32_t other = src.ref.address + r * src.repeat + j * src.block;
                if (i != j && place < other + kBlockBytes && other < place + kBlockBytes) {
                    fault = Word("within a repeat they are neither identical nor disjoint");
                }
            }
            if (place / kBlockBytes < limit) {
                written[place / kBlockBytes] = epoch;
            }
        }
    }
    epoch = static_cast<uint16_t>(epoch + 1);
    return fault;
}

// Tells which blocks a walk touches: runs of neighbouring ones at once.
void TouchOperand(const Operand &operand, const Walk &walk, uint64_t extent, bool write)
{
    if (walk.empty) {
        return;
    }
    if (walk.full && operand.Dense(walk.lanes)) {
        Touch(Space::UB, operand.ref.address, extent, write);
        return;
    }
    const uint32_t per_block = kBlockBytes / operand.width;
    uint32_t start = 0;
    uint32_t bytes = 0;
    for (uint32_t r = 0; r < walk.repeats; ++r) {
        const uint32_t last = walk.LastLane(r);
        for (uint32_t lane = 0; lane < last; lane += per_block) {
            const uint32_t place = operand.ref.address + r * operand.repeat + lane / per_block * operand.block;
            const uint32_t piece = std::min(per_block, last - lane) * operand.width;
            if (place != start + bytes) {
                Touch(Space::UB, start, bytes, write);
                start = place;
                bytes = 0;
            }
            bytes += piece;
        }
    }
    Touch(Space::UB, start, bytes, write);
}

}  // namespace

namespace {

// Blocks of a repeat up to the last active lane.
uint32_t BlocksUsed(const Operand &operand, const Walk &walk)
{
    const uint32_t lanes = walk.counted && walk.elements >= walk.lanes ? walk.lanes : walk.LastLane(0);
    return (lanes * operand.width + kBlockBytes - 1) / kBlockBytes;
}

}  // namespace

bool CheckOperand(const Operand &operand, const Walk &walk, uint32_t alignment, bool write, const char *api,
                  const char *name, At at)
{
    const uint64_t extent = ExtentOf(operand, walk);
    if (CheckRange(operand.ref, extent, alignment, write, api, name, at, SpaceBit(Space::UB)) == nullptr) {
        return false;
    }
    if (write && operand.block == 0 && BlocksUsed(operand, walk) > 1) {
        ReportError("stride-limit", at, "%s has a block stride of 0 for %s: its blocks overwrite one another.", api,
                    name);
    }
    if (race::installed) {
        TouchOperand(operand, walk, extent, write);
    }
    return true;
}

void CheckOverlap(const Operand &dst, const Operand &src, const Walk &walk, bool accumulates, const char *api, At at)
{
    if (Disjoint(dst, ExtentOf(dst, walk), src, ExtentOf(src, walk))) {
        return;
    }
    const bool same = dst.ref.address == src.ref.address && dst.width == src.width && dst.block == src.block;
    if (same && dst.repeat == src.repeat && (dst.repeat != 0 || accumulates || walk.repeats <= 1)) {
        return;
    }
    const char *fault = OverlapFault(dst, src, walk, accumulates);
    if (fault != nullptr) {
        ReportError("overlap", at, "%s has overlapping operands at bytes %u and %u of UB: %s.", api, dst.ref.address,
                    src.ref.address, fault);
    }
}

void LoadTile(const Operand &operand, const Walk &walk, uint32_t repeat, void *tile)
{
    const uint8_t *ub = TheCore().ub;
    auto *to = static_cast<uint8_t *>(tile);
    const uint32_t base = operand.ref.address + repeat * operand.repeat;
    const uint32_t bytes = walk.lanes * operand.width;
    for (uint32_t done = 0, i = 0; done < bytes; done += kBlockBytes, ++i) {
        const uint32_t from = base + i * operand.block;
        if (from + kBlockBytes <= kUbCapacity) {
            std::memcpy(to + done, ub + from, std::min(kBlockBytes, bytes - done));
        }
    }
}

void StoreTile(const Operand &operand, const Walk &walk, uint32_t repeat, const void *tile)
{
    uint8_t *ub = TheCore().ub;
    const auto *from = static_cast<const uint8_t *>(tile);
    const uint32_t last = walk.LastLane(repeat);
    for (uint32_t lane = 0; lane < last; ++lane) {
        if (walk.Active(repeat, lane)) {
            std::memcpy(ub + operand.Address(repeat, lane), from + lane * operand.width, operand.width);
        }
    }
}

bool AllDefined(const Operand &operand, const Walk &walk)
{
    return !AnyUndefined(operand.ref.address, ExtentOf(operand, walk));
}

bool Computes(const Operand &dst, const Operand *const *sources, int count, const Walk &walk)
{
    if (sampled::active) {
        return !LeavesEmpty(dst, sources, count, walk);
    }
    const Core &core = TheCore();
    if (!core.timing || !Gm().HasKnown()) {
        return !core.timing;
    }
    const auto defined = [&](const Operand *source) { return AllDefined(*source, walk); };
    return ComputesTo(dst.ref.address, ExtentOf(dst, walk), std::all_of(sources, sources + count, defined));
}

bool EmptyOperand(const Operand &operand, const Walk &walk)
{
    return sampled::active && sampled::Empty(Space::UB, operand.ref.address, ExtentOf(operand, walk));
}

namespace {

// Accesses that one cycle's reads (or writes) queue at the busiest bank group; 1 without conflict.
int BusiestGroup(const Operand *const *operands, int count, uint32_t repeat)
{
    constexpr int max_blocks = 24;
    const uint32_t groups = static_cast<uint32_t>(CurrentChip().bank_groups);
    uint32_t places[max_blocks];
    uint8_t load[64] = {};
    int n = 0;
    int busiest = 1;
    for (int i = 0; i < count; ++i) {
        for (uint32_t b = 0; b < operands[i]->blocks && n < max_blocks; ++b) {
            const uint32_t place =
                (operands[i]->ref.address + repeat * operands[i]->repeat + b * operands[i]->block) / kBlockBytes;
            if (std::find(places, places + n, place) != places + n) {
                continue;
            }
            places[n++] = place;
            busiest = std::max<int>(busiest, ++load[place % groups % 64]);
        }
    }
    return busiest;
}

bool Contiguous(const Operand &operand, uint32_t lanes)
{
    return operand.Dense(lanes) && operand.blocks == 8;
}

// 1 where two dense sources meet in the same bank groups, as they do unless half a turn apart.
int DenseReads(const Operand &a, const Operand &b)
{
    const uint32_t groups = static_cast<uint32_t>(CurrentChip().bank_groups);
    const uint32_t turn = (a.ref.address / kBlockBytes + groups * 65536 - b.ref.address / kBlockBytes) % groups;
    return a.ref.address == b.ref.address || turn == groups / 2 ? 1 : 2;
}

bool ReadWriteConflict(const Operand &dst, const Operand &src)
{
    const Chip &chip = CurrentChip();
    const uint32_t groups = static_cast<uint32_t>(chip.bank_groups);
    if (dst.ref.address / chip.bank_bytes != src.ref.address / chip.bank_bytes) {
        return false;
    }
    const uint32_t turn = (dst.ref.address / kBlockBytes + groups * 65536 - src.ref.address / kBlockBytes) % groups;
    return turn != 0 && turn != groups / 2;
}

// All that the conflicts of strided operands depend on.
struct Strides {
    uint32_t lanes[17] = {};

    bool operator==(const Strides &other) const { return std::equal(lanes, lanes + 17, other.lanes); }

    // `address` tells places apart as far as operands that are read together can meet.
    void Add(int place, const Operand &operand, uint32_t address)
    {
        uint32_t *field = lanes + 1 + 4 * place;
        field[0] = address;
        field[1] = operand.block;
        field[2] = operand.repeat;
        field[3] = operand.blocks;
    }

    uint32_t Hash() const
    {
        uint32_t hash = 2166136261U;
        for (uint32_t lane : lanes) {
            hash = (hash ^ lane) * 16777619U;
        }
        return hash ^ hash >> 16;
    }
};

Strides StridesOf(uint32_t pattern, const Operand *dst, const Operand *const *sources, int count)
{
    const uint32_t turn = static_cast<uint32_t>(CurrentChip().bank_groups) * kBlockBytes;
    Strides key;
    key.lanes[0] = pattern << 4 | static_cast<uint32_t>(count) << 1 | (dst != nullptr ? 1 : 0);
    if (dst != nullptr) {
        key.Add(0, *dst, dst->ref.address % turn);
    }
    for (int i = 0; i < count; ++i) {
        const uint32_t first = sources[0]->ref.address;
        key.Add(1 + i, *sources[i], i == 0 ? first % turn : sources[i]->ref.address - first);
    }
    return key;
}

// Cycles of an average repeat of strided operands, from a table of those met lately: a kernel's loop
// comes back to the same ones, and counting accesses by bank group is slow.
double StridedCycles(uint32_t pattern, const Operand *dst, const Operand *const *sources, int count)
{
    struct Known {
        Strides strides;
        double cycles = 0;
    };
    constexpr uint32_t entries = 4096;
    static std::vector<Known> table(entries);
    const Strides key = StridesOf(pattern, dst, sources, count);
    Known &known = table[key.Hash() % entries];
    if (known.cycles > 0 && known.strides == key) {
        return known.cycles;
    }
    double total = 0;
    for (uint32_t r = 0; r < pattern; ++r) {
        const int reads = BusiestGroup(sources, count, r);
        const int writes = dst == nullptr ? 1 : BusiestGroup(&dst, 1, r);
        total += std::max(reads, writes);
    }
    known = {key, total / pattern};
    return known.cycles;
}

double CyclesOfRepeat(const Walk &walk, const Operand *dst, const Operand *const *sources, int count)
{
    bool dense = dst == nullptr || Contiguous(*dst, walk.lanes);
    for (int i = 0; i < count; ++i) {
        dense = dense && Contiguous(*sources[i], walk.lanes);
    }
    if (dense) {
        return count == 2 ? DenseReads(*sources[0], *sources[1]) : 1;
    }
    const uint32_t pattern = std::min(walk.repeats, 16U);  // bank groups come round after 16 repeats
    return StridedCycles(pattern, dst, sources, count);
}

}  // namespace

double WalkCycles(const Walk &walk, double elements_per_cycle, const Operand *dst, const Operand *const *sources,
                  int count)
{
    double repeat = walk.lanes / elements_per_cycle * CyclesOfRepeat(walk, dst, sources, count);
    for (int i = 0; i < count && dst != nullptr; ++i) {
        if (Contiguous(*dst, walk.lanes) && Contiguous(*sources[i], walk.lanes) && ReadWriteConflict(*dst, *sources[i])) {
            repeat += CurrentChip().read_write_conflict;
        }
    }
    const double tail = walk.counted && walk.elements % walk.lanes != 0 ? CurrentChip().counter_tail : 0;
    return walk.repeats * repeat + tail;
}

double SimpleRate(uint32_t width)
{
    const Chip &chip = CurrentChip();
    return width <= 2 ? (width == 1 ? 2 * chip.simple_b16 : chip.simple_b16)
                      : width == 4 ? chip.simple_b32
                                   : chip.simple_b64;
}

}  // namespace evokernel::twin
