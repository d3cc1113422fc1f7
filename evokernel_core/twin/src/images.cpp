// Bodies for the cube cores out of the second image of a program that is compiled once for each core type.
#include <cstdio>
#include <map>
#include <string>
#include <utility>

#include "evokernel/twin/launch_site.h"

namespace evokernel::twin {

namespace {

using Bodies = std::map<std::pair<uint64_t, std::string>, KernelBody>;

Bodies &TheBodies()
{
    static Bodies bodies;
    return bodies;
}

}  // namespace

bool RegisterCubeBody(uint64_t site, const char *type, KernelBody body)
{
    TheBodies()[{site, type}] = body;
    return true;
}

KernelBody CubeBody(uint64_t site, const char *type, KernelBody vector)
{
    if (TheBodies().empty()) {
        return vector;
    }
    const auto entry = TheBodies().find({site, type});
    return entry == TheBodies().end() ? nullptr : entry->second;
}

}  // namespace evokernel::twin
