// What the judge and a candidate's process share: one block of memory in which they take turns.
//
// The candidate writes a batch of messages and hands over; the judge carries them out and hands back with a
// command. Nobody reads while the other may write, and what the candidate writes out of turn harms only itself:
// the judge copies a batch before it looks at it, and checks all that it reads.
#pragma once
#include <atomic>
#include <cstdint>

namespace evokernel::twin::wire {

constexpr uint32_t kRequestBytes = 256 * 1024;
constexpr uint32_t kLargestMessage = 80 * 1024;
constexpr uint32_t kReplyBytes = 128 * 1024;
constexpr uint32_t kNamesBytes = 64 * 1024;
constexpr uint32_t kLongestName = 1000;   // bytes of a file's or an instruction's name; longer ones are cut
constexpr uint32_t kLongestText = 64 * 1024;
constexpr uint32_t kLargestTiling = 64 * 1024;
constexpr uint32_t kToldTiling = 1024;    // bytes of tiling data that the judge hears of
constexpr uint32_t kReadAhead = 512;       // bytes from a scalar on that are told with it
constexpr uint32_t kUnseen = 0x80000000;  // marks the number of a name that only the judge has
constexpr uint32_t kUnseenNames = 256;
constexpr uint32_t kHost = 0xFFFFFFFF;    // the slot of the candidate's host code

// Device addresses as the candidate sees them lie where no process has memory.
constexpr uint64_t kGlobalSpace = uint64_t{1} << 62;
constexpr uint64_t kLocalSpace = uint64_t{1} << 61;
constexpr int kLocalShift = 32;           // one local memory after another

enum class Turn : uint32_t { Judge, Candidate };

// Why the candidate hands over. Wants: its last message has a result. More: the block was full. Ended: the core's
// body is over. Returned: a callback is. Threw: it ended by an exception. Answer: host code has done what it was told.
enum class Batch : uint32_t { Wants, More, Ended, Returned, Threw, Answer };

// What the judge tells a slot to do.
enum class Command : uint32_t { Hello, Tiling, Launch, Start, Resume, Callback, Exit };

struct Shared {
    std::atomic<uint32_t> turn;
    std::atomic<uint32_t> gone;  // set by who started both processes, when the candidate's has ended
    std::atomic<uint32_t> asleep[2];
    // From the candidate.
    uint32_t slot;
    uint32_t batch;
    uint32_t bytes;
    uint32_t names_bytes;
    // From the judge.
    uint32_t to_slot;
    uint32_t command;
    uint32_t to_bytes;
    alignas(4096) uint8_t request[kRequestBytes];
    uint8_t names[kNamesBytes];
    uint8_t reply[kReplyBytes];
};
constexpr uint32_t kGoneOffset = 4;
static_assert(std::atomic<uint32_t>::is_always_lock_free);

// Maps the block that standard output stands for, which from then on stands for standard error. Null: there is none.
Shared *MapStandardOutput();

// Gives the turn to the other side.
void Pass(Shared &shared, Turn to);

// Waits for the turn. False where the other side's process has ended before that.
bool Await(Shared &shared, Turn turn);

// What a core's body is told when it starts: all that it may ask without an instruction.
struct CoreInfo {
    int64_t index;
    int64_t blocks;
    int32_t sub;
    int32_t subs;
    bool cube;
};

}  // namespace evokernel::twin::wire
