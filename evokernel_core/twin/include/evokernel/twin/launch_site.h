// One place in a program where a kernel is launched, and its body in the image for the cube cores.
//
// A program that tells the core types apart while it is compiled is compiled twice. The second image is
// a shared library in which LaunchSite launches nothing: it only makes its body known by the number of
// the place and the type of the closure, which are the same in both images.
#pragma once
#include <cstdint>
#include <typeinfo>

#include "evokernel/twin/launch.h"

namespace evokernel::twin {

bool RegisterCubeBody(uint64_t site, const char *type, KernelBody body);

// The body for the cube cores; `vector` where the program has one image.
KernelBody CubeBody(uint64_t site, const char *type, KernelBody vector);

template <typename Body>
void RunBody(void *closure)
{
    (*static_cast<Body *>(closure))();
}

template <uint64_t Site, typename Body>
struct CubeImage {
    static const bool known;
};

template <uint64_t Site, typename Body>
const bool CubeImage<Site, Body>::known = RegisterCubeBody(Site, typeid(Body).name(), &RunBody<Body>);

// <<<blocks>>>, <<<blocks, l2, stream>>> and the forms between and beyond.
struct LaunchConfig {
    template <typename Blocks, typename L2 = int, typename Stream = void *, typename... More>
    explicit LaunchConfig(Blocks blocks_, L2 = 0, Stream stream_ = nullptr, More...)
        : blocks(static_cast<uint32_t>(blocks_)), stream((void *)stream_)
    {
    }

    uint32_t blocks;
    void *stream;
};

template <uint64_t Site, typename Body, typename... Config>
void LaunchSite(const char *name, LaunchKind kind, Body body, Config... config)
{
#ifdef EVOKERNEL_CUBE_IMAGE
    (void)name, (void)kind, (void)body, static_cast<void>(&CubeImage<Site, Body>::known);
#else
    const LaunchConfig where(config...);
    const KernelBody vector = &RunBody<Body>;
    LaunchBlocks(name, kind, where.blocks, where.stream, vector, CubeBody(Site, typeid(Body).name(), vector), &body);
#endif
}

// An address whose type the host does not know: it becomes whatever pointer the kernel takes.
template <typename T>
struct UntypedArgument {
    T value;

    operator T() const { return value; }
    template <typename Other>
    operator Other *() const
    {
        return static_cast<Other *>(const_cast<void *>(static_cast<const volatile void *>(value)));
    }
};

template <typename T>
UntypedArgument<T *> Untyped(T *value)
{
    return {value};
}

template <typename T>
const T &Untyped(const T &value)
{
    return value;
}

}  // namespace evokernel::twin
