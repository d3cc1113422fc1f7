// Keywords that the device compiler knows and g++ does not.
#pragma once
#include <cstdint>

#define __global__
#define __aicore__
#define __forceinline__ inline
#define __vector__
#define __cube__
#define __mix__(cube, vector)
#define __host__
#define __gm__
#define __ubuf__
#define __cbuf__
#define __ca__
#define __cb__
#define __cc__
#define __fbuf__
#define __biasbuf__
#define __ssbuf__
#define __inout_pipe__(pipe)
#define __in_pipe__(pipe)
#define __out_pipe__(pipe)
#define __sync_alias__
#define __schedmode__(mode)
#define __kfc_workspace__
#define __tiling_data_ptr__
#define GM_ADDR __gm__ uint8_t *

#ifndef __NPU_ARCH__
#define __NPU_ARCH__ 2201
#endif
#ifndef NPU_ARCH
#define NPU_ARCH 2201
#endif
#ifndef __CCE_AICORE__
#define __CCE_AICORE__ 220
#endif
// The core type that this image is compiled for: 1 cube, 2 vector; an image for both counts as vector.
#if defined(EVOKERNEL_CORE_TYPE) && EVOKERNEL_CORE_TYPE == 1
#define __DAV_C220_CUBE__ 1
#define __DAV_CUBE__ 1
#else
#define __DAV_C220_VEC__ 1
#define __DAV_VEC__ 1
#endif

enum pipe_t { PIPE_S = 0, PIPE_V, PIPE_M, PIPE_MTE1, PIPE_MTE2, PIPE_MTE3, PIPE_ALL, PIPE_FIX };

enum event_t {
    EVENT_ID0 = 0,
    EVENT_ID1,
    EVENT_ID2,
    EVENT_ID3,
    EVENT_ID4,
    EVENT_ID5,
    EVENT_ID6,
    EVENT_ID7,
};
