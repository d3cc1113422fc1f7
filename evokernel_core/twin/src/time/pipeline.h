// The time of one core: in-order pipes fed by the scalar unit, flags between them.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "blocks.h"
#include "chip.h"
#include "evokernel/twin/enums.h"
#include "evokernel/twin/language.h"
#include "time/shared_port.h"

namespace evokernel::twin {

enum class Pipe : uint8_t { S, V, M, MTE1, MTE2, MTE3, FIX };
constexpr int kPipes = 7;
const char *PipeName(Pipe pipe);

struct PipePair {
    Pipe from;
    Pipe to;
};
PipePair PipesOf(AscendC::HardEvent event);

// An instruction, or on the scalar unit a wait. `idle`: cycles that its pipe stood before it, for `cause`.
struct TraceEvent {
    const char *name;
    const char *file;
    double start;
    double cycles;
    double idle;
    int line;
    uint32_t bytes;
    Pipe pipe;
    Pipe cause;
};

// Why a pipe stood idle: it waited for another pipe, or the scalar unit had not issued yet.
struct PipeUse {
    double busy = 0;
    double idle_for[kPipes] = {};
    uint64_t instructions = 0;
    uint64_t bytes = 0;
};

// What the calls of one source line took on a pipe.
struct LineUse {
    const char *file = "";
    int line = 0;
    double cycles = 0;
    uint64_t instructions = 0;
};

// The lines of a pipe. Loops come by in the same order again: a search begins where the last one ended.
class LineTally {
public:
    void Add(const char *file, int line, double cycles);
    const std::vector<LineUse> &Lines() const { return lines_; }

private:
    static constexpr size_t kMaxLines = 512;  // a candidate may claim any number of them

    std::vector<LineUse> lines_;
    size_t next_ = 0;
};

struct Move {
    Pipe pipe;
    bool load;
    uint32_t bursts;
    uint64_t bytes;         // moved in all
    uint64_t hbm_bytes;     // of these from or to device memory
    uint64_t requests;      // pieces of at most 512 bytes that the copy engine asks for
    uint64_t wire_bytes;    // bytes with those that an unaligned start moves in vain
    double write_back;      // bytes that L2 or the copy itself writes to device memory
    double cycles = 0;      // at least: what the core itself needs
};

// The core's share of device memory or of L2. Instructions reach it in program order, not in the
// order in which they start, so the last stretches that it stood idle can still be used.
class Port {
public:
    // Reserves `cycles` from `start` on and returns when they are over.
    double Take(double start, double cycles);

private:
    struct Gap {
        double start = 0;
        double end = 0;
    };
    static constexpr uint32_t kGaps = 8;  // a power of two; more idle stretches than pipes run ahead of each other

    double free_ = 0;
    Gap gaps_[kGaps];  // a ring in the order of time
    uint32_t oldest_ = 0;
};

class Pipeline {
public:
    void Start(const Chip &chip, int active_cores, bool cube = false);
    // The block's cores of the other kind take their device memory from the same share; `alike`: cores of this kind.
    void Share(SharedPort *port, int alike);

    // One instruction of `cycles` on a pipe, after everything that the pipe must wait for. Its results are there
    // `tail` later.
    void Run(Pipe pipe, double cycles, const char *name, int line, const char *file, double tail = 0);
    void RunMove(const Move &move, const char *name, int line, const char *file);

    void Scalar(double cycles)
    {
        if (blocks::counter.pending != 0) {
            TakeBlocks();
        }
        Spend(cycles);
        covered_ = std::min(covered_ + cycles, chip_ == nullptr ? 0 : kCoveredBlocks * chip_->issue);
    }
    // Charges the running core for the basic blocks of the kernel that were executed since this was last done. A block
    // costs what an instruction costs to issue; the cost of a call has the share of the loop around it.
    void TakeBlocks();
    double NextStart(Pipe pipe) const;           // when the next instruction of a pipe can begin
    double Ready(Pipe pipe) const;               // when all work given to a pipe so far is done
    void NotBefore(Pipe pipe, double time, Pipe cause);
    void DrainAll();                             // the scalar unit waits for every pipe
    void ScalarWaits(Pipe pipe) { NotBefore(Pipe::S, Ready(pipe), pipe); }

    double End() const;
    double Now() const { return scalar_; }
    const PipeUse &Use(Pipe pipe) const { return use_[static_cast<int>(pipe)]; }
    const std::vector<LineUse> &Lines(Pipe pipe) const { return lines_[static_cast<int>(pipe)].Lines(); }
    void Trace(std::vector<TraceEvent> *events) { events_ = events; }

private:
    void Spend(double cycles) { scalar_ += cycles; use_[0].busy += cycles; }
    double Begin(Pipe pipe);
    void Note(const TraceEvent &event);
    void Finish(Pipe pipe, double start, double occupied_until, double done, const char *name, int line,
                const char *file, uint64_t bytes);

    static constexpr int kMaxDepth = 64;
    static constexpr double kCoveredBlocks = 8;  // that the latest calls may have paid for

    const Chip *chip_ = nullptr;
    double scalar_ = 0;
    double free_[kPipes] = {};        // when a pipe can begin its next instruction
    double done_[kPipes] = {};        // when the results of a pipe are visible
    double not_before_[kPipes] = {};
    Pipe cause_[kPipes] = {};
    PipeUse use_[kPipes];
    LineTally lines_[kPipes];
    double begun_[kPipes][kMaxDepth] = {};  // start times of the last instructions, for the queue depth
    uint32_t slot_[kPipes] = {};      // the oldest of them
    uint32_t depth_ = 1;
    double covered_ = 0;  // cycles of the latest calls that no block has used up
    SharedPort *shared_ = nullptr;
    double block_share_ = 0;  // bytes per cycle of the block's whole share
    Port device_;  // device memory
    Port l2_;
    double hbm_share_ = 0;            // bytes per cycle
    double l2_share_ = 0;
    double request_share_ = 0;        // requests per cycle
    double hit_rate_ = 0;             // bytes per cycle of this kind of core
    double idle_ = 0;  // of the instruction that begins
    Pipe idle_for_ = Pipe::S;
    std::vector<TraceEvent> *events_ = nullptr;
};

}  // namespace evokernel::twin
