// The rest of a local memory as one tensor.
#include "evokernel/twin/stack.h"

#include "chip.h"
#include "core.h"

namespace evokernel::twin {

LocalRef RestOfMemory(AscendC::TPosition position, At at)
{
    const Core &core = TheCore();
    const auto space = static_cast<int>(SpaceOf(position));
    const uint32_t capacity = space == static_cast<int>(Space::UB)
                                  ? static_cast<uint32_t>(CurrentChip().ub_total_bytes)
                                  : core.memory[space].capacity;
    LocalRef ref;
    ref.address = core.used[space];
    ref.limit = capacity;
    ref.bytes = capacity > ref.address ? capacity - ref.address : 0;
    ref.position = static_cast<uint8_t>(position);
    if (ref.bytes == 0) {
        ReportError("ub-capacity", at, "PopStackBuffer finds no memory left: all %u bytes are given out.", capacity);
    }
    return ref;
}

}  // namespace evokernel::twin
