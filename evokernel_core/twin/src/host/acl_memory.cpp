// Memory of the host runtime: device memory that the twin watches, and page-locked host memory.
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>

#include "chip.h"
#include "hazards.h"
#include "host/acl_status.h"
#include "launch.h"
#include "memory.h"

namespace {

using evokernel::twin::Allocation;
using evokernel::twin::At;
using evokernel::twin::Gm;
using evokernel::twin::acl::Fail;
using Size = unsigned long long;

std::set<void *> &HostBlocks()
{
    static std::set<void *> blocks;
    return blocks;
}

Allocation *DeviceBlock(const void *address)
{
    return address == nullptr ? nullptr : Gm().Find(static_cast<const uint8_t *>(address));
}

// The target of a copy or of a fill has values; in timing mode only where the source has them.
void Defined(const Allocation *block, void *address, size_t bytes, const void *source = nullptr)
{
    if (block == nullptr || block->written == nullptr) {
        return;
    }
    const auto *from = static_cast<const uint8_t *>(source);
    const bool lost = evokernel::twin::TheSession().timing && DeviceBlock(from) != nullptr &&
                      Gm().WithData(from, bytes) == nullptr;
    std::memset(block->written + (static_cast<uint8_t *>(address) - block->base), lost ? 0 : 1, bytes);
}

// The host reads what no kernel and no copy wrote: zeros in fresh memory, anything in memory used before.
void WarnUndefined(const Allocation *block, const void *address, size_t bytes)
{
    if (block == nullptr || block->written == nullptr || evokernel::twin::TheSession().timing) {
        return;
    }
    const uint8_t *written = block->written + (static_cast<const uint8_t *>(address) - block->base);
    const void *first = bytes == 0 ? nullptr : std::memchr(written, 0, bytes);
    if (first != nullptr) {
        evokernel::twin::ReportWarning("uninitialised-read", At{"", 0},
                                       "aclrtMemcpy takes bytes of %s to the host that nothing wrote, from byte %llu on; "
                                       "the device does not promise what they are.",
                                       block->name.c_str(),
                                       static_cast<Size>(static_cast<const uint8_t *>(first) - block->written));
    }
}

// Timing mode gives large blocks addresses without memory: nothing is copied to or from them.
bool Unbacked(const Allocation *block) { return block != nullptr && block->mapping == nullptr; }

// Whether the range lies in its block, which is device memory where `device` says so.
aclError Range(const char *api, const char *side, const void *address, size_t bytes, bool device)
{
    const Allocation *block = DeviceBlock(address);
    if (address == nullptr || (device && block == nullptr)) {
        return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: its %s is no device memory; allocate it with aclrtMalloc.", api, side);
    }
    if (block == nullptr) {
        return ACL_SUCCESS;
    }
    if (!device) {
        return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: its %s is device memory, but its kind says host memory.", api, side);
    }
    const uint64_t left = block->bytes - static_cast<uint64_t>(static_cast<const uint8_t *>(address) - block->base);
    if (bytes > left) {
        evokernel::twin::ReportError("out-of-bounds", At{"", 0}, "%s touches %llu bytes at the %s, where %s has %llu left.",
                                     api, static_cast<Size>(bytes), side, block->name.c_str(), static_cast<Size>(left));
        return ACL_ERROR_RT_PARAM_INVALID;
    }
    return ACL_SUCCESS;
}

struct Sides {
    bool to_device;
    bool from_device;
};

Sides SidesOf(aclrtMemcpyKind kind, const void *dst, const void *src)
{
    switch (kind) {
        case ACL_MEMCPY_HOST_TO_HOST:
            return {false, false};
        case ACL_MEMCPY_HOST_TO_DEVICE:
        case ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE:
            return {true, false};
        case ACL_MEMCPY_DEVICE_TO_HOST:
            return {false, true};
        case ACL_MEMCPY_DEFAULT:
            return {DeviceBlock(dst) != nullptr, DeviceBlock(src) != nullptr};
        default:
            return {true, true};
    }
}

aclError Allocate(const char *api, void **device, size_t bytes, uint64_t behind)
{
    static int serial = 0;
    *device = nullptr;
    const aclError ready = evokernel::twin::acl::NeedDevice(api);
    if (ready != ACL_SUCCESS) {
        return ready;
    }
    if (bytes == 0) {
        return Fail(ACL_ERROR_INVALID_PARAM, "%s is asked for 0 bytes.", api);
    }
    const uint64_t total = evokernel::twin::CurrentChip().hbm_bytes;
    const bool fits = bytes <= total && Gm().TotalBytes() <= total - bytes;
    Allocation *block = !fits ? nullptr
                              : Gm().Allocate(evokernel::twin::Wording("device buffer %d", serial++), bytes,
                                              evokernel::twin::Kind::Device, evokernel::twin::TheSession().timing, false,
                                              behind);
    if (block == nullptr) {
        return Fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "%s is asked for %llu bytes, but %llu of %llu bytes are taken.", api,
                    static_cast<Size>(bytes), static_cast<Size>(Gm().TotalBytes()), static_cast<Size>(total));
    }
    if (evokernel::twin::TheSession().timing) {
        Gm().KeepBooks(*block);
    }
    *device = block->base;
    return ACL_SUCCESS;
}

}  // namespace

extern "C" {

aclError aclrtMalloc(void **device, size_t bytes, aclrtMemMallocPolicy)
{
    return Allocate("aclrtMalloc", device, bytes, evokernel::twin::kBehind);
}
aclError aclrtMallocAlign32(void **device, size_t bytes, aclrtMemMallocPolicy)
{
    return Allocate("aclrtMallocAlign32", device, bytes, 0);
}
aclError aclrtMallocCached(void **device, size_t bytes, aclrtMemMallocPolicy)
{
    return Allocate("aclrtMallocCached", device, bytes, evokernel::twin::kBehind);
}
aclError aclrtFree(void *device)
{
    if (Gm().Release(device)) {
        return ACL_SUCCESS;
    }
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtFree gets an address that aclrtMalloc did not give, or that is free already.");
}

aclError aclrtMallocHost(void **host, size_t bytes)
{
    *host = bytes == 0 ? nullptr : std::malloc(bytes);
    if (*host == nullptr) {
        return Fail(bytes == 0 ? ACL_ERROR_INVALID_PARAM : ACL_ERROR_RT_MEMORY_ALLOCATION,
                    "aclrtMallocHost cannot give %llu bytes.", static_cast<Size>(bytes));
    }
    HostBlocks().insert(*host);
    return ACL_SUCCESS;
}
aclError aclrtFreeHost(void *host)
{
    if (HostBlocks().erase(host) == 0) {
        return Fail(ACL_ERROR_RT_PARAM_INVALID,
                    "aclrtFreeHost gets an address that aclrtMallocHost did not give, or that is free already.");
    }
    std::free(host);
    return ACL_SUCCESS;
}
aclError aclrtMemFlush(void *, size_t) { return ACL_SUCCESS; }
aclError aclrtMemInvalidate(void *, size_t) { return ACL_SUCCESS; }

aclError aclrtMemcpy(void *dst, size_t capacity, const void *src, size_t bytes, aclrtMemcpyKind kind)
{
    if (bytes > capacity) {
        return Fail(ACL_ERROR_INVALID_PARAM, "aclrtMemcpy is asked to copy %llu bytes to a place for %llu.",
                    static_cast<Size>(bytes), static_cast<Size>(capacity));
    }
    const Sides sides = SidesOf(kind, dst, src);
    aclError status = Range("aclrtMemcpy", "destination", dst, bytes, sides.to_device);
    status = status == ACL_SUCCESS ? Range("aclrtMemcpy", "source", src, bytes, sides.from_device) : status;
    const Allocation *target = DeviceBlock(dst);
    if (status == ACL_SUCCESS && target != nullptr && !Unbacked(target) && Unbacked(DeviceBlock(src))) {
        Defined(target, dst, bytes, src);
    }
    if (status != ACL_SUCCESS || Unbacked(target) || Unbacked(DeviceBlock(src))) {
        return status;
    }
    WarnUndefined(DeviceBlock(src), src, bytes);
    std::memmove(dst, src, bytes);
    Defined(target, dst, bytes, src);
    return ACL_SUCCESS;
}
aclError aclrtMemcpyAsync(void *dst, size_t capacity, const void *src, size_t bytes, aclrtMemcpyKind kind, aclrtStream)
{
    return aclrtMemcpy(dst, capacity, src, bytes, kind);
}
aclError aclrtMemcpy2d(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, size_t height,
                       aclrtMemcpyKind kind)
{
    if (width > dst_pitch || width > src_pitch) {
        return Fail(ACL_ERROR_INVALID_PARAM, "aclrtMemcpy2d is asked for rows that are longer than a pitch.");
    }
    for (size_t row = 0; row < height; ++row) {
        const aclError status = aclrtMemcpy(static_cast<uint8_t *>(dst) + row * dst_pitch, width,
                                            static_cast<const uint8_t *>(src) + row * src_pitch, width, kind);
        if (status != ACL_SUCCESS) {
            return status;
        }
    }
    return ACL_SUCCESS;
}
aclError aclrtMemset(void *device, size_t capacity, int32_t value, size_t bytes)
{
    if (bytes > capacity) {
        return Fail(ACL_ERROR_INVALID_PARAM, "aclrtMemset is asked to set %llu bytes in a place for %llu.",
                    static_cast<Size>(bytes), static_cast<Size>(capacity));
    }
    const Allocation *block = DeviceBlock(device);
    const aclError status = Range("aclrtMemset", "address", device, bytes, block != nullptr);
    if (status != ACL_SUCCESS || Unbacked(block)) {
        return status;
    }
    std::memset(device, value, bytes);
    Defined(block, device, bytes);
    return ACL_SUCCESS;
}
aclError aclrtMemsetAsync(void *device, size_t capacity, int32_t value, size_t bytes, aclrtStream)
{
    return aclrtMemset(device, capacity, value, bytes);
}
aclError aclrtGetMemInfo(aclrtMemAttr, size_t *available, size_t *total)
{
    *total = evokernel::twin::CurrentChip().hbm_bytes;
    *available = *total - Gm().TotalBytes();
    return ACL_SUCCESS;
}
}
