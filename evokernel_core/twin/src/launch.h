// What a launch took: the time of each block, and what the slowest one did.
#pragma once
#include <string>
#include <vector>

#include "time/trace.h"

namespace evokernel::twin {

// What all cores of a launch did on one pipe.
struct PipeWork {
    uint64_t instructions = 0;
    uint64_t bytes = 0;  // of copies
    double busy_us = 0;
};

struct LaunchReport {
    std::string kernel;
    uint32_t blocks = 0;
    int cores_started = 0;  // at once
    double latency_us = 0;
    double busy_us[kPipes] = {};  // of the slowest block
    PipeWork work[kPipes];
    std::vector<LineUse> lines[kPipes];  // of the same core
    double balance = 1;  // mean time of the cores that the launch could use, as a share of the slowest one's
    std::string bottleneck;
    uint32_t slowest = 0;
    std::vector<CoreTrace> cores;  // their timelines where a trace is wanted

    const CoreTrace *SlowestTrace() const
    {
        const CoreTrace *longest = nullptr;
        for (const CoreTrace &core : cores) {
            longest = longest == nullptr || core.time.cycles > longest->time.cycles ? &core : longest;
        }
        return longest;
    }
};

struct Session {
    bool timing = false;
    bool refuse_unknown = false;  // in timing mode a scalar that has no data ends the launch, instead of being 0
    bool trace = false;
    bool auto_sync = true;  // the compiler orders the scalar and vector units of a vector core
    std::vector<LaunchReport> launches;
};

Session &TheSession();

}  // namespace evokernel::twin
