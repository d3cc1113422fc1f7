// What the judge does for each entry of the table.
#include <algorithm>

#include "blocks.h"
#include "evokernel/twin/debug.h"
#include "evokernel/twin/launch.h"
#include "evokernel/twin/stack.h"
#include "evokernel/twin/tiling_data.h"
#include "host/host_call.h"
#include "judge/entries.h"
#include "judge/judge.h"
#include "judge/shapes.h"
#include "judge/wrap.h"
#include "sampled.h"
#include "time/schedule.h"

namespace evokernel::twin::judge {

namespace {

using namespace wire;  // the wrappers of the table

constexpr size_t kMostLaunches = 10000;
constexpr uint32_t kMostBlocks = 65535;
constexpr uint64_t kMostPrinted = 16 << 20;  // bytes

// The wrappers of each entry, as a type: nothing here runs.
namespace layout {

#define EVK_LAYOUT_CALL(id, where, Result, Name, Parameters, Arguments) \
    [[maybe_unused]] inline auto id Parameters { return Pack Arguments; }
#define EVK_LAYOUT_METHOD(id, Class, Travels, Result, Name, Parameters, Const, Arguments) \
    [[maybe_unused]] inline auto id Parameters { return Pack Arguments; }
EVK_ENTRY_CALLS(EVK_LAYOUT_CALL)
EVK_ENTRY_METHODS(EVK_LAYOUT_METHOD)

template <typename Function> struct ResultOf;
template <typename Result, typename... Given> struct ResultOf<Result (*)(Given...)> {
    using Type = Result;
};

}  // namespace layout

template <typename Tuple> struct Stores;
template <typename... W> struct Stores<std::tuple<W...>> {
    std::tuple<typename W::Store...> all;

    void Read(Reader &reader)
    {
        Reader mine = reader;
        std::apply([&mine](auto &...each) EVK_ALWAYS { (each.Read(mine), ...); }, all);
        reader = mine;
    }
    void Write(Writer &reply) const
    {
        std::apply([&reply](const auto &...each) { (each.Write(reply), ...); }, all);
    }
    template <typename Function> auto Apply(Function &&function)
    {
        return std::apply([&function](auto &...each) { return function(each.Pass()...); }, all);
    }
};

// Carries out a call: an object's bytes come back first, then what the arguments return, then the result.
template <typename Result, typename Tuple, typename Function, typename After>
void Perform(Reader &reader, Writer &reply, Function &&function, After &&after)
{
    Stores<Tuple> stores;
    stores.Read(reader);
    if constexpr (std::is_void_v<Result>) {
        stores.Apply(function);
        after();
        stores.Write(reply);
    } else {
        const Result result = stores.Apply(function);
        after();
        stores.Write(reply);
        Encode(reply, result);
    }
}

// The object of a method.
template <typename T> struct InOut {
    T value{};
    void Read(Reader &reader) { reader.Bytes(static_cast<void *>(&value), sizeof(T)); }
    T &Self() { return value; }
    void Write(Writer &reply) const { reply.Raw(value); }
};
template <typename T> struct InOnly : InOut<T> {
    void Write(Writer &) const {}
};
template <typename T> struct Handle {
    uint32_t handle = 0;
    void Read(Reader &reader) { handle = reader.Raw<uint32_t>(); }
    T &Self() { return Kept(handle); }
    void Write(Writer &) const {}
};

template <typename Result, typename Tuple, typename... Given>
void ServeFunction(Reader &reader, Writer &reply, Result (*function)(Given...))
{
    Perform<Result, Tuple>(reader, reply, function, [] {});
}

template <typename Self, typename Tuple, typename Result, typename Invoke>
void ServeMethod(Reader &reader, Writer &reply, Invoke invoke)
{
    Self self;
    self.Read(reader);
    auto &object = self.Self();
    Perform<Result, Tuple>(
        reader, reply, [&object, &invoke](auto &&...given) { return invoke(object, given...); },
        [&self, &reply] { self.Write(reply); });
}

#define EVK_TUPLE(id) typename layout::ResultOf<decltype(&layout::id)>::Type
#define EVK_SERVE_CALL(id, where, Result, Name, Parameters, Arguments)                                          \
    void Serve##id(Reader &reader, Writer &reply)                                                               \
    {                                                                                                           \
        Result(*const function) Parameters = &twin::Name;                                                       \
        ServeFunction<Result, EVK_TUPLE(id)>(reader, reply, function);                                          \
    }
EVK_ENTRY_CALLS(EVK_SERVE_CALL)

#define EVK_SERVE_METHOD(id, Class, Travels, Result, Name, Parameters, Const, Arguments)                        \
    void Serve##id(Reader &reader, Writer &reply)                                                               \
    {                                                                                                           \
        Result (Class::*const method) Parameters Const = &Class::Name;                                          \
        ServeMethod<Travels<Class>, EVK_TUPLE(id), Result>(                                                     \
            reader, reply, [method](Class &self, auto &...given) { return (self.*method)(given...); });         \
    }
EVK_ENTRY_METHODS(EVK_SERVE_METHOD)

// Basic blocks that the core has executed since its last call.
void ServeBlocks(Reader &reader, Writer &)
{
    blocks::counter.pending += reader.Raw<uint64_t>();
    blocks::counter.deepest = std::max(blocks::counter.deepest, reader.Raw<uint64_t>());
}

// A queue's bytes, whose methods doubt what they find in them.
Queue DecodeQueue(Reader &reader)
{
    Queue queue(AscendC::TPosition::GM, AscendC::TPosition::GM, 0);
    reader.Bytes(static_cast<void *>(&queue), sizeof(queue));
    return queue;
}

// The candidate does the same with its copy of a queue, and needs no answers.
void ServeQueueInit(Reader &reader, Writer &)
{
    Queue queue = DecodeQueue(reader);
    const auto count = reader.Raw<uint8_t>();
    const auto bytes = reader.Raw<uint64_t>();
    At at{};
    Decode(reader, at);
    queue.Init(count, bytes, at);
}

void ServeQueuePrepare(Reader &reader, Writer &)
{
    Queue queue = DecodeQueue(reader);
    const auto count = reader.Raw<uint8_t>();
    const auto bytes = reader.Raw<uint32_t>();
    At at{};
    Decode(reader, at);
    queue.Prepare(count, bytes, at);
}

void ServeQueuePlace(Reader &reader, Writer &)
{
    Queue queue = DecodeQueue(reader);
    const auto index = reader.Raw<uint32_t>();
    const auto address = reader.Raw<uint32_t>();
    const auto bytes = reader.Raw<uint32_t>();
    At at{};
    Decode(reader, at);
    queue.Place(index, address, bytes, at);
}

void ServeQueueAlloc(Reader &reader, Writer &)
{
    Queue queue = DecodeQueue(reader);
    At at{};
    Decode(reader, at);
    queue.Alloc(at);
}

void ServeQueuePop(Reader &reader, Writer &)
{
    Queue queue = DecodeQueue(reader);
    At at{};
    Decode(reader, at);
    queue.Pop(at);
}

void ServeQueuePush(Reader &reader, Writer &)
{
    Queue queue = DecodeQueue(reader);
    LocalRef tensor;
    At at{};
    Decode(reader, tensor);
    Decode(reader, at);
    queue.Push(tensor, at);
}

void ServeQueueFree(Reader &reader, Writer &)
{
    Queue queue = DecodeQueue(reader);
    LocalRef tensor;
    At at{};
    Decode(reader, tensor);
    Decode(reader, at);
    queue.Free(tensor, at);
}

void ServeQueueFreeAllEvents(Reader &reader, Writer &) { DecodeQueue(reader).FreeAllEvents(); }

struct Bytes {
    const uint8_t *from = nullptr;
    uint64_t count = 0;
};

Bytes Behind(const GlobalRef &tensor, int64_t index)
{
    const uint8_t *from = tensor.address + index * DTypeBytes(tensor.dtype);
    return {from, Gm().Constant(from, TheCore().timing)};
}

Bytes Behind(const LocalRef &tensor, int64_t index)
{
    Core &core = TheCore();
    const LocalMemory &memory = core.In(SpaceOf(tensor));
    const uint64_t start = tensor.address + static_cast<uint64_t>(index) * DTypeBytes(tensor.dtype);
    const uint64_t end = std::min<uint64_t>(uint64_t{tensor.address} + tensor.bytes, memory.capacity);
    const bool has = memory.data != nullptr && !core.timing && !sampled::active;
    return has && start < end ? Bytes{memory.data + start, end - start} : Bytes{};
}

// Who waits for a value gets those behind it too. Each of them is still read by a message of its own, so that
// whatever is said of reads is said of it.
template <typename Tensor> void ServeGet(Reader &reader, Writer &reply, uint64_t (*get)(const Tensor &, int64_t, At))
{
    Tensor tensor;
    int64_t index = 0;
    At at{};
    Decode(reader, tensor);
    Decode(reader, index);
    Decode(reader, at);
    const bool waits = reader.Raw<uint8_t>() != 0;
    reply.Raw(get(tensor, index, at));
    if (waits) {
        const Bytes behind = Behind(tensor, index);
        const auto count = static_cast<uint32_t>(std::min<uint64_t>(behind.count, kReadAhead));
        reply.Raw(count);
        reply.Bytes(behind.from, count);
    }
}

void ServeLocalGet(Reader &reader, Writer &reply) { ServeGet(reader, reply, &LocalGet); }
void ServeGlobalGet(Reader &reader, Writer &reply) { ServeGet(reader, reply, &GlobalGet); }

void ServeReadUncached(Reader &reader, Writer &reply)
{
    const void *address = FromWire(reader.Raw<uint64_t>());
    const auto width = reader.Raw<uint32_t>();
    At at{};
    Decode(reader, at);
    if (width > sizeof(uint64_t)) {
        Violation("a scalar is wider than 64 bits");
    }
    reply.Raw(ReadUncached(address, width, at));
}

void ServeReadTiling(Reader &reader, Writer &reply)
{
    const void *address = FromWire(reader.Raw<uint64_t>());
    const auto bytes = reader.Raw<uint64_t>();
    const char *type = NameOf(reader.Raw<uint32_t>());
    At at{};
    Decode(reader, at);
    if (bytes > kLargestTiling) {
        Refuse(Wording("it reads a structure of tiling data of more than 64 KB"));
    }
    std::vector<uint8_t> data(bytes);
    ReadTiling(data.data(), address, bytes, type, at);
    reply.Bytes(data.data(), data.size());
}

void ServeHostCall(Reader &reader, Writer &)
{
    const char *name = NameOf(reader.Raw<uint32_t>());
    NoticeHostCall(name == nullptr ? "" : name);
}

void ServePrintText(Reader &reader, Writer &)
{
    static uint64_t printed = 0;
    const std::string text = DecodeText(reader);
    printed += text.size();
    if (printed > kMostPrinted) {
        Refuse(Wording("it prints more than 16 MB"));
    }
    PrintLine("%s", text.c_str());
}

void ServePipeReset(Reader &, Writer &) { PipeReset(); }

void ServePipeClose(Reader &reader, Writer &)
{
    bool wait = true;
    Decode(reader, wait);
    PipeClose(wait);
}

void ServeAllocBuffer(Reader &reader, Writer &)
{
    const auto bytes = reader.Raw<uint64_t>();
    AscendC::TPosition position{};
    At at{};
    Decode(reader, position);
    Decode(reader, at);
    AllocBuffer(bytes, position, at);
}

void ServeAllocRegion(Reader &reader, Writer &)
{
    const auto bytes = reader.Raw<uint64_t>();
    AscendC::TPosition position{};
    At at{};
    Decode(reader, position);
    Decode(reader, at);
    AllocRegion(bytes, position, at);
}

void ServeAllocStatic(Reader &reader, Writer &)
{
    using Tuple = std::tuple<Value<AscendC::TPosition>, Value<uint32_t>, Value<uint64_t>, Value<At>>;
    Stores<Tuple> stores;
    stores.Read(reader);
    stores.Apply(&AllocStatic);
}

void ServePipeOpen(Reader &reader, Writer &)
{
    reader.Raw<uint64_t>();  // an address of the candidate's, which it remembers itself
    At at{};
    Decode(reader, at);
    PipeOpen(nullptr, at);
}

void ServeServeIfDriven(Reader &reader, Writer &)
{
    bool cube_only = false;
    matmul::Spec spec;
    At at{};
    Decode(reader, cube_only);
    Decode(reader, spec);
    Decode(reader, at);
    matmul::ServeIfDriven(cube_only, spec, at);
}

void ServeTrapCore(Reader &reader, Writer &)
{
    At at{};
    Decode(reader, at);
    TrapCore(at);
}

void ServeFailAssert(Reader &reader, Writer &)
{
    const char *condition = NameOf(reader.Raw<uint32_t>());
    At at{};
    bool words = false;
    Decode(reader, at);
    Decode(reader, words);
    const std::string text = DecodeText(reader);
    FailAssert(condition, at, words ? "%s" : nullptr, text.c_str());
}

void ServeMatmulMake(Reader &reader, Writer &reply)
{
    matmul::Spec spec;
    bool cube_only = false;
    Decode(reader, spec);
    Decode(reader, cube_only);
    reply.Raw(Keep(std::make_unique<matmul::Object>(spec, cube_only)));
}

void ServeMatmulDrop(Reader &reader, Writer &) { Drop(reader.Raw<uint32_t>()); }

void ServeLaunch(Reader &reader, Writer &)
{
    static size_t launches = 0;
    const std::string name = DecodeText(reader).substr(0, kLongestName);
    LaunchKind kind;
    uint32_t blocks = 0;
    bool cube = false;
    Decode(reader, kind.cube);
    Decode(reader, kind.vector);
    Decode(reader, kind.mixed);
    Decode(reader, blocks);
    Decode(reader, cube);
    if (++launches > kMostLaunches || blocks > kMostBlocks) {
        Refuse(Wording("it launches more than 10,000 kernels, or one with more than 65,535 blocks"));
    }
    LaunchBlocks(name.c_str(), kind, blocks, nullptr, &RemoteBody, cube ? &RemoteBody : nullptr, nullptr);
    DropAll();
}

enum class Where : uint8_t { Kernel, Host, Anywhere };

struct Served {
    void (*serve)(Reader &, Writer &);
    Where where;
};

constexpr Served kServed[] = {
#define EVK_SERVED(id, where, ...) {&Serve##id, Where::where},
#define EVK_SERVED_METHOD(id, ...) {&Serve##id, Where::Kernel},
    EVK_ENTRY_CALLS(EVK_SERVED) EVK_ENTRY_METHODS(EVK_SERVED_METHOD) EVK_ENTRY_OTHERS(EVK_SERVED)
};
static_assert(sizeof(kServed) / sizeof(kServed[0]) == static_cast<size_t>(Entry::Count));

}  // namespace

void Dispatch(Reader &reader, Writer &reply)
{
    const auto entry = reader.Raw<uint16_t>();
    if (entry >= static_cast<uint16_t>(Entry::Count)) {
        Violation("a call of a function that does not exist");
    }
    const Served &served = kServed[entry];
    if (served.where != Where::Anywhere && (served.where == Where::Kernel) != InKernel()) {
        Refuse(InKernel() ? Wording("a kernel calls what only the launcher may call")
                          : Wording("the host's code calls what only a kernel may call"));
    }
    served.serve(reader, reply);
}

}  // namespace evokernel::twin::judge
