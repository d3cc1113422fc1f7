// Entry points of the library for the element-wise high-level functions, on the kernel's and the host's side.
#pragma once
#include "evokernel/twin/refs.h"

namespace evokernel::twin {

enum class Math : uint8_t {
    Tanh, Sigmoid, Erf, Erfc, Gelu, FasterGelu, FasterGeluV2, Silu, Swish, Log, Log2, Log10, Sin, Cos, Tan, Asin, Acos,
    Atan, Sinh, Cosh, Asinh, Acosh, Atanh, Ceil, Floor, Round, Trunc, Frac, Sign, ClampMax, ClampMin, Power,
    PowerScalar, ScalarPower, Exp, Fmod, Lgamma, Digamma, Xor, Axpy, GeGLU, ReGlu, SwiGLU,
};

// `temporary` null: the framework takes one. `terms`: of the Taylor expansion of Exp (0: none).
struct MathCallArguments {
    Math op;
    LocalRef dst;
    LocalRef src0;
    const LocalRef *src1 = nullptr;
    Scalar scalar;
    const LocalRef *temporary = nullptr;
    int64_t count = 0;
    int terms = 0;
};
void MathCall(const MathCallArguments &call, At at);

// Sizes of the temporary: how many times the operand's size is alive at once, and the bytes for one
// repeat (the least) and for all elements (the most that is of use).
uint32_t MathLiveNodes(Math op, uint32_t type_size);
void MathTemporary(Math op, uint64_t elements, uint32_t type_size, uint32_t *most, uint32_t *least);

}  // namespace evokernel::twin
