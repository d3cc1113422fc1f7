// Work that the vector cores of a block hand to its cube core.
#pragma once
#include <functional>

#include "evokernel/twin/at.h"

namespace evokernel::twin {

// What a core that serves is waiting for; deadlocks do not name it.
extern const char *const kServing;

// Runs `work` on the cube core of this block after what was posted before; returns at once.
void PostToCube(std::function<void()> work, At at);

// Waits until everything that this core posted is done.
void WaitForCube(At at);

// On a cube core: runs posted work until all vector cores of the block have ended. The second form
// then ends the core's body, too.
void ServeVectorCores();
[[noreturn]] void ServeAndEndCore();

void ClearPosts();

}  // namespace evokernel::twin
