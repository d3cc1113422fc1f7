#include "cube/space.h"

#include <cstring>

namespace evokernel::twin {

bool OpenCells(const LocalRef &tensor, uint64_t bytes, uint32_t alignment, bool write, const char *api,
               const char *operand, At at, uint32_t spaces, Cells *cells)
{
    const Core &core = TheCore();
    const Space space = SpaceOf(tensor);
    const LocalMemory &memory = core.memory[static_cast<int>(space)];
    LocalRef checked = tensor;
    const bool fixed = space != Space::UB && tensor.buffer == 0 && tensor.address >= core.used[static_cast<int>(space)];
    const uint64_t end = uint64_t{tensor.address} + bytes;
    if (fixed && memory.data != nullptr && end <= memory.capacity && end > tensor.limit) {
        ReportWarning("declared-size", at, "%s %s %llu bytes of %s, but its tensor was declared with %lld; make it larger.",
                      api, write ? "writes" : "reads", static_cast<unsigned long long>(bytes), operand,
                      static_cast<long long>(tensor.limit) - static_cast<long long>(tensor.address));
        checked.limit = memory.capacity;
    }
    cells->data = CheckRange(checked, bytes, alignment, write, api, operand, at, spaces);
    if (cells->data == nullptr) {
        return false;
    }
    cells->undefined = memory.undefined + tensor.address;
    cells->address = tensor.address;
    cells->space = space;
    return true;
}

void ShadowFromGlobal(const Allocation &block, const uint8_t *from, uint8_t *shadow, uint64_t bytes)
{
    if (block.written == nullptr) {
        std::memset(shadow, 0, bytes);
        return;
    }
    const uint8_t *written = block.written + (from - block.base);
    for (uint64_t i = 0; i < bytes; ++i) {
        shadow[i] = written[i] == 0 ? kUndefined : 0;
    }
}

void RunCube(Pipe pipe, const char *api, double cycles, At at)
{
    BeginInstruction(pipe, api, at);
    TheCore().time.Run(pipe, cycles, api, at.line, at.file);
}

double LoadRate(Space target)
{
    const Chip &chip = CurrentChip();
    return target == Space::L0A ? chip.l1_l0a_rate : chip.l1_l0b_rate;
}

}  // namespace evokernel::twin
