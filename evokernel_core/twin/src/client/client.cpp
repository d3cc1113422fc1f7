// Messages, names and turns; each core's body is a fiber, and the judge says which goes on.
#include "client/client.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <iterator>
#include <unordered_map>
#include <vector>

#include "blocks.h"
#include "fiber.h"

namespace evokernel::twin::client {

namespace {

using wire::Command;
using wire::kHost;

struct Context {
    uint32_t slot = kHost;
    wire::CoreInfo core{};
    LocalBook book;
    ReadAhead ahead;
    Fiber fiber;
    bool active = false;
};

// Where a name lies, and its number: the same places come again and again.
struct NameCache {
    const char *name = nullptr;
    uint32_t number = 0;
};
constexpr size_t kCached = 256;
constexpr size_t kBlocksMessage = 64;  // more than TellBlocks writes

struct Client {
    wire::Shared *shared = nullptr;
    Writer writer{nullptr, 0};
    std::unordered_map<const char *, uint32_t> numbers;
    std::vector<const char *> names{nullptr};
    NameCache cache[kCached];
    uint32_t names_bytes = 0;
    std::deque<Context> contexts;
    Context host;
    Context *running = &host;
    bool has_values = true;
    KernelBody vector = nullptr;
    KernelBody cube = nullptr;
    void *closure = nullptr;
};

// Not a static of a function: each of the millions of messages would ask whether it is there.
Client the_client;

Client &The() { return the_client; }

[[noreturn]] void Stop(const char *why)
{
    std::fprintf(stderr, "%s\n", why);
    std::_Exit(3);
}

// Hands over what is written so far, and comes back with a command for whomever the judge names.
void Exchange(Batch why)
{
    Client &self = The();
    wire::Shared &shared = *self.shared;
    shared.slot = self.running->slot;
    shared.batch = static_cast<uint32_t>(why);
    shared.bytes = static_cast<uint32_t>(self.writer.Size());
    shared.names_bytes = self.names_bytes;
    self.writer.Clear();
    self.names_bytes = 0;
    wire::Pass(shared, wire::Turn::Judge);
    if (!wire::Await(shared, wire::Turn::Candidate)) {
        Stop("The judge has ended.");
    }
}

Command CommandNow() { return static_cast<Command>(The().shared->command); }

// A callback of a Matmul object: which one, its function, and what it is called with.
void CallBack()
{
    Reader reader = Arguments();
    const bool out = reader.Raw<uint8_t>() != 0;
    const auto function = reader.Raw<uint64_t>();
    LocalRef local;
    wire::Decode(reader, local);
    void *global = wire::FromWire(reader.Raw<uint64_t>());
    const auto user = reader.Raw<uint64_t>();
    const auto data = reader.Raw<uint64_t>();
    if (out) {
        AscendC::DataCopyOutParams params;
        wire::Decode(reader, params);
        const auto copy = reinterpret_cast<AscendC::CopyOutCallback>(function);
        copy(global, AscendC::LocalTensor<int8_t>(local), &params, user, data);
    } else {
        int place[4];
        wire::Decode(reader, place);
        const auto copy = reinterpret_cast<AscendC::CopyInCallback>(function);
        copy(AscendC::LocalTensor<int8_t>(local), global, place[0], place[1], place[2], place[3], user, data);
    }
}

// Tells of the blocks that the running core has executed. There is always room for it in the batch.
void TellBlocks()
{
    Client &self = The();
    if (self.running == &self.host || blocks::counter.pending == 0) {
        return;
    }
    self.writer.Raw(wire::Entry::Blocks);
    self.writer.Raw(blocks::counter.pending);
    self.writer.Raw(blocks::counter.deepest);
    blocks::counter.pending = 0;
}

void LoseThrown(const std::string &what)
{
    wire::EncodeText(The().writer, what);
    Exchange(Batch::Threw);
}

void BodyOf(void *argument)
{
    auto &context = *static_cast<Context *>(argument);
    Client &self = The();
    const KernelBody body = context.core.cube ? self.cube : self.vector;
    std::string thrown;
    bool threw = true;
    try {
        if (body != nullptr) {
            body(self.closure);
        }
        threw = false;
    } catch (const std::exception &error) {
        thrown = error.what();
    } catch (...) {
    }
    context.active = false;
    if (threw) {
        self.writer.Clear();
        return LoseThrown(thrown);
    }
    TellBlocks();
    Exchange(Batch::Ended);
}

// On a core whose body is over.
void CallBackAlone(void *argument)
{
    auto &context = *static_cast<Context *>(argument);
    CallBack();
    context.active = false;
    TellBlocks();
    Exchange(Batch::Returned);
}

void Begin(Context &context, void (*body)(void *))
{
    if (!context.fiber.Prepare(body, &context, blocks::Undefined())) {
        Stop("There is no memory for the stack of a core.");
    }
    context.active = true;
}

// On the host's stack: lets the cores go on that the judge names, until it names the host.
void RunCores()
{
    Client &self = The();
    while (self.shared->to_slot != kHost) {
        const uint32_t slot = self.shared->to_slot;
        while (self.contexts.size() <= slot) {
            self.contexts.emplace_back();
            self.contexts.back().slot = static_cast<uint32_t>(self.contexts.size() - 1);
        }
        Context &context = self.contexts[slot];
        if (CommandNow() == Command::Start) {
            Reader reader = Arguments();
            wire::Decode(reader, context.core);
            context.book = LocalBook{};
            context.ahead = ReadAhead{};
            Begin(context, BodyOf);
        } else if (!context.active) {
            Begin(context, CallBackAlone);
        }
        self.running = &context;
        blocks::Enter(context.fiber.Top());
        context.fiber.Resume();
        blocks::Enter(0);
        self.running = &self.host;
    }
}

// Hands over and waits until the judge lets this context go on.
void Yield(Batch why)
{
    Client &self = The();
    Context &mine = *self.running;
    Exchange(why);
    while (true) {
        if (self.shared->to_slot != mine.slot) {
            if (mine.slot == kHost) {
                RunCores();
            } else {
                mine.fiber.Leave();
            }
            continue;
        }
        if (mine.slot == kHost || CommandNow() != Command::Callback) {
            return;
        }
        CallBack();
        TellBlocks();
        Exchange(Batch::Returned);
    }
}

}  // namespace

void Connect(wire::Shared *shared)
{
    The().shared = shared;
    The().writer = Writer(shared->request, wire::kRequestBytes);
}

wire::Shared &TheShared() { return *The().shared; }

Writer &Open(Entry entry)
{
    Client &self = The();
    if (self.shared == nullptr) {
        Stop("Code that runs while the library is loaded calls AscendC; call it in the launcher or in a kernel.");
    }
    TellBlocks();
    ReadAhead &ahead = self.running->ahead;
    if (ahead.HasLocal() && !LeavesLocal(entry) && !WritesItsTensors(entry)) {
        ahead.ForgetLocal();
    }
    if (self.writer.Left() < wire::kLargestMessage + kBlocksMessage || self.names_bytes > wire::kNamesBytes / 2) {
        Yield(Batch::More);
    }
    self.writer.Raw(entry);
    return self.writer;
}

Reader Arguments() { return Reader(The().shared->reply, std::min(The().shared->to_bytes, wire::kReplyBytes)); }

Reader Ask()
{
    Yield(Batch::Wants);
    return Arguments();
}

Command Answer(const Outcome &outcome)
{
    Writer &writer = The().writer;
    if (writer.Size() > 0) {
        Yield(Batch::More);
    }
    writer.Raw(static_cast<uint8_t>(outcome.good));
    writer.Raw(outcome.blocks);
    writer.Raw(outcome.workspace);
    wire::EncodeText(writer, outcome.words);
    wire::EncodeText(writer, outcome.tiling);
    Yield(Batch::Answer);
    return CommandNow();
}

bool HasValues() { return The().has_values; }
void SetHasValues(bool values) { The().has_values = values; }

const wire::CoreInfo *RunningCore()
{
    Client &self = The();
    return self.running == &self.host ? nullptr : &self.running->core;
}

LocalBook &RunningBook() { return The().running->book; }
ReadAhead &RunningReadAhead() { return The().running->ahead; }

bool IsLocal(const uint8_t *address)
{
    const auto number = reinterpret_cast<uint64_t>(address);
    return number >= wire::kLocalSpace && number < wire::kGlobalSpace;
}

const uint8_t *ReadAhead::Find(const uint8_t *from, uint32_t bytes) const
{
    for (const Place &place : places_) {
        const uint64_t offset = reinterpret_cast<uint64_t>(from) - reinterpret_cast<uint64_t>(place.from);
        if (offset < place.bytes && bytes <= place.bytes - offset) {
            return place.data + offset;
        }
    }
    return nullptr;
}

void ReadAhead::Keep(const uint8_t *from, Reader &reader)
{
    const uint32_t bytes = std::min(reader.Raw<uint32_t>(), wire::kReadAhead);
    if (bytes == 0) {
        return;
    }
    Place &place = places_[next_++ % std::size(places_)];
    place.from = from;
    place.bytes = bytes;
    reader.Bytes(place.data, bytes);
    has_local_ = has_local_ || IsLocal(from);
}

void ReadAhead::ForgetLocal()
{
    for (Place &place : places_) {
        place.bytes = IsLocal(place.from) ? 0 : place.bytes;
    }
    has_local_ = false;
}

void ReadAhead::Forget(const LocalRef &tensor)
{
    const uint8_t *start = LocalAddress(tensor);
    const uint32_t end = std::max(tensor.limit, tensor.address + tensor.bytes);  // writes may go on to the buffer's end
    for (Place &place : places_) {
        const bool apart = start + (end - tensor.address) <= place.from || place.from + place.bytes <= start;
        place.bytes = apart ? place.bytes : 0;
    }
}

bool StackOverrun(const void *address) { return The().running->fiber.InGuard(address); }

void RunLaunch(KernelBody vector, KernelBody cube, void *closure)
{
    Client &self = The();
    self.vector = vector;
    self.cube = cube;
    self.closure = closure;
    blocks::counter.deepest = 0;
    Yield(Batch::Wants);
}

}  // namespace evokernel::twin::client

namespace evokernel::twin::wire {

using client::The;

void Violation(const char *what)
{
    std::fprintf(stderr, "A call cannot be sent: %s.\n", what);
    std::_Exit(3);
}

namespace {

// Names that the judge has and the candidate never sees: each is a place, of which only the number counts.
constexpr char unseen[kUnseenNames] = {};

}  // namespace

uint32_t NumberOf(const char *name)
{
    if (name == nullptr) {
        return 0;
    }
    if (name >= unseen && name < unseen + kUnseenNames) {
        return kUnseen | static_cast<uint32_t>(name - unseen);
    }
    client::Client &self = The();
    client::NameCache &cached = self.cache[reinterpret_cast<uintptr_t>(name) / 8 % client::kCached];
    if (cached.name == name) {
        return cached.number;
    }
    const auto position = self.numbers.find(name);
    if (position == self.numbers.end()) {
        const auto length = static_cast<uint32_t>(::strnlen(name, kLongestName));
        if (self.names_bytes + sizeof(length) + length > kNamesBytes) {
            Violation("there are too many names at once");
        }
        std::memcpy(self.shared->names + self.names_bytes, &length, sizeof(length));
        std::memcpy(self.shared->names + self.names_bytes + sizeof(length), name, length);
        self.names_bytes += static_cast<uint32_t>(sizeof(length)) + length;
        cached = {name, static_cast<uint32_t>(self.names.size())};
        self.names.push_back(name);
        self.numbers.emplace(name, cached.number);
    } else {
        cached = {name, position->second};
    }
    return cached.number;
}

const char *NameOf(uint32_t number)
{
    if ((number & kUnseen) != 0) {
        return unseen + (number & ~kUnseen) % kUnseenNames;
    }
    return number < The().names.size() ? The().names[number] : "";
}

uint64_t ToWire(const volatile void *address) { return reinterpret_cast<uint64_t>(address); }
void *FromWire(uint64_t address) { return reinterpret_cast<void *>(address); }

}  // namespace evokernel::twin::wire
