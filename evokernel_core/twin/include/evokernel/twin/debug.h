// What a kernel prints and asserts. Output goes to the standard error stream, marked with the core.
#pragma once
#include <cassert>
#include <cstdio>
#include <type_traits>

#include "evokernel/twin/shape.h"
#include "evokernel/twin/tensor.h"

namespace evokernel::twin {

// Outside a kernel this is the host's printf.
int PrintLine(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Fails the launch: what is printed and reported names the condition. Outside a kernel it aborts.
void FailAssert(const char *condition, At at, const char *format = nullptr, ...);
void TrapCore(At at);

void DumpLocal(const LocalRef &tensor, uint32_t label, uint64_t skip, uint32_t count, const AscendC::ShapeInfo *shape,
               At at);
void DumpGlobal(const GlobalRef &tensor, uint32_t label, uint64_t skip, uint32_t count, const AscendC::ShapeInfo *shape,
                At at);
void DumpAddress(const void *address, DType dtype, const char *memory, uint32_t label, uint32_t count, At at);
void PrintTime(uint32_t label, At at);

// What may pass through "...": 16-bit floats become double.
template <typename T> auto Printable(const T &value)
{
    if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16_t>) {
        return static_cast<double>(static_cast<float>(value));
    } else if constexpr (std::is_class_v<T>) {
        return Printable(+value);
    } else {
        return value;
    }
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-security"
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat"
template <typename... Args> int Print(const char *format, const Args &...args)
{
    return PrintLine(format, Printable(args)...);
}
template <typename... Args>
void CheckAssert(bool holds, const char *condition, At at, const char *format, const Args &...args)
{
    if (!holds) {
        FailAssert(condition, at, format, Printable(args)...);
    }
}
inline void CheckAssert(bool holds, const char *condition, At at)
{
    if (!holds) {
        FailAssert(condition, at);
    }
}
#pragma GCC diagnostic pop

}  // namespace evokernel::twin

// Without the namespace: better than the C library's, which knows neither half nor the core.
template <typename First, typename... Args> int printf(const char *format, const First &first, const Args &...args)
{
    return ::evokernel::twin::Print(format, first, args...);
}

#define EVK_CHECK_ASSERT(condition, ...) \
    ::evokernel::twin::CheckAssert(static_cast<bool>(condition), #condition, {__FILE__, __LINE__}, ##__VA_ARGS__)
#define ascendc_assert(...) EVK_CHECK_ASSERT(__VA_ARGS__)
// The device compiler leaves it out: public kernels name in it what is not declared.
#ifndef ASSERT
#define ASSERT(...)
#endif
#ifndef ASSERT_MSG
#define ASSERT_MSG(...)
#endif
#define ASCENDC_ASSERT(condition, behavior)                                               \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            behavior;                                                                     \
            ::evokernel::twin::FailAssert(#condition, {__FILE__, __LINE__});              \
        }                                                                                 \
    } while (false)
#ifndef NDEBUG
#undef assert
#define assert(...) EVK_CHECK_ASSERT(__VA_ARGS__)
#endif

#define KERNEL_ERROR "ERROR"
#define KERNEL_WARN "WARN"
#define KERNEL_INFO "INFO"
#define KERNEL_DEBUG "DEBUG"
#define KERNEL_LOG(level, format, ...) ::evokernel::twin::Print("[" level "] " format "\n", ##__VA_ARGS__)

namespace AscendC {

template <typename... Args> int printf(const char *format, const Args &...args)
{
    return twin::Print(format, args...);
}
template <typename... Args> int PRINTF(const char *format, const Args &...args) { return twin::Print(format, args...); }

inline void Trap(EVK_AT) { twin::TrapCore(at); }

template <typename T> void DumpTensor(const LocalTensor<T> &tensor, uint32_t desc, uint32_t dumpSize, EVK_AT)
{
    twin::DumpLocal(tensor.Ref(), desc, 0, dumpSize, nullptr, at);
}
template <typename T> void DumpTensor(const GlobalTensor<T> &tensor, uint32_t desc, uint32_t dumpSize, EVK_AT)
{
    twin::DumpGlobal(tensor.Ref(), desc, 0, dumpSize, nullptr, at);
}
template <typename T>
void DumpTensor(const LocalTensor<T> &tensor, uint32_t desc, uint32_t dumpSize, const ShapeInfo &shapeInfo, EVK_AT)
{
    twin::DumpLocal(tensor.Ref(), desc, 0, dumpSize, &shapeInfo, at);
}
template <typename T>
void DumpTensor(const GlobalTensor<T> &tensor, uint32_t desc, uint32_t dumpSize, const ShapeInfo &shapeInfo, EVK_AT)
{
    twin::DumpGlobal(tensor.Ref(), desc, 0, dumpSize, &shapeInfo, at);
}
template <typename T>
void DumpAccChkPoint(const LocalTensor<T> &tensor, uint32_t index, uint32_t countOff, uint32_t dumpSize, EVK_AT)
{
    twin::DumpLocal(tensor.Ref(), index, countOff, dumpSize, nullptr, at);
}
template <typename T>
void DumpAccChkPoint(const GlobalTensor<T> &tensor, uint32_t index, uint32_t countOff, uint32_t dumpSize, EVK_AT)
{
    twin::DumpGlobal(tensor.Ref(), index, countOff, dumpSize, nullptr, at);
}
inline void PrintTimeStamp(uint32_t descId, EVK_AT) { twin::PrintTime(descId, at); }

}  // namespace AscendC

template <typename T> void asc_dump_gm(__gm__ T *address, uint32_t desc, uint32_t count, EVK_AT)
{
    ::evokernel::twin::DumpAddress(address, ::evokernel::twin::kDType<std::remove_cv_t<T>>, "GM", desc, count, at);
}
template <typename T> void asc_dump_ubuf(__ubuf__ T *address, uint32_t desc, uint32_t count, EVK_AT)
{
    ::evokernel::twin::DumpAddress(address, ::evokernel::twin::kDType<std::remove_cv_t<T>>, "UB", desc, count, at);
}
template <typename T> void asc_dump_l1buf(__cbuf__ T *address, uint32_t desc, uint32_t count, EVK_AT)
{
    ::evokernel::twin::DumpAddress(address, ::evokernel::twin::kDType<std::remove_cv_t<T>>, "L1", desc, count, at);
}
template <typename T> void asc_dump_cbuf(__cc__ T *address, uint32_t desc, uint32_t count, EVK_AT)
{
    ::evokernel::twin::DumpAddress(address, ::evokernel::twin::kDType<std::remove_cv_t<T>>, "L0C", desc, count, at);
}
