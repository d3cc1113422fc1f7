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
#define ASCEND_IS_AIV (!::evokernel::twin::OnCubeCore())
#define ASCEND_IS_AIC (::evokernel::twin::OnCubeCore())
#define ASCEND_IS_NOT_AIV (::evokernel::twin::OnCubeCore())
#define ASCEND_IS_NOT_AIC (!::evokernel::twin::OnCubeCore())
#define ASCENDC_ASSERT(condition, ...) assert(condition)
#define KERNEL_LOG(...)
#define TRACE_START(id)
#define TRACE_STOP(id)

namespace AscendC {

// Which kind of core runs: known only as the kernel runs, unless the source is compiled for one kind.
enum CoreType : int { MIX = 0, AIC = 1, AIV = 2 };
#ifdef EVOKERNEL_CORE_TYPE
inline constexpr int g_coreType = EVOKERNEL_CORE_TYPE;
#else
struct CoreTypeVariable {
    operator int() const { return twin::OnCubeCore() ? AIC : AIV; }
};
inline constexpr CoreTypeVariable g_coreType{};
#endif

using ::printf;
#define PRINTF printf

}  // namespace AscendC
