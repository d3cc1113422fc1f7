// What each pipe of each core knows to be complete.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "synchronisation/race_shadow.h"
#include "time/pipeline.h"

namespace evokernel::twin::race {

using Clock = std::array<uint32_t, kPipes>;  // epochs, by pipe

void Raise(Clock &clock, const Clock &other);

// Epochs of the other cores' pipes, by core.
using Remote = std::vector<Clock>;

struct Knowledge {
    uint32_t core;
    Clock clock;
    std::shared_ptr<const Remote> remote;
};

// A line of the data cache: what the core may hold of it.
struct Line {
    bool cleaned = false;  // given up by DataCacheCleanAndInvalid
    bool held = false;
    uint64_t loader = 0;   // serial of the instruction that loaded it
    uint64_t since = 0;    // serial of the latest instruction at that time
};

// A write without an order to an earlier access: an error unless it left the bytes as they were.
struct Doubt {
    Access earlier;
    bool wrote = false;
    uint64_t start = 0;
    uint64_t end = 0;
    int space = 0;  // kGlobal or a Space
    const uint8_t *place = nullptr;
    std::vector<uint8_t> before;
};
constexpr int kGlobal = -1;

struct CoreState {
    uint32_t id = 0;
    bool vector = true;
    Clock now{};             // the epoch of each pipe's instructions from here on
    Clock known[kPipes] = {};  // what each pipe has waited for
    std::shared_ptr<const Remote> remote;
    std::unordered_map<int64_t, Clock> flags;
    Shadow local[7];
    std::unordered_map<uint64_t, Line> lines;  // of the data cache
    std::unordered_map<const void *, uint32_t> acquired;

    // The instruction that runs.
    Access current;
    std::vector<Doubt> doubts;  // about its writes, until they are done
    uint32_t vector_barrier = 0;  // the epoch of the vector pipe that the last PipeBarrier<PIPE_V> ended
    bool pipelined = false;
    bool uncached = false;
    int strict = 0;  // depth of library calls that order themselves
    bool all_cleaned = false;  // the whole data cache was given up at least once

    bool Knows(Pipe pipe, const Access &access) const;
    // What a release by `pipe` promises: everything before it on that pipe and what that pipe knew.
    Clock Release(Pipe pipe);
    void Acquire(Pipe pipe, const Clock &clock);
    void Inherit(Pipe pipe);
    void Order(Pipe from, Pipe to) { Acquire(to, Release(from)); }
    void OrderAll();
    Knowledge Publish(Pipe pipe);
    void Take(const Knowledge &knowledge);
};

// Orders between cores, by what they share.
class Channels {
public:
    void Release(const void *channel, const Knowledge &knowledge);
    void Acquire(const void *channel, CoreState &core);
    void Clear() { channels_.clear(); }

private:
    struct Releases {
        uint32_t count = 0;
        std::vector<Knowledge> last;  // a ring of the latest ones
    };

    std::unordered_map<const void *, std::map<uint32_t, Releases>> channels_;
};

}  // namespace evokernel::twin::race
