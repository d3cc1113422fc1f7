// TPipe's buffers and the queues over them.
#include <algorithm>
#include <cstring>

#include "core.h"
#include "evokernel/twin/pipe.h"
#include "evokernel/twin/pool.h"
#include "sampled.h"

namespace evokernel::twin {

namespace {

using AscendC::TPosition;

TPosition Home(TPosition source, TPosition target) { return QueueBook::Home(source, target); }

// The pipe that fills a queue's buffers and the pipe that empties them.
Pipe Producer(TPosition source, TPosition target)
{
    switch (SpaceOf(Home(source, target))) {
        case Space::L1:
            return source == TPosition::VECOUT || source == TPosition::VECCALC ? Pipe::MTE3 : Pipe::MTE2;
        case Space::L0A:
        case Space::L0B:
        case Space::BT:
            return Pipe::MTE1;
        case Space::L0C:
            return Pipe::M;
        case Space::FB:
            return Pipe::FIX;
        case Space::UB:
            break;
    }
    if (source == TPosition::GM || source == TPosition::VECIN) {
        return target == TPosition::VECCALC ? Pipe::V : Pipe::MTE2;
    }
    return Pipe::V;
}
Pipe Consumer(TPosition source, TPosition target)
{
    switch (SpaceOf(Home(source, target))) {
        case Space::L1:
            return Pipe::MTE1;
        case Space::L0A:
        case Space::L0B:
        case Space::BT:
            return Pipe::M;
        case Space::L0C:
        case Space::FB:
            return Pipe::FIX;
        case Space::UB:
            break;
    }
    if (target == TPosition::GM || target == TPosition::VECOUT) {
        return source == TPosition::VECCALC && target == TPosition::VECCALC ? Pipe::V : Pipe::MTE3;
    }
    return Pipe::V;
}

const char *CapacityCode(Space space)
{
    static const char *const codes[] = {"ub-capacity",  "l1-capacity", "l0a-capacity", "l0b-capacity",
                                        "l0c-capacity", "bt-capacity", "fb-capacity"};
    return codes[static_cast<int>(space)];
}

// Takes `bytes` after what is used, or reports that the memory is full.
LocalRef TakeBytes(uint64_t bytes, TPosition position, At at)
{
    Core &core = TheCore();
    const Chip &chip = CurrentChip();
    const Space space = SpaceOf(position);
    uint32_t &used = core.used[static_cast<int>(space)];
    const LocalRef ref = TakeNext(used, bytes, position);
    core.time.Scalar(chip.init_buffer);
    if (core.pipes_open == 0) {
        ReportError("queue-misuse", at, "InitBuffer is called without a live TPipe.");
    }
    if (used > SpaceBytes(space)) {
        ReportError(CapacityCode(space), at, "InitBuffer asks for %llu bytes, which makes %u in all; %s has %llu.",
                    static_cast<unsigned long long>(bytes), used, SpaceName(space),
                    static_cast<unsigned long long>(SpaceBytes(space)));
    }
    return ref;
}

void CountBuffer(At at)
{
    Core &core = TheCore();
    const Chip &chip = CurrentChip();
    if (++core.buffer_count > chip.max_buffers) {
        ReportError("too-many-buffers", at, "This is buffer %d of the kernel; at most %d are allowed.",
                    core.buffer_count, chip.max_buffers);
    }
}

LocalRef Reserve(uint64_t bytes, TPosition position, At at)
{
    const LocalRef ref = TakeBytes(bytes, position, at);
    CountBuffer(at);
    return ref;
}

// The flag that comes with a buffer: an even id when it is free, an odd one when it is full.
void OrderByBuffer(Core &core, Pipe from, Pipe to, int64_t id, bool set)
{
    if (race::installed && !core.timing) {
        race::Flag(core, from, to, race::kQueueIds + id, set);
    }
}

// The library takes the lowest free id for the flag of a buffer, and gives it back when it has waited for it.
AscendC::HardEvent EventBetween(Pipe from, Pipe to)
{
    int event = 0;
    while (event < static_cast<int>(AscendC::HardEvent::MAX)) {
        const PipePair pair = PipesOf(static_cast<AscendC::HardEvent>(event));
        if (pair.from == from && pair.to == to) {
            break;
        }
        ++event;
    }
    return static_cast<AscendC::HardEvent>(event);
}

uint8_t TakeEvent(Core &core, Pipe from, Pipe to)
{
    const auto event = static_cast<int>(EventBetween(from, to));
    for (int id = 0; event < static_cast<int>(AscendC::HardEvent::MAX) && id < kEvents; ++id) {
        if ((core.event_ids[event] >> id & 1) == 0) {
            core.event_ids[event] = static_cast<uint8_t>(core.event_ids[event] | 1 << id);
            core.queue_ids[event] = static_cast<uint8_t>(core.queue_ids[event] | 1 << id);
            return static_cast<uint8_t>(id + 1);
        }
    }
    return 0;
}

void GiveEventBack(Core &core, Pipe from, Pipe to, uint8_t &taken)
{
    if (taken != 0) {
        const auto event = static_cast<int>(EventBetween(from, to));
        core.event_ids[event] = static_cast<uint8_t>(core.event_ids[event] & ~(1 << (taken - 1)));
        core.queue_ids[event] = static_cast<uint8_t>(core.queue_ids[event] & ~(1 << (taken - 1)));
        taken = 0;
    }
}

// A TPipe that gives its buffers back waits for what still uses them.
void OrderAllPipes(Core &core)
{
    if (race::installed && !core.timing) {
        race::Barrier(core, race::kAllPipes);
    }
}

}  // namespace

AscendC::TPosition Queue::Position() const { return Home(source_, target_); }

void Queue::Prepare(uint8_t count, uint32_t bytes, At at)
{
    Core &core = TheCore();
    if (!QueueBook::Prepare(*this, core.buffers, count, core.queues)) {
        ReportError("too-many-buffers", at, "The kernel has more than 16384 buffers; TPipe.Reset gives them back.");
        return;
    }
    if (bytes == 0 || count == 0) {
        ReportError("queue-misuse", at, "InitBuffer asks for %u buffers of %llu bytes; both must be positive.", count,
                    static_cast<unsigned long long>(bytes));
    }
    for (size_t i = first_; i < core.buffers.size(); ++i) {
        core.buffers[i].alloc_line = at.line;
        core.buffers[i].alloc_file = at.file;
    }
    const int home = static_cast<int>(Position());
    core.queue_buffers[home] += count;
    if (core.queue_buffers[home] > CurrentChip().max_queue_buffers) {
        ReportError("too-many-buffers", at,
                    "The queues of this TPosition hold %d buffers; at most %d can have event ids.",
                    core.queue_buffers[home], CurrentChip().max_queue_buffers);
    }
}

void Queue::Place(uint32_t index, uint32_t address, uint32_t bytes, At at)
{
    if (!QueueBook::Place(*this, TheCore().buffers, index, address, bytes)) {
        ReportError("queue-misuse", at, "Buffer %u is placed in a queue of %u; InitStartBufHandle says how many.", index,
                    count_);
    }
}

void Queue::Init(uint8_t count, uint64_t bytes, At at)
{
    Prepare(count, static_cast<uint32_t>(bytes), at);
    for (uint8_t i = 0; i < count; ++i) {
        Place(i, Reserve(bytes, Position(), at).address, static_cast<uint32_t>(bytes), at);
    }
}

void Queue::FreeAllEvents()
{
    if (has_events_ && Position() < TPosition::MAX) {
        TheCore().queue_buffers[static_cast<int>(Position())] -= count_;
        QueueBook::ForgetEvents(*this);
    }
}

bool Queue::HasIdle() const { return QueueBook::HasIdle(*this, TheCore().buffers); }

LocalRef Queue::Alloc(At at)
{
    Core &core = TheCore();
    core.time.Scalar(CurrentChip().queue);
    LocalRef ref;
    const QueueFault fault = QueueBook::Alloc(*this, core.buffers, &ref);
    if (fault == QueueFault::NoBuffers) {
        ReportError("queue-misuse", at, "AllocTensor on a queue that InitBuffer never saw.");
        return ref;
    }
    if (fault == QueueFault::AllInUse) {
        ReportError("queue-misuse", at,
                    "AllocTensor finds all %u buffers of the queue in use; FreeTensor must come first.", count_);
    }
    Buffer &buffer = core.buffers[ref.buffer];
    buffer.alloc_line = at.line;
    buffer.alloc_file = at.file;
    const Pipe producer = Producer(source_, target_);
    core.time.NotBefore(producer, buffer.free_at, Consumer(source_, target_));
    OrderByBuffer(core, Consumer(source_, target_), producer, 2 * ref.buffer, false);
    GiveEventBack(core, Consumer(source_, target_), producer, buffer.free_event);
    const LocalMemory &local = core.In(SpaceOf(Home(source_, target_)));
    if (!core.timing && local.data != nullptr && uint64_t{buffer.address} + buffer.bytes <= local.capacity) {
        if (sampled::active) {
            sampled::Clear(SpaceOf(Home(source_, target_)), buffer.address, buffer.bytes);
        } else {
            std::memset(local.undefined + buffer.address, kUndefined, buffer.bytes);
        }
    }
    return ref;
}

bool Queue::Push(const LocalRef &tensor, At at)
{
    Core &core = TheCore();
    core.time.Scalar(CurrentChip().queue);
    switch (QueueBook::Push(*this, core.buffers, tensor)) {
        case QueueFault::None:
            break;
        case QueueFault::Stale:
            ReportError("stale-read", at, "EnQue gets a tensor that FreeTensor already gave back.");
            return false;
        case QueueFault::Queued:
            ReportError("queue-misuse", at, "EnQue gets a tensor that is already in the queue.");
            return false;
        case QueueFault::Full:
            ReportError("queue-misuse", at, "EnQue on a full queue: its depth is %d; DeQue must come first.", depth_);
            return false;
        default:
            ReportError("queue-misuse", at, "EnQue gets a tensor that this queue did not allocate.");
            return false;
    }
    core.buffers[tensor.buffer].full_at = core.time.Ready(Producer(source_, target_));
    OrderByBuffer(core, Producer(source_, target_), Consumer(source_, target_), 2 * tensor.buffer + 1, true);
    core.buffers[tensor.buffer].full_event = TakeEvent(core, Producer(source_, target_), Consumer(source_, target_));
    return true;
}

LocalRef Queue::Pop(At at)
{
    Core &core = TheCore();
    core.time.Scalar(CurrentChip().queue);
    LocalRef ref;
    if (QueueBook::Pop(*this, core.buffers, &ref) == QueueFault::Empty) {
        ReportError("queue-misuse", at, "DeQue on an empty queue; on the chip this hangs.");
        return ref;
    }
    core.time.NotBefore(Consumer(source_, target_), core.buffers[ref.buffer].full_at, Producer(source_, target_));
    OrderByBuffer(core, Producer(source_, target_), Consumer(source_, target_), 2 * ref.buffer + 1, false);
    GiveEventBack(core, Producer(source_, target_), Consumer(source_, target_), core.buffers[ref.buffer].full_event);
    return ref;
}

void Queue::Free(const LocalRef &tensor, At at)
{
    Core &core = TheCore();
    core.time.Scalar(CurrentChip().queue);
    switch (QueueBook::Free(*this, core.buffers, tensor)) {
        case QueueFault::None:
            break;
        case QueueFault::Stale:
            ReportError("queue-misuse", at, "FreeTensor gets a tensor that was already given back.");
            return;
        case QueueFault::Queued:
            ReportError("queue-misuse", at,
                        "FreeTensor gets a tensor that is still in the queue; DeQue must come first.");
            return;
        default:
            ReportError("queue-misuse", at, "FreeTensor gets a tensor that this queue did not allocate.");
            return;
    }
    core.buffers[tensor.buffer].free_at = core.time.Ready(Consumer(source_, target_));
    OrderByBuffer(core, Consumer(source_, target_), Producer(source_, target_), 2 * tensor.buffer, true);
    core.buffers[tensor.buffer].free_event = TakeEvent(core, Consumer(source_, target_), Producer(source_, target_));
}

LocalRef AllocRegion(uint64_t bytes, TPosition position, At at) { return TakeBytes(bytes, position, at); }

LocalRef AllocBuffer(uint64_t bytes, TPosition position, At at)
{
    if (bytes == 0) {
        ReportError("queue-misuse", at, "InitBuffer asks for a buffer of 0 bytes.");
    }
    return Reserve(bytes, position, at);
}

LocalRef AllocStatic(TPosition position, uint32_t address, uint64_t bytes, At at)
{
    const Space space = SpaceOf(position);
    const uint64_t total = SpaceBytes(space);
    if (bytes > total || address > total - bytes) {
        ReportError(CapacityCode(space), at, "The tensor at byte %u of %llu bytes ends after the %llu bytes of %s.",
                    address, static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(total),
                    SpaceName(space));
    }
    if (address % 32 != 0) {
        ReportError("alignment", at, "The tensor starts at byte %u; tensors start on a multiple of 32 bytes.",
                    address);
    }
    return StaticAt(position, address, bytes);
}

void PipeOpen(void *pipe, At at)
{
    Core &core = TheCore();
    core.time.Scalar(CurrentChip().pipe_init);
    core.pipe = pipe;
    if (++core.pipes_open > 1) {
        ReportError("queue-misuse", at, "A kernel may have one live TPipe; Destroy the first before the next.");
        return;
    }
    core.pipe_at = at;
    SetPipeFlags(at);
}

void *LivePipe() { return TheCore().pipe; }

namespace {

void FreeEverything(Core &core)
{
    for (int event = 0; event < static_cast<int>(AscendC::HardEvent::MAX); ++event) {
        core.event_ids[event] = static_cast<uint8_t>(core.event_ids[event] & ~core.queue_ids[event]);
        core.queue_ids[event] = 0;
    }
    std::memset(core.used, 0, sizeof(core.used));
    core.buffer_count = 0;
    std::memset(core.queue_buffers, 0, sizeof(core.queue_buffers));
}

}  // namespace

void PipeReset()
{
    Core &core = TheCore();
    core.time.DrainAll();
    OrderAllPipes(core);
    core.buffers.resize(1);
    FreeEverything(core);
}

void PipeClose(bool wait)
{
    Core &core = TheCore();
    if (wait) {
        core.time.DrainAll();
        OrderAllPipes(core);
    }
    if (--core.pipes_open == 0) {
        AwaitPipeFlags();
        FreeEverything(core);
    }
}

uint8_t *PositionBase(TPosition position) { return TheCore().In(SpaceOf(position)).data; }

void PoolRegion::Assign(const LocalRef &whole)
{
    whole_ = whole;
    next_ = whole.address;
    buffers_ = 0;
}

void PoolRegion::Share(const PoolRegion &other, uint32_t bytes, At at)
{
    if (RoundToBlock(bytes) > other.whole_.limit - other.whole_.address) {
        ReportError("queue-misuse", at, "A pool of %u bytes is to share one of %u; it may not be larger.", bytes,
                    other.whole_.limit - other.whole_.address);
    }
    Assign(other.whole_);
}

LocalRef PoolRegion::Take(uint64_t bytes, uint32_t max_buffers, bool counts, At at)
{
    LocalRef ref = whole_;
    ref.address = next_;
    ref.bytes = static_cast<uint32_t>(bytes);
    ref.limit = EndOf(next_, bytes);
    TheCore().time.Scalar(CurrentChip().init_buffer);
    if (ref.limit > whole_.limit) {
        ReportError(CapacityCode(SpaceOf(whole_)), at, "The pool has %u bytes left, and %llu are asked for.",
                    whole_.limit - std::min(next_, whole_.limit), static_cast<unsigned long long>(bytes));
    }
    next_ = ref.limit;
    if (counts) {
        CountBuffer(at);
        if (++buffers_ > max_buffers) {
            ReportError("too-many-buffers", at, "This is buffer %u of a pool for %u; give TBufPool a larger bufIDSize.",
                        buffers_, max_buffers);
        }
    }
    return ref;
}

void PoolRegion::Finish()
{
    Core &core = TheCore();
    core.time.DrainAll();
    if (race::installed && !core.timing) {
        race::Barrier(core, race::kAllPipes);
    }
}

void PoolRegion::Clear()
{
    Finish();
    Assign(whole_);
}

}  // namespace evokernel::twin
