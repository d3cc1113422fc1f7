// Sampled runs: inputs hold data in chosen places alone, and only what is computed of these is computed.
//
// A launch of any size runs as it does in checking mode, with every byte known to hold a value or none. An
// instruction one of whose sources holds none at all would make nothing but bytes without a value: it is not
// carried out, and its destination is marked. All others run as they always do, so that what a kernel makes of the
// chosen places is what it makes of them anywhere, on all kinds of cores and across their barriers.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core.h"

namespace evokernel::twin::sampled {

// Local memory. `Empty`: no byte of the range holds a value. `Clear`: none does from now on. Both go by whole
// granules where they can; `Open` brings the shadow of single bytes up to date before they are looked at one by one.
bool Empty(Space space, uint64_t address, uint64_t bytes);
void Clear(Space space, uint64_t address, uint64_t bytes);
void Open(Space space, uint64_t address, uint64_t bytes);

// Global memory, by pages: whether any byte of a range may hold a value.
bool Empty(const Allocation &block, uint64_t offset, uint64_t bytes);
// Whether a store is carried out: outputs keep what is looked at afterwards.
bool Keeps(Allocation &block, uint64_t offset, uint64_t bytes);
void Forget(Allocation &block, uint64_t offset, uint64_t bytes);

// Choices along each dimension of a tensor: runs of (first, count) in rising order.
struct Part {
    uint64_t width = 0;  // bytes of an element
    std::vector<uint64_t> sizes;
    std::vector<std::vector<std::pair<uint64_t, uint64_t>>> runs;
};

// Reads "WIDTH DIMS {SIZE RUNS {FIRST COUNT}}"; false where that is no part of a tensor of so many bytes.
bool ParsePart(const std::string &text, uint64_t bytes, Part *part);

// An input: the part's elements from a file that holds them alone, in their order; all of it without a part.
bool Fill(Allocation &block, const Part &part, const std::string &path, std::string *error);
// An output: which bytes are looked at afterwards, and these into a file. Reports where one holds no value.
void Want(Allocation &block, const Part &part);
bool Collect(const Allocation &block, const Part &part, const std::string &path);

}  // namespace evokernel::twin::sampled
