// The part of the host runtime that a program with its own main needs. There is one device; its
// memory is host memory that the twin watches.
#pragma once
#include <cstddef>
#include <cstdint>

#include "evokernel/twin/launch_site.h"

using aclError = int;
using aclrtStream = void *;
using aclrtContext = void *;
using aclrtEvent = void *;

constexpr aclError ACL_SUCCESS = 0;
constexpr aclError ACL_ERROR_NONE = 0;

enum aclrtMemMallocPolicy {
    ACL_MEM_MALLOC_HUGE_FIRST,
    ACL_MEM_MALLOC_HUGE_ONLY,
    ACL_MEM_MALLOC_NORMAL_ONLY,
};
enum aclrtMemcpyKind {
    ACL_MEMCPY_HOST_TO_HOST,
    ACL_MEMCPY_HOST_TO_DEVICE,
    ACL_MEMCPY_DEVICE_TO_HOST,
    ACL_MEMCPY_DEVICE_TO_DEVICE,
};

extern "C" {
aclError aclInit(const char *config);
aclError aclFinalize();
aclError aclrtSetDevice(int32_t device);
aclError aclrtResetDevice(int32_t device);
aclError aclrtGetDevice(int32_t *device);
aclError aclrtGetDeviceCount(uint32_t *count);
aclError aclrtCreateContext(aclrtContext *context, int32_t device);
aclError aclrtDestroyContext(aclrtContext context);
aclError aclrtSetCurrentContext(aclrtContext context);
aclError aclrtCreateStream(aclrtStream *stream);
aclError aclrtDestroyStream(aclrtStream stream);
aclError aclrtSynchronizeStream(aclrtStream stream);
aclError aclrtSynchronizeDevice();
aclError aclrtMalloc(void **device, size_t bytes, aclrtMemMallocPolicy policy);
aclError aclrtFree(void *device);
aclError aclrtMallocHost(void **host, size_t bytes);
aclError aclrtFreeHost(void *host);
aclError aclrtMemcpy(void *dst, size_t capacity, const void *src, size_t bytes, aclrtMemcpyKind kind);
aclError aclrtMemcpyAsync(void *dst, size_t capacity, const void *src, size_t bytes, aclrtMemcpyKind kind,
                          aclrtStream stream);
aclError aclrtMemset(void *device, size_t capacity, int32_t value, size_t bytes);
aclError aclrtGetMemInfo(int attribute, size_t *available, size_t *total);
const char *aclGetRecentErrMsg();
}
