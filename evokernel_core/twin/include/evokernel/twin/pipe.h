// TPipe, TQue, TQueBind, TBuf and LocalMemAllocator.
#pragma once
#include "evokernel/twin/tensor.h"

namespace evokernel::twin {

constexpr AscendC::Hardware HardwareOf(AscendC::TPosition position)
{
    using AscendC::Hardware;
    using AscendC::TPosition;
    switch (position) {
        case TPosition::A1:
        case TPosition::B1:
        case TPosition::C1:
        case TPosition::TSCM:
            return Hardware::L1;
        case TPosition::A2:
            return Hardware::L0A;
        case TPosition::B2:
            return Hardware::L0B;
        case TPosition::CO1:
            return Hardware::L0C;
        case TPosition::C2:
            return Hardware::BIAS;
        case TPosition::C2PIPE2GM:
            return Hardware::FIXBUF;
        default:
            return Hardware::UB;
    }
}

// The position that a tensor gets where the kernel names only the memory.
constexpr AscendC::TPosition PositionIn(AscendC::Hardware hardware)
{
    using AscendC::Hardware;
    using AscendC::TPosition;
    switch (hardware) {
        case Hardware::L1:
            return TPosition::A1;
        case Hardware::L0A:
            return TPosition::A2;
        case Hardware::L0B:
            return TPosition::B2;
        case Hardware::L0C:
            return TPosition::CO1;
        case Hardware::BIAS:
            return TPosition::C2;
        case Hardware::FIXBUF:
            return TPosition::C2PIPE2GM;
        default:
            return TPosition::VECCALC;
    }
}

class QueueBook;

// The buffers of one queue: ids in the core's buffer table, and the order in which they wait.
class Queue {
public:
    Queue(AscendC::TPosition source, AscendC::TPosition target, int32_t depth)
        : source_(source), target_(target), depth_(depth)
    {
    }

    void Init(uint8_t count, uint64_t bytes, At at);
    // Buffers whose places the caller chose: first how many, then each.
    void Prepare(uint8_t count, uint32_t bytes, At at);
    void Place(uint32_t index, uint32_t address, uint32_t bytes, At at);
    LocalRef Alloc(At at);
    bool Push(const LocalRef &tensor, At at);
    LocalRef Pop(At at);
    void Free(const LocalRef &tensor, At at);
    void FreeAllEvents();
    AscendC::TPosition Position() const;
    int32_t Waiting() const { return waiting_; }
    bool HasIdle() const;
    bool Vacant() const { return waiting_ < Capacity(); }

private:
    friend class QueueBook;

    int32_t Capacity() const { return depth_ > 0 ? depth_ : 1; }

    AscendC::TPosition source_;
    AscendC::TPosition target_;
    int32_t depth_;
    uint32_t serial_ = 0;  // of its buffers, which a copy of the queue has too
    uint16_t first_ = 0;
    uint8_t count_ = 0;
    uint8_t next_ = 0;
    uint8_t head_ = 0;
    uint8_t waiting_ = 0;
    bool has_events_ = false;
    uint16_t line_[64] = {};
};

}  // namespace evokernel::twin

namespace AscendC {

using TBufHandle = uint8_t *;

struct TQueConfig {
    bool nd2nz = false;
    bool nz2nd = false;
    bool scmBlockGroup = false;
    uint32_t bufferLen = 0;
    uint32_t bufferNumber = 0;
    uint32_t consumerSize = 0;
    TPosition consumer[8] = {};
    bool enableStaticEvtId = false;
    bool enableLoopQueue = false;
};

template <TPosition source, TPosition target, int32_t depth, auto mask = 0> class TQueBind {
public:
    TQueBind() : queue_(source, target, depth) {}

    template <typename T> LocalTensor<T> AllocTensor(EVK_AT) { return LocalTensor<T>(queue_.Alloc(at)); }
    template <typename T> void AllocTensor(LocalTensor<T> &tensor, EVK_AT)
    {
        tensor = LocalTensor<T>(queue_.Alloc(at));
    }
    template <typename T> bool EnQue(const LocalTensor<T> &tensor, EVK_AT) { return queue_.Push(tensor.Ref(), at); }
    template <TPosition from, TPosition to, typename T> bool EnQue(const LocalTensor<T> &tensor, EVK_AT)
    {
        return queue_.Push(tensor.Ref(), at);
    }
    template <typename T> LocalTensor<T> DeQue(EVK_AT) { return LocalTensor<T>(queue_.Pop(at)); }
    // For who has the tensor still, as after EnQue.
    void DeQue(EVK_AT) { queue_.Pop(at); }
    template <typename T> void DeQue(LocalTensor<T> &tensor, EVK_AT) { tensor = LocalTensor<T>(queue_.Pop(at)); }
    template <TPosition from, TPosition to, typename T> LocalTensor<T> DeQue(EVK_AT)
    {
        return LocalTensor<T>(queue_.Pop(at));
    }
    template <typename T> void FreeTensor(const LocalTensor<T> &tensor, EVK_AT) { queue_.Free(tensor.Ref(), at); }
    void FreeAllEvent() { queue_.FreeAllEvents(); }

    bool VacantInQue() { return queue_.Vacant(); }
    bool HasTensorInQue() { return queue_.Waiting() > 0; }
    int32_t GetTensorCountInQue() { return queue_.Waiting(); }
    bool HasIdleBuffer() { return queue_.HasIdle(); }

    // For pools that a kernel writes itself.
    void InitStartBufHandle(TBufHandle, uint8_t num, uint32_t len, EVK_AT) { queue_.Prepare(num, len, at); }
    template <typename Pool>
    void InitBufHandle(Pool *, uint32_t index, TBufHandle, uint32_t curPoolAddr, uint32_t len, EVK_AT)
    {
        queue_.Place(index, curPoolAddr, len, at);
    }

    twin::Queue &Implementation() { return queue_; }

private:
    twin::Queue queue_;
};

template <TPosition position> constexpr TPosition QueueTarget()
{
    return position == TPosition::VECOUT ? TPosition::GM : position;
}
template <TPosition position> constexpr TPosition QueueSource()
{
    return position == TPosition::VECIN ? TPosition::GM : position;
}

template <TPosition position, int32_t depth, auto mask = 0>
class TQue : public TQueBind<QueueSource<position>(), QueueTarget<position>(), depth, mask> {};

// L1 that a kernel fills itself for the matrix unit.
template <TPosition position, int32_t depth = 1, auto mask = 0>
class TSCM : public TQueBind<position, TPosition::TSCM, depth, mask> {};

template <TPosition position = TPosition::LCM> class TBuf {
public:
    template <typename T> LocalTensor<T> Get() { return LocalTensor<T>(ref_); }
    template <typename T> LocalTensor<T> Get(uint32_t elements)
    {
        LocalTensor<T> tensor(ref_);
        tensor.SetSize(elements);
        return tensor;
    }
    template <typename T> LocalTensor<T> GetWithOffset(uint32_t elements, uint32_t offset)
    {
        twin::LocalRef part = ref_;
        part.address += offset;
        LocalTensor<T> tensor(part);
        tensor.SetSize(elements);
        return tensor;
    }
    template <typename T> LocalTensor<T> AllocTensor() { return Get<T>(); }
    template <typename T> void FreeTensor(const LocalTensor<T> &) {}
    uint32_t GetBufLen() const { return ref_.bytes; }

    void InitStartBufHandle(TBufHandle, uint8_t, uint32_t) {}
    template <typename Pool>
    void InitBufHandle(Pool *, uint32_t, TBufHandle, uint32_t curPoolAddr, uint32_t len, EVK_AT)
    {
        Bind(twin::AllocStatic(position, curPoolAddr, len, at));
    }
    void Bind(const twin::LocalRef &ref)
    {
        ref_ = ref;
        ref_.position = static_cast<uint8_t>(position);
    }

private:
    twin::LocalRef ref_;
};

class TPipe {
public:
    explicit TPipe(EVK_AT)
    {
        twin::PipeOpen(this, at);
    }
    ~TPipe() { Destroy(); }
    // Both reach the core's one pipe: a copy, and what is assigned to, does not open or close another.
    TPipe(const TPipe &) : open_(false) {}
    TPipe &operator=(const TPipe &) { return *this; }

    void Init(EVK_AT)
    {
        open_ = true;
        twin::PipeOpen(this, at);
    }
    void Destroy()
    {
        if (open_) {
            twin::PipeClose();
        }
        open_ = false;
    }
    void DestroyWithoutPipeAll()
    {
        if (open_) {
            twin::PipeClose(false);
        }
        open_ = false;
    }
    void Reset() { twin::PipeReset(); }
    uint8_t *GetBaseAddr(int8_t position) { return twin::PositionBase(static_cast<TPosition>(position)); }

    // A pool with memory of its own, or in the place of another one.
    template <typename Pool> bool InitBufPool(Pool &pool, uint32_t bytes, EVK_AT)
    {
        pool.Region().Assign(twin::AllocRegion(bytes, Pool::kPosition, at));
        return true;
    }
    template <typename Pool, typename Other> bool InitBufPool(Pool &pool, uint32_t bytes, Other &other, EVK_AT)
    {
        pool.Region().Share(other.Region(), bytes, at);
        return true;
    }

    template <TPosition source, TPosition target, int32_t depth, auto mask>
    bool InitBuffer(TQueBind<source, target, depth, mask> &queue, uint8_t count, uint32_t bytes, EVK_AT)
    {
        queue.Implementation().Init(count, bytes, at);
        return true;
    }
    template <TPosition position> bool InitBuffer(TBuf<position> &buffer, uint32_t bytes, EVK_AT)
    {
        buffer.Bind(twin::AllocBuffer(bytes, position, at));
        return true;
    }

    template <HardEvent event> TEventID AllocEventID(EVK_AT) { return twin::AllocEvent(event, at); }
    template <HardEvent event> void ReleaseEventID(TEventID id, EVK_AT) { twin::ReleaseEvent(event, id, at); }
    template <HardEvent event> TEventID FetchEventID() { return twin::FetchEvent(event); }
    TEventID FetchEventID(HardEvent event) { return twin::FetchEvent(event); }

private:
    bool open_ = true;
};

inline TPipe *GetTPipePtr() { return static_cast<TPipe *>(twin::LivePipe()); }

// Static-tensor style: tensors one after another from the start of a memory.
template <Hardware hardware = Hardware::UB> class LocalMemAllocator {
public:
    template <typename T> LocalTensor<T> Alloc(uint32_t elements, EVK_AT) { return Take<T>(kPosition, elements, at); }
    template <TPosition position, typename T> LocalTensor<T> Alloc(uint32_t elements, EVK_AT)
    {
        static_assert(twin::HardwareOf(position) == hardware, "The TPosition lies in another memory.");
        return Take<T>(position, elements, at);
    }
    template <TPosition position, typename T, uint32_t elements> LocalTensor<T> Alloc(EVK_AT)
    {
        static_assert(twin::HardwareOf(position) == hardware, "The TPosition lies in another memory.");
        return Take<T>(position, elements, at);
    }
    template <typename T, uint32_t elements> LocalTensor<T> Alloc(EVK_AT) { return Take<T>(kPosition, elements, at); }
    uint32_t GetCurAddr() const { return next_; }

private:
    static constexpr TPosition kPosition = twin::PositionIn(hardware);

    template <typename T> LocalTensor<T> Take(TPosition position, uint32_t elements, twin::At at)
    {
        LocalTensor<T> tensor(position, next_, elements, at);
        next_ += (static_cast<uint32_t>(twin::BytesOf<T>(elements)) + 31) / 32 * 32;
        return tensor;
    }

    uint32_t next_ = 0;
};

}  // namespace AscendC

using AscendC::GetTPipePtr;  // kernels call it without its namespace
