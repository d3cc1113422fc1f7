// The timelines of a launch's cores, and the file that Perfetto and the HTML timeline read.
#pragma once
#include <string>
#include <vector>

#include "time/bottleneck.h"

namespace evokernel::twin {

struct Core;

// What one core did. `events` are in order of issue.
struct CoreTrace {
    uint32_t block = 0;
    int sub = 0;
    bool cube = false;
    CoreTime time;
    std::vector<TraceEvent> events;
};

// Keeps the timelines of as many cores as a file can show, the slowest core's always.
class TraceKeeper {
public:
    void Add(const Core &core, const CoreTime &time, std::vector<TraceEvent> &events);
    std::vector<CoreTrace> Take();

private:
    std::vector<CoreTrace> kept_;
    size_t events_ = 0;
    size_t slowest_ = 0;
};

// Chrome trace events: a process for each core, a thread for each pipe, arrows from what a stalled
// instruction waited for. Times in microseconds. Returns whether the file could be written.
bool WriteTrace(const std::string &path);

}  // namespace evokernel::twin
