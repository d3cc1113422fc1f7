#include "vector/cost.h"

#include "vector/walk.h"

namespace evokernel::twin {

double StartUpOf(Cost cost)
{
    const Chip &chip = CurrentChip();
    switch (cost) {
        case Cost::Transcendental:
            return chip.startup_transcendental;
        case Cost::ReduceRepeat:
            return chip.startup_reduce;
        case Cost::ReduceBlock:
            return chip.startup_reduce_block;
        default:
            return chip.startup;
    }
}

double RateOf(Cost cost, uint32_t width)
{
    const Chip &chip = CurrentChip();
    const bool narrow = width == 2;
    switch (cost) {
        case Cost::Transcendental:
            return chip.transcendental;
        case Cost::MulAddDst:
            return narrow ? chip.mul_add_dst_b16 : chip.mul_add_dst_b32;
        case Cost::ReduceRepeat:
            return narrow ? chip.reduce_repeat_b16 : chip.reduce_repeat_b32;
        case Cost::ReduceBlock:
            return narrow ? chip.reduce_block_b16 : chip.reduce_block_b32;
        case Cost::Gather:
            return chip.gather;
        case Cost::GatherBlock:
            return narrow ? chip.gather_block_b16 : chip.gather_block_b32;
        case Cost::GatherMask:
            return narrow ? chip.gather_mask_b16 : chip.gather_mask_b32;
        default:
            return SimpleRate(width);
    }
}

}  // namespace evokernel::twin
