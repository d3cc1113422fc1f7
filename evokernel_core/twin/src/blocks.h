// What a candidate's basic blocks tell: how many were executed, and how much of its stack a core used.
#pragma once
#include <cstdint>
#include <functional>

#include "evokernel/twin/blocks.h"

namespace evokernel::twin::blocks {

constexpr uint64_t kMostOfHost = 100000;  // blocks that ComputeTiling may execute

struct Counter {
    uint64_t pending = 0;         // blocks that nobody has charged yet
    uint64_t most = ~uint64_t{0}; // more of them end host code
    uintptr_t stack = 0;          // where the running core's stack begins; 0 for the host
    uint64_t deepest = 0;         // bytes of a stack that were in use at a block, at most
    bool reported = false;        // that these are too many, in this launch
    uint32_t run = 0;             // which undefined values the stacks hold
};
extern Counter counter;

// The stack of a core that goes on; 0: the host does.
inline void Enter(uintptr_t stack)
{
    counter.pending = 0;
    counter.stack = stack;
}

// What memory holds that nobody has written: in each run something else, and not 0 in the first.
uint8_t Undefined();

// Leaves such bytes where the next call's frames will lie.
void SoilStack();

// Runs host code of the candidate on a soiled stack. False where it took more than kMostOfHost blocks.
bool WithinHostTime(const std::function<void()> &function);

}  // namespace evokernel::twin::blocks
