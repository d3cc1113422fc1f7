// The place of a call in the kernel's source, taken by default arguments.
#pragma once

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
