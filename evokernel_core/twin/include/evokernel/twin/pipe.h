// TPipe, TQue, TQueBind, TBuf and LocalMemAllocator.
#pragma once
#include "evokernel/twin/tensor.h"

namespace evokernel::twin {

// The buffers of one queue: ids in the core's buffer table, and the order in which they wait.
class Queue {
public:
    Queue(AscendC::TPosition source, AscendC::TPosition target, int32_t depth)
        : source_(source), target_(target), depth_(depth)
    {
    }

    void Init(uint8_t count, uint64_t bytes, At at);
    LocalRef Alloc(At at);
    bool Push(const LocalRef &tensor, At at);
    LocalRef Pop(At at);
    void Free(const LocalRef &tensor, At at);
    void FreeAllEvents() {}
    int32_t Waiting() const { return waiting_; }
    bool HasIdle() const;
    bool Vacant() const { return waiting_ < Capacity(); }

private:
    int32_t Capacity() const { return depth_ > 0 ? depth_ : 1; }

    AscendC::TPosition source_;
    AscendC::TPosition target_;
    int32_t depth_;
    uint16_t first_ = 0;
    uint8_t count_ = 0;
    uint8_t next_ = 0;
    uint8_t head_ = 0;
    uint8_t waiting_ = 0;
    uint16_t line_[64] = {};
};

}  // namespace evokernel::twin

namespace AscendC {

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
    TPipe(const TPipe &) = delete;
    TPipe &operator=(const TPipe &) = delete;

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
    void Reset() { twin::PipeReset(); }

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

// Static-tensor style: tensors one after another from the start of the unified buffer.
template <Hardware hardware = Hardware::UB> class LocalMemAllocator {
public:
    template <typename T> LocalTensor<T> Alloc(uint32_t elements, EVK_AT)
    {
        return Take<T>(TPosition::VECCALC, elements, at);
    }
    template <TPosition position, typename T> LocalTensor<T> Alloc(uint32_t elements, EVK_AT)
    {
        return Take<T>(position, elements, at);
    }
    template <TPosition position, typename T, uint32_t elements> LocalTensor<T> Alloc(EVK_AT)
    {
        return Take<T>(position, elements, at);
    }
    template <typename T, uint32_t elements> LocalTensor<T> Alloc(EVK_AT)
    {
        return Take<T>(TPosition::VECCALC, elements, at);
    }
    uint32_t GetCurAddr() const { return next_; }

private:
    template <typename T> LocalTensor<T> Take(TPosition position, uint32_t elements, twin::At at)
    {
        LocalTensor<T> tensor(position, next_, elements, at);
        next_ += (static_cast<uint32_t>(twin::BytesOf<T>(elements)) + 31) / 32 * 32;
        return tensor;
    }

    uint32_t next_ = 0;
};

}  // namespace AscendC
