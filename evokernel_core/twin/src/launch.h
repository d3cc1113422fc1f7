// What a launch took: the time of each block, and what the slowest one did.
#pragma once
#include <string>
#include <vector>

#include "pipeline.h"

namespace evokernel::twin {

struct LaunchReport {
    std::string kernel;
    uint32_t blocks = 0;
    double latency_us = 0;
    double busy_us[kPipes] = {};
    std::string bottleneck;
    uint32_t slowest = 0;
    std::vector<TraceEvent> events;
};

struct Session {
    bool timing = false;
    bool trace = false;
    std::vector<LaunchReport> launches;
};

Session &TheSession();

}  // namespace evokernel::twin
