// What the two kinds of synchronisation between cores share: through the scheduling unit, and through
// global memory.
#pragma once
#include <cstdint>

#include "core.h"

namespace evokernel::twin {

// Cores that meet: all of them arrive, then all go on.
struct Meeting {
    int64_t arrived = 0;
    uint64_t round = 0;
    double latest = 0;
    double leave = 0;
};

// Arrives with all of this core's work done, and leaves `cost` cycles after `members` cores have arrived.
void Meet(Meeting &meeting, int64_t members, double cost, const char *what, At at);

// Tells the race detector of one end of an order between cores.
void Order(Core &core, const void *channel, Pipe pipe, bool release);

// Before a launch, and after one that was not given up.
void ResetCrossCore();
void ResetCrossMemory();
void ReportOpenCrossCore();

}  // namespace evokernel::twin
