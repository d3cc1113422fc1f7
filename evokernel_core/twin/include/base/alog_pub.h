// Log lines of operators' host code: errors go to standard error, others nowhere.
#pragma once
#include <cstdarg>
#include <cstdio>

enum { DLOG_DEBUG = 0, DLOG_INFO = 1, DLOG_WARN = 2, DLOG_ERROR = 3, DLOG_EVENT = 0x10 };
enum { DLOG_TYPE_DEBUG = 0, DLOG_TYPE_RUN = 1 };
// Modules that operators log as. No macros, so that a project's own names hide them.
enum { TUNE = 33, OP = 63 };
enum { MSG_LENGTH = 1024 };

inline int AlogCheckDebugLevel(unsigned, int level) { return level == DLOG_ERROR ? 1 : 0; }
inline int CheckLogLevel(int, int level) { return level == DLOG_ERROR ? 1 : 0; }

__attribute__((format(printf, 4, 5))) inline void AlogRecord(unsigned, unsigned, int level, const char *text, ...)
{
    if (level == DLOG_ERROR) {
        va_list values;
        va_start(values, text);
        std::vfprintf(stderr, text, values);
        va_end(values);
        std::fputc('\n', stderr);
    }
}

// The same with the name of a part of the module.
__attribute__((format(printf, 4, 5))) inline void DlogSub(unsigned, const char *part, int level, const char *text, ...)
{
    if (level == DLOG_ERROR) {
        va_list values;
        va_start(values, text);
        std::fprintf(stderr, "[%s] ", part);
        std::vfprintf(stderr, text, values);
        va_end(values);
        std::fputc('\n', stderr);
    }
}

#define dlog_error(module, ...) AlogRecord(module, DLOG_TYPE_DEBUG, DLOG_ERROR, __VA_ARGS__)
#define dlog_warn(module, ...) AlogRecord(module, DLOG_TYPE_DEBUG, DLOG_WARN, __VA_ARGS__)
#define dlog_info(module, ...) AlogRecord(module, DLOG_TYPE_DEBUG, DLOG_INFO, __VA_ARGS__)
#define dlog_debug(module, ...) AlogRecord(module, DLOG_TYPE_DEBUG, DLOG_DEBUG, __VA_ARGS__)
#define dlog_event(module, ...) AlogRecord(module, DLOG_TYPE_DEBUG, DLOG_EVENT, __VA_ARGS__)
