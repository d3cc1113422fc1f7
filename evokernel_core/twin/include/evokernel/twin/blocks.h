// Executed basic blocks of a candidate's own text: the scalar work that is no call of the interface.
#pragma once

namespace evokernel::twin {

// Counts a block, and looks at how deep the stack is there.
void CountBlock();

// Stands at the head of each basic block of a candidate's text (twin/blocks.py writes it there), also of functions that
// constant expressions call.
__attribute__((always_inline)) constexpr void EnterBlock()
{
    if (!__builtin_is_constant_evaluated()) {
        CountBlock();
    }
}

}  // namespace evokernel::twin
