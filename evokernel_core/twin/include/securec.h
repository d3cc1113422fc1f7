// Memory and string functions that know the size of their destination.
#pragma once
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstring>

using errno_t = int;
#ifndef EOK
#define EOK 0
#endif
#ifndef SECUREC_MEM_MAX_LEN
#define SECUREC_MEM_MAX_LEN (0x7fffffffUL)
#endif
#ifndef SECUREC_STRING_MAX_LEN
#define SECUREC_STRING_MAX_LEN (0x7fffffffUL)
#endif

inline errno_t memcpy_s(void *target, size_t capacity, const void *source, size_t count)
{
    if (target == nullptr || source == nullptr) {
        return EINVAL;
    }
    if (count > capacity) {
        return ERANGE;
    }
    std::memcpy(target, source, count);
    return EOK;
}

inline errno_t memmove_s(void *target, size_t capacity, const void *source, size_t count)
{
    if (target == nullptr || source == nullptr) {
        return EINVAL;
    }
    if (count > capacity) {
        return ERANGE;
    }
    std::memmove(target, source, count);
    return EOK;
}

inline errno_t memset_s(void *target, size_t capacity, int value, size_t count)
{
    if (target == nullptr) {
        return EINVAL;
    }
    if (count > capacity) {
        return ERANGE;
    }
    std::memset(target, value, count);
    return EOK;
}

// Behind `start` characters of `target`; a text that does not fit leaves an empty one.
inline errno_t evokernel_append_s(char *target, size_t capacity, size_t start, const char *source, size_t most)
{
    if (target == nullptr || source == nullptr || capacity == 0) {
        return EINVAL;
    }
    const size_t length = strnlen(source, most);
    if (start >= capacity || length >= capacity - start) {
        target[0] = '\0';
        return ERANGE;
    }
    std::memmove(target + start, source, length);
    target[start + length] = '\0';
    return EOK;
}

inline errno_t strcpy_s(char *target, size_t capacity, const char *source)
{
    return evokernel_append_s(target, capacity, 0, source, static_cast<size_t>(-1));
}
inline errno_t strncpy_s(char *target, size_t capacity, const char *source, size_t count)
{
    return evokernel_append_s(target, capacity, 0, source, count);
}
inline errno_t strcat_s(char *target, size_t capacity, const char *source)
{
    const size_t start = target == nullptr ? 0 : strnlen(target, capacity);
    return evokernel_append_s(target, capacity, start, source, static_cast<size_t>(-1));
}
inline errno_t strncat_s(char *target, size_t capacity, const char *source, size_t count)
{
    const size_t start = target == nullptr ? 0 : strnlen(target, capacity);
    return evokernel_append_s(target, capacity, start, source, count);
}
inline char *strtok_s(char *text, const char *marks, char **rest) { return strtok_r(text, marks, rest); }

// The characters written, -1 where they do not fit.
__attribute__((format(printf, 4, 0))) inline int vsnprintf_s(char *target, size_t capacity, size_t most,
                                                             const char *format, va_list values)
{
    if (target == nullptr || format == nullptr || capacity == 0) {
        return -1;
    }
    const size_t room = most < capacity ? most + 1 : capacity;
    const int written = std::vsnprintf(target, room, format, values);
    return written < 0 || static_cast<size_t>(written) >= room ? -1 : written;
}
__attribute__((format(printf, 4, 5))) inline int snprintf_s(char *target, size_t capacity, size_t most,
                                                            const char *format, ...)
{
    va_list values;
    va_start(values, format);
    const int written = vsnprintf_s(target, capacity, most, format, values);
    va_end(values);
    return written;
}
__attribute__((format(printf, 3, 0))) inline int vsprintf_s(char *target, size_t capacity, const char *format,
                                                            va_list values)
{
    return vsnprintf_s(target, capacity, capacity, format, values);
}
__attribute__((format(printf, 3, 4))) inline int sprintf_s(char *target, size_t capacity, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    const int written = vsprintf_s(target, capacity, format, values);
    va_end(values);
    return written;
}
