// What the device compiler knows without a header, for a host compiler in CUDA mode: execution spaces,
// address spaces, scalar types and the enumerations of its intrinsics, as the public documentation and
// samples write them.
#pragma once
#include <cassert>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <type_traits>

#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __aicore__ __device__
#define __inline__ inline
#define __vector__
#define __cube__
#define __mix__(cube, vec)
#define __schedmode__(mode)

// Hints to the device compiler, without a meaning for types.
#define __in_pipe__(...)
#define __out_pipe__(...)
#define __inout_pipe__(...)
#define __sync_alias__
#define __check_sync_alias__
#define __sync_noalias__

#define __gm__ __attribute__((address_space(1)))
#define __ubuf__ __attribute__((address_space(2)))
#define __cbuf__ __attribute__((address_space(3)))
#define __ca__ __attribute__((address_space(4)))
#define __cb__ __attribute__((address_space(5)))
#define __cc__ __attribute__((address_space(6)))
#define __fbuf__ __attribute__((address_space(7)))
#define __biasbuf__ __attribute__((address_space(8)))
#define __ssbuf__ __attribute__((address_space(9)))

using half = _Float16;
struct bfloat16_t {
    uint16_t bits;
    bfloat16_t() = default;
    template <typename T, typename = std::enable_if_t<std::is_convertible_v<T, float>>>
    __host__ __device__ constexpr bfloat16_t(T value) : bits(static_cast<uint16_t>(static_cast<float>(value))) {}
    __host__ __device__ constexpr operator float() const { return bits; }
};

enum pipe_t { PIPE_S, PIPE_V, PIPE_M, PIPE_MTE1, PIPE_MTE2, PIPE_MTE3, PIPE_ALL, PIPE_MTE4, PIPE_MTE5, PIPE_V2, PIPE_FIX };
enum addr_cal_mode_t { inc, dec };
enum event_t { EVENT_ID0, EVENT_ID1, EVENT_ID2, EVENT_ID3, EVENT_ID4, EVENT_ID5, EVENT_ID6, EVENT_ID7 };

template <typename... Args> __device__ int printf(const char *format, Args...);
extern "C" __device__ void __assert_fail(const char *, const char *, unsigned, const char *) noexcept;
extern __device__ const int64_t block_idx; // built into the device's compiler
extern __device__ const int64_t block_num;

// kernel<<<blockDim, l2ctrl, stream>>>(...)
int __cudaPushCallConfiguration(uint32_t blockDim, void *l2ctrl, void *stream = nullptr);

// An argument of a launch: an address of host code becomes one of the kernel's parameter.
struct LaunchedAddress {
    template <typename T> operator T *() const;
};
template <typename T> LaunchedAddress Launched(T *address);
template <typename T, typename = std::enable_if_t<!std::is_pointer_v<std::decay_t<T>>>> T &&Launched(T &&value);
LaunchedAddress Launched(decltype(nullptr));
