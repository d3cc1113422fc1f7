// Macros of the operator framework: kernel types, tiling data, tracing.
#pragma once
#include <cstring>

#include "evokernel/twin/kernel_type.h"
#include "evokernel/twin/tensor.h"
#include "evokernel/twin/tiling_data.h"

#define ASCEND_IS_AIV (!::evokernel::twin::OnCubeCore())
#define ASCEND_IS_AIC (::evokernel::twin::OnCubeCore())
#define ASCEND_IS_NOT_AIV (::evokernel::twin::OnCubeCore())
#define ASCEND_IS_NOT_AIC (!::evokernel::twin::OnCubeCore())
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

}  // namespace AscendC

using AscendC::g_coreType;  // kernels also name it without the namespace
