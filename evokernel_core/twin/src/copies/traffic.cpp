#include "copies/traffic.h"

#include <algorithm>
#include <cmath>

#include "core.h"

namespace evokernel::twin {

namespace {

constexpr uint32_t kAhead = 8;  // bursts for whose lines of L2 is asked before they are looked at
constexpr uint64_t kRequest = 512;  // bytes of one request of the copy engine; documentation of GM alignment

uint64_t RequestsOf(uint64_t offset, uint64_t length) { return (offset % kRequest + length - 1) / kRequest + 1; }

// Requests of all bursts. Their alignment repeats, so a few stand for all.
uint64_t Requests(uint64_t start, const Span &span)
{
    if (span.count <= 1) {
        return span.count == 0 ? 0 : RequestsOf(start, span.length);
    }
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

uint32_t Clock() { return static_cast<uint32_t>(L2().allocated / 1024) + 1; }

uint64_t TouchAll(Allocation &block, const GlobalRef &tensor, const Span &span)
{
    const uint64_t offset = static_cast<uint64_t>(tensor.address - block.base);
    const uint32_t clock = Clock();
    const uint32_t reach = static_cast<uint32_t>(CurrentChip().l2_bytes / 1024);
    uint64_t missed = 0;
    for (uint32_t i = 0; i < span.count; ++i) {
        GlobalMemory::Expect(block, offset + uint64_t{i + kAhead} * span.stride);
        const uint64_t start = offset + uint64_t{i} * span.stride;
        if (start + span.length > block.padded + block.behind) {
            break;
        }
        missed += GlobalMemory::Touch(block, start, span.length, clock, reach);
    }
    return missed;
}

// Puts bytes in L2 and returns how many it must write back to make room: what falls out of it is as
// often dirty as what it holds.
double Allocate(double bytes, bool written)
{
    L2State &l2 = L2();
    const double size = static_cast<double>(CurrentChip().l2_bytes);
    const double held = std::min(l2.allocated, size);
    const double evicted = std::max(0.0, held + bytes - size);
    const double back = held > 0 ? std::min(evicted, held) * l2.dirty / held : 0;
    l2.allocated += bytes;
    l2.dirty += (written ? bytes : 0) - back;
    return back;
}

// Whether another core reads or writes the same place at this time: such accesses take turns.
bool Contested(const Core &core, Pipe pipe, Allocation &block, const GlobalRef &tensor, const Span &span)
{
    constexpr double at_once = 500;  // cycles between accesses that still meet
    const double now = core.base + core.time.NextStart(pipe);
    Visit *visit = GlobalMemory::VisitOf(block, static_cast<uint64_t>(tensor.address - block.base));
    if (visit == nullptr) {
        return false;
    }
    __builtin_prefetch(visit + span.length / kVisitPage, 1);  // most kernels go on where they stopped
    const bool met = visit->core != 0 && visit->core != core.number && std::abs(visit->time - now) < at_once;
    *visit = Visit{now, core.number};
    return met;
}

// In timing mode what a copy stores has no values.
void LoseStored(Allocation &block, const GlobalRef &tensor, const Span &span)
{
    const auto offset = static_cast<uint64_t>(tensor.address - block.base);
    for (uint32_t i = 0; block.written != nullptr && i < span.count; ++i) {
        GlobalMemory::LoseData(block, offset + uint64_t{i} * span.stride, span.length);
    }
}

}  // namespace

L2State &L2()
{
    static L2State state;
    return state;
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
    if (core.timing && !load && block != nullptr) {
        LoseStored(*block, tensor, span);
    }
    if (block == nullptr || tensor.bypass_l2) {
        move.hbm_bytes = move.bytes;
        move.write_back = load ? 0 : static_cast<double>(move.bytes);
    } else {
        const uint64_t missed = TouchAll(*block, tensor, span);
        move.hbm_bytes = load ? missed : 0;
        move.write_back = Allocate(static_cast<double>(missed), !load);
    }
    if (block != nullptr && Contested(core, pipe, *block, tensor, span)) {
        move.requests = static_cast<uint64_t>(static_cast<double>(move.requests) * CurrentChip().same_address_cost);
    }
    core.moved_bytes += move.bytes;
    return move;
}

}  // namespace evokernel::twin
