// The result of a run as JSON.
#pragma once
#include <string>
#include <vector>

#include "hazards.h"

namespace evokernel::twin {

struct RunOutcome {
    bool ok = false;
    bool declined = false;  // the kernel has no tiling for the sizes
    Wording error;
    std::vector<bool> outputs_written;
    std::vector<bool> input_changed;
    std::vector<uint32_t> tiling;  // words of tiling data, as the candidate has them
};

// Writes the file (through a temporary one); returns false where that fails.
bool WriteResult(const std::string &path, const RunOutcome &outcome);

// As a JSON string.
std::string Quoted(const std::string &text);

}  // namespace evokernel::twin
