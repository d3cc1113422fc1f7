// Macros of the operator framework: kernel types, tiling data, tracing.
#pragma once
#include <cassert>
#include <cstdio>
#include <cstring>

#include "evokernel/twin/tensor.h"

enum KernelMetaType {
    KERNEL_TYPE_AIV_ONLY,
    KERNEL_TYPE_AIC_ONLY,
    KERNEL_TYPE_MIX_AIV_1_0,
    KERNEL_TYPE_MIX_AIC_1_0,
    KERNEL_TYPE_MIX_AIC_1_1,
    KERNEL_TYPE_MIX_AIC_1_2,
    KERNEL_TYPE_MAX,
};

#define KERNEL_TASK_TYPE_DEFAULT(type) static_cast<void>(type)
#define KERNEL_TASK_TYPE(key, type) static_cast<void>(type)
#define REGISTER_TILING_DEFAULT(Type)
#define REGISTER_TILING_FOR_TILINGKEY(expression, Type)
#define GET_TILING_DATA_WITH_STRUCT(Type, name, address) \
    Type name;                                           \
    std::memcpy(&name, address, sizeof(Type))
#define COPY_TILING_WITH_STRUCT(Type, source, target) std::memcpy(target, source, sizeof(Type))
#define ASCEND_IS_AIV constexpr(true)
#define ASCEND_IS_AIC constexpr(false)
#define ASCENDC_ASSERT(condition, ...) assert(condition)
#define KERNEL_LOG(...)
#define TRACE_START(id)
#define TRACE_STOP(id)

namespace AscendC {

using ::printf;
#define PRINTF printf

}  // namespace AscendC
