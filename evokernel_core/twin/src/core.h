// One core: its local memories, mask register, flags, queue buffers and time.
#pragma once
#include <cstdint>
#include <vector>

#include "chip.h"
#include "cube/state.h"
#include "evokernel/twin/api.h"
#include "evokernel/twin/launch.h"
#include "hazards.h"
#include "memory.h"
#include "registers.h"
#include "synchronisation/queue_book.h"
#include "synchronisation/race.h"
#include "time/pipeline.h"

namespace evokernel::twin {

constexpr uint32_t kUbCapacity = 256 * 1024;  // host array; the chip says how much of it is real
constexpr int kEvents = LimitOf(Api::SetFlag, "eventID").high + 1;

enum class CoreKind : uint8_t { Vector, Cube };

// The local memories: the unified buffer on vector cores, the others on cube cores.
enum class Space : uint8_t { UB, L1, L0A, L0B, L0C, BT, FB };
constexpr int kSpaces = kLocalMemories;
constexpr uint32_t kAllSpaces = (1U << kSpaces) - 1;
constexpr uint32_t SpaceBit(Space space) { return 1U << static_cast<int>(space); }
const char *SpaceName(Space space);
uint64_t SpaceBytes(Space space);  // on the chip

constexpr Space SpaceOf(AscendC::TPosition position) { return static_cast<Space>(MemoryOf(position)); }
constexpr Space SpaceOf(const LocalRef &tensor)
{
    return SpaceOf(static_cast<AscendC::TPosition>(tensor.position));
}

// `data` is null on a core that lacks the memory; `undefined`: the bits of each byte that hold nothing that was
// written, all or none but in masks. In sampled runs `blank` is 1 for each granule none of whose bytes holds anything, whatever `undefined` says of them.
struct LocalMemory {
    uint8_t *data;
    uint8_t *undefined;
    uint32_t capacity;
    uint8_t *blank;
    uint64_t host_bytes;
    uint64_t touched;  // no instruction of the launch looked at bytes from here on
    int filled;        // with which byte what is undefined was filled; -1: not at all
};
constexpr uint64_t kGranule = 256;

// Where a core stands in its launch.
struct CorePlace {
    CoreKind kind = CoreKind::Vector;
    int64_t block = 0;
    int64_t blocks = 1;
    int sub = 0;    // which of the block's cores of this kind
    int subs = 1;   // vector cores of a block
    int cubes = 0;  // cube cores of a block
    double base = 0;  // the launch's cycle in which the block begins
};

// A buffer of a TQue. Free and full times are what the other pipe waits for.
struct Buffer {
    uint32_t address;
    uint32_t bytes;
    uint16_t generation;
    BufferState state;
    double full_at;
    double free_at;
    uint32_t queue;  // Queue::serial_
    int alloc_line;
    const char *alloc_file;
    uint8_t full_event;  // the id of its flag while that is set, from 1
    uint8_t free_event;
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
    bool by_pipe[kEvents];  // set by the TPipe and not waited for since
};

struct Core {
    bool timing = false;  // count cycles only
    CoreKind kind = CoreKind::Vector;
    int64_t block = 0;
    int64_t blocks = 1;
    int sub = 0;
    int subs = 1;
    int cubes = 0;
    Pipeline time;

    LocalMemory memory[kSpaces] = {};
    uint8_t *ub = nullptr;         // memory[UB]
    uint8_t *undefined = nullptr;

    MaskState mask{};
    Atomic atomic = Atomic::None;
    DType atomic_type = DType::F32;
    float deq_scale = 1.0F;
    Registers registers;
    uint64_t compare_mask[2] = {};
    bool compare_known = true;  // its bits come from values, which in sampled runs not all do
    float last_sum = 0;
    uint64_t block_addresses[8][8] = {};  // VA0 to VA7
    float last_value = 0;
    uint32_t last_index = 0;

    CubeState matrix;

    std::vector<Buffer> buffers;  // index 0 unused
    uint32_t used[kSpaces] = {};  // bytes that TPipe gave out
    int buffer_count = 0;
    uint32_t queues = 0;  // that were given buffers
    int queue_buffers[static_cast<int>(AscendC::TPosition::MAX)] = {};
    int pipes_open = 0;
    void *pipe = nullptr;  // the live TPipe
    At pipe_at{"", 0};     // where it was opened
    FlagState flags[static_cast<int>(AscendC::HardEvent::MAX)];
    uint8_t event_ids[static_cast<int>(AscendC::HardEvent::MAX)] = {};  // bit i: id i is taken
    uint8_t given_ids[static_cast<int>(AscendC::HardEvent::MAX)] = {};  // bit i: id i was given out once
    uint8_t queue_ids[static_cast<int>(AscendC::HardEvent::MAX)] = {};  // bit i: the flag of a queue's buffer has id i
    std::vector<uint64_t> cache_lines;
    uint64_t moved_bytes = 0;  // GM traffic of this block: its progress
    uint32_t number = 0;        // of the core in its launch, from 1
    double base = 0;            // the launch's cycle in which its block began
    double turn_ends = 0;       // the launch's cycle in which other cores go on
    At last_at{"", 0};
    const uint8_t *polled = nullptr;  // the GM element that GetValue read last
    uint64_t polled_bits = 0;
    uint32_t polled_times = 0;
    bool cleaned = false;  // the data cache was written back since the last read of GM
    std::vector<TraceEvent> events;
    int matmul_objects = 0;      // registered by this core
    uint32_t matmul_calls = 0;   // products that the block's vector cores ask for together
    race::CoreState *race = nullptr;  // where the race detector listens

    Core() = default;
    Core(const Core &) = delete;
    Core &operator=(const Core &) = delete;

    void Begin(const CorePlace &place, int active_cores, bool timing_only);
    void End();
    LocalMemory &In(Space space) { return memory[static_cast<int>(space)]; }
    // What GetBlockIdx says.
    int64_t Index() const { return kind == CoreKind::Vector ? block * subs + sub : block; }
};

// The core whose code runs now; outside kernels one that stands for the host.
extern Core *current_core;
inline Core &TheCore() { return *current_core; }
Core &HostCore();
bool InKernel();

// Width in bytes of one element (S4 counts as one byte for a pair, see Cast).
const char *DTypeName(DType dtype);

// Checks a range of local memory and returns its first byte, or null where it may not be used.
// `spaces`: the memories that the operand may lie in. `Range` also says that all its bytes are
// touched; an instruction that touches only parts calls CheckRange, then Touch for each part.
uint8_t *CheckRange(const LocalRef &tensor, uint64_t bytes, uint32_t alignment, bool write, const char *api,
                    const char *operand, At at, uint32_t spaces);
uint8_t *Range(const LocalRef &tensor, uint64_t bytes, uint32_t alignment, bool write, const char *api,
               const char *operand, At at, uint32_t spaces);
// The same for the unified buffer.
uint8_t *LocalRange(const LocalRef &tensor, uint64_t bytes, uint32_t alignment, bool write, const char *api,
                    const char *operand, At at);
constexpr uint8_t kUndefined = 0xFF;  // a whole byte of a shadow
bool AnyMarked(const uint8_t *shadow, uint64_t bytes);
uint64_t MarkedCount(const uint8_t *shadow, uint64_t bytes);
bool AnyUndefined(uint32_t address, uint64_t bytes, Space space = Space::UB);
void MarkDefined(uint32_t address, uint64_t bytes, Space space = Space::UB);

// Whether an instruction computes bytes of UB from what is `known`: in timing mode only indices are, and what is
// computed of them alone. What is not computed is undefined from then on.
bool ComputesTo(uint32_t address, uint64_t bytes, bool known);
void ReportUndefined(const char *api, const LocalRef &tensor, uint64_t bytes, At at);  // in the tensor's memory

// Counts instructions of the launch.
extern uint64_t instruction_count;
inline uint64_t &InstructionCount() { return instruction_count; }

// Every instruction begins with this; what it touches follows.
inline void BeginInstruction(Pipe pipe, const char *api, At at)
{
    Core &core = TheCore();
    ++instruction_count;
    core.last_at = at;
    if (race::installed && !core.timing) {
        race::Instruction(core, pipe, api, at);
    }
}
inline void Touch(Space space, uint32_t address, uint64_t bytes, bool write)
{
    if (race::installed && bytes > 0) {
        race::Local(TheCore(), space, address, bytes, write);
    }
}
inline void TouchGm(const uint8_t *address, uint64_t bytes, bool write, bool atomic = false)
{
    if (race::installed && bytes > 0) {
        race::Global(TheCore(), address, bytes, write, atomic);
    }
}

// The events that a TPipe on a cube core keeps for itself: set when it opens, waited for in the end.
void SetPipeFlags(At at);
void AwaitPipeFlags();

// Reports frames and local arrays that are more than the stack of a core of the chip.
void CheckStack();

void RunVector(const char *name, double cycles, At at);
void RunVector(const char *name, double startup, double cycles, At at);

}  // namespace evokernel::twin
