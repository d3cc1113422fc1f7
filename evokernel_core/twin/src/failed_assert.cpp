// The C library's assert in a kernel: it ends the launch, not the process.
#include <cstdlib>

#include "evokernel/twin/debug.h"

#if defined(__GLIBC__)
extern "C" __attribute__((visibility("default"))) void __assert_fail(const char *condition, const char *file,
                                                                     unsigned int line, const char *) noexcept
{
    evokernel::twin::FailAssert(condition, evokernel::twin::At{file, static_cast<int>(line)});
    std::abort();
}
#endif
