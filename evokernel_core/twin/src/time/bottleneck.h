// What kept a core from being faster, in figures of the run.
#pragma once
#include <string>

#include "time/pipeline.h"

namespace evokernel::twin {

// The cycles of a core and of each of its pipes, and what the lines of the kernel take of them.
struct CoreTime {
    double cycles = 0;
    PipeUse use[kPipes];
    std::vector<LineUse> lines[kPipes];
};

// JSON: the busiest pipe, how many percent of the time it and the pipe that computes wait and what for, and the
// mean size of its copies where they are small. twin/bottleneck.py says it in words.
std::string Bottleneck(const CoreTime &time);

}  // namespace evokernel::twin
