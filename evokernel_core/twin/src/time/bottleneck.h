// What kept a core from being faster, in one sentence made of figures of the run.
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

// "MTE2-bound: 81 % busy; V idle 64 % waiting for copies of 2.0 KB, below the efficient 16 KB."
std::string Bottleneck(const CoreTime &time);

}  // namespace evokernel::twin
