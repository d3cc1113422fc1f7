// The cores of a launch: each runs its body as a fiber until it ends or waits for another one.
#pragma once
#include <cstdint>
#include <functional>

#include "core.h"
#include "evokernel/twin/launch.h"

namespace evokernel::twin {

// One launch. `cube` may be null where no body is meant for the cube cores.
struct Crew {
    const char *name = "";
    LaunchKind kind;
    uint32_t blocks = 1;
    KernelBody vector = nullptr;
    KernelBody cube = nullptr;
    void *closure = nullptr;
    int active_blocks = 1;    // blocks that share the chip's bandwidth
    bool timing = false;
    std::function<void(Core &)> begin;  // before a core's body
    std::function<void(Core &)> end;    // after it
};

// How many blocks of the kind run at the same time on the chip.
uint32_t BlocksAtOnce(LaunchKind kind);

// Runs all blocks; false where the launch was given up (deadlock, a failed assert).
bool RunCrew(const Crew &crew);

// Waits until `ready(context)` holds; `what` says for what ("SyncAll"). Other cores run meanwhile.
void BlockUntil(bool (*ready)(void *), void *context, const char *what, At at);

// Lets the other cores run: for loops that poll memory.
void YieldCore(At at);

// Cores run at once on the chip. Here each runs for a turn of this many modelled cycles, so that what
// they do to L2 comes in about the order of their clocks.
constexpr double kTurn = 1000;

// Ends the core's turn where the next instruction of a pipe comes after it. Called before copies to and from
// global memory.
void EndTurn(double now, At at);
inline void TakeTurn(Pipe pipe, At at)
{
    const Core &core = TheCore();
    const double now = core.base + core.time.NextStart(pipe);
    if (now >= core.turn_ends) {
        EndTurn(now, at);
    }
}

// Something happened that a polling core may be waiting for.
void MarkProgress();

// Ends this core's body here, or the whole launch. Neither returns.
[[noreturn]] void EndCore();
[[noreturn]] void GiveUpLaunch();

// The launch that runs, the cores of a block, and the number of cores now inside their bodies.
const Crew &CurrentCrew();
Core *PeerOf(const Core &core, CoreKind kind, int sub);
bool VectorCoresDone(const Core &core);

// For a report of a crash: whether the address lies below the running core's stack.
bool StackOverrun(const void *address);

}  // namespace evokernel::twin
