// What a copy to or from global memory asks of L2 and of device memory.
#pragma once
#include "pipeline.h"
#include "evokernel/twin/launch.h"
#include "evokernel/twin/refs.h"

namespace evokernel::twin {

struct Core;

// What L2 holds. Blocks run one after another here but at once on the chip, so a block takes every
// other core to be as far as itself.
struct L2State {
    int at_once = 1;           // blocks that run at once
    int cores = 1;             // cores that run at once, of all kinds
    double held_bytes = 0;     // what earlier launches left in L2
    double held_dirty = 0;     // of it, written and not yet in device memory
    double launch_bytes = 0;   // allocated by the launch's finished cores
    double launch_dirty = 0;
    uint32_t finished = 0;     // cores
    uint32_t clock = 0;        // KB allocated in L2 over all launches
};
L2State &L2();

void BeginL2Launch(int at_once, LaunchKind kind);
void BeginL2Block(Core &core);
void EndL2Block(const Core &core);
void EndL2Launch();

// Bursts of one copy on their global-memory side.
struct Span {
    uint32_t count;
    uint32_t length;  // bytes
    uint32_t stride;  // bytes from one burst to the next
};

// Notes the copy in L2 and says what it costs there. `pipe` is the one that runs it.
Move NoteTraffic(Pipe pipe, bool load, const GlobalRef &tensor, Span span);

}  // namespace evokernel::twin
