// TBufPool: a stretch of local memory that a kernel divides itself, and pools that take turns in one place.
#pragma once
#include "evokernel/twin/pipe.h"

namespace evokernel::twin {

// The bytes of a pool and how far they are given out.
class PoolRegion {
public:
    void Assign(const LocalRef &whole);
    void Share(const PoolRegion &other, uint32_t bytes, At at);
    // The next `bytes`; reports a pool that is full or was never given memory.
    LocalRef Take(uint64_t bytes, uint32_t max_buffers, bool counts, At at);
    // Waits for what the pool's buffers are used for; they stay valid.
    void Finish();
    // The same, and gives everything back.
    void Clear();

    uint32_t Next() const { return next_; }
    void SetNext(uint32_t address) { next_ = address; }
    uint8_t Buffers() const { return static_cast<uint8_t>(buffers_); }
    void SetBuffers(uint8_t count) { buffers_ = count; }

private:
    LocalRef whole_;
    uint32_t next_ = 0;
    uint32_t buffers_ = 0;
};

}  // namespace evokernel::twin

namespace AscendC {

constexpr uint32_t defaultBufIDSize = 4;

template <TPosition position, uint32_t bufIDSize = defaultBufIDSize> class TBufPool {
public:
    static_assert(bufIDSize <= 16, "A TBufPool holds at most 16 buffers.");
    static constexpr TPosition kPosition = position;

    template <typename Pool> bool InitBufPool(Pool &pool, uint32_t bytes, EVK_AT)
    {
        pool.Region().Assign(region_.Take(bytes, bufIDSize, false, at));
        return true;
    }
    template <typename Pool, typename Other> bool InitBufPool(Pool &pool, uint32_t bytes, Other &other, EVK_AT)
    {
        pool.Region().Share(other.Region(), bytes, at);
        return true;
    }
    template <TPosition source, TPosition target, int32_t depth, auto mask>
    bool InitBuffer(TQueBind<source, target, depth, mask> &queue, uint8_t num, uint32_t len, EVK_AT)
    {
        queue.Implementation().Prepare(num, len, at);
        for (uint8_t i = 0; i < num; ++i) {
            queue.Implementation().Place(i, region_.Take(len, bufIDSize, true, at).address, len, at);
        }
        return true;
    }
    template <TPosition bufPos> bool InitBuffer(TBuf<bufPos> &buffer, uint32_t len, EVK_AT)
    {
        buffer.Bind(region_.Take(len, bufIDSize, true, at));
        return true;
    }
    void Reset() { region_.Finish(); }

    twin::PoolRegion &Region() { return region_; }

private:
    twin::PoolRegion region_;
};

}  // namespace AscendC

// The members of a pool class that the kernel writes itself.
#define EXTERN_IMPL_BUFPOOL(EXT_BUFPOOL, POSITION, BUFID_SIZE)                                          \
public:                                                                                                 \
    static constexpr ::AscendC::TPosition kPosition = POSITION;                                         \
    void Init() {}                                                                                      \
    void Reset() { evokernel_region_.Clear(); }                                                         \
    ::AscendC::TBufHandle GetBufHandle(uint8_t offset) { return evokernel_handles_ + offset; }          \
    void SetCurAddr(uint32_t curAddr) { evokernel_region_.SetNext(curAddr); }                           \
    uint32_t GetCurAddr() { return evokernel_region_.Next(); }                                          \
    void SetCurBufSize(uint8_t curBufSize) { evokernel_region_.SetBuffers(curBufSize); }                \
    uint8_t GetCurBufSize() { return evokernel_region_.Buffers(); }                                     \
    ::evokernel::twin::PoolRegion &Region() { return evokernel_region_; }                               \
                                                                                                        \
private:                                                                                                \
    uint8_t evokernel_handles_[BUFID_SIZE] = {};                                                        \
    ::evokernel::twin::PoolRegion evokernel_region_
