// What a copy to or from global memory asks of L2 and of device memory.
#pragma once
#include "evokernel/twin/refs.h"
#include "time/pipeline.h"

namespace evokernel::twin {

// What L2 holds, over all launches of a program. Cores take turns (see TakeTurn), so they fill it
// together as they do on the chip.
struct L2State {
    double allocated = 0;  // bytes ever
    double dirty = 0;      // bytes written that are not in device memory yet
};
L2State &L2();

// Bursts of one copy on their global-memory side.
struct Span {
    uint32_t count;
    uint32_t length;  // bytes
    uint32_t stride;  // bytes from one burst to the next
};

// Notes the copy in L2 and says what it costs there. `pipe` is the one that runs it.
Move NoteTraffic(Pipe pipe, bool load, const GlobalRef &tensor, Span span);

}  // namespace evokernel::twin
