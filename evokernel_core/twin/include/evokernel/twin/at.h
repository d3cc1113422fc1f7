// The place of a call in the kernel's source, taken by default arguments.
#pragma once
#include <type_traits>

namespace evokernel::twin {

struct At {
    const char *file;
    int line;

    static constexpr At Here(const char *file = __builtin_FILE(), int line = __builtin_LINE())
    {
        return At{file, line};
    }
};

}  // namespace evokernel::twin

// The last parameter of every API function: where it was called.
#define EVK_AT ::evokernel::twin::At at = ::evokernel::twin::At::Here()

// A function's address has the published type, without the place: each function whose address kernels take has
// a second form for that. It is more general than the first, so that a plain call takes the first; what it
// reports is at the place of the call before it.
#define EVK_ONLY(Given, Type) std::enable_if_t<std::is_same_v<Given, Type>, int> = 0
