// Says where a kernel was when its process is ended by a signal.
#pragma once

namespace evokernel::twin {

// Once before the first kernel runs. The process still ends by the signal.
void ReportCrashes();

}  // namespace evokernel::twin
