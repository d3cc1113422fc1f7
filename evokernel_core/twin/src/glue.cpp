// Compiled with each candidate: the entry points that the runner looks up. It includes next to nothing and calls what
// the compilers have built in: reading <type_traits> would take longer than all the rest.
#include <cstdint>

#include "tiling.h"

static_assert(__is_trivially_copyable(OpTiling), "OpTiling must be trivially copyable.");
static_assert(sizeof(OpTiling) <= 65536, "OpTiling must have at most 65536 bytes.");

extern "C" void LaunchOp(void *stream, uint8_t *const *tensors, uint8_t *workspace, const OpTiling &tiling);

// Where an object begins without a value of its own.
struct Where {
    void *place;
};
inline void *operator new(decltype(sizeof(0)), Where where) noexcept { return where.place; }

extern "C" __attribute__((visibility("default"))) int EvokernelComputeTiling(
    const int64_t *sizes, const float *scalars, uint32_t coreNum, uint64_t ubBytes, void *buffer, uint64_t capacity,
    uint32_t *blockDim, uint64_t *workspaceBytes)
{
    if (capacity < sizeof(OpTiling)) {
        return 0;
    }
    alignas(OpTiling) unsigned char place[sizeof(OpTiling)];
    __builtin_memcpy(place, buffer, sizeof(place));  // what ComputeTiling leaves unset is something else in each run
    OpTiling &tiling = *new (Where{place}) OpTiling;
    if (!ComputeTiling(sizes, scalars, coreNum, ubBytes, tiling)) {
        return 0;
    }
    *blockDim = static_cast<uint32_t>(tiling.blockDim);
    *workspaceBytes = static_cast<uint64_t>(tiling.workspaceBytes);
    __builtin_memcpy(buffer, &tiling, sizeof(tiling));
    return 1;
}

extern "C" __attribute__((visibility("default"))) void EvokernelLaunch(void *stream, uint8_t *const *tensors,
                                                                      uint8_t *workspace, const void *tiling)
{
    OpTiling copy{};
    __builtin_memcpy(&copy, tiling, sizeof(copy));
    LaunchOp(stream, tensors, workspace, copy);
}
