// What a kernel did that the hardware forbids or punishes.
#pragma once
#include <string>
#include <vector>

#include "evokernel/twin/at.h"

namespace evokernel::twin {

// In a sampled run most bytes hold no value, which is no fault: `uninitialised-` codes are not reported.
namespace sampled {
extern bool active;
}

struct Hazard {
    std::string code;
    std::string severity;  // "error" or "warning"
    std::string message;
    std::string file;
    int line;
};

// Records a hazard once for each (code, place); `format` as in printf.
void ReportError(const char *code, At at, const char *format, ...) __attribute__((format(printf, 3, 4)));
void ReportWarning(const char *code, At at, const char *format, ...) __attribute__((format(printf, 3, 4)));

const std::vector<Hazard> &Hazards();
void ClearHazards();
bool HasErrors();

}  // namespace evokernel::twin
