// Device memory as the cores of a block share it where it has cores of both kinds.
#pragma once
#include <cstdint>
#include <vector>

namespace evokernel::twin {

// Together the cores never have more than the block's share of it, and each kind has all of that while the other asks
// for nothing. Cores come in turns and not in the order of time, so the books are kept by stretches of it.
class SharedPort {
public:
    // Takes `cycles` of the block's share from `start` on and returns when they are over.
    double Take(double start, double cycles);

private:
    struct Stretch {
        int64_t number = -1;
        double used = 0;
    };
    static constexpr double kCycles = 512;       // of a stretch
    static constexpr int64_t kStretches = 1024;  // a ring: cores of a block are less than this apart

    std::vector<Stretch> ring_ = std::vector<Stretch>(kStretches);
};

}  // namespace evokernel::twin
