// Sizes of the vector unit, as host code of operator libraries asks for them.
#pragma once
#include <cstdint>

#include "tiling/platform/platform_ascendc.h"

namespace Ops::Base {

template <typename Context> uint32_t GetAivCoreNum(const Context *context)
{
    return platform_ascendc::PlatformAscendC(context->GetPlatformInfo()).GetCoreNumAiv();
}
template <typename Context> uint32_t GetAicCoreNum(const Context *context)
{
    return platform_ascendc::PlatformAscendC(context->GetPlatformInfo()).GetCoreNumAic();
}
template <typename Context> uint32_t GetUbSize(const Context *context)
{
    uint64_t bytes = 0;
    platform_ascendc::PlatformAscendC(context->GetPlatformInfo())
        .GetCoreMemSize(platform_ascendc::CoreMemType::UB, bytes);
    return static_cast<uint32_t>(bytes);
}

// Bytes; the chip's are the same whatever the context.
template <typename Context> constexpr uint32_t GetUbBlockSize(const Context *) { return 32; }
template <typename Context> constexpr uint32_t GetVRegSize(const Context *) { return 256; }
template <typename Context> constexpr uint32_t GetCacheLineSize(const Context *) { return 256; }

}  // namespace Ops::Base
