// Where buffers lie, and which of them a queue hands out, takes in and gives back, apart from what that costs and
// means. The twin does this for a core, and a candidate's process does the same for itself, so that it need not ask.
#pragma once
#include "evokernel/twin/pipe.h"

namespace evokernel::twin {

enum class BufferState : uint8_t { Idle, Allocated, Queued, Dequeued };

enum class QueueFault : uint8_t { None, NoBuffers, AllInUse, Foreign, Stale, Queued, Full, Empty };

// A buffer as a candidate's process knows it.
struct BufferPlace {
    uint32_t address = 0;
    uint32_t bytes = 0;
    uint16_t generation = 0;
    BufferState state = BufferState::Idle;
    uint32_t queue = 0;
};

// Sizes and places come from a kernel: what no memory has room for is the most that an address can say.
constexpr uint64_t kMostLocal = 0xFFFFFFE0;
constexpr uint32_t RoundToBlock(uint64_t bytes)
{
    return static_cast<uint32_t>(bytes >= kMostLocal ? kMostLocal : (bytes + 31) / 32 * 32);
}
constexpr uint32_t EndOf(uint32_t address, uint64_t bytes)
{
    const uint64_t end = uint64_t{address} + RoundToBlock(bytes);
    return static_cast<uint32_t>(end >= kMostLocal ? kMostLocal : end);
}

// The local memories by number; the unified buffer is the first.
constexpr int kLocalMemories = 7;
constexpr int MemoryOf(AscendC::TPosition position)
{
    using AscendC::TPosition;
    switch (position) {
        case TPosition::A1:
        case TPosition::B1:
        case TPosition::C1:
        case TPosition::TSCM:
        case TPosition::SHM:
            return 1;
        case TPosition::A2:
            return 2;
        case TPosition::B2:
            return 3;
        case TPosition::CO1:
            return 4;
        case TPosition::C2:
            return 5;
        case TPosition::C2PIPE2GM:
            return 6;
        default:
            return 0;
    }
}

// The next `bytes` of a memory of which TPipe gave out `used`.
inline LocalRef TakeNext(uint32_t &used, uint64_t bytes, AscendC::TPosition position)
{
    LocalRef ref;
    ref.address = used;
    ref.bytes = static_cast<uint32_t>(bytes < kMostLocal ? bytes : kMostLocal);
    ref.limit = EndOf(used, bytes);
    ref.position = static_cast<uint8_t>(position);
    used = ref.limit;
    return ref;
}

// A tensor at a fixed place of a memory, whether or not it fits there.
inline LocalRef StaticAt(AscendC::TPosition position, uint32_t address, uint64_t bytes)
{
    LocalRef ref;
    ref.address = address;
    ref.bytes = static_cast<uint32_t>(bytes < kMostLocal ? bytes : kMostLocal);
    ref.limit = EndOf(address, bytes);
    ref.position = static_cast<uint8_t>(position);
    return ref;
}

// `places`: the core's buffers by number, the first of which is unused.
class QueueBook {
public:
    using TPosition = AscendC::TPosition;

    static TPosition Home(TPosition source, TPosition target)
    {
        return source == TPosition::GM || target == TPosition::TSCM ? target : source;
    }

    template <typename Places> static bool Sound(const Queue &queue, const Places &places)
    {
        bool sound = queue.source_ < TPosition::MAX && queue.target_ < TPosition::MAX && queue.head_ < kLine &&
                     queue.waiting_ <= kLine && (queue.count_ == 0 || size_t{queue.first_} + queue.count_ <= places.size());
        for (uint8_t i = 0; sound && i < queue.waiting_; ++i) {
            sound = queue.line_[(queue.head_ + i) % kLine] < places.size();
        }
        return sound;
    }

    template <typename Places> static bool HasIdle(const Queue &queue, const Places &places)
    {
        for (uint8_t i = 0; Sound(queue, places) && i < queue.count_; ++i) {
            if (places[static_cast<size_t>(queue.first_) + i].state == BufferState::Idle) {
                return true;
            }
        }
        return false;
    }

    // Buffers whose places follow; `queues` counts the core's. False where there are too many to have numbers.
    template <typename Places> static bool Prepare(Queue &queue, Places &places, uint8_t count, uint32_t &queues)
    {
        queue.next_ = queue.head_ = queue.waiting_ = 0;
        queue.count_ = 0;
        if (places.size() + count > kMostPlaces || queue.source_ >= TPosition::MAX || queue.target_ >= TPosition::MAX) {
            return false;
        }
        queue.first_ = static_cast<uint16_t>(places.size());
        queue.count_ = count;
        queue.serial_ = ++queues;
        queue.has_events_ = true;
        places.resize(places.size() + count);
        for (size_t i = queue.first_; i < places.size(); ++i) {
            places[i].queue = queue.serial_;
        }
        return true;
    }

    template <typename Places>
    static bool Place(const Queue &queue, Places &places, uint32_t index, uint32_t address, uint32_t bytes)
    {
        if (index >= queue.count_ || !Sound(queue, places)) {
            return false;
        }
        places[size_t{queue.first_} + index].address = address;
        places[size_t{queue.first_} + index].bytes = RoundToBlock(bytes);
        return true;
    }

    // Hands one out even where all are in use.
    template <typename Places> static QueueFault Alloc(Queue &queue, Places &places, LocalRef *tensor)
    {
        if (queue.count_ == 0 || !Sound(queue, places)) {
            return QueueFault::NoBuffers;
        }
        auto id = static_cast<uint16_t>(queue.first_ + queue.next_ % queue.count_);
        for (uint8_t i = 0; i < queue.count_; ++i) {
            const auto candidate = static_cast<uint16_t>(queue.first_ + (queue.next_ + i) % queue.count_);
            if (places[candidate].state == BufferState::Idle) {
                id = candidate;
                break;
            }
        }
        queue.next_ = static_cast<uint8_t>((id - queue.first_ + 1) % queue.count_);
        const bool idle = places[id].state == BufferState::Idle;
        places[id].state = BufferState::Allocated;
        *tensor = Tensor(queue, id, places[id]);
        return idle ? QueueFault::None : QueueFault::AllInUse;
    }

    template <typename Places> static QueueFault Push(Queue &queue, Places &places, const LocalRef &tensor)
    {
        auto *place = Find(queue, places, tensor);
        if (place == nullptr) {
            return QueueFault::Foreign;
        }
        if (place->generation != tensor.generation || place->state == BufferState::Idle) {
            return QueueFault::Stale;
        }
        if (place->state == BufferState::Queued) {
            return QueueFault::Queued;
        }
        if (queue.waiting_ >= queue.Capacity() || queue.waiting_ >= kLine) {
            return QueueFault::Full;
        }
        place->state = BufferState::Queued;
        queue.line_[(queue.head_ + queue.waiting_) % kLine] = tensor.buffer;
        ++queue.waiting_;
        return QueueFault::None;
    }

    template <typename Places> static QueueFault Pop(Queue &queue, Places &places, LocalRef *tensor)
    {
        if (queue.waiting_ == 0 || !Sound(queue, places)) {
            tensor->position = static_cast<uint8_t>(Home(queue.source_, queue.target_));
            if (queue.count_ > 0 && Sound(queue, places)) {
                tensor->address = places[queue.first_].address;
                tensor->bytes = places[queue.first_].bytes;
                tensor->limit = tensor->address + tensor->bytes;
            }
            return QueueFault::Empty;
        }
        const uint16_t id = queue.line_[queue.head_];
        queue.head_ = static_cast<uint8_t>((queue.head_ + 1) % kLine);
        --queue.waiting_;
        places[id].state = BufferState::Dequeued;
        *tensor = Tensor(queue, id, places[id]);
        return QueueFault::None;
    }

    template <typename Places> static QueueFault Free(const Queue &queue, Places &places, const LocalRef &tensor)
    {
        auto *place = Find(queue, places, tensor);
        if (place == nullptr) {
            return QueueFault::Foreign;
        }
        if (place->generation != tensor.generation || place->state == BufferState::Idle) {
            return QueueFault::Stale;
        }
        if (place->state == BufferState::Queued) {
            return QueueFault::Queued;
        }
        place->state = BufferState::Idle;
        ++place->generation;
        return QueueFault::None;
    }

    static void ForgetEvents(Queue &queue) { queue.has_events_ = false; }

private:
    static constexpr int kLine = 64;
    static constexpr size_t kMostPlaces = 16384;

    template <typename Place> static LocalRef Tensor(const Queue &queue, uint16_t id, const Place &place)
    {
        LocalRef tensor;
        tensor.address = place.address;
        tensor.limit = place.address + place.bytes;
        tensor.bytes = place.bytes;
        tensor.buffer = id;
        tensor.generation = place.generation;
        tensor.position = static_cast<uint8_t>(Home(queue.source_, queue.target_));
        return tensor;
    }

    template <typename Places> static auto Find(const Queue &queue, Places &places, const LocalRef &tensor)
    {
        const bool known =
            tensor.buffer != 0 && tensor.buffer < places.size() && places[tensor.buffer].queue == queue.serial_;
        return known ? &places[tensor.buffer] : nullptr;
    }
};

}  // namespace evokernel::twin
