// Single elements from the scalar unit: unified buffer and global memory.
#include <algorithm>
#include <cstring>

#include "core.h"
#include "launch.h"
#include "sampled.h"
#include "stand_in.h"
#include "evokernel/twin/api_vector.h"
#include "time/schedule.h"

namespace evokernel::twin {

namespace {

// The compiler orders the scalar unit after the vector and copy pipes, and them after it, for these.
void ScalarAfterPipes(Core &core)
{
    core.time.ScalarWaits(Pipe::V);
}

void PipesAfterScalar(Core &core)
{
    const double now = core.time.Now();
    core.time.NotBefore(Pipe::V, now, Pipe::S);
    core.time.NotBefore(Pipe::MTE3, now, Pipe::S);
}

// One beyond what an address counts is beyond all memory, and not back before the tensor.
LocalRef ElementOf(const LocalRef &tensor, int64_t index)
{
    const uint64_t address = tensor.address + static_cast<uint64_t>(index) * DTypeBytes(tensor.dtype);
    LocalRef element = tensor;
    element.address = static_cast<uint32_t>(std::min<uint64_t>(address, ~uint32_t{0}));
    return element;
}

// Whether the data cache holds a line; it does from then on. A set keeps the lines it met last, the newest
// first: where tensors lie by chance then hardly ever makes two of them push each other out.
bool Cached(Core &core, uint64_t line)
{
    constexpr uint64_t ways = 4;
    uint64_t *set = &core.cache_lines[line % (core.cache_lines.size() / ways) * ways];
    uint64_t *const match = std::find(set, set + ways, line);
    const bool hit = match != set + ways;
    std::move_backward(set, hit ? match : set + ways - 1, hit ? match + 1 : set + ways);
    *set = line;
    return hit;
}

// The line's cost: a hit in the data cache, or a trip to memory.
void GmAccess(Core &core, const uint8_t *address)
{
    constexpr uint64_t line_bytes = 64;
    const uint64_t line = reinterpret_cast<uintptr_t>(address) / line_bytes;
    const Chip &chip = CurrentChip();
    core.time.Scalar(Cached(core, line) ? chip.gm_hit : chip.gm_miss);
}

// Whether the core may be waiting for another core to write an element of GM: it reads it again and finds
// what it found before, or it has just cleaned its data cache, which a loop over several flags does too.
bool StillTheSame(Core &core, const uint8_t *address, uint64_t bits)
{
    const bool same = (core.polled == address && core.polled_bits == bits) || core.cleaned;
    core.cleaned = false;
    core.polled = address;
    core.polled_bits = bits;
    core.polled_times = same ? core.polled_times + 1 : 0;
    return same;
}

// Timing has the data of inputs that it was given. It has nothing that kernels write: a loop that waits for such a value
// would never end.
uint64_t ReadTimed(Core &core, const uint8_t *address, uint32_t width, const char *api, At at)
{
    constexpr uint32_t limit = 100000;
    const bool again = core.polled == address && core.polled_bits + 1 == InstructionCount();
    core.polled = address;
    core.polled_bits = InstructionCount();
    core.polled_times = again ? core.polled_times + 1 : 0;
    if (core.polled_times > limit) {
        ReportError("data-dependent", at,
                    "%s waits in a loop for a value of global memory, which timing lacks. Use SyncAll, IBWait "
                    "or CrossCoreWaitFlag, or take the time of a checking run.",
                    api);
        GiveUpLaunch();
    }
    uint64_t bits = 0;
    if (Gm().WithData(address, width) != nullptr) {
        std::memcpy(&bits, address, width);
    } else if (TheSession().refuse_unknown) {
        ReportError("data-dependent", at,
                    "%s reads a value of global memory that a kernel computes, which timing does not have; take the time "
                    "of a checking run.",
                    api);
        GiveUpLaunch();
    }
    return bits;
}

}  // namespace

namespace {

// In timing mode only what comes from known inputs alone has a value.
uint64_t KnownBits(const Core &core, const LocalRef &element, uint32_t width)
{
    uint64_t bits = 0;
    if (Gm().HasKnown() && SpaceOf(element) == Space::UB && uint64_t{element.address} + width <= kUbCapacity &&
        !AnyUndefined(element.address, width)) {
        std::memcpy(&bits, core.ub + element.address, width);
    }
    return bits;
}

}  // namespace

uint64_t LocalGet(const LocalRef &tensor, int64_t index, At at)
{
    Core &core = TheCore();
    BeginInstruction(Pipe::S, "GetValue", at);
    ScalarAfterPipes(core);
    core.time.Scalar(CurrentChip().local_access);
    const uint32_t width = DTypeBytes(tensor.dtype);
    const LocalRef element = ElementOf(tensor, index);
    if (core.timing) {
        return KnownBits(core, element, width);
    }
    const uint8_t *from = LocalRange(element, width, 1, false, "GetValue", "the tensor", at);
    uint64_t bits = 0;
    if (from != nullptr && sampled::active) {
        sampled::Open(SpaceOf(element), element.address, width);
        const uint8_t *undefined = core.In(SpaceOf(element)).undefined + element.address;
        uint8_t held[sizeof(bits)];
        std::transform(undefined, undefined + width, held, [](uint8_t state) { return state == 0 ? 1 : 0; });
        return sampled::ScalarOf(from, held, tensor.dtype, at);
    }
    if (from != nullptr) {
        if (AnyUndefined(element.address, width)) {
            ReportError("uninitialised-read", at, "GetValue(%lld) reads an element that the kernel never wrote.",
                        static_cast<long long>(index));
        }
        std::memcpy(&bits, from, width);
    }
    return bits;
}

void LocalSet(const LocalRef &tensor, int64_t index, uint64_t bits, At at)
{
    Core &core = TheCore();
    BeginInstruction(Pipe::S, "SetValue", at);
    ScalarAfterPipes(core);
    core.time.Scalar(CurrentChip().local_access);
    PipesAfterScalar(core);
    const uint32_t width = DTypeBytes(tensor.dtype);
    const LocalRef element = ElementOf(tensor, index);
    if (SpaceOf(element) != Space::UB ? core.timing : !ComputesTo(element.address, width, true)) {
        return;
    }
    uint8_t *to = LocalRange(element, width, 1, true, "SetValue", "the tensor", at);
    if (to != nullptr) {
        std::memcpy(to, &bits, width);
        MarkDefined(element.address, width);
    }
}

namespace {

GlobalRef RawRef(const void *address, uint32_t width)
{
    GlobalRef ref;
    ref.address = static_cast<uint8_t *>(const_cast<void *>(address));
    ref.bytes = width;
    ref.dtype = width == 8 ? DType::U64 : width == 4 ? DType::U32 : width == 2 ? DType::U16 : DType::U8;
    return ref;
}

// What a read of `bits` says: bytes that hold no value stand for one in sampled runs.
uint64_t Answer(const Allocation &block, const uint8_t *from, uint64_t bits, DType dtype, At at)
{
    if (!sampled::active || block.written == nullptr) {
        return bits;
    }
    return sampled::ScalarOf(reinterpret_cast<const uint8_t *>(&bits), block.written + (from - block.base), dtype, at);
}

uint64_t ReadGlobal(Core &core, const GlobalRef &tensor, const uint8_t *from, uint32_t width, const char *api, At at)
{
    const Allocation *block = Gm().Check(tensor, from, width, false, api, at);
    uint64_t bits = 0;
    if (block == nullptr) {
        return bits;
    }
    TouchGm(from, width, false);
    if (block->written != nullptr && std::memchr(block->written + (from - block->base), 0, width) != nullptr) {
        ReportError("uninitialised-read", at, "%s reads byte %lld of %s, which was never written.", api,
                    static_cast<long long>(from - block->base), block->name.c_str());
    }
    std::memcpy(&bits, from, width);
    if (StillTheSame(core, from, bits)) {
        YieldCore(at);
        TouchGm(from, width, false);
        std::memcpy(&bits, from, width);
    }
    return Answer(*block, from, bits, tensor.dtype, at);
}

void WriteGlobal(const GlobalRef &tensor, uint8_t *to, uint64_t bits, uint32_t width, const char *api, At at)
{
    Allocation *block = Gm().Check(tensor, to, width, true, api, at);
    if (block == nullptr || block->kind == Kind::Input) {
        return;
    }
    MarkProgress();
    if (!sampled::Keeps(*block, static_cast<uint64_t>(to - block->base), width)) {
        return;
    }
    TouchGm(to, width, true);
    std::memcpy(to, &bits, width);
    if (block->written != nullptr) {
        std::memset(block->written + (to - block->base), 1, width);
    }
}

}  // namespace

namespace {

// What a scalar store of timing mode leaves may come of values that it does not have.
void LoseScalar(const uint8_t *to, uint32_t width)
{
    Allocation *block = Gm().Find(to);
    if (block != nullptr) {
        GlobalMemory::LoseData(*block, static_cast<uint64_t>(to - block->base), width);
    }
}

}  // namespace

uint64_t GlobalGet(const GlobalRef &tensor, int64_t index, At at)
{
    Core &core = TheCore();
    BeginInstruction(Pipe::S, "GetValue", at);
    const uint32_t width = DTypeBytes(tensor.dtype);
    const uint8_t *from = tensor.address + index * width;
    GmAccess(core, from);
    return core.timing ? ReadTimed(core, from, width, "GetValue", at)
                       : ReadGlobal(core, tensor, from, width, "GetValue", at);
}

void GlobalSet(const GlobalRef &tensor, int64_t index, uint64_t bits, At at)
{
    Core &core = TheCore();
    BeginInstruction(Pipe::S, "SetValue", at);
    const uint32_t width = DTypeBytes(tensor.dtype);
    uint8_t *to = tensor.address + index * width;
    GmAccess(core, to);
    if (core.timing) {
        return LoseScalar(to, width);
    }
    WriteGlobal(tensor, to, bits, width, "SetValue", at);
}

uint64_t ReadUncached(const void *address, uint32_t width, At at)
{
    constexpr const char *name = "ReadGmByPassDCache";
    Core &core = TheCore();
    BeginInstruction(Pipe::S, name, at);
    race::Uncached(core);
    core.time.Scalar(CurrentChip().gm_miss);
    const auto *from = static_cast<const uint8_t *>(address);
    return core.timing ? ReadTimed(core, from, width, name, at)
                       : ReadGlobal(core, RawRef(address, width), from, width, name, at);
}

void WriteUncached(void *address, uint64_t bits, uint32_t width, At at)
{
    constexpr const char *name = "WriteGmByPassDCache";
    Core &core = TheCore();
    BeginInstruction(Pipe::S, name, at);
    race::Uncached(core);
    core.time.Scalar(CurrentChip().gm_miss);
    auto *to = static_cast<uint8_t *>(address);
    if (core.timing) {
        return LoseScalar(to, width);
    }
    WriteGlobal(RawRef(address, width), to, bits, width, name, at);
}

void PreloadLine(const GlobalRef &tensor, int64_t offset, At at)
{
    Core &core = TheCore();
    BeginInstruction(Pipe::S, "DataCachePreload", at);
    constexpr uint64_t line_bytes = 64;
    const uint64_t line = (reinterpret_cast<uint64_t>(tensor.address) + static_cast<uint64_t>(offset)) / line_bytes;
    Cached(core, line);
    core.time.Scalar(CurrentChip().flag);
}

void CleanDataCache(const uint8_t *line, At at)
{
    Core &core = TheCore();
    if (race::installed && !core.timing) {
        race::CleanLines(core, line);
    }
    core.last_at = at;
    core.cleaned = true;
    core.time.Scalar(CurrentChip().gm_miss);
}

uint8_t *LocalAddress(const LocalRef &tensor)
{
    uint8_t *memory = TheCore().In(SpaceOf(tensor)).data;
    return memory == nullptr ? nullptr : memory + tensor.address;
}

LocalRef LocalAt(const volatile void *pointer, DType dtype, const char *api, At at)
{
    const auto size = static_cast<uint32_t>(CurrentChip().ub_total_bytes);
    LocalRef local{0, size, size, 0, 0, static_cast<uint8_t>(AscendC::TPosition::VECCALC), dtype};
    const LocalMemory &space = TheCore().In(SpaceOf(local));
    if (space.data == nullptr) {
        return local;
    }
    const uint8_t *address = static_cast<const uint8_t *>(const_cast<const void *>(pointer));
    if (address < space.data || address >= space.data + size) {
        ReportError("out-of-bounds", at, "%s takes a pointer that is none into the unified buffer.", api);
        return local;
    }
    local.address = static_cast<uint32_t>(address - space.data);
    local.bytes = size - local.address;
    return local;
}

void ScalarCycles(double cycles) { TheCore().time.Scalar(cycles); }

}  // namespace evokernel::twin
