// The host runtime for programs with their own main, and the result that such a program leaves.
#include "acl/acl.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core.h"
#include "launch.h"
#include "result.h"

namespace {

using evokernel::twin::Allocation;
using evokernel::twin::Gm;
using evokernel::twin::Kind;

constexpr aclError kInvalid = 100000;   // ACL_ERROR_INVALID_PARAM
constexpr aclError kNoMemory = 200000;  // ACL_ERROR_BAD_ALLOC

void WriteResultAtExit()
{
    const char *path = std::getenv("EVOKERNEL_TWIN_RESULT");
    if (path != nullptr) {
        evokernel::twin::RunOutcome outcome;
        outcome.ok = !evokernel::twin::HasErrors();
        evokernel::twin::WriteResult(path, outcome);
    }
    const char *trace = std::getenv("EVOKERNEL_TWIN_TRACE");
    if (trace != nullptr) {
        evokernel::twin::WriteTrace(trace);
    }
}

// Reads the chip before main runs, and arranges for the result to be written after it.
struct Program {
    Program()
    {
        const char *chip = std::getenv("EVOKERNEL_TWIN_CHIP");
        if (chip == nullptr) {
            return;  // a candidate under the runner, which reads its own request
        }
        std::string error;
        if (!evokernel::twin::LoadChip(chip, &evokernel::twin::CurrentChip(), &error)) {
            std::fprintf(stderr, "%s\n", error.c_str());
            std::exit(2);
        }
        const char *mode = std::getenv("EVOKERNEL_TWIN_MODE");
        evokernel::twin::TheSession().timing = mode != nullptr && std::strcmp(mode, "time") == 0;
        evokernel::twin::TheSession().trace = std::getenv("EVOKERNEL_TWIN_TRACE") != nullptr;
        evokernel::twin::Gm();
        evokernel::twin::ClearHazards();
        std::atexit(WriteResultAtExit);
    }
};

const Program program;

void Defined(void *address, size_t bytes)
{
    Allocation *block = Gm().Find(static_cast<const uint8_t *>(address));
    if (block != nullptr && block->written != nullptr) {
        const size_t offset = static_cast<size_t>(static_cast<uint8_t *>(address) - block->base);
        std::memset(block->written + offset, 1, bytes);
    }
}

// Timing mode gives large blocks addresses without memory: nothing is copied to or from them.
bool Unbacked(const void *address)
{
    const Allocation *block = Gm().Find(static_cast<const uint8_t *>(address));
    return block != nullptr && block->mapping == nullptr;
}

void *Token()
{
    static char token;
    return &token;
}

}  // namespace

extern "C" {

aclError aclInit(const char *) { return ACL_SUCCESS; }
aclError aclFinalize() { return ACL_SUCCESS; }
aclError aclrtSetDevice(int32_t) { return ACL_SUCCESS; }
aclError aclrtResetDevice(int32_t) { return ACL_SUCCESS; }
aclError aclrtGetDevice(int32_t *device)
{
    *device = 0;
    return ACL_SUCCESS;
}
aclError aclrtGetDeviceCount(uint32_t *count)
{
    *count = 1;
    return ACL_SUCCESS;
}
aclError aclrtCreateContext(aclrtContext *context, int32_t)
{
    *context = Token();
    return ACL_SUCCESS;
}
aclError aclrtDestroyContext(aclrtContext) { return ACL_SUCCESS; }
aclError aclrtSetCurrentContext(aclrtContext) { return ACL_SUCCESS; }
aclError aclrtCreateStream(aclrtStream *stream)
{
    *stream = Token();
    return ACL_SUCCESS;
}
aclError aclrtDestroyStream(aclrtStream) { return ACL_SUCCESS; }
aclError aclrtSynchronizeStream(aclrtStream) { return ACL_SUCCESS; }
aclError aclrtSynchronizeDevice() { return ACL_SUCCESS; }

aclError aclrtMalloc(void **device, size_t bytes, aclrtMemMallocPolicy)
{
    static int serial = 0;
    if (bytes == 0 || Gm().TotalBytes() + bytes > evokernel::twin::CurrentChip().hbm_bytes) {
        return bytes == 0 ? kInvalid : kNoMemory;
    }
    Allocation *block = Gm().Allocate("device buffer " + std::to_string(serial++), bytes, Kind::Device,
                                      evokernel::twin::TheSession().timing);
    *device = block == nullptr ? nullptr : block->base;
    return block == nullptr ? kNoMemory : ACL_SUCCESS;
}
aclError aclrtFree(void *device) { return Gm().Release(device) ? ACL_SUCCESS : kInvalid; }

aclError aclrtMallocHost(void **host, size_t bytes)
{
    *host = std::malloc(bytes);
    return *host == nullptr ? kNoMemory : ACL_SUCCESS;
}
aclError aclrtFreeHost(void *host)
{
    std::free(host);
    return ACL_SUCCESS;
}

aclError aclrtMemcpy(void *dst, size_t capacity, const void *src, size_t bytes, aclrtMemcpyKind)
{
    if (bytes > capacity) {
        return kInvalid;
    }
    if (Unbacked(dst) || Unbacked(src)) {
        return ACL_SUCCESS;
    }
    std::memmove(dst, src, bytes);
    Defined(dst, bytes);
    return ACL_SUCCESS;
}
aclError aclrtMemcpyAsync(void *dst, size_t capacity, const void *src, size_t bytes, aclrtMemcpyKind kind, aclrtStream)
{
    return aclrtMemcpy(dst, capacity, src, bytes, kind);
}
aclError aclrtMemset(void *device, size_t capacity, int32_t value, size_t bytes)
{
    if (bytes > capacity) {
        return kInvalid;
    }
    if (Unbacked(device)) {
        return ACL_SUCCESS;
    }
    std::memset(device, value, bytes);
    Defined(device, bytes);
    return ACL_SUCCESS;
}
aclError aclrtGetMemInfo(int, size_t *available, size_t *total)
{
    *total = evokernel::twin::CurrentChip().hbm_bytes;
    *available = *total - Gm().TotalBytes();
    return ACL_SUCCESS;
}
const char *aclGetRecentErrMsg() { return ""; }
}
