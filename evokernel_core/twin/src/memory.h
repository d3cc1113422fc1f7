// Global memory as the twin sees it: allocations with guards, a shadow of what was written, and
// the lines that L2 holds.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "evokernel/twin/at.h"
#include "evokernel/twin/refs.h"
#include "hazards.h"

namespace evokernel::twin {

// aclrtMalloc hands out whole blocks of 32 bytes and another one behind them (its page of the runtime's reference).
constexpr uint64_t kBehind = 32;

enum class Kind : uint8_t { Input, Output, Workspace, Device };

constexpr uint64_t kL2Line = 512;    // bytes; assumed by public models of the chip
constexpr uint64_t kL2Sector = 128;  // data_copy sample: its misses times this are the bytes that it reads

// The last access of a page: when in the core's cycles, and which core (0: none).
struct Visit {
    double time;
    uint32_t core;
};
constexpr uint64_t kVisitPage = 4096;
constexpr uint64_t kSamplePage = 4096;

struct Allocation {
    Wording name;
    Kind kind;
    uint8_t *base;        // first usable byte
    uint64_t bytes;
    uint64_t padded;      // bytes up to the end of the last block of 32
    uint64_t behind;      // bytes that are allocated after these: a copy may read them, and nobody writes them
    uint8_t *mapping;     // with guards; null where there is no memory behind the addresses
    uint64_t mapped;
    uint8_t *written;     // one byte for each byte, 1 = defined; null for inputs. In timing mode 1 = has its data
    bool write_reported;
    bool known;           // has its data in timing mode too
    uint8_t *pages;       // in sampled runs: of each page whether it holds values; null: all do
    Visit *visits;        // one for each page
    uint32_t *lines;      // KB that L2 had taken in (from 1) when it last saw each line, and which sectors; 0 = never
};

class GlobalMemory {
public:
    ~GlobalMemory();

    // A block of device memory, poisoned with 0xFF. In timing mode nothing reads or writes it: small
    // blocks are zero memory that costs nothing until touched, large ones are addresses only. A `known` one
    // keeps its data even then: copies of it choose the addresses of others. `behind`: bytes after its last block.
    Allocation *Allocate(const Wording &name, uint64_t bytes, Kind kind, bool timing, bool known = false,
                         uint64_t behind = kBehind);
    bool Release(void *base);
    void Clear();
    Allocation *Find(const uint8_t *address);
    // In timing mode: keeps books of which bytes have their data, whatever the host writes, and what they are: null
    // where a kernel wrote them, or nobody did.
    void KeepBooks(Allocation &block);
    const Allocation *WithData(const uint8_t *address, uint64_t bytes);
    // A kernel writes bytes that timing does not compute.
    static void LoseData(Allocation &block, uint64_t offset, uint64_t bytes);
    std::vector<std::unique_ptr<Allocation>> &All() { return all_; }
    uint64_t TotalBytes() const;
    bool HasKnown() const { return has_known_; }

    // How many bytes from there on nothing can change while the kernel runs, which only reads them: of an input
    // that a core has the values of. 0: none.
    uint64_t Constant(const uint8_t *address, bool timing);
    void ForgetLines();
    // The record of a page's last access; null where there is no memory for it.
    static Visit *VisitOf(Allocation &block, uint64_t offset);

    // Marks the L2 lines of a range as touched when L2 had taken in `progress` KB and returns how many of its
    // bytes were not among the last `reach` KB.
    static uint64_t Touch(Allocation &block, uint64_t offset, uint64_t bytes, uint32_t progress, uint32_t reach);

    // Asks early for the lines that a later Touch at `offset` looks at: each is a miss of the host's caches otherwise.
    static void Expect(const Allocation &block, uint64_t offset)
    {
        if (block.lines != nullptr) {
            __builtin_prefetch(block.lines + offset / kL2Line, 1);
        }
    }

    // Whether [address, address + bytes) may be used; reports out-of-bounds and writes to inputs.
    Allocation *Check(const GlobalRef &tensor, const uint8_t *address, uint64_t bytes, bool write, const char *api,
                      At at);
    void CheckGuards();

private:
    Allocation *WithBehind(const uint8_t *address);

    std::vector<std::unique_ptr<Allocation>> all_;
    Allocation *last_ = nullptr;
    bool has_known_ = false;
    uint64_t next_address_ = uint64_t{0x6000} << 32;  // outside what the system hands out
};

GlobalMemory &Gm();

}  // namespace evokernel::twin
