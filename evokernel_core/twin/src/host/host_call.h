// A call that only the host has, about to be made.
#pragma once

namespace evokernel::twin {

// Reports it where a kernel makes it.
void NoticeHostCall(const char *name);

}  // namespace evokernel::twin
