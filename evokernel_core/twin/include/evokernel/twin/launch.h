// Launching a kernel: `name<<<blocks, l2, stream>>>(args)` is rewritten to Launch.
#pragma once
#include <cstdint>

namespace evokernel::twin {

using KernelBody = void (*)(void *closure);

// Runs `body(closure)` once for each block.
void LaunchBlocks(const char *name, uint32_t blocks, void *stream, KernelBody body, void *closure);

template <typename Stream, typename L2, typename Body>
void Launch(const char *name, uint32_t blocks, L2, Stream stream, Body body)
{
    LaunchBlocks(name, blocks, (void *)stream, [](void *closure) { (*static_cast<Body *>(closure))(); }, &body);
}

}  // namespace evokernel::twin
