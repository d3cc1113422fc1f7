// The pieces of A or of B that L1 holds, and the flags that keep copies and loads apart.
#pragma once
#include <vector>

#include "matmul/panel.h"

namespace evokernel::twin::matmul {

// A flag of this core that is set at most once at a time.
class Flag {
public:
    void Open(AscendC::HardEvent event, At at);
    void Close(At at);
    void Set(At at);
    void Wait(At at);  // nothing where it is not set
    bool Pending() const { return pending_; }

private:
    AscendC::HardEvent event_ = AscendC::HardEvent::MAX;
    int8_t id_ = -1;
    bool pending_ = false;
};

class PanelCache {
public:
    // Lays its slots from `address` on and returns the first byte after them.
    uint32_t Open(const Job &job, bool left, uint32_t address);
    void Close(At at);
    // The base block (outer, depth), copied in where L1 does not hold it.
    Panel Get(const Job &job, int32_t outer, int32_t depth);
    void Prefetch(const Job &job, int32_t outer, int32_t depth);
    const Operand &Stored() const { return operand_; }

    static uint32_t Bytes(const Job &job, bool left);

private:
    struct Slot {
        uint32_t address = 0;
        int64_t key = -1;
        uint64_t stamp = 0;
        bool free = true;  // no load reads it any more
    };
    struct Piece {
        int64_t key;
        int32_t row, column, rows, columns;  // stored
    };

    Piece PieceOf(const Job &job, int32_t outer, int32_t depth) const;
    Panel InLocal(const Job &job, int32_t outer, int32_t depth) const;
    Slot &Fetch(const Job &job, const Piece &piece);
    void Release(Slot &slot, At at);
    void WaitUntilFree(Slot &slot, At at);
    size_t FlagOf(const Slot &slot) const { return static_cast<size_t>(&slot - slots_.data()) % 2; }

    Operand operand_;
    int32_t total_ = 0, base_ = 0, step_ = 1, step_k_ = 1;
    std::vector<Slot> slots_;
    Slot *current_ = nullptr;
    uint64_t clock_ = 0;
    Flag copied_;           // MTE2 to MTE1
    Flag freed_[2];         // MTE1 to MTE2
    Slot *freed_slot_[2] = {};
};

}  // namespace evokernel::twin::matmul
