// What is left of a core's local memory after TPipe gave out its buffers.
#pragma once
#include "evokernel/twin/tensor.h"

namespace evokernel::twin {

LocalRef RestOfMemory(AscendC::TPosition position, At at);

}  // namespace evokernel::twin

namespace AscendC {

template <typename T, TPosition pos> bool PopStackBuffer(LocalTensor<T> &popLocal, EVK_AT)
{
    popLocal = LocalTensor<T>(twin::RestOfMemory(pos, at));
    return popLocal.GetSize() > 0;
}

}  // namespace AscendC
