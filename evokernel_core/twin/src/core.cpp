#include "core.h"

#include "blocks.h"
#include "sampled.h"
#include "time/schedule.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace evokernel::twin {

namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 48;  // more than any memory has: sums with it do not run over
constexpr uint64_t kNoLine = ~uint64_t{0};

void ReportOpenFlags(const Core &core)
{
    for (int event = 0; event < static_cast<int>(AscendC::HardEvent::MAX); ++event) {
        const FlagState &flags = core.flags[event];
        const PipePair pair = PipesOf(static_cast<AscendC::HardEvent>(event));
        for (int id = 0; id < kEvents; ++id) {
            if (flags.set[id] && !flags.by_pipe[id]) {  // cores that serve Matmul objects end inside of their TPipe
                ReportError("event-misuse", flags.at[id],
                            "SetFlag %s_%s with event id %d has no WaitFlag; the flag leaks into the next kernel.",
                            PipeName(pair.from), PipeName(pair.to), id);
            }
        }
    }
}

void ReportOpenBuffers(const Core &core)
{
    for (size_t i = 1; i < core.buffers.size(); ++i) {
        const Buffer &buffer = core.buffers[i];
        const At at{buffer.alloc_file, buffer.alloc_line};
        if (buffer.state == BufferState::Queued) {
            ReportError("queue-misuse", at, "A tensor that was put in its queue is never taken out with DeQue.");
        } else if (buffer.state != BufferState::Idle) {
            ReportWarning("queue-misuse", at, "A tensor from AllocTensor is never given back with FreeTensor.");
        }
    }
}

}  // namespace

namespace {

// Of the memory that all cores take their local memories from: large pages spare most of the page faults.
constexpr size_t kLargePage = size_t{1} << 21;
constexpr size_t kArenaBytes = 8 * kLargePage;
constexpr size_t kLocalAlignment = 64;

uint8_t *MapArena(size_t bytes)
{
    void *mapping = ::mmap(nullptr, bytes + kLargePage, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) {
        std::abort();
    }
    const auto address = reinterpret_cast<uintptr_t>(mapping);
    auto *arena = reinterpret_cast<uint8_t *>((address + kLargePage - 1) / kLargePage * kLargePage);
    ::madvise(arena, bytes, MADV_HUGEPAGE);  // where the system has none, small pages do
    return arena;
}

// A local memory, cleared. Cores are kept from launch to launch, so that it is never given back.
uint8_t *TakeLocal(size_t bytes)
{
    static uint8_t *free = nullptr;
    static size_t left = 0;
    const size_t taken = (bytes + kLocalAlignment - 1) / kLocalAlignment * kLocalAlignment;
    if (taken > left) {
        left = std::max(taken, kArenaBytes);
        free = MapArena(left);
    }
    uint8_t *local = free;
    free += taken;
    left -= taken;
    return local;
}

// The host's array: the unified buffer's has room for tensors that a faulty kernel puts behind its end.
size_t HostBytes(Space space) { return space == Space::UB ? kUbCapacity : SpaceBytes(space); }

// Makes all undefined. What the launch before did not touch still is.
void Undefine(LocalMemory &local, uint64_t bytes, uint8_t fill)
{
    const uint64_t touched = local.filled == fill ? std::min(local.touched, bytes) : bytes;
    std::memset(local.data, fill, touched);
    std::memset(local.undefined, kUndefined, touched);
    local.filled = fill;
    local.touched = 0;
}

bool Has(CoreKind kind, Space space) { return (kind == CoreKind::Vector) == (space == Space::UB); }

}  // namespace

void Core::Begin(const CorePlace &place, int active_cores, bool timing_only)
{
    timing = timing_only;
    kind = place.kind;
    block = place.block;
    blocks = place.blocks;
    sub = place.sub;
    subs = place.subs;
    cubes = place.cubes;
    const bool cube = kind == CoreKind::Cube;
    time.Start(CurrentChip(), active_cores * std::max(1, cube ? cubes : subs), cube);
    for (int i = 0; i < kSpaces; ++i) {
        const auto space = static_cast<Space>(i);
        LocalMemory &local = memory[i];
        if (!Has(kind, space)) {
            continue;
        }
        if (local.data == nullptr) {
            local.data = TakeLocal(HostBytes(space));
            local.undefined = TakeLocal(HostBytes(space));
            local.capacity = static_cast<uint32_t>(std::min<uint64_t>(SpaceBytes(space), HostBytes(space)));
            local.host_bytes = HostBytes(space) / kGranule * kGranule;
            local.blank = sampled::active ? TakeLocal(HostBytes(space) / kGranule) : nullptr;
            local.filled = -1;
        }
        if (sampled::active) {
            std::memset(local.blank, 1, local.host_bytes / kGranule);
            local.filled = -1;
        } else if (!timing) {
            Undefine(local, HostBytes(space), 0xFF);
        } else if (Gm().HasKnown()) {
            Undefine(local, HostBytes(space), 0);
        }
    }
    ub = In(Space::UB).data;
    undefined = In(Space::UB).undefined;
    if (cube) {
        matrix = CubeState();
    }
    matmul_objects = 0;
    matmul_calls = 0;
    mask = MaskState{false, ~uint64_t{0}, ~uint64_t{0}};
    atomic = Atomic::None;
    deq_scale = 1.0F;
    registers = Registers{};
    buffers.assign(1, Buffer{});
    std::fill(std::begin(used), std::end(used), 0U);
    buffer_count = 0;
    queues = 0;
    std::fill(std::begin(queue_buffers), std::end(queue_buffers), 0);
    pipes_open = 0;
    pipe = nullptr;
    pipe_at = At{"", 0};
    polled = nullptr;
    polled_times = 0;
    cleaned = false;
    std::memset(static_cast<void *>(flags), 0, sizeof(flags));
    std::fill(std::begin(event_ids), std::end(event_ids), uint8_t{0});
    std::fill(std::begin(given_ids), std::end(given_ids), uint8_t{0});
    std::fill(std::begin(queue_ids), std::end(queue_ids), uint8_t{0});
    cache_lines.assign(512, kNoLine);
    moved_bytes = 0;
    number = static_cast<uint32_t>(block * (subs + cubes) + (cube ? subs : sub)) + 1;
    base = place.base;
    // Blocks of later waves meet few others, so a short one need not wait for them.
    turn_ends = base + kTurn + (base > 0 ? CurrentChip().start_us * CurrentChip().mhz : 0);
    last_at = At{"", 0};
}

void Core::End()
{
    ReportOpenFlags(*this);
    ReportOpenBuffers(*this);
    if (atomic != Atomic::None) {
        ReportError("event-misuse", last_at,
                    "The kernel ends with atomics on, which leaks into the next kernel; call SetAtomicNone.");
    }
    if (mask.counter) {
        ReportError("event-misuse", last_at,
                    "The kernel ends in the counter mode of masks, which leaks into the next kernel; call SetMaskNorm.");
    }
}

Core &HostCore()
{
    static Core core;
    return core;
}

void CheckStack()
{
    const uint64_t used = blocks::counter.deepest;
    if (used <= CurrentChip().stack_bytes || blocks::counter.reported) {
        return;
    }
    blocks::counter.reported = true;
    ReportError("stack-capacity", TheCore().last_at,
                "The kernel's functions and their local arrays take more than the %llu bytes of stack that a core has; keep "
                "arrays in local memory.",
                static_cast<unsigned long long>(CurrentChip().stack_bytes));
}

Core *current_core = &HostCore();
uint64_t instruction_count = 0;

const char *SpaceName(Space space)
{
    static const char *const names[] = {Word("the unified buffer"), "L1", "L0A", "L0B", "L0C",
                                        Word("the bias table"), Word("the fixpipe buffer")};
    return names[static_cast<int>(space)];
}

uint64_t SpaceBytes(Space space)
{
    const Chip &chip = CurrentChip();
    const uint64_t bytes[kSpaces] = {chip.ub_total_bytes, chip.l1_bytes,         chip.l0a_bytes,
                                     chip.l0b_bytes,      chip.l0c_bytes,        chip.bias_table_bytes,
                                     chip.fixpipe_buffer_bytes};
    return bytes[static_cast<int>(space)];
}

void RunVector(const char *name, double cycles, At at) { RunVector(name, CurrentChip().startup, cycles, at); }

void RunVector(const char *name, double startup, double cycles, At at)
{
    BeginInstruction(Pipe::V, name, at);
    TheCore().time.Run(Pipe::V, startup + cycles, name, at.line, at.file);
}

At LastPlace() { return TheCore().last_at; }

uint32_t DTypeBytes(DType dtype)
{
    switch (dtype) {
        case DType::S4:
        case DType::S8:
        case DType::U8:
            return 1;
        case DType::S16:
        case DType::U16:
        case DType::F16:
        case DType::BF16:
            return 2;
        case DType::S32:
        case DType::U32:
        case DType::F32:
            return 4;
        default:
            return 8;
    }
}

const char *DTypeName(DType dtype)
{
    static const char *const names[] = {"int4b_t", "int8_t",  "uint8_t",  "int16_t", "uint16_t", "half",  "bfloat16_t",
                                        "int32_t", "uint32_t", "float",   "int64_t", "uint64_t", "double"};
    return names[static_cast<int>(dtype)];
}

namespace {

// FreeTensor leaves the bytes as they are: a late use meets them until AllocTensor hands the buffer out again.
void CheckLive(const LocalRef &tensor, const char *api, const char *operand, At at)
{
    const Core &core = TheCore();
    if (tensor.buffer == 0 || tensor.buffer >= core.buffers.size()) {
        return;
    }
    const Buffer &buffer = core.buffers[tensor.buffer];
    if (buffer.generation == tensor.generation) {
        return;
    }
    const bool untouched =
        buffer.state == BufferState::Idle && buffer.generation == static_cast<uint16_t>(tensor.generation + 1);
    if (untouched) {
        ReportWarning("stale-read", at, "%s uses %s after FreeTensor gave its buffer back; nobody has it yet, but the "
                      "next AllocTensor does not wait for this use.", api, operand);
    } else {
        ReportError("stale-read", at, "%s uses %s after FreeTensor gave its buffer back and AllocTensor handed it out "
                    "again.", api, operand);
    }
}

// Whether the core has the memory and the instruction may use it.
bool CheckSpace(const Core &core, Space space, uint32_t spaces, const char *api, const char *operand, At at)
{
    if ((spaces & SpaceBit(space)) == 0) {
        Wording allowed;
        for (int i = 0; i < kSpaces; ++i) {
            if ((spaces >> i & 1) != 0) {
                const char *name = SpaceName(static_cast<Space>(i));
                allowed = allowed.empty() ? Wording("%s", name) : Wording("%s or %s", allowed.c_str(), name);
            }
        }
        ReportError("dtype-unsupported", at, "%s takes its %s from %s, but it lies in %s; use another TPosition.", api,
                    operand, allowed.c_str(), SpaceName(space));
        return false;
    }
    if (core.memory[static_cast<int>(space)].data == nullptr || !Has(core.kind, space)) {
        ReportError("wrong-core", at, "%s uses %s, which a %s core does not have; guard it with ASCEND_IS_%s.", api,
                    SpaceName(space), core.kind == CoreKind::Cube ? Word("cube") : Word("vector"),
                    core.kind == CoreKind::Cube ? "AIV" : "AIC");
        return false;
    }
    return true;
}

}  // namespace

uint8_t *CheckRange(const LocalRef &tensor, uint64_t bytes, uint32_t alignment, bool write, const char *api,
                    const char *operand, At at, uint32_t spaces)
{
    Core &core = TheCore();
    const Space space = SpaceOf(tensor);
    if (!CheckSpace(core, space, spaces, api, operand, at)) {
        return nullptr;
    }
    CheckLive(tensor, api, operand, at);
    if (tensor.address % alignment != 0) {
        ReportError("alignment", at, "%s needs %s at a multiple of %u bytes, but it starts at byte %u of %s.", api,
                    operand, alignment, tensor.address, SpaceName(space));
    }
    bytes = std::min(bytes, kMostBytes);
    if (uint64_t{tensor.address} + bytes > tensor.limit) {
        ReportError("out-of-bounds", at, "%s %s %llu bytes of %s, but its buffer ends after %lld.", api,
                    write ? Word("writes") : Word("reads"), static_cast<unsigned long long>(bytes), operand,
                    static_cast<long long>(tensor.limit) - static_cast<long long>(tensor.address));
    }
    LocalMemory &local = core.In(space);
    if (uint64_t{tensor.address} + bytes > local.capacity) {
        return nullptr;
    }
    local.touched = std::max(local.touched, uint64_t{tensor.address} + bytes);
    if (sampled::active) {
        sampled::Open(space, tensor.address, bytes);
    }
    return local.data + tensor.address;
}

uint8_t *Range(const LocalRef &tensor, uint64_t bytes, uint32_t alignment, bool write, const char *api,
               const char *operand, At at, uint32_t spaces)
{
    uint8_t *first = CheckRange(tensor, bytes, alignment, write, api, operand, at, spaces);
    if (first != nullptr) {
        Touch(SpaceOf(tensor), tensor.address, bytes, write);
    }
    return first;
}

uint8_t *LocalRange(const LocalRef &tensor, uint64_t bytes, uint32_t alignment, bool write, const char *api,
                    const char *operand, At at)
{
    return Range(tensor, bytes, alignment, write, api, operand, at, SpaceBit(Space::UB));
}

bool AnyMarked(const uint8_t *shadow, uint64_t bytes)
{
    constexpr uint64_t step = 256;  // a run that the compiler makes vectors of, before it looks whether to go on
    for (uint64_t done = 0; done < bytes; done += step) {
        const uint64_t end = std::min(done + step, bytes);
        uint8_t any = 0;
        for (uint64_t i = done; i < end; ++i) {
            any |= shadow[i];
        }
        if (any != 0) {
            return true;
        }
    }
    return false;
}

uint64_t MarkedCount(const uint8_t *shadow, uint64_t bytes)
{
    return bytes - static_cast<uint64_t>(std::count(shadow, shadow + bytes, uint8_t{0}));
}

bool AnyUndefined(uint32_t address, uint64_t bytes, Space space)
{
    if (sampled::active) {
        sampled::Open(space, address, bytes);
    }
    return AnyMarked(TheCore().In(space).undefined + address, bytes);
}

void MarkDefined(uint32_t address, uint64_t bytes, Space space)
{
    if (sampled::active) {
        sampled::Open(space, address, bytes);
    }
    std::memset(TheCore().In(space).undefined + address, 0, bytes);
}

bool ComputesTo(uint32_t address, uint64_t bytes, bool known)
{
    Core &core = TheCore();
    if (!core.timing || !Gm().HasKnown() || address >= kUbCapacity) {
        return !core.timing;
    }
    if (!known) {
        std::memset(core.undefined + address, kUndefined, std::min<uint64_t>(bytes, kUbCapacity - address));
    }
    return known;
}

void ReportUndefined(const char *api, const LocalRef &tensor, uint64_t bytes, At at)
{
    const uint8_t *shadow = TheCore().In(SpaceOf(tensor)).undefined + tensor.address;
    const auto marked = [](uint8_t state) { return state != 0; };
    const auto first = static_cast<uint64_t>(std::find_if(shadow, shadow + bytes, marked) - shadow);
    ReportError("uninitialised-read", at,
                "%s reads %llu bytes that hold no value the kernel wrote, the first at element %llu.", api,
                static_cast<unsigned long long>(MarkedCount(shadow, bytes)),
                static_cast<unsigned long long>(first / DTypeBytes(tensor.dtype)));
}

}  // namespace evokernel::twin
