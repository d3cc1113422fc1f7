#include "copies/atomics.h"

#include <algorithm>
#include <cstring>

namespace evokernel::twin {

namespace {

template <typename T> T Combine(Atomic op, T a, T b)
{
    if (op == Atomic::Max) {
        return a < b ? b : a;
    }
    if (op == Atomic::Min) {
        return b < a ? b : a;
    }
    return static_cast<T>(a + b);
}

template <typename T> void Loop(Atomic op, uint8_t *to, const uint8_t *from, uint32_t bytes)
{
    for (uint32_t i = 0; i + sizeof(T) <= bytes; i += sizeof(T)) {
        T a;
        T b;
        std::memcpy(&a, to + i, sizeof(T));
        std::memcpy(&b, from + i, sizeof(T));
        a = Combine(op, a, b);
        std::memcpy(to + i, &a, sizeof(T));
    }
}

}  // namespace

void ApplyAtomic(Atomic op, DType dtype, uint8_t *to, const uint8_t *from, uint32_t bytes)
{
    switch (dtype) {
        case DType::S8:
            return Loop<int8_t>(op, to, from, bytes);
        case DType::S16:
            return Loop<int16_t>(op, to, from, bytes);
        case DType::F16:
            return Loop<half>(op, to, from, bytes);
        case DType::BF16:
            return Loop<bfloat16_t>(op, to, from, bytes);
        case DType::S32:
            return Loop<int32_t>(op, to, from, bytes);
        default:
            return Loop<float>(op, to, from, bytes);
    }
}

}  // namespace evokernel::twin
