#include "host/host_call.h"

#include "core.h"

namespace evokernel::twin {

void NoticeHostCall(const char *name)
{
    if (InKernel()) {
        ReportError("host-call", TheCore().last_at,
                    "The kernel calls %s, which device code does not have; pass what it needs in arguments or global "
                    "memory.",
                    name);
    }
}

}  // namespace evokernel::twin
