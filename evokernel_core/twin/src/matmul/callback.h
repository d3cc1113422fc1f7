// Calls of what a kernel gave a Matmul object to copy with. Where the kernel runs in another process its functions are
// numbers, and who connects to it says how they are called.
#pragma once
#include "evokernel/twin/matmul/types.h"

namespace evokernel::twin {

struct CopyHooks {
    void (*in)(AscendC::CopyInCallback copy, const LocalRef &local, const void *global, const int *place, uint64_t user,
               uint64_t data) = nullptr;
    void (*out)(AscendC::CopyOutCallback copy, const void *global, const LocalRef &local,
                const AscendC::DataCopyOutParams &params, uint64_t user, uint64_t data) = nullptr;
};
CopyHooks &TheCopyHooks();

// `place`: row, column, rows and columns.
void CallCopyIn(AscendC::CopyInCallback copy, const LocalRef &local, const void *global, const int *place,
                uint64_t user, uint64_t data);
void CallCopyOut(AscendC::CopyOutCallback copy, const void *global, const LocalRef &local,
                 const AscendC::DataCopyOutParams &params, uint64_t user, uint64_t data);

}  // namespace evokernel::twin
