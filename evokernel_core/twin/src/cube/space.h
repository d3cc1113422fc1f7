// Operands of the matrix instructions: their bytes, their shadow, and the checks they share.
#pragma once
#include <cstdint>
#include <vector>

#include "checks.h"
#include "core.h"
#include "cube/layout.h"
#include "evokernel/twin/cube_api.h"

namespace evokernel::twin {

// An operand's bytes from its first one on, and whether each holds a value.
struct Cells {
    uint8_t *data = nullptr;
    uint8_t *undefined = nullptr;
    uint32_t address = 0;
    Space space = Space::UB;

    void Touched(uint64_t offset, uint64_t bytes, bool write) const
    {
        Touch(space, address + static_cast<uint32_t>(offset), bytes, write);
    }
};

// What one instruction reads or writes of a memory, told to the race detector in as few ranges as it makes: it
// moves pieces of 32 bytes, of which many lie side by side and some are read again and again. Writes are told
// before any byte moves: whether they change what another write left is seen by comparing.
class Touches {
public:
    Touches(Space space, bool write) : space_(space), write_(write) {}

    void Add(uint64_t address, uint64_t bytes);
    void Tell();

private:
    struct Range {
        uint64_t start;
        uint64_t end;
    };

    Space space_;
    bool write_;
    std::vector<Range> ranges_;
};

// Checks that an operand reaches `bytes` far; false where it cannot be used. A tensor at a fixed address may
// go beyond its declared size (a warning), one from TPipe may not.
bool OpenCells(const LocalRef &tensor, uint64_t bytes, uint32_t alignment, bool write, const char *api,
               const char *operand, At at, uint32_t spaces, Cells *cells);


// What global memory holds at `from` is written (or not) into the shadow of local memory, and back.
void ShadowFromGlobal(const Allocation &block, const uint8_t *from, uint8_t *shadow, uint64_t bytes);

// Time of a core-internal instruction.
void RunCube(Pipe pipe, const char *api, double cycles, At at);

// Bytes per cycle between L1 and L0A or L0B.
double LoadRate(Space target);

}  // namespace evokernel::twin
