// Executed basic blocks of a candidate's own text: the scalar work that is no call of the interface.
#pragma once

namespace evokernel::twin {

// Counts a block as so many instructions, and looks at how deep the stack is there.
void CountBlock(unsigned weight);

// Stands at the head of each basic block of a candidate's text (twin/blocks.py writes it there), also of functions that
// constant expressions call. `weight`: of a long block more than one.
__attribute__((always_inline)) constexpr void EnterBlock(unsigned weight = 1)
{
    if (!__builtin_is_constant_evaluated()) {
        CountBlock(weight);
    }
}

}  // namespace evokernel::twin
