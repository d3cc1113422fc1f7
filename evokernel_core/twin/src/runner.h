// The protocol between the verifier and a candidate: a request file in, a result file out.
#pragma once

namespace evokernel::twin {

// Returns 0 once the result is written, 2 where the request cannot be understood.
int RunRequestFile(const char *path);

}  // namespace evokernel::twin
