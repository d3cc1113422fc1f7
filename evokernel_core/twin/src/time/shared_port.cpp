#include "time/shared_port.h"

#include <algorithm>

namespace evokernel::twin {

double SharedPort::Take(double start, double cycles)
{
    double until = start;
    for (auto number = static_cast<int64_t>(start / kCycles); cycles > 0; ++number) {
        Stretch &stretch = ring_[static_cast<size_t>(number % kStretches)];
        if (stretch.number > number) {
            return until;  // so far behind the other cores that nobody knows what they took
        }
        if (stretch.number < number) {
            stretch = Stretch{number, 0};
        }
        const double begin = static_cast<double>(number) * kCycles;
        const double from = std::max(stretch.used, start - begin);
        const double taken = std::min(cycles, std::max(0.0, kCycles - from));
        if (taken > 0) {
            until = begin + from + taken;
            stretch.used += taken;
            cycles -= taken;
        }
    }
    return until;
}

}  // namespace evokernel::twin
