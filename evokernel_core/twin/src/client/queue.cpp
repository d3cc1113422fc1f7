// Queues: which buffer comes next is known here, and the judge is told.
#include "client/client.h"

namespace evokernel::twin {

namespace {

using client::InOnlySelf;
using client::RunningBuffers;
using wire::Entry;
using wire::Pack;

template <typename Tuple> void Tell(Entry entry, const Queue *queue, const Tuple &arguments)
{
    client::Call<void>(entry, InOnlySelf<Queue>{queue}, arguments);
}

// For calls that change which buffers there are: the judge's answer is the queue and its buffers.
template <typename Tuple> void Ask(Entry entry, Queue *queue, const Tuple &arguments)
{
    wire::Writer &writer = client::Open(entry);
    writer.Raw(*queue);
    client::Put(writer, arguments);
    wire::Reader reader = client::Ask();
    reader.Bytes(static_cast<void *>(queue), sizeof(*queue));
    const auto count = reader.Raw<uint32_t>();
    std::vector<BufferPlace> &buffers = RunningBuffers();
    const size_t first = QueueBook::First(*queue);
    buffers.resize(std::max(buffers.size(), first + count));
    for (uint32_t i = 0; i < count; ++i) {
        buffers[first + i] = reader.Raw<BufferPlace>();
    }
}

}  // namespace

void Queue::Init(uint8_t count, uint64_t bytes, At at) { Ask(Entry::QueueInit, this, Pack(count, bytes, at)); }
void Queue::Prepare(uint8_t count, uint32_t bytes, At at) { Ask(Entry::QueuePrepare, this, Pack(count, bytes, at)); }
void Queue::Place(uint32_t index, uint32_t address, uint32_t bytes, At at)
{
    Ask(Entry::QueuePlace, this, Pack(index, address, bytes, at));
}

LocalRef Queue::Alloc(At at)
{
    Tell(Entry::QueueAlloc, this, Pack(at));
    LocalRef tensor;
    QueueBook::Alloc(*this, RunningBuffers(), &tensor);
    return tensor;
}

bool Queue::Push(const LocalRef &tensor, At at)
{
    Tell(Entry::QueuePush, this, Pack(tensor, at));
    return QueueBook::Push(*this, RunningBuffers(), tensor) == QueueFault::None;
}

LocalRef Queue::Pop(At at)
{
    Tell(Entry::QueuePop, this, Pack(at));
    LocalRef tensor;
    QueueBook::Pop(*this, RunningBuffers(), &tensor);
    return tensor;
}

void Queue::Free(const LocalRef &tensor, At at)
{
    Tell(Entry::QueueFree, this, Pack(tensor, at));
    QueueBook::Free(*this, RunningBuffers(), tensor);
}

void Queue::FreeAllEvents()
{
    Tell(Entry::QueueFreeAllEvents, this, Pack());
    QueueBook::ForgetEvents(*this);
}

AscendC::TPosition Queue::Position() const { return QueueBook::Home(source_, target_); }
bool Queue::HasIdle() const { return QueueBook::HasIdle(*this, RunningBuffers()); }

void PipeReset()
{
    client::Call<void>(Entry::PipeReset, client::NoSelf{}, Pack());
    RunningBuffers().assign(1, BufferPlace{});
}

}  // namespace evokernel::twin
