// What the race detector hears: instructions, the bytes they touch, and what orders them. It follows the
// order that flags and barriers promise, not the order in which the twin happens to run.
#pragma once
#include <cstdint>
#include <memory>

#include "evokernel/twin/at.h"
#include "time/pipeline.h"

namespace evokernel::twin {

struct Core;
enum class Space : uint8_t;

namespace race {

struct CoreState;
constexpr int kAllPipes = -1;

extern bool installed;  // nothing below is called while this is false

// Before a launch: listens unless the launch only counts cycles. Without `auto_sync` the compiler is
// taken to insert nothing (--cce-auto-sync=off).
void Install(bool listen, bool auto_sync);
bool &Wanted();  // false: never listens; for measurements of what listening costs

// The instruction that the following touches belong to.
void Instruction(Core &core, Pipe pipe, const char *api, At at);
void Local(Core &core, Space space, uint32_t address, uint64_t bytes, bool write);
void Global(Core &core, const uint8_t *address, uint64_t bytes, bool write, bool atomic);

// The current instruction needs no PipeBarrier after earlier ones of its pipe (a large Mmad), or it is
// ordered with the other pipe by the unit flag of L0C.
void Pipelined(Core &core);
void UnitFlagged(Core &core);

// The current scalar instruction goes past the data cache.
void Uncached(Core &core);

// One end of an order between two pipes of a core: a flag, or a queue's buffer (ids from kQueueIds on).
constexpr int64_t kQueueIds = 256;
void Flag(Core &core, Pipe from, Pipe to, int64_t id, bool set);
void Barrier(Core &core, int pipe);  // a Pipe or kAllPipes

// One end of an order between cores: `channel` stands for what both ends share. The n-th acquire of a
// core sees the first n releases of every one, itself too: a flag that all set waits for all. A release on the scalar pipe covers all pipes.
void CrossCore(Core &core, const void *channel, Pipe pipe, bool release);

// Work that one core hands to another: what was complete when it was handed over.
struct Knowledge;
std::shared_ptr<const Knowledge> Share(Core &core);
void Learn(Core &core, const std::shared_ptr<const Knowledge> &knowledge);

// While one lives, the core's instructions follow each other strictly: a library call orders its own.
class Ordered {
public:
    explicit Ordered(Core &core);
    ~Ordered();
    Ordered(const Ordered &) = delete;
    Ordered &operator=(const Ordered &) = delete;

private:
    Core &core_;
};

// DataCacheCleanAndInvalid of the line that holds `address`, or of all lines where it is null.
void CleanLines(Core &core, const uint8_t *address);

void BeginBlock(Core &core);
void EndBlock(Core &core);
void EndLaunch();

}  // namespace race
}  // namespace evokernel::twin
