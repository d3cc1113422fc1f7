// Fill: a range of global memory set to one value.
#pragma once
#include "evokernel/twin/api_vector.h"
#include "evokernel/twin/tensor.h"

namespace AscendC {

#define EVK_FILL_GLOBAL(Name)                                                                                        \
    template <typename T> void Name(GlobalTensor<T> &gmWorkspaceAddr, const uint64_t size, const T value, EVK_AT)    \
    {                                                                                                                \
        twin::FillGlobal(gmWorkspaceAddr.Ref(), size, ToBits<T>(value), #Name, at);                                  \
    }
EVK_FILL_GLOBAL(Fill)
EVK_FILL_GLOBAL(InitGlobalMemory)
EVK_FILL_GLOBAL(InitOutput)
#undef EVK_FILL_GLOBAL

}  // namespace AscendC
