// Calls that only the host has, made by a kernel: device code knows no files, clocks or processes.
//
// The names below come before those of the C library for everything in the process. Outside of kernels
// they do nothing but pass the call on.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/time.h>
#include <sys/types.h>

#include <cstdarg>
#include <cstdio>
#include <ctime>

#include "host/host_call.h"

namespace {

template <typename Function>
Function *Next(const char *name)
{
    return reinterpret_cast<Function *>(::dlsym(RTLD_NEXT, name));
}

void Notice(const char *name) { evokernel::twin::NoticeHostCall(name); }

mode_t ModeOf(int flags, va_list arguments)
{
    return (flags & (O_CREAT | O_TMPFILE)) != 0 ? static_cast<mode_t>(va_arg(arguments, int)) : 0;
}

}  // namespace

extern "C" {

FILE *fopen(const char *path, const char *mode)
{
    Notice("fopen");
    static const auto next = Next<FILE *(const char *, const char *)>("fopen");
    return next(path, mode);
}

FILE *fopen64(const char *path, const char *mode)
{
    Notice("fopen");
    static const auto next = Next<FILE *(const char *, const char *)>("fopen64");
    return next(path, mode);
}

int open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = ModeOf(flags, arguments);
    va_end(arguments);
    Notice("open");
    static const auto next = Next<int(const char *, int, ...)>("open");
    return next(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = ModeOf(flags, arguments);
    va_end(arguments);
    Notice("open");
    static const auto next = Next<int(const char *, int, ...)>("open64");
    return next(path, flags, mode);
}

time_t time(time_t *result) noexcept
{
    Notice("time");
    static const auto next = Next<time_t(time_t *)>("time");
    return next(result);
}

int clock_gettime(clockid_t clock, struct timespec *result) noexcept
{
    Notice("clock_gettime");
    static const auto next = Next<int(clockid_t, struct timespec *)>("clock_gettime");
    return next(clock, result);
}

int gettimeofday(struct timeval *result, void *zone) noexcept
{
    Notice("gettimeofday");
    static const auto next = Next<int(struct timeval *, void *)>("gettimeofday");
    return next(result, zone);
}

char *getenv(const char *name) noexcept
{
    Notice("getenv");
    static const auto next = Next<char *(const char *)>("getenv");
    return next(name);
}

int rand() noexcept
{
    Notice("rand");
    static const auto next = Next<int()>("rand");
    return next();
}

pid_t fork() noexcept
{
    Notice("fork");
    static const auto next = Next<pid_t()>("fork");
    return next();
}

int system(const char *command)
{
    Notice("system");
    static const auto next = Next<int(const char *)>("system");
    return next(command);
}
}
