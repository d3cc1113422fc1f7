// Entry points that are answered here, and those whose arguments need more than the table says.
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "chip.h"
#include "client/client.h"
#include "evokernel/twin/debug.h"
#include "evokernel/twin/tiling_data.h"
#include "host/host_call.h"

namespace evokernel::twin {

namespace {

using client::NoSelf;
using wire::Entry;
using wire::Pack;

std::string Formatted(const char *format, va_list arguments)
{
    char *text = nullptr;
    const int length = ::vasprintf(&text, format, arguments);
    const std::string copied(length < 0 ? "" : text, length < 0 ? 0 : static_cast<size_t>(length));
    std::free(length < 0 ? nullptr : text);
    return copied;
}

// A read: it has no result to wait for where elements have no values.
template <typename Tuple> uint64_t Read(Entry entry, const Tuple &arguments)
{
    if (client::HasValues()) {
        return client::Call<uint64_t>(entry, NoSelf{}, arguments);
    }
    client::Call<void>(entry, NoSelf{}, arguments);
    return 0;
}

// An element of a tensor that begins at an address; one that was told before has no answer to wait for either.
template <typename Tensor>
uint64_t Get(Entry entry, const Tensor &tensor, int64_t index, const uint8_t *start, At at)
{
    client::ReadAhead &ahead = client::RunningReadAhead();
    const uint32_t width = DTypeBytes(tensor.dtype);
    const uint8_t *from = start + index * width;
    wire::Writer &writer = client::Open(entry);
    const uint8_t *held = start == nullptr ? nullptr : ahead.Find(from, width);
    client::Put(writer, Pack(tensor, index, at));
    const bool waits = held == nullptr && client::HasValues();
    writer.Raw(static_cast<uint8_t>(waits));
    uint64_t bits = 0;
    if (held != nullptr) {
        std::memcpy(&bits, held, width);
    } else if (waits) {
        wire::Reader reader = client::Ask();
        bits = reader.Raw<uint64_t>();
        ahead.Keep(from, reader);
    }
    return bits;
}

const wire::CoreInfo &Core()
{
    static const wire::CoreInfo host{0, 1, 0, 1, false};
    const wire::CoreInfo *core = client::RunningCore();
    return core == nullptr ? host : *core;
}

}  // namespace

int64_t BlockIdx() { return Core().index; }
int64_t BlockNum() { return Core().blocks; }
int64_t SubBlockIdx() { return Core().cube ? 0 : Core().sub; }
int64_t SubBlockNum() { return Core().cube ? 1 : Core().subs; }
int64_t TaskRatio() { return SubBlockNum(); }
bool OnCubeCore() { return Core().cube; }
uint64_t UsableUbBytes() { return CurrentChip().ub_bytes; }

uint32_t DTypeBytes(DType dtype)
{
    constexpr uint8_t bytes[] = {1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 8, 8, 8};
    return bytes[static_cast<int>(dtype)];
}

// Pointers into local memory are numbers, which GetPhyAddr hands out and instructions take.
uint8_t *PositionBase(AscendC::TPosition position)
{
    const int space = MemoryOf(position);
    if (client::RunningCore() == nullptr || (space == 0) == Core().cube) {
        return nullptr;  // the core lacks the memory
    }
    return reinterpret_cast<uint8_t *>(wire::kLocalSpace + (static_cast<uint64_t>(space) << wire::kLocalShift));
}

uint8_t *LocalAddress(const LocalRef &tensor)
{
    uint8_t *base = PositionBase(static_cast<AscendC::TPosition>(tensor.position));
    return base == nullptr ? nullptr : base + tensor.address;
}

uint64_t LocalGet(const LocalRef &tensor, int64_t index, At at)
{
    return Get(Entry::LocalGet, tensor, index, LocalAddress(tensor), at);
}
uint64_t GlobalGet(const GlobalRef &tensor, int64_t index, At at)
{
    return Get(Entry::GlobalGet, tensor, index, tensor.address, at);
}
uint64_t ReadUncached(const void *address, uint32_t width, At at)
{
    return Read(Entry::ReadUncached, Pack(wire::Device(address), width, at));
}

void ReadTiling(void *target, const volatile void *source, uint64_t bytes, const char *type, At at)
{
    wire::Writer &writer = client::Open(Entry::ReadTiling);
    client::Put(writer, Pack(wire::Device(source), bytes, type, at));
    wire::Reader reader = client::Ask();
    reader.Bytes(target, bytes);
}

// A copy that lasts as long as the process.
void *TilingInPlace(const volatile void *source, uint64_t bytes, const char *type, At at)
{
    static std::deque<std::vector<uint8_t>> copies;
    copies.emplace_back(bytes);
    ReadTiling(copies.back().data(), source, bytes, type, at);
    return copies.back().data();
}

void NoticeHostCall(const char *name)
{
    if (client::RunningCore() != nullptr) {
        client::Call<void>(Entry::HostCall, NoSelf{}, Pack(name));
    }
}

int PrintLine(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const std::string text = Formatted(format, arguments);
    va_end(arguments);
    if (client::RunningCore() == nullptr) {
        std::fputs(text.c_str(), stdout);
    } else {
        client::Call<void>(Entry::PrintText, NoSelf{}, Pack(wire::Text(text.c_str())));
    }
    return static_cast<int>(text.size());
}

void FailAssert(const char *condition, At at, const char *format, ...)
{
    std::string words;
    if (format != nullptr) {
        va_list arguments;
        va_start(arguments, format);
        words = Formatted(format, arguments);
        va_end(arguments);
    }
    if (client::RunningCore() == nullptr) {
        std::fprintf(stderr, "[ASSERT] %s:%d: Assertion `%s' failed.\n", at.file, at.line, condition);
        std::abort();
    }
    wire::Writer &writer = client::Open(Entry::FailAssert);
    client::Put(writer, Pack(condition, at, format != nullptr, wire::Text(words.c_str())));
    client::Ask();  // the judge gives the launch up and never answers
    std::abort();
}

void TrapCore(At at)
{
    client::Put(client::Open(Entry::TrapCore), Pack(at));
    client::Ask();
    std::abort();
}

void LaunchBlocks(const char *name, LaunchKind kind, uint32_t blocks, void *, KernelBody vector, KernelBody cube,
                  void *closure)
{
    wire::Writer &writer = client::Open(Entry::Launch);
    client::Put(writer, Pack(wire::Text(name), kind.cube, kind.vector, kind.mixed, blocks, cube != nullptr));
    client::RunLaunch(vector, cube, closure);
}

void LaunchBlocks(const char *name, uint32_t blocks, void *stream, KernelBody body, void *closure)
{
    LaunchBlocks(name, LaunchKind{}, blocks, stream, body, nullptr, closure);
}

}  // namespace evokernel::twin
