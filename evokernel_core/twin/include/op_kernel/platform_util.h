// Sizes of the vector unit, as kernels of operator libraries ask for them.
#pragma once
#include <cstdint>

namespace Ops::Base {

constexpr uint32_t GetUbBlockSize() { return 32; }
constexpr uint32_t GetVRegSize() { return 256; }

}  // namespace Ops::Base
