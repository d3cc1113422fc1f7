// The protocol between the verifier and a candidate: a request file in, a result file out.
#pragma once

namespace evokernel::twin {

// Returns 0 once the result is written, 2 where the request cannot be understood.
int RunRequestFile(const char *path);

// The same for a candidate in another process, which shares the memory that standard output stands for, and of several
// requests, up to the first that fails.
int JudgeRequestFiles(int count, char **paths);

}  // namespace evokernel::twin
