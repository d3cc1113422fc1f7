// Launching a kernel: `name<<<blocks, l2, stream>>>(args)` is rewritten to Launch.
#pragma once
#include <cstdint>

namespace evokernel::twin {

using KernelBody = void (*)(void *closure);

// The cores of one block. `mixed`: a kernel type of the MIX family, whose cores may synchronise.
struct LaunchKind {
    int cube = 0;
    int vector = 1;
    bool mixed = false;
};

// Runs `vector(closure)` on the vector cores of each block and `cube(closure)` on its cube cores. They
// differ where the source was compiled once for each kind of core.
void LaunchBlocks(const char *name, LaunchKind kind, uint32_t blocks, void *stream, KernelBody vector, KernelBody cube,
                  void *closure);

// One vector core a block.
void LaunchBlocks(const char *name, uint32_t blocks, void *stream, KernelBody body, void *closure);

template <typename Stream, typename L2, typename Body>
void Launch(const char *name, uint32_t blocks, L2, Stream stream, Body body)
{
    LaunchBlocks(name, blocks, (void *)stream, [](void *closure) { (*static_cast<Body *>(closure))(); }, &body);
}

template <typename Stream, typename L2, typename Body>
void Launch(const char *name, LaunchKind kind, uint32_t blocks, L2, Stream stream, Body body)
{
    const KernelBody run = [](void *closure) { (*static_cast<Body *>(closure))(); };
    LaunchBlocks(name, kind, blocks, (void *)stream, run, run, &body);
}

}  // namespace evokernel::twin
