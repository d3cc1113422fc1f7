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
#undef EVK_FILL_GLOBAL

// The older name, which takes a part of a tensor as well.
template <typename T>
void InitOutput(GlobalTensor<T> gmWorkspaceAddr, uint32_t size, T value = 0, EVK_AT)
{
    twin::FillGlobal(gmWorkspaceAddr.Ref(), size, ToBits<T>(value), "InitOutput", at);
}

}  // namespace AscendC
