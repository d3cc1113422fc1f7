#include "cube/space.h"

#include <algorithm>
#include <cstring>

namespace evokernel::twin {

void Touches::Add(uint64_t address, uint64_t bytes)
{
    if (!race::installed) {
        return;
    }
    if (!ranges_.empty() && ranges_.back().end == address) {
        ranges_.back().end += bytes;
    } else {
        ranges_.push_back(Range{address, address + bytes});
    }
}

void Touches::Tell()
{
    std::sort(ranges_.begin(), ranges_.end(), [](const Range &a, const Range &b) { return a.start < b.start; });
    for (size_t i = 0; i < ranges_.size();) {
        Range whole = ranges_[i];
        for (++i; i < ranges_.size() && ranges_[i].start <= whole.end; ++i) {
            whole.end = std::max(whole.end, ranges_[i].end);
        }
        Touch(space_, static_cast<uint32_t>(whole.start), whole.end - whole.start, write_);
    }
    ranges_.clear();
}

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
                      api, write ? Word("writes") : Word("reads"), static_cast<unsigned long long>(bytes), operand,
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
