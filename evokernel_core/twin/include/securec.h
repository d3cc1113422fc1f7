// Memory and string functions that know the size of their destination.
#pragma once
#include <cstddef>
#include <cstring>

using errno_t = int;
#ifndef EOK
#define EOK 0
#endif

inline errno_t memcpy_s(void *target, size_t capacity, const void *source, size_t count)
{
    constexpr errno_t too_small = 34;  // ERANGE
    if (target == nullptr || source == nullptr || count > capacity) {
        return too_small;
    }
    std::memcpy(target, source, count);
    return EOK;
}

inline errno_t memset_s(void *target, size_t capacity, int value, size_t count)
{
    constexpr errno_t too_small = 34;  // ERANGE
    if (target == nullptr || count > capacity) {
        return too_small;
    }
    std::memset(target, value, count);
    return EOK;
}
