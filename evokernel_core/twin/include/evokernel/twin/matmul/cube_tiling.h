// TCubeTiling: how a matrix product is cut. One plain structure for the kernel, one with setters for the host.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

// Every field in the order of the structure that host and kernel exchange: 50 words.
#define EVK_CUBE_TILING_FIELDS(X)                                                                                  \
    X(usedCoreNum) X(M) X(N) X(Ka) X(Kb) X(singleCoreM) X(singleCoreN) X(singleCoreK) X(baseM) X(baseN) X(baseK)   \
    X(depthA1) X(depthB1) X(stepM) X(stepN) X(isBias) X(transLength) X(iterateOrder) X(shareMode) X(shareL1Size)   \
    X(shareL0CSize) X(shareUbSize) X(batchM) X(batchN) X(singleBatchM) X(singleBatchN) X(stepKa) X(stepKb)         \
    X(depthAL1CacheUB) X(depthBL1CacheUB) X(dbL0A) X(dbL0B) X(dbL0C)                                               \
    X(ALayoutInfoB) X(ALayoutInfoS) X(ALayoutInfoN) X(ALayoutInfoG) X(ALayoutInfoD)                                \
    X(BLayoutInfoB) X(BLayoutInfoS) X(BLayoutInfoN) X(BLayoutInfoG) X(BLayoutInfoD)                                \
    X(CLayoutInfoB) X(CLayoutInfoS1) X(CLayoutInfoN) X(CLayoutInfoG) X(CLayoutInfoS2)                              \
    X(BatchNum) X(mxTypePara)

namespace AscendC::tiling {

struct TCubeTiling {
#define EVK_FIELD(name) int32_t name = 0;
    EVK_CUBE_TILING_FIELDS(EVK_FIELD)
#undef EVK_FIELD
};
static_assert(sizeof(TCubeTiling) == 50 * sizeof(int32_t), "host and kernel exchange 50 words");

}  // namespace AscendC::tiling

#ifndef EVOKERNEL_OPERATOR_HOST
using AscendC::tiling::TCubeTiling;
#endif

namespace optiling {

// The same fields with setters and getters, and a way into the buffer that goes to the kernel.
struct TCubeTiling : ::AscendC::tiling::TCubeTiling {
#define EVK_FIELD(name)                                     \
    void set_##name(int32_t value) { name = value; }        \
    int32_t get_##name() const { return name; }
    EVK_CUBE_TILING_FIELDS(EVK_FIELD)
#undef EVK_FIELD

    size_t GetDataSize() const { return sizeof(::AscendC::tiling::TCubeTiling); }
    void SaveToBuffer(void *buffer, size_t capacity) const
    {
        if (buffer != nullptr && capacity >= GetDataSize()) {
            std::memcpy(buffer, static_cast<const ::AscendC::tiling::TCubeTiling *>(this), GetDataSize());
        }
    }

    ::AscendC::tiling::TCubeTiling &Data() { return *this; }
};

}  // namespace optiling

#ifdef EVOKERNEL_OPERATOR_HOST
// The same fields; host code also outside of optiling sets them.
using optiling::TCubeTiling;
#endif
