// One vector core: its unified buffer, mask register, flags, queue buffers and time.
#pragma once
#include <cstdint>
#include <vector>

#include "chip.h"
#include "evokernel/twin/api.h"
#include "hazards.h"
#include "memory.h"
#include "pipeline.h"

namespace evokernel::twin {

constexpr uint32_t kUbCapacity = 256 * 1024;  // host array; the chip says how much of it is real
constexpr int kEvents = 8;

enum class BufferState : uint8_t { Idle, Allocated, Queued, Dequeued };

// A buffer of a TQue. Free and full times are what the other pipe waits for.
struct Buffer {
    uint32_t address;
    uint32_t bytes;
    uint16_t generation;
    BufferState state;
    double full_at;
    double free_at;
    const void *owner;
    int alloc_line;
    const char *alloc_file;
};

struct MaskState {
    bool counter;
    uint64_t low;
    uint64_t high;
};

struct FlagState {
    bool set[kEvents];
    double time[kEvents];
    At at[kEvents];
};

struct Core {
    bool timing = false;  // count cycles only
    int64_t block = 0;
    int64_t blocks = 1;
    Pipeline time;

    alignas(64) uint8_t ub[kUbCapacity];
    uint8_t undefined[kUbCapacity];  // 1: the byte holds nothing that the kernel wrote

    MaskState mask{};
    Atomic atomic = Atomic::None;
    DType atomic_type = DType::F32;
    float deq_scale = 1.0F;
    uint64_t compare_mask[2] = {};
    float last_sum = 0;
    float last_value = 0;
    uint32_t last_index = 0;

    std::vector<Buffer> buffers;  // index 0 unused
    uint32_t ub_used = 0;
    int buffer_count = 0;
    int queue_buffers[static_cast<int>(AscendC::TPosition::MAX)] = {};
    int pipes_open = 0;
    FlagState flags[static_cast<int>(AscendC::HardEvent::MAX)];
    uint8_t event_ids[static_cast<int>(AscendC::HardEvent::MAX)] = {};  // bit i: id i is taken
    std::vector<uint64_t> cache_lines;
    uint64_t moved_bytes = 0;  // GM traffic of this block: its progress
    uint64_t cached_bytes = 0;  // of it, what is kept in L2 (first touches only)
    At last_at{"", 0};

    void Begin(int64_t index, int64_t count, int active_cores, bool timing_only);
    void End();
};

Core &TheCore();
bool InKernel();

// What the launch so far knows about L2: whether writes stay in it.
struct L2State {
    bool writes_stay = true;
    int active = 1;
};
L2State &L2();

// Width in bytes of one element (S4 counts as one byte for a pair, see Cast).
const char *DTypeName(DType dtype);

// Checks a range of the unified buffer and returns its first byte, or null where it may not be used.
uint8_t *LocalRange(const LocalRef &tensor, uint64_t bytes, uint32_t alignment, bool write, const char *api,
                    const char *operand, At at);
bool AnyUndefined(uint32_t address, uint64_t bytes);
void MarkDefined(uint32_t address, uint64_t bytes);
void ReportUndefined(const char *api, const LocalRef &tensor, uint64_t bytes, At at);

// Counts instructions of the launch.
uint64_t &InstructionCount();
void RunVector(const char *name, double cycles, At at);

}  // namespace evokernel::twin
