// The cube core's side of a Matmul object: base block after base block, from L1 through L0 to global memory.
#pragma once
#include "matmul/cache.h"

namespace evokernel::twin::matmul {

class Machine {
public:
    ~Machine();
    // Makes ready for a job; false where its buffers do not fit.
    bool Begin(const Job &job);
    // Computes a base block into L0C: into its own buffer, or the caller's.
    void Compute(const Job &job, const Tile &tile, int32_t index, bool accumulate, const LocalRef *co1);
    // Moves the last base block out.
    void Store(const Job &job, const Tile &tile, const Target &target);
    // Waits for everything and gives the flags back.
    void End(At at);
    bool Begun() const { return core_ != nullptr; }

private:
    void Multiply(const Job &job, const Tile &tile, int32_t depth, const LocalRef &sum, bool first);
    void LoadSparseRight(const Job &job, const Tile &tile, int32_t depth, const Panel &panel, uint32_t target);
    void LoadData2D(const Job &job, const Panel &panel, uint32_t target, int32_t fractals);
    void LoadBias(const Job &job, const Tile &tile);
    LocalRef LoadQuant(const Job &job, const Tile &tile);
    void Prefetch(const Job &job, const Tile &tile, int32_t depth, int32_t index);
    LocalRef SumAt(const Job &job, int buffer) const;
    void TakeBuffer(const Job &job, bool accumulate);
    void CopyOut(const Job &job, const Tile &tile, const Target &target, const LocalRef &sum);

    const Core *core_ = nullptr;  // null: not begun
    uint64_t serial_ = 0;
    PanelCache a_, b_;
    uint32_t bias_address_ = 0, quant_address_ = 0, index_address_ = 0;
    int32_t bias_column_ = -1;
    int stage_ = 0;
    int buffer_ = 0;
    uint32_t sum_base_ = 0;
    Flag multiplied_[2];          // M to MTE1: a half of L0A and L0B is free
    Flag loaded_;                 // MTE1 to M
    Flag bias_copied_, bias_read_, table_read_;
    Flag ready_[2];               // M to FIX
    Flag taken_[2];               // FIX to M
    Flag quant_copied_, quant_read_;
    At at_{"", 0};
};

}  // namespace evokernel::twin::matmul
