#include "copies/tscm.h"

#include "matmul/serve.h"

namespace evokernel::twin {

LocalRef InCubeL1(const LocalRef &tensor)
{
    LocalRef seen = tensor;
    // Each of a block's two vector cores has one half of L1.
    seen.address += static_cast<uint32_t>(TheCore().sub) * static_cast<uint32_t>(SpaceBytes(Space::L1) / 2);
    seen.limit = static_cast<uint32_t>(SpaceBytes(Space::L1));
    seen.position = static_cast<uint8_t>(AscendC::TPosition::A1);
    seen.buffer = 0;
    return seen;
}

bool PostedToCube(const LocalRef &tensor, std::function<void(const LocalRef &)> copy, At at)
{
    if (TheCore().kind != CoreKind::Vector || SpaceOf(tensor) != Space::L1 || TheCore().cubes == 0) {
        return false;
    }
    const LocalRef seen = InCubeL1(tensor);
    PostToCube([seen, copy = std::move(copy)] { copy(seen); }, at);
    return true;
}

}  // namespace evokernel::twin
