// A program with its own main: the chip before it starts, and the result that it leaves.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core.h"
#include "launch.h"
#include "result.h"

namespace {

void WriteResultAtExit()
{
    const char *path = std::getenv("EVOKERNEL_TWIN_RESULT");
    if (path != nullptr) {
        evokernel::twin::RunOutcome outcome;
        outcome.ok = !evokernel::twin::HasErrors();
        evokernel::twin::WriteResult(path, outcome);
    }
    const char *trace = std::getenv("EVOKERNEL_TWIN_TRACE");
    if (trace != nullptr) {
        evokernel::twin::WriteTrace(trace);
    }
}

// Reads the chip before main runs, and arranges for the result to be written after it.
struct Program {
    Program()
    {
        const char *chip = std::getenv("EVOKERNEL_TWIN_CHIP");
        if (chip == nullptr) {
            return;  // a candidate under the runner, which reads its own request
        }
        std::string error;
        if (!evokernel::twin::LoadChip(chip, &evokernel::twin::CurrentChip(), &error)) {
            std::fprintf(stderr, "%s\n", error.c_str());
            std::exit(2);
        }
        const char *mode = std::getenv("EVOKERNEL_TWIN_MODE");
        evokernel::twin::TheSession().timing = mode != nullptr && std::strcmp(mode, "time") == 0;
        evokernel::twin::TheSession().refuse_unknown = true;
        evokernel::twin::TheSession().trace = std::getenv("EVOKERNEL_TWIN_TRACE") != nullptr;
        const char *auto_sync = std::getenv("EVOKERNEL_TWIN_AUTO_SYNC");
        evokernel::twin::TheSession().auto_sync = auto_sync == nullptr || std::strcmp(auto_sync, "off") != 0;
        evokernel::twin::Gm();
        evokernel::twin::ClearHazards();
        std::atexit(WriteResultAtExit);
    }
};

const Program program;

}  // namespace
