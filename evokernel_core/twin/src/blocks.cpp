#include "blocks.h"

#include <cstring>

namespace evokernel::twin {

namespace blocks {

Counter counter;

namespace {

// Thrown through the candidate's host code, and caught by who called it.
struct HostTime {};

}  // namespace

uint8_t Undefined()
{
    // As float, half and integers: large and of both signs, and nothing, which is what memory often holds.
    constexpr uint8_t bytes[] = {0xFE, 0x00, 0x7B, 0xAD, 0x52};
    return bytes[counter.run % sizeof(bytes)];
}

__attribute__((noinline)) void SoilStack()
{
    unsigned char below[48 * 1024];
    std::memset(below, Undefined(), sizeof(below));
    asm volatile("" : : "r"(below) : "memory");
}

bool WithinHostTime(const std::function<void()> &function)
{
    SoilStack();
    counter.pending = 0;
    counter.most = kMostOfHost;
    bool within = true;
    try {
        function();
    } catch (const HostTime &) {
        within = false;
    }
    counter.most = ~uint64_t{0};
    counter.pending = 0;
    return within;
}

}  // namespace blocks

// Not inline: its own frame begins where the block's function ends.
__attribute__((noinline)) void CountBlock(unsigned weight)
{
    blocks::Counter &counter = blocks::counter;
    counter.pending += weight;
    if (counter.pending > counter.most) {
        throw blocks::HostTime{};
    }
    const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
    if (here < counter.stack && counter.stack - here > counter.deepest) {
        counter.deepest = counter.stack - here;
    }
}

}  // namespace evokernel::twin
