#include "core.h"

#include <algorithm>
#include <cstring>

namespace evokernel::twin {

namespace {

constexpr uint64_t kNoLine = ~uint64_t{0};

void ReportOpenFlags(const Core &core)
{
    for (int event = 0; event < static_cast<int>(AscendC::HardEvent::MAX); ++event) {
        const FlagState &flags = core.flags[event];
        const PipePair pair = PipesOf(static_cast<AscendC::HardEvent>(event));
        for (int id = 0; id < kEvents; ++id) {
            if (flags.set[id]) {
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

void Core::Begin(int64_t index, int64_t count, int active_cores, bool timing_only)
{
    timing = timing_only;
    block = index;
    blocks = count;
    time.Start(CurrentChip(), active_cores);
    if (!timing) {
        std::memset(ub, 0xFF, sizeof(ub));
        std::memset(undefined, 1, sizeof(undefined));
    }
    mask = MaskState{false, ~uint64_t{0}, ~uint64_t{0}};
    atomic = Atomic::None;
    deq_scale = 1.0F;
    buffers.assign(1, Buffer{});
    ub_used = 0;
    buffer_count = 0;
    std::fill(std::begin(queue_buffers), std::end(queue_buffers), 0);
    pipes_open = 0;
    std::memset(static_cast<void *>(flags), 0, sizeof(flags));
    std::fill(std::begin(event_ids), std::end(event_ids), uint8_t{0});
    cache_lines.assign(512, kNoLine);
    moved_bytes = 0;
    cached_bytes = 0;
    last_at = At{"", 0};
}

void Core::End()
{
    ReportOpenFlags(*this);
    ReportOpenBuffers(*this);
    if (atomic != Atomic::None) {
        ReportWarning("event-misuse", last_at, "The kernel ends with atomics on; call SetAtomicNone.");
    }
}

Core &TheCore()
{
    static Core core;
    return core;
}

L2State &L2()
{
    static L2State state;
    return state;
}

uint64_t &InstructionCount()
{
    static uint64_t count = 0;
    return count;
}

void RunVector(const char *name, double cycles, At at)
{
    Core &core = TheCore();
    ++InstructionCount();
    core.last_at = at;
    core.time.Run(Pipe::V, CurrentChip().startup + cycles, name, at.line, at.file);
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

void CheckLive(const LocalRef &tensor, const char *api, const char *operand, At at)
{
    const Core &core = TheCore();
    if (tensor.buffer != 0 && tensor.buffer < core.buffers.size() &&
        core.buffers[tensor.buffer].generation != tensor.generation) {
        ReportError("stale-read", at, "%s uses %s after FreeTensor gave its buffer back.", api, operand);
    }
}

bool InUb(const LocalRef &tensor)
{
    const auto position = static_cast<AscendC::TPosition>(tensor.position);
    return position == AscendC::TPosition::VECIN || position == AscendC::TPosition::VECOUT ||
           position == AscendC::TPosition::VECCALC || position == AscendC::TPosition::GM;
}

}  // namespace

uint8_t *LocalRange(const LocalRef &tensor, uint64_t bytes, uint32_t alignment, bool write, const char *api,
                    const char *operand, At at)
{
    Core &core = TheCore();
    if (!InUb(tensor)) {
        ReportError("dtype-unsupported", at, "%s takes tensors of the unified buffer only; %s is elsewhere.", api,
                    operand);
        return nullptr;
    }
    CheckLive(tensor, api, operand, at);
    if (tensor.address % alignment != 0) {
        ReportError("alignment", at, "%s needs %s at a multiple of %u bytes, but it starts at byte %u of UB.", api,
                    operand, alignment, tensor.address);
    }
    if (uint64_t{tensor.address} + bytes > tensor.limit) {
        ReportError("out-of-bounds", at, "%s %s %llu bytes of %s, but its buffer ends after %lld.", api,
                    write ? "writes" : "reads", static_cast<unsigned long long>(bytes), operand,
                    static_cast<long long>(tensor.limit) - static_cast<long long>(tensor.address));
    }
    if (uint64_t{tensor.address} + bytes > std::min<uint64_t>(CurrentChip().ub_total_bytes, kUbCapacity)) {
        return nullptr;
    }
    return core.ub + tensor.address;
}

bool AnyUndefined(uint32_t address, uint64_t bytes)
{
    return std::memchr(TheCore().undefined + address, 1, bytes) != nullptr;
}

void MarkDefined(uint32_t address, uint64_t bytes) { std::memset(TheCore().undefined + address, 0, bytes); }

void ReportUndefined(const char *api, const LocalRef &tensor, uint64_t bytes, At at)
{
    const uint8_t *shadow = TheCore().undefined + tensor.address;
    const uint64_t first =
        static_cast<uint64_t>(static_cast<const uint8_t *>(std::memchr(shadow, 1, bytes)) - shadow);
    const uint64_t count = static_cast<uint64_t>(std::count(shadow, shadow + bytes, uint8_t{1}));
    ReportError("uninitialised-read", at,
                "%s reads %llu bytes that hold no value the kernel wrote, the first at element %llu.", api,
                static_cast<unsigned long long>(count),
                static_cast<unsigned long long>(first / DTypeBytes(tensor.dtype)));
}

}  // namespace evokernel::twin
