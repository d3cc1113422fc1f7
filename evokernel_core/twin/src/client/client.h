// A candidate's side: calls become messages, and cores' bodies run where the judge says.
#pragma once
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "evokernel/twin/launch.h"
#include "judge/entries.h"
#include "judge/shapes.h"
#include "judge/wrap.h"
#include "synchronisation/queue_book.h"

namespace evokernel::twin::client {

using wire::Batch;
using wire::Entry;
using wire::Reader;
using wire::Writer;

// Connects to the judge. Before that every call but those answered here ends the process.
void Connect(wire::Shared *shared);
wire::Shared &TheShared();

// The message under way: opened with its entry, and sent with more of them or at once.
Writer &Open(Entry entry);
Reader Ask();      // sends all, and waits for the result of the last message

// Host code says that it has done what it was told, and waits for the next command. `words`: why not, where not `good`.
struct Outcome {
    bool good = true;
    uint32_t blocks = 0;
    uint64_t workspace = 0;
    std::string words;
    std::string tiling;  // the first bytes of the tiling data, where it was asked for these
};
wire::Command Answer(const Outcome &outcome);
Reader Arguments();  // of the latest command

// Whether elements have values: without them a read has no result to wait for.
bool HasValues();
void SetHasValues(bool values);

// What the running core is; host code is no core.
const wire::CoreInfo *RunningCore();

// What a core keeps of its buffers, as the judge does: both begin alike and take the same steps.
struct LocalBook {
    std::vector<BufferPlace> places{BufferPlace{}};  // the first is unused
    uint32_t used[kLocalMemories] = {};
    uint32_t queues = 0;
    int pipes_open = 0;
    void *pipe = nullptr;
};
LocalBook &RunningBook();

// What came with the scalars that the running core read, by addresses: the latest few places. What an input holds
// stays; what local memory holds stays until the core may write there.
class ReadAhead {
public:
    // Null: it is not there.
    const uint8_t *Find(const uint8_t *from, uint32_t bytes) const;
    void Keep(const uint8_t *from, Reader &reader);
    bool HasLocal() const { return has_local_; }
    void ForgetLocal();
    void Forget(const LocalRef &tensor);

private:
    struct Place {
        const uint8_t *from = nullptr;
        uint32_t bytes = 0;
        uint8_t data[wire::kReadAhead];
    };
    Place places_[4];
    uint32_t next_ = 0;
    bool has_local_ = false;
};
ReadAhead &RunningReadAhead();

// Entries that write local memory where their own tensors lie, and nowhere else.
constexpr bool WritesItsTensors(Entry entry)
{
    return entry == Entry::CopyIn || entry == Entry::CopyCountIn || entry == Entry::CopyPadIn || entry == Entry::LocalSet;
}
// Entries that change nothing that a core can read in local memory without a hazard.
constexpr bool LeavesLocal(Entry entry)
{
    switch (entry) {
    case Entry::LocalGet:
    case Entry::GlobalGet:
    case Entry::GlobalSet:
    case Entry::CopyOut:
    case Entry::CopyCountOut:
    case Entry::CopyPadOut:
    case Entry::SetAtomic:
    case Entry::SetFlag:
    case Entry::WaitFlag:
    case Entry::Barrier:
    case Entry::AllocEvent:
    case Entry::FetchEvent:
    case Entry::ReleaseEvent:
    case Entry::QueueAlloc:
    case Entry::QueuePush:
    case Entry::QueuePop:
    case Entry::QueueFree: return true;
    default: return false;
    }
}
template <typename T> void ForgetOne(const T &) {}
inline void ForgetOne(const wire::Value<LocalRef> &tensor) { RunningReadAhead().Forget(tensor.given); }
bool StackOverrun(const void *address);

// Runs a launch to its end. Called on the host's stack.
void RunLaunch(KernelBody vector, KernelBody cube, void *closure);

template <typename... W> EVK_INLINE void Put(Writer &writer, const std::tuple<W...> &arguments)
{
    std::apply([&writer](const W &...each) EVK_ALWAYS { (each.Put(writer), ...); }, arguments);
}
template <typename... W> void Take(Reader &reader, const std::tuple<W...> &arguments)
{
    std::apply([&reader](const W &...each) { (each.Take(reader), ...); }, arguments);
}

// One call. `self` travels before the arguments and comes back before what they return.
template <typename Result, typename Self, typename Tuple> Result Call(Entry entry, Self self, const Tuple &arguments)
{
    Writer &writer = Open(entry);
    if (WritesItsTensors(entry) && RunningReadAhead().HasLocal()) {
        std::apply([](const auto &...each) { (ForgetOne(each), ...); }, arguments);
    }
    Writer mine = writer;  // which the compiler has in registers, however many fields there are
    self.Put(mine);
    Put(mine, arguments);
    writer = mine;
    if constexpr (!std::is_void_v<Result> || Self::kReturns || wire::Returns<Tuple>::value) {
        Reader reader = Ask();
        self.Take(reader);
        Take(reader, arguments);
        if constexpr (!std::is_void_v<Result>) {
            Result result{};
            wire::Decode(reader, result);
            return result;
        }
    }
}

// How the object of a method travels.
struct NoSelf {
    static constexpr bool kReturns = false;
    EVK_ALWAYS void Put(Writer &) const {}
    void Take(Reader &) const {}
};
template <typename T> struct InOutSelf {
    static constexpr bool kReturns = true;
    T *self;
    EVK_ALWAYS void Put(Writer &writer) const { writer.Raw(*self); }
    void Take(Reader &reader) const { reader.Bytes(static_cast<void *>(self), sizeof(T)); }
};
template <typename T> struct InOnlySelf {
    static constexpr bool kReturns = false;
    const T *self;
    EVK_ALWAYS void Put(Writer &writer) const { writer.Raw(*self); }
    void Take(Reader &) const {}
};
struct HandleSelf {
    static constexpr bool kReturns = false;
    uint32_t handle;
    EVK_ALWAYS void Put(Writer &writer) const { writer.Raw(handle); }
    void Take(Reader &) const {}
};

}  // namespace evokernel::twin::client
