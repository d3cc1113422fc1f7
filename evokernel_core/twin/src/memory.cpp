#include "memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "hazards.h"

namespace evokernel::twin {

namespace {

constexpr uint64_t kGuard = 4096;
constexpr uint64_t kBlock = 32;  // device memory is handed out in multiples of it
constexpr uint64_t kBackedInTiming = uint64_t{64} << 20;
constexpr uint64_t kMostBytes = uint64_t{1} << 48;  // more than any device has
constexpr uint8_t kPoison = 0xFF;
constexpr uint8_t kGuardByte = 0xA7;

uint8_t *Map(uint64_t bytes)
{
    void *mapping =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return mapping == MAP_FAILED ? nullptr : static_cast<uint8_t *>(mapping);
}

// For records that are touched all over: large pages spare most of the page faults.
void *MapRecords(uint64_t bytes)
{
    uint8_t *records = Map(bytes);
    if (records != nullptr) {
        ::madvise(records, bytes, MADV_HUGEPAGE);  // where the system has none, small pages do
    }
    return records;
}

// For memory of which few places are touched: a large page would be cleared for each of them.
uint8_t *MapSparse(uint64_t bytes)
{
    uint8_t *mapping = Map(bytes);
    if (mapping != nullptr && sampled::active) {
        ::madvise(mapping, bytes, MADV_NOHUGEPAGE);
    }
    return mapping;
}

bool GuardBroken(const uint8_t *guard)
{
    return std::any_of(guard, guard + kGuard, [](uint8_t byte) { return byte != kGuardByte; });
}

uint64_t Readable(const Allocation &block) { return block.padded + block.behind; }

uint64_t LineBytes(const Allocation &block) { return (Readable(block) / kL2Line + 1) * sizeof(uint32_t); }

uint64_t VisitBytes(const Allocation &block) { return (block.bytes / kVisitPage + 1) * sizeof(Visit); }

void ForgetLinesOf(Allocation &block)
{
    if (block.visits != nullptr) {
        ::munmap(block.visits, VisitBytes(block));
        block.visits = nullptr;
    }
    if (block.lines != nullptr) {
        ::munmap(block.lines, LineBytes(block));
        block.lines = nullptr;
    }
}

constexpr uint32_t kSectors = kL2Line / kL2Sector;
constexpr uint32_t kAllSectors = (1U << kSectors) - 1;

// Touches sectors of a line when L2 had taken in `clock` KB and returns those that it did not hold: all
// where it saw the line more than `reach` KB ago.
uint32_t TouchSectors(uint32_t &line, uint32_t wanted, uint32_t clock, uint32_t reach)
{
    const uint32_t age = clock - (line >> kSectors);
    const uint32_t held = line != 0 && age < reach ? line & kAllSectors : 0;
    line = clock << kSectors | held | wanted;
    return wanted & ~held;
}

// Without a call, which a count of bits is where the compiler may not use the processor's own.
constexpr uint8_t kCount[] = {0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4};
static_assert(sizeof(kCount) == kAllSectors + 1);

}  // namespace

GlobalMemory::~GlobalMemory() { Clear(); }

Allocation *GlobalMemory::Allocate(const Wording &name, uint64_t bytes, Kind kind, bool timing, bool known,
                                   uint64_t behind)
{
    auto block = std::make_unique<Allocation>(Allocation{});
    block->name = name;
    block->kind = kind;
    block->bytes = bytes;
    block->padded = (bytes + kBlock - 1) / kBlock * kBlock;
    block->behind = bytes == 0 ? 0 : behind;
    block->mapped = (Readable(*block) + 4095) / 4096 * 4096 + 2 * kGuard;
    block->known = known;
    has_known_ = has_known_ || known;
    if (timing && !known && bytes > kBackedInTiming) {
        block->base = reinterpret_cast<uint8_t *>(next_address_);
        next_address_ += block->mapped;
    } else {
        block->mapping = MapSparse(block->mapped);
        if (block->mapping == nullptr) {
            return nullptr;
        }
        block->base = block->mapping + kGuard;
    }
    if (!timing) {
        std::memset(block->mapping, kGuardByte, kGuard);
        if (kind != Kind::Device && !sampled::active) {  // a device hands out cleared pages, and programs count on it
            std::memset(block->base, kPoison, bytes);
        }
        std::memset(block->base + bytes, kGuardByte, block->mapped - kGuard - bytes);
        if ((kind != Kind::Input || sampled::active) && bytes > 0) {
            block->written = MapSparse(Readable(*block));
        }
        if (sampled::active) {
            block->pages = Map(bytes / kSamplePage + 1);
        }
    }
    all_.push_back(std::move(block));
    return all_.back().get();
}

bool GlobalMemory::Release(void *base)
{
    const auto position = std::find_if(all_.begin(), all_.end(), [&](const auto &block) { return block->base == base; });
    if (position == all_.end()) {
        return false;
    }
    Allocation &block = **position;
    if (block.mapping != nullptr) {
        ::munmap(block.mapping, block.mapped);
    }
    if (block.written != nullptr) {
        ::munmap(block.written, Readable(block));
    }
    if (block.pages != nullptr) {
        ::munmap(block.pages, block.bytes / kSamplePage + 1);
    }
    ForgetLinesOf(block);
    last_ = nullptr;
    all_.erase(position);
    return true;
}

void GlobalMemory::Clear()
{
    while (!all_.empty()) {
        Release(all_.back()->base);
    }
    has_known_ = false;
}

Allocation *GlobalMemory::Find(const uint8_t *address)
{
    if (last_ != nullptr && address >= last_->base && address < last_->base + last_->bytes) {
        return last_;
    }
    for (const auto &block : all_) {
        if (address >= block->base && address < block->base + block->bytes) {
            return last_ = block.get();
        }
    }
    return nullptr;
}

void GlobalMemory::KeepBooks(Allocation &block)
{
    if (block.written == nullptr && block.mapping != nullptr && block.bytes > 0) {
        block.written = MapSparse(Readable(block));
        has_known_ = has_known_ || block.written != nullptr;
    }
}

const Allocation *GlobalMemory::WithData(const uint8_t *address, uint64_t bytes)
{
    const Allocation *block = Find(address);
    if (block == nullptr || block->mapping == nullptr) {
        return nullptr;
    }
    const auto offset = static_cast<uint64_t>(address - block->base);
    if (offset + bytes > block->bytes) {
        return nullptr;
    }
    const bool has = block->written == nullptr ? block->known
                                               : std::memchr(block->written + offset, 0, bytes) == nullptr;
    return has ? block : nullptr;
}

uint64_t GlobalMemory::Constant(const uint8_t *address, bool timing)
{
    const Allocation *block = Find(address);
    if (block == nullptr || block->kind != Kind::Input || block->mapping == nullptr || block->written != nullptr ||
        (timing && !block->known)) {
        return 0;
    }
    return block->bytes - static_cast<uint64_t>(address - block->base);
}

void GlobalMemory::LoseData(Allocation &block, uint64_t offset, uint64_t bytes)
{
    if (block.written != nullptr && offset < block.bytes) {
        std::memset(block.written + offset, 0, std::min(bytes, block.bytes - offset));
    }
}

Allocation *GlobalMemory::WithBehind(const uint8_t *address)
{
    const auto position = std::find_if(all_.begin(), all_.end(), [&](const auto &block) {
        return address >= block->base && address < block->base + Readable(*block);
    });
    return position == all_.end() ? nullptr : position->get();
}

uint64_t GlobalMemory::TotalBytes() const
{
    uint64_t total = 0;
    for (const auto &block : all_) {
        total += block->bytes;
    }
    return total;
}

void GlobalMemory::ForgetLines()
{
    for (const auto &block : all_) {
        ForgetLinesOf(*block);
    }
}

Visit *GlobalMemory::VisitOf(Allocation &block, uint64_t offset)
{
    if (block.visits == nullptr) {
        block.visits = static_cast<Visit *>(MapRecords(VisitBytes(block)));
    }
    return block.visits == nullptr || offset >= block.bytes ? nullptr : block.visits + offset / kVisitPage;
}

uint64_t GlobalMemory::Touch(Allocation &block, uint64_t offset, uint64_t bytes, uint32_t progress, uint32_t reach)
{
    if (block.lines == nullptr) {
        block.lines = static_cast<uint32_t *>(MapRecords(LineBytes(block)));
        if (block.lines == nullptr) {
            return bytes;
        }
    }
    const uint64_t end = offset + bytes;
    const uint64_t first = offset / kL2Sector;
    const uint64_t last = (end - 1) / kL2Sector;
    const uint64_t first_line = first / kSectors;
    const uint64_t last_line = last / kSectors;
    const uint32_t from_first = kAllSectors & kAllSectors << first % kSectors;
    const uint32_t to_last = kAllSectors >> (kSectors - 1 - last % kSectors);
    uint32_t *lines = block.lines;
    const bool one = first_line == last_line;
    uint32_t missed = TouchSectors(lines[first_line], one ? from_first & to_last : from_first, progress, reach);
    const bool first_missed = (missed >> first % kSectors & 1) != 0;
    uint32_t sectors = kCount[missed];
    if (!one) {
        for (uint64_t line = first_line + 1; line < last_line; ++line) {
            sectors += kCount[TouchSectors(lines[line], kAllSectors, progress, reach)];
        }
        missed = TouchSectors(lines[last_line], to_last, progress, reach);
        sectors += kCount[missed];
    }
    __builtin_prefetch(lines + last_line + 1, 1);  // where a kernel that walks through the tensor goes on
    const bool last_missed = (missed >> last % kSectors & 1) != 0;
    const uint64_t before = first_missed ? offset - first * kL2Sector : 0;
    const uint64_t after = last_missed ? (last + 1) * kL2Sector - end : 0;
    return sectors * kL2Sector - before - after;
}

Allocation *GlobalMemory::Check(const GlobalRef &tensor, const uint8_t *address, uint64_t bytes, bool write,
                                const char *api, At at)
{
    Allocation *block = Find(address);
    if (block == nullptr && (block = WithBehind(address)) == nullptr) {
        ReportError("out-of-bounds", at, "%s %s %llu bytes at an address that belongs to no tensor.", api,
                    write ? Word("writes") : Word("reads"), static_cast<unsigned long long>(bytes));
        return nullptr;
    }
    const uint64_t offset = static_cast<uint64_t>(address - block->base);
    bytes = std::min(bytes, kMostBytes);  // so that no sum below runs over
    if (offset + bytes > block->bytes && offset + bytes <= (write ? block->padded : Readable(*block))) {
        ReportWarning("padding-access", at, "%s %s bytes %llu to %llu of %s, which has %llu; the rest is the "
                                            "padding of its allocation.", api, write ? Word("writes") : Word("reads"),
                      static_cast<unsigned long long>(offset), static_cast<unsigned long long>(offset + bytes),
                      block->name.c_str(), static_cast<unsigned long long>(block->bytes));
    } else if (offset + bytes > block->bytes) {
        ReportError("out-of-bounds", at, "%s %s bytes %llu to %llu of %s, which has %llu.", api,
                    write ? Word("writes") : Word("reads"), static_cast<unsigned long long>(offset),
                    static_cast<unsigned long long>(offset + bytes), block->name.c_str(),
                    static_cast<unsigned long long>(block->bytes));
        return nullptr;
    }
    const uint64_t within = static_cast<uint64_t>(address - tensor.address);
    if (tensor.bytes != 0 && within + bytes > tensor.bytes) {
        ReportWarning("declared-size", at, "%s %s %llu bytes, but SetGlobalBuffer gave its GlobalTensor %llu.", api,
                      write ? Word("writes") : Word("reads"), static_cast<unsigned long long>(within + bytes),
                      static_cast<unsigned long long>(tensor.bytes));
    }
    if (write && block->kind == Kind::Input && !block->write_reported) {
        block->write_reported = true;
        ReportError("input-modified", at, "%s writes to the input %s.", api, block->name.c_str());
    }
    return block;
}

void GlobalMemory::CheckGuards()
{
    for (const auto &block : all_) {
        const uint8_t *end = block->base + block->padded;
        if (block->kind == Kind::Device || block->mapping == nullptr) {
            continue;
        }
        const bool tail = std::any_of(end, static_cast<const uint8_t *>(block->mapping + block->mapped),
                                      [](uint8_t byte) { return byte != kGuardByte; });
        if (GuardBroken(block->mapping) || tail) {
            ReportError("out-of-bounds", At{"", 0}, "A raw pointer wrote outside %s.", block->name.c_str());
        }
    }
}

GlobalMemory &Gm()
{
    static GlobalMemory memory;
    return memory;
}

}  // namespace evokernel::twin
