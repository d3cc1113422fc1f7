// What a race detector would hear: instructions, the bytes they touch, and what orders them.
#pragma once
#include <cstdint>

#include "evokernel/twin/at.h"
#include "pipeline.h"

namespace evokernel::twin {

struct Core;
enum class Space : uint8_t;

namespace race {

constexpr int kAllPipes = -1;

extern bool installed;  // nothing below is called while this is false

// The instruction that the following touches belong to.
void Instruction(Core &core, Pipe pipe, const char *api, At at);
void Local(Core &core, Space space, uint32_t address, uint64_t bytes, bool write);
void Global(Core &core, const uint8_t *address, uint64_t bytes, bool write, bool atomic);

// One end of an order between two pipes of a core: a flag, or a queue's buffer (ids from kQueueIds on).
constexpr int64_t kQueueIds = 256;
void Flag(Core &core, Pipe from, Pipe to, int64_t id, bool set);
void Barrier(Core &core, int pipe);  // a Pipe or kAllPipes

// One end of an order between cores: `channel` stands for what both ends share.
void CrossCore(Core &core, const void *channel, Pipe pipe, bool release);

void BeginBlock(Core &core);
void EndBlock(Core &core);
void EndLaunch();

}  // namespace race
}  // namespace evokernel::twin
