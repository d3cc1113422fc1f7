#include "traffic.h"

#include <algorithm>

#include "core.h"

namespace evokernel::twin {

namespace {

constexpr uint64_t kRequest = 512;  // bytes of one request of the copy engine; documentation of GM alignment

uint64_t RequestsOf(uint64_t offset, uint64_t length) { return (offset % kRequest + length - 1) / kRequest + 1; }

// Requests of all bursts. Their alignment repeats, so a few stand for all.
uint64_t Requests(uint64_t start, const Span &span)
{
    constexpr uint32_t few = 32;
    const uint32_t looked_at = std::min(span.count, span.stride % kRequest == 0 ? 1U : few);
    uint64_t requests = 0;
    for (uint32_t i = 0; i < looked_at; ++i) {
        requests += RequestsOf(start + uint64_t{i} * span.stride, span.length);
    }
    return requests * span.count / looked_at;
}

bool Aligned(uint64_t start, const Span &span)
{
    const uint64_t unit = CurrentChip().aligned_bytes;
    return start % unit == 0 && (span.count == 1 || span.stride % unit == 0);
}

// Cores of this core's kind that run at once.
double Peers(const Core &core)
{
    return static_cast<double>(L2().at_once) * (core.kind == CoreKind::Vector ? core.subs : core.cubes);
}

// Allocated in L2 by this launch, if every core is as far as this one.
double LaunchBytes(const Core &core) { return core.before_bytes + static_cast<double>(core.cached_bytes) * Peers(core); }

double LaunchDirty(const Core &core) { return core.before_dirty + static_cast<double>(core.dirty_bytes) * Peers(core); }

uint32_t Clock(const Core &core) { return L2().clock + static_cast<uint32_t>(LaunchBytes(core) / 1024) + 1; }

uint64_t TouchAll(const Core &core, Allocation &block, const GlobalRef &tensor, const Span &span)
{
    const uint64_t offset = static_cast<uint64_t>(tensor.address - block.base);
    const uint32_t clock = Clock(core);
    const uint32_t reach = static_cast<uint32_t>(CurrentChip().l2_bytes / 1024);
    uint64_t missed = 0;
    for (uint32_t i = 0; i < span.count; ++i) {
        const uint64_t start = offset + uint64_t{i} * span.stride;
        if (start + span.length > block.bytes) {
            break;
        }
        missed += GlobalMemory::Touch(block, start, span.length, clock, reach);
    }
    return missed;
}

// Bytes that L2 must write back to make room for `bytes` more: what falls out of it is as often
// dirty as what went in.
double WrittenBack(const Core &core, double bytes)
{
    const double allocated = L2().held_bytes + LaunchBytes(core);
    const double over = allocated - static_cast<double>(CurrentChip().l2_bytes);
    if (over <= 0 || bytes == 0) {
        return 0;
    }
    return std::min(bytes, over / Peers(core)) * (L2().held_dirty + LaunchDirty(core)) / allocated;
}

}  // namespace

L2State &L2()
{
    static L2State state;
    return state;
}

void BeginL2Launch(int at_once, LaunchKind kind)
{
    L2State &l2 = L2();
    l2.at_once = std::max(1, at_once);
    l2.cores = l2.at_once * (kind.cube + kind.vector);
    l2.launch_bytes = l2.launch_dirty = 0;
    l2.finished = 0;
}

// Blocks of earlier waves are over when this one begins, those of its own are not.
void BeginL2Block(Core &core)
{
    const L2State &l2 = L2();
    const int64_t earlier = core.block / l2.at_once * l2.cores;
    const double share = l2.finished == 0 ? 0 : std::min(1.0, static_cast<double>(earlier) / l2.finished);
    core.before_bytes = l2.launch_bytes * share;
    core.before_dirty = l2.launch_dirty * share;
}

void EndL2Block(const Core &core)
{
    L2State &l2 = L2();
    l2.launch_bytes += static_cast<double>(core.cached_bytes);
    l2.launch_dirty += static_cast<double>(core.dirty_bytes);
    ++l2.finished;
}

void EndL2Launch()
{
    L2State &l2 = L2();
    l2.clock += static_cast<uint32_t>(l2.launch_bytes / 1024) + 1;
    const double all = l2.held_bytes + l2.launch_bytes;
    const double kept = std::min(all, static_cast<double>(CurrentChip().l2_bytes));
    l2.held_dirty = all > 0 ? (l2.held_dirty + l2.launch_dirty) * kept / all : 0;
    l2.held_bytes = kept;
}

Move NoteTraffic(Pipe pipe, bool load, const GlobalRef &tensor, Span span)
{
    Core &core = TheCore();
    Move move;
    const auto address = reinterpret_cast<uintptr_t>(tensor.address);
    move.pipe = pipe;
    move.load = load;
    move.bytes = uint64_t{span.count} * span.length;
    move.bursts = span.count;
    move.requests = Requests(address, span);
    move.wire_bytes = Aligned(address, span) ? move.bytes : std::max(move.bytes, move.requests * kRequest);
    Allocation *block = Gm().Find(tensor.address);
    if (block == nullptr || tensor.bypass_l2) {
        move.hbm_bytes = move.bytes;
        move.write_back = load ? 0 : static_cast<double>(move.bytes);
    } else {
        const uint64_t missed = TouchAll(core, *block, tensor, span);
        core.cached_bytes += missed;
        core.dirty_bytes += load ? 0 : missed;
        move.hbm_bytes = load ? missed : 0;
        move.write_back = WrittenBack(core, static_cast<double>(missed));
    }
    core.moved_bytes += move.bytes;
    return move;
}

}  // namespace evokernel::twin
