// TPipe, queues and buffers: where they lie and which comes next is known here, and the judge is told.
#include <algorithm>
#include <iterator>

#include "client/client.h"

namespace evokernel::twin {

namespace {

using client::InOnlySelf;
using client::LocalBook;
using client::NoSelf;
using client::RunningBook;
using wire::Entry;
using wire::Pack;

template <typename Tuple> void Tell(Entry entry, const Queue *queue, const Tuple &arguments)
{
    client::Call<void>(entry, InOnlySelf<Queue>{queue}, arguments);
}

LocalRef Next(uint64_t bytes, AscendC::TPosition position)
{
    return TakeNext(RunningBook().used[MemoryOf(position)], bytes, position);
}

void FreeEverything(LocalBook &book) { std::fill(std::begin(book.used), std::end(book.used), 0U); }

}  // namespace

void Queue::Init(uint8_t count, uint64_t bytes, At at)
{
    Tell(Entry::QueueInit, this, Pack(count, bytes, at));
    LocalBook &book = RunningBook();
    QueueBook::Prepare(*this, book.places, count, book.queues);
    for (uint8_t i = 0; i < count; ++i) {
        const uint32_t address = Next(bytes, Position()).address;
        QueueBook::Place(*this, book.places, i, address, static_cast<uint32_t>(bytes));
    }
}

void Queue::Prepare(uint8_t count, uint32_t bytes, At at)
{
    Tell(Entry::QueuePrepare, this, Pack(count, bytes, at));
    QueueBook::Prepare(*this, RunningBook().places, count, RunningBook().queues);
}

void Queue::Place(uint32_t index, uint32_t address, uint32_t bytes, At at)
{
    Tell(Entry::QueuePlace, this, Pack(index, address, bytes, at));
    QueueBook::Place(*this, RunningBook().places, index, address, bytes);
}

LocalRef Queue::Alloc(At at)
{
    Tell(Entry::QueueAlloc, this, Pack(at));
    LocalRef tensor;
    QueueBook::Alloc(*this, RunningBook().places, &tensor);
    return tensor;
}

bool Queue::Push(const LocalRef &tensor, At at)
{
    Tell(Entry::QueuePush, this, Pack(tensor, at));
    return QueueBook::Push(*this, RunningBook().places, tensor) == QueueFault::None;
}

LocalRef Queue::Pop(At at)
{
    Tell(Entry::QueuePop, this, Pack(at));
    LocalRef tensor;
    QueueBook::Pop(*this, RunningBook().places, &tensor);
    return tensor;
}

void Queue::Free(const LocalRef &tensor, At at)
{
    Tell(Entry::QueueFree, this, Pack(tensor, at));
    QueueBook::Free(*this, RunningBook().places, tensor);
}

void Queue::FreeAllEvents()
{
    Tell(Entry::QueueFreeAllEvents, this, Pack());
    QueueBook::ForgetEvents(*this);
}

AscendC::TPosition Queue::Position() const { return QueueBook::Home(source_, target_); }
bool Queue::HasIdle() const { return QueueBook::HasIdle(*this, RunningBook().places); }

LocalRef AllocBuffer(uint64_t bytes, AscendC::TPosition position, At at)
{
    client::Call<void>(Entry::AllocBuffer, NoSelf{}, Pack(bytes, position, at));
    return Next(bytes, position);
}

LocalRef AllocRegion(uint64_t bytes, AscendC::TPosition position, At at)
{
    client::Call<void>(Entry::AllocRegion, NoSelf{}, Pack(bytes, position, at));
    return Next(bytes, position);
}

LocalRef AllocStatic(AscendC::TPosition position, uint32_t address, uint64_t bytes, At at)
{
    client::Call<void>(Entry::AllocStatic, NoSelf{}, Pack(position, address, bytes, at));
    return StaticAt(position, address, bytes);
}

void PipeOpen(void *pipe, At at)
{
    client::Call<void>(Entry::PipeOpen, NoSelf{}, Pack(wire::Opaque(pipe), at));
    RunningBook().pipe = pipe;
    ++RunningBook().pipes_open;
}

void PipeReset()
{
    client::Call<void>(Entry::PipeReset, NoSelf{}, Pack());
    RunningBook().places.resize(1);
    FreeEverything(RunningBook());
}

void PipeClose(bool wait)
{
    client::Call<void>(Entry::PipeClose, NoSelf{}, Pack(wait));
    if (--RunningBook().pipes_open == 0) {
        FreeEverything(RunningBook());
    }
}

void *LivePipe() { return RunningBook().pipe; }

}  // namespace evokernel::twin
