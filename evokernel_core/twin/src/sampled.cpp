#include "sampled.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>

#include "hazards.h"
#include "stand_in.h"
#include "time/schedule.h"

namespace evokernel::twin::sampled {

bool active = false;

namespace {

constexpr uint64_t kMostKept = uint64_t{1} << 30;  // bytes of global memory that a run may give values
constexpr uint64_t kSeedBytes = 64;  // of each piece of an input that the stand-ins depend on
constexpr uint8_t kHolds = 1;   // of a page: bytes of it may hold a value
constexpr uint8_t kWanted = 2;  // and are looked at after the run

uint64_t kept = 0;

bool Within(const LocalMemory &local, uint64_t address, uint64_t bytes)
{
    return local.blank != nullptr && bytes > 0 && address + bytes <= local.host_bytes;
}

// A range inside of one granule.
void ClearEdge(LocalMemory &local, uint64_t from, uint64_t to)
{
    if (from < to && local.blank[from / kGranule] == 0) {
        std::memset(local.undefined + from, kUndefined, to - from);
    }
}

bool AnyPage(const Allocation &block, uint64_t offset, uint64_t bytes, uint8_t flag)
{
    if (bytes == 0) {
        return false;
    }
    const uint64_t last = std::min((offset + bytes - 1) / kSamplePage, block.bytes / kSamplePage);
    for (uint64_t page = offset / kSamplePage; page <= last; ++page) {
        if ((block.pages[page] & flag) != 0) {
            return true;
        }
    }
    return false;
}

void MarkPages(Allocation &block, uint64_t offset, uint64_t bytes, uint8_t flag)
{
    const uint64_t last = std::min((offset + bytes - 1) / kSamplePage, block.bytes / kSamplePage);
    for (uint64_t page = offset / kSamplePage; bytes > 0 && page <= last; ++page) {
        const bool fresh = (flag & kHolds) != 0 && (block.pages[page] & kHolds) == 0;
        kept += fresh && block.kind != Kind::Input ? kSamplePage : 0;
        block.pages[page] |= flag;
    }
}

// Calls `use(offset, bytes)` for each run of neighbouring bytes, in order; false where one call was.
template <typename Use> bool ForEachRun(const Part &part, Use use)
{
    // Dimensions behind the last one of which not everything is chosen are one piece.
    size_t inner = part.sizes.size();
    uint64_t piece = part.width;
    while (inner > 0 && part.runs[inner - 1].size() == 1 && part.runs[inner - 1][0].second == part.sizes[inner - 1]) {
        piece *= part.sizes[--inner];
    }
    if (inner == 0) {
        return piece == 0 || use(uint64_t{0}, piece);
    }
    std::vector<uint64_t> pitch(inner, piece);
    for (size_t dim = inner - 1; dim > 0; --dim) {
        pitch[dim - 1] = pitch[dim] * part.sizes[dim];
    }
    const auto walk = [&](const auto &self, size_t dim, uint64_t offset) -> bool {
        for (const auto &[first, count] : part.runs[dim]) {
            if (dim + 1 == inner) {
                if (!use(offset + first * pitch[dim], count * pitch[dim])) {
                    return false;
                }
                continue;
            }
            for (uint64_t i = first; i < first + count; ++i) {
                if (!self(self, dim + 1, offset + i * pitch[dim])) {
                    return false;
                }
            }
        }
        return true;
    };
    return walk(walk, 0, 0);
}

// Whether any bit of a run of bytes holds a value.
bool AnyHeld(const uint8_t *undefined, uint64_t bytes)
{
    uint8_t all = kUndefined;  // of at most a granule: the compiler makes vectors of it
    for (uint64_t i = 0; i < bytes; ++i) {
        all &= undefined[i];
    }
    return all != kUndefined;
}

}  // namespace

bool Empty(Space space, uint64_t address, uint64_t bytes)
{
    const LocalMemory &local = TheCore().In(space);
    if (!Within(local, address, bytes)) {
        return false;
    }
    const uint64_t end = address + bytes;
    const uint64_t last = (end - 1) / kGranule;
    for (uint64_t granule = address / kGranule; granule <= last; ++granule) {
        const auto *held = static_cast<const uint8_t *>(std::memchr(local.blank + granule, 0, last - granule + 1));
        if (held == nullptr) {
            return true;
        }
        granule = static_cast<uint64_t>(held - local.blank);
        const uint64_t from = std::max(address, granule * kGranule);
        if (AnyHeld(local.undefined + from, std::min(end, (granule + 1) * kGranule) - from)) {
            return false;
        }
    }
    return true;
}

void Clear(Space space, uint64_t address, uint64_t bytes)
{
    LocalMemory &local = TheCore().In(space);
    if (!Within(local, address, bytes)) {
        return;
    }
    const uint64_t end = address + bytes;
    const uint64_t first = (address + kGranule - 1) / kGranule;
    const uint64_t last = end / kGranule;
    if (first > last) {
        return ClearEdge(local, address, end);
    }
    ClearEdge(local, address, first * kGranule);
    std::memset(local.blank + first, 1, last - first);
    ClearEdge(local, last * kGranule, end);
}

void Open(Space space, uint64_t address, uint64_t bytes)
{
    LocalMemory &local = TheCore().In(space);
    if (local.blank == nullptr || bytes == 0 || address >= local.host_bytes) {
        return;
    }
    const uint64_t end = std::min(address + bytes, local.host_bytes);
    const uint64_t last = (end - 1) / kGranule;
    if (std::memchr(local.blank + address / kGranule, 1, last - address / kGranule + 1) == nullptr) {
        return;
    }
    for (uint64_t granule = address / kGranule; granule <= last; ++granule) {
        if (local.blank[granule] != 0) {
            std::memset(local.undefined + granule * kGranule, kUndefined, kGranule);
            local.blank[granule] = 0;
        }
    }
}

bool Empty(const Allocation &block, uint64_t offset, uint64_t bytes)
{
    return block.pages != nullptr && !AnyPage(block, offset, bytes, kHolds);
}

bool Keeps(Allocation &block, uint64_t offset, uint64_t bytes)
{
    if (block.pages == nullptr) {
        return true;
    }
    if (block.kind == Kind::Output && !AnyPage(block, offset, bytes, kWanted)) {
        return false;
    }
    MarkPages(block, offset, bytes, kHolds);
    if (kept > kMostKept) {
        ReportError("sampled-memory", LastPlace(),
                    "The kernel gives more than 1 GiB of global memory values that do not depend on its inputs; compute "
                    "them where they are used.");
        GiveUpLaunch();
    }
    return true;
}

void Forget(Allocation &block, uint64_t offset, uint64_t bytes)
{
    if (block.written == nullptr || Empty(block, offset, bytes)) {
        return;
    }
    std::memset(block.written + offset, 0, bytes);
}

bool ParsePart(const std::string &text, uint64_t bytes, Part *part)
{
    std::istringstream words(text);
    size_t dims = 0;
    words >> part->width >> dims;
    uint64_t total = part->width;
    for (size_t dim = 0; words && dim < dims; ++dim) {
        uint64_t size = 0;
        size_t count = 0;
        words >> size >> count;
        std::vector<std::pair<uint64_t, uint64_t>> runs;
        uint64_t end = 0;
        for (size_t i = 0; words && i < count; ++i) {
            uint64_t first = 0;
            uint64_t length = 0;
            words >> first >> length;
            if (first < end || length == 0 || first > size || length > size - first) {
                return false;
            }
            end = first + length;
            runs.emplace_back(first, length);
        }
        total *= size;
        part->sizes.push_back(size);
        part->runs.push_back(std::move(runs));
    }
    return !words.fail() && part->width > 0 && total == bytes;
}

bool Fill(Allocation &block, const Part &part, const std::string &path, std::string *error)
{
    std::ifstream file(path, std::ios::binary);
    const bool good = ForEachRun(part, [&](uint64_t offset, uint64_t bytes) {
        file.read(reinterpret_cast<char *>(block.base + offset), static_cast<std::streamsize>(bytes));
        SeedScalars(block.base + offset, std::min(bytes, kSeedBytes));
        std::memset(block.written + offset, 1, bytes);
        MarkPages(block, offset, bytes, kHolds);
        return static_cast<bool>(file);
    });
    if (!good) {
        *error = "The tensor file " + path + " has fewer bytes than the part of the tensor that it holds.";
    }
    return good;
}

void Want(Allocation &block, const Part &part)
{
    kept = 0;
    ForEachRun(part, [&](uint64_t offset, uint64_t bytes) {
        MarkPages(block, offset, bytes, kWanted);
        return true;
    });
}

bool Collect(const Allocation &block, const Part &part, const std::string &path)
{
    std::ofstream file(path, std::ios::binary);
    bool whole = true;
    ForEachRun(part, [&](uint64_t offset, uint64_t bytes) {
        const void *missing = std::memchr(block.written + offset, 0, bytes);
        if (whole && missing != nullptr) {
            whole = false;
            ReportError("output-not-written", At{"", 0},
                        "The kernel leaves byte %llu of %s unwritten, or computes it from other parts of its inputs than "
                        "it depends on.",
                        static_cast<unsigned long long>(static_cast<const uint8_t *>(missing) - block.written),
                        block.name.c_str());
        }
        file.write(reinterpret_cast<const char *>(block.base + offset), static_cast<std::streamsize>(bytes));
        return static_cast<bool>(file);
    });
    return static_cast<bool>(file);
}

}  // namespace evokernel::twin::sampled
