// How a vector instruction walks the unified buffer: repeats of 256 bytes under a mask, blocks of
// 32 bytes at strides. Shared by every instruction of the vector pipe.
#pragma once
#include <cstdint>

#include "checks.h"
#include "core.h"

namespace evokernel::twin {

constexpr uint32_t kRepeatBytes = 256;
constexpr uint32_t kBlockBytes = 32;
constexpr uint32_t kMaxLanes = 256;
constexpr uint32_t kAllActive = ~uint32_t{0};

// The iteration space after the mask register and the form are taken into account.
struct Walk {
    uint32_t lanes = 0;    // of one repeat
    uint32_t repeats = 0;
    uint64_t mask[2] = {}; // of every repeat but a counted tail; lanes beyond 128 (8-bit types) are all active
    uint64_t elements = 0; // active elements where the walk is a plain run of them
    bool counted = false;  // the last repeat may be partial
    bool full = false;     // every lane of every repeat is active (but a counted tail)
    bool empty = false;

    bool Active(uint32_t repeat, uint32_t lane) const;
    uint32_t LastLane(uint32_t repeat) const;  // one past the last active lane
};

// One operand: where its blocks are.
struct Operand {
    LocalRef ref;
    uint32_t width;   // bytes of an element
    uint32_t block;   // bytes from one block to the next
    uint32_t repeat;  // bytes from one repeat to the next
    uint32_t blocks;  // blocks of one repeat

    uint32_t Address(uint32_t r, uint32_t lane) const
    {
        const uint32_t per_block = kBlockBytes / width;
        return ref.address + r * repeat + lane / per_block * block + lane % per_block * width;
    }
    bool Dense(uint32_t lanes) const { return (block == kBlockBytes || blocks == 1) && repeat == lanes * width; }
};

// Resolves the form. Returns false (after reporting) where nothing can be done.
bool ResolveWalk(const Form &form, uint32_t width, const Checked &api, At at, Walk *walk);

Operand MakeOperand(const LocalRef &ref, const Walk &walk, const Form &form, uint16_t block, uint16_t repeat);

// Checks alignment, bounds and liveness; returns whether the operand may be touched.
bool CheckOperand(const Operand &operand, const Walk &walk, uint32_t alignment, bool write, const char *api,
                  const char *name, At at);

// Reports a destination that overlaps a source in a way that the hardware does not define.
// `accumulates`: the exception for dst == src1 with a zero repeat stride.
void CheckOverlap(const Operand &dst, const Operand &src, const Walk &walk, bool accumulates, const char *api, At at);

// Copies one repeat's lanes between UB and a contiguous tile.
void LoadTile(const Operand &operand, const Walk &walk, uint32_t repeat, void *tile);
void StoreTile(const Operand &operand, const Walk &walk, uint32_t repeat, const void *tile);

// Whether every byte between the operand's first and last is defined: the cheap test.
bool AllDefined(const Operand &operand, const Walk &walk);

// Whether an instruction computes: always, except in timing mode, where what it reads has to be known. A result
// that is not computed is not known from then on.
bool Computes(const Operand &dst, const Operand *const *sources, int count, const Walk &walk);

// In sampled runs: whether no byte between the operand's first and last holds a value; that none of its lanes does
// from now on; and whether an instruction leaves its destination without values because a source has none.
bool EmptyOperand(const Operand &operand, const Walk &walk);
void ClearOperand(const Operand &operand, const Walk &walk);
bool LeavesEmpty(const Operand &dst, const Operand *const *sources, int count, const Walk &walk);

// Definedness: dst lanes become undefined where any source lane is; bits of lanes side by side, where it is bitwise.
void Propagate(const Operand &dst, const Operand *const *sources, int count, const Walk &walk, bool bitwise = false);

// Cycles of the instruction without its start-up: repeats x cycles of one repeat, with the conflicts
// between the banks of the unified buffer.
double WalkCycles(const Walk &walk, double elements_per_cycle, const Operand *dst, const Operand *const *sources,
                  int count);

double SimpleRate(uint32_t width);

}  // namespace evokernel::twin
