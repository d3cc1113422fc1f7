#include "judge/judge.h"

#include <sys/random.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <stdexcept>
#include <unordered_map>

#include "chip.h"
#include "judge/shapes.h"
#include "matmul/callback.h"
#include "time/schedule.h"

namespace evokernel::twin::judge {

namespace {

using wire::Batch;
using wire::Command;
using wire::kHost;
using wire::Named;
using wire::Reader;
using wire::Writer;

constexpr size_t kMostNames = 20000;
constexpr size_t kMostObjects = 4096;
constexpr int kDeepest = 4;  // a callback inside of a call, and the calls that it makes

// The candidate's part of one core. What a batch said is copied here: the shared memory may change at any time.
struct Slot {
    std::vector<uint8_t> batches[kDeepest];
    int depth = 0;
    uint8_t reply[wire::kLargestMessage + 64];
};

struct Judge {
    wire::Shared *shared = nullptr;
    GiveUp give_up = nullptr;
    uint64_t shift = 0;  // between addresses here and the candidate's
    std::map<std::string, uint32_t> known;
    std::vector<const char *> names{nullptr};
    std::unordered_map<const char *, uint32_t> numbers;
    std::vector<const char *> unseen;
    std::unordered_map<const Core *, uint32_t> slots;
    std::deque<Slot> all;
    Slot host;
    std::unordered_map<uint32_t, std::unique_ptr<matmul::Object>> objects;
    uint32_t next_object = 1;
};

Judge the_judge;

Judge &The() { return the_judge; }

Wording WhereItWas()
{
    if (!InKernel()) {
        return Wording();
    }
    const Core &core = TheCore();
    return Wording(", on %s core %lld of kernel %s, after line %d of %s",
                 core.kind == CoreKind::Cube ? Word("cube") : Word("vector"), static_cast<long long>(core.Index()),
                 CurrentCrew().name, core.last_at.line, core.last_at.file == nullptr ? "" : core.last_at.file);
}

// New names, in the order of their numbers.
void LearnNames(const uint8_t *bytes, uint32_t size)
{
    Judge &self = The();
    std::vector<uint8_t> copy(bytes, bytes + size);
    Reader reader(copy.data(), copy.size());
    while (!reader.Done()) {
        const auto length = reader.Raw<uint32_t>();
        if (length > wire::kLongestName || self.names.size() >= kMostNames) {
            wire::Violation("there are too many names, or one is too long");
        }
        const std::string name(reinterpret_cast<const char *>(reader.Take(length)), length);
        const auto [entry, fresh] = self.known.emplace(name, static_cast<uint32_t>(self.names.size()));
        self.names.push_back(entry->first.c_str());
        if (fresh) {
            self.numbers.emplace(entry->first.c_str(), entry->second);
        }
    }
}

// Hands over and copies the batch that comes back, which must be that of the same slot.
Batch Exchange(uint32_t slot, Command command, uint32_t bytes, std::vector<uint8_t> &into)
{
    Judge &self = The();
    wire::Shared &shared = *self.shared;
    shared.to_slot = slot;
    shared.command = static_cast<uint32_t>(command);
    shared.to_bytes = bytes;
    wire::Pass(shared, wire::Turn::Candidate);
    if (!wire::Await(shared, wire::Turn::Judge)) {
        self.give_up(Wording("The candidate's process ended before the launch was over%s.", WhereItWas().c_str()));
        std::abort();
    }
    const uint32_t from = *const_cast<volatile uint32_t *>(&shared.slot);
    const uint32_t why = *const_cast<volatile uint32_t *>(&shared.batch);
    const uint32_t size = *const_cast<volatile uint32_t *>(&shared.bytes);
    const uint32_t names = *const_cast<volatile uint32_t *>(&shared.names_bytes);
    if (from != slot || why > static_cast<uint32_t>(Batch::Answer) || size > wire::kRequestBytes ||
        names > wire::kNamesBytes) {
        wire::Violation("a batch has a head that cannot be meant");
    }
    LearnNames(shared.names, names);
    into.assign(shared.request, shared.request + size);
    return static_cast<Batch>(why);
}

void Send(const uint8_t *bytes, size_t size)
{
    if (size > wire::kReplyBytes) {
        wire::Violation("an answer is too large");
    }
    std::memcpy(The().shared->reply, bytes, size);
}

// Tells the slot to go on and carries out all that it says until it ends the way that `until` says.
Reader Pump(Slot &slot, uint32_t number, Command command, uint32_t bytes, Batch until)
{
    if (slot.depth == kDeepest) {
        wire::Violation("callbacks call each other without end");
    }
    std::vector<uint8_t> &batch = slot.batches[slot.depth++];
    while (true) {
        const Batch why = Exchange(number, command, bytes, batch);
        Named named;
        Reader reader(batch.data(), batch.size(), &named);
        if (why == Batch::Threw) {
            const std::string what = wire::DecodeText(reader);
            throw std::runtime_error(what.substr(0, wire::kLongestName));
        }
        const bool data = why == Batch::Answer;
        Writer reply(slot.reply, sizeof(slot.reply));
        while (!data && !reader.Done()) {
            reply.Clear();
            named.Forget();
            Dispatch(reader, reply);
        }
        if (why == until) {
            --slot.depth;
            return reader;
        }
        if (why != Batch::Wants && why != Batch::More) {
            wire::Violation("a core ends in a way that it cannot");
        }
        bytes = why == Batch::Wants ? static_cast<uint32_t>(reply.Size()) : 0;
        Send(slot.reply, bytes);
        command = Command::Resume;
    }
}

uint32_t NumberOfSlot(const Core &core)
{
    Judge &self = The();
    const auto [entry, fresh] = self.slots.emplace(&core, static_cast<uint32_t>(self.all.size()));
    if (fresh) {
        self.all.emplace_back();
    }
    return entry->second;
}

// A callback of a Matmul object on the core that needs it.
struct Callback {
    uint8_t buffer[512];
    Writer writer{buffer, sizeof(buffer)};

    void Run()
    {
        const uint32_t number = NumberOfSlot(TheCore());
        Send(buffer, writer.Size());
        Pump(The().all[number], number, Command::Callback, static_cast<uint32_t>(writer.Size()), Batch::Returned);
    }
};

void CallCopyIn(AscendC::CopyInCallback copy, const LocalRef &local, const void *global, const int *place,
                uint64_t user, uint64_t data)
{
    auto call = std::make_unique<Callback>();
    Writer &writer = call->writer;
    writer.Raw(uint8_t{0});
    writer.Raw(reinterpret_cast<uint64_t>(copy));
    wire::Encode(writer, local);
    writer.Raw(wire::ToWire(global));
    writer.Raw(user);
    writer.Raw(data);
    writer.Bytes(place, 4 * sizeof(int));
    call->Run();
}

void CallCopyOut(AscendC::CopyOutCallback copy, const void *global, const LocalRef &local,
                 const AscendC::DataCopyOutParams &params, uint64_t user, uint64_t data)
{
    auto call = std::make_unique<Callback>();
    Writer &writer = call->writer;
    writer.Raw(uint8_t{1});
    writer.Raw(reinterpret_cast<uint64_t>(copy));
    wire::Encode(writer, local);
    writer.Raw(wire::ToWire(global));
    writer.Raw(user);
    writer.Raw(data);
    wire::Encode(writer, params);
    call->Run();
}

Answer Tell(Command command, Writer &writer)
{
    Judge &self = The();
    self.host.depth = 0;
    Reader reader = Pump(self.host, kHost, command, static_cast<uint32_t>(writer.Size()), Batch::Answer);
    Answer answer;
    answer.good = reader.Raw<uint8_t>() != 0;
    answer.blocks = reader.Raw<uint32_t>();
    answer.workspace = reader.Raw<uint64_t>();
    answer.words = wire::DecodeText(reader).substr(0, wire::kLongestName);
    answer.tiling = wire::DecodeText(reader).substr(0, wire::kToldTiling);
    return answer;
}

// What the candidate is told lies where it reads it.
Writer ToCandidate() { return Writer(The().shared->reply, wire::kReplyBytes); }

template <typename T> void List(Writer &writer, const std::vector<T> &items)
{
    writer.Raw(static_cast<uint32_t>(items.size()));
    writer.Bytes(items.data(), items.size() * sizeof(T));
}

}  // namespace

bool Connect(GiveUp give_up)
{
    Judge &self = The();
    self.shared = wire::MapStandardOutput();
    self.give_up = give_up;
    uint32_t pages = 0;
    if (self.shared == nullptr || ::getrandom(&pages, sizeof(pages), 0) != sizeof(pages)) {
        return false;
    }
    self.shift = wire::kGlobalSpace + (uint64_t{pages} << 12);
    TheCopyHooks() = {CallCopyIn, CallCopyOut};
    return true;
}

Answer Greet(bool has_values)
{
    Writer writer = ToCandidate();
    writer.Raw(CurrentChip());
    writer.Raw(static_cast<uint8_t>(has_values));
    return Tell(Command::Hello, writer);
}

Answer ComputeTiling(const std::vector<int64_t> &sizes, const std::vector<float> &scalars)
{
    Writer writer = ToCandidate();
    List(writer, sizes);
    List(writer, scalars);
    return Tell(Command::Tiling, writer);
}

Answer Launch(const std::vector<uint8_t *> &tensors, uint8_t *workspace)
{
    std::vector<uint64_t> addresses;
    for (const uint8_t *tensor : tensors) {
        addresses.push_back(wire::ToWire(tensor));
    }
    Writer writer = ToCandidate();
    List(writer, addresses);
    writer.Raw(wire::ToWire(workspace));
    return Tell(Command::Launch, writer);
}

void Dismiss()
{
    Judge &self = The();
    self.shared->to_slot = kHost;
    self.shared->command = static_cast<uint32_t>(Command::Exit);
    self.shared->to_bytes = 0;
    wire::Pass(*self.shared, wire::Turn::Candidate);
}

void RemoteBody(void *)
{
    const Core &core = TheCore();
    const uint32_t number = NumberOfSlot(core);
    Slot &slot = The().all[number];
    slot.depth = 0;
    Writer writer = ToCandidate();
    wire::Encode(writer, wire::CoreInfo{BlockIdx(), BlockNum(), static_cast<int32_t>(SubBlockIdx()),
                                        static_cast<int32_t>(SubBlockNum()), OnCubeCore()});
    Pump(slot, number, Command::Start, static_cast<uint32_t>(writer.Size()), Batch::Ended);
}

uint32_t Keep(std::unique_ptr<matmul::Object> object)
{
    Judge &self = The();
    if (self.objects.size() >= kMostObjects) {
        Refuse(Wording("it makes more than 4096 Matmul objects"));
    }
    self.objects.emplace(self.next_object, std::move(object));
    return self.next_object++;
}

matmul::Object &Kept(uint32_t handle)
{
    const auto entry = The().objects.find(handle);
    if (entry == The().objects.end()) {
        wire::Violation("a Matmul object is named that does not exist");
    }
    return *entry->second;
}

// Its end may run work of this core, so that it leaves the table first.
void Drop(uint32_t handle)
{
    Kept(handle);
    const std::unique_ptr<matmul::Object> object = std::move(The().objects[handle]);
    The().objects.erase(handle);
}

// Objects of cores that ended in the middle of their bodies: nothing of them runs any more.
void DropAll()
{
    for (auto &[handle, object] : The().objects) {
        object.release();  // its destructor would act for a core that is gone
    }
    The().objects.clear();
}

void Refuse(const Wording &what)
{
    The().give_up(Wording("The candidate was stopped: %s.", what.c_str()));
    std::abort();
}

}  // namespace evokernel::twin::judge

namespace evokernel::twin::wire {

using judge::The;

void Violation(const char *what) { judge::Refuse(Wording("it sent what no kernel's code sends, %s", what)); }

uint32_t NumberOf(const char *name)
{
    if (name == nullptr) {
        return 0;
    }
    judge::Judge &self = The();
    const auto known = self.numbers.find(name);
    if (known != self.numbers.end()) {
        return known->second;
    }
    for (size_t i = 0; i < self.unseen.size(); ++i) {
        if (self.unseen[i] == name) {
            return kUnseen | static_cast<uint32_t>(i);
        }
    }
    if (self.unseen.size() == kUnseenNames) {
        return 0;
    }
    self.unseen.push_back(name);
    return kUnseen | static_cast<uint32_t>(self.unseen.size() - 1);
}

const char *NameOf(uint32_t number)
{
    judge::Judge &self = The();
    const bool own = (number & kUnseen) != 0;
    const std::vector<const char *> &names = own ? self.unseen : self.names;
    const uint32_t index = number & ~kUnseen;
    if (index >= names.size()) {
        Violation("a name is used that was never given");
    }
    return names[index] == nullptr ? "" : names[index];
}

uint64_t ToWire(const volatile void *address)
{
    if (address == nullptr) {
        return 0;
    }
    const auto *byte = static_cast<const uint8_t *>(const_cast<const void *>(address));
    Core &core = TheCore();
    for (int space = 0; space < kSpaces; ++space) {
        const LocalMemory &local = core.memory[space];
        if (local.data != nullptr && byte >= local.data && byte < local.data + local.capacity) {
            return kLocalSpace + (static_cast<uint64_t>(space) << kLocalShift) + static_cast<uint64_t>(byte - local.data);
        }
    }
    return reinterpret_cast<uint64_t>(byte) + The().shift;
}

void *FromWire(uint64_t address)
{
    if (address == 0) {
        return nullptr;
    }
    const uint64_t local = address - kLocalSpace;
    if (local >> kLocalShift < static_cast<uint64_t>(kSpaces)) {
        uint8_t *data = TheCore().memory[local >> kLocalShift].data;
        const uint64_t offset = local & ((uint64_t{1} << kLocalShift) - 1);
        return data == nullptr ? nullptr : reinterpret_cast<void *>(reinterpret_cast<uint64_t>(data) + offset);
    }
    return reinterpret_cast<void *>(address - The().shift);
}

}  // namespace evokernel::twin::wire
