// Sizes of the vector unit, as host code of operator libraries asks for them.
#pragma once
#include <cstdint>

namespace Ops::Base {

// Bytes; the chip's are the same whatever the context.
template <typename Context> constexpr uint32_t GetUbBlockSize(const Context *) { return 32; }
template <typename Context> constexpr uint32_t GetVRegSize(const Context *) { return 256; }
template <typename Context> constexpr uint32_t GetCacheLineSize(const Context *) { return 256; }

}  // namespace Ops::Base
