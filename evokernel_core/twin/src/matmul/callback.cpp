#include "matmul/callback.h"

namespace evokernel::twin {

CopyHooks &TheCopyHooks()
{
    static CopyHooks hooks;
    return hooks;
}

void CallCopyIn(AscendC::CopyInCallback copy, const LocalRef &local, const void *global, const int *place,
                uint64_t user, uint64_t data)
{
    if (TheCopyHooks().in != nullptr) {
        return TheCopyHooks().in(copy, local, global, place, user, data);
    }
    copy(AscendC::LocalTensor<int8_t>(local), global, place[0], place[1], place[2], place[3], user, data);
}

void CallCopyOut(AscendC::CopyOutCallback copy, const void *global, const LocalRef &local,
                 const AscendC::DataCopyOutParams &params, uint64_t user, uint64_t data)
{
    if (TheCopyHooks().out != nullptr) {
        return TheCopyHooks().out(copy, global, local, params, user, data);
    }
    copy(global, AscendC::LocalTensor<int8_t>(local), &params, user, data);
}

}  // namespace evokernel::twin
