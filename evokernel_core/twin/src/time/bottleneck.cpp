#include "time/bottleneck.h"

#include <cstdio>

namespace evokernel::twin {

namespace {

constexpr double kEfficientCopy = 16 * 1024;  // documentation: copies of at least 16 KB reach the full rate
constexpr double kWorthTelling = 5;           // percent

bool Copies(Pipe pipe) { return pipe == Pipe::MTE2 || pipe == Pipe::MTE3; }

// The scalar unit counts as the bottleneck only where it hardly ever waits for another pipe.
Pipe BusiestPipe(const CoreTime &time)
{
    int busiest = 1;
    for (int p = 2; p < kPipes; ++p) {
        busiest = time.use[p].busy > time.use[busiest].busy ? p : busiest;
    }
    const double scalar = time.use[0].busy;
    return scalar > time.use[busiest].busy && scalar > 0.5 * time.cycles ? Pipe::S : static_cast<Pipe>(busiest);
}

// The mean size of a pipe's copies in KB where it is below the efficient one, else 0.
double SmallCopies(const PipeUse &use)
{
    const double bytes = use.instructions == 0 ? 0 : static_cast<double>(use.bytes) / use.instructions;
    return bytes > 0 && bytes < 0.99 * kEfficientCopy ? bytes / 1024 : 0;
}

// What a pipe mostly waits for, and in `share` how many percent of the time; none where it hardly waits.
bool MainCause(const CoreTime &time, Pipe pipe, Pipe *cause, double *share)
{
    const PipeUse &use = time.use[static_cast<int>(pipe)];
    int most = 0;
    for (int p = 1; p < kPipes; ++p) {
        most = use.idle_for[p] > use.idle_for[most] ? p : most;
    }
    *cause = static_cast<Pipe>(most);
    *share = time.cycles > 0 ? 100 * use.idle_for[most] / time.cycles : 0;
    return *share >= kWorthTelling;
}

// The pipe that another waits for, and for how many percent of the time, as fields of a JSON object.
std::string Waiting(Pipe cause, double share)
{
    char text[64];
    std::snprintf(text, sizeof(text), "\"for\":\"%s\",\"idle\":%.0f", PipeName(cause), share);
    return text;
}

}  // namespace

std::string Bottleneck(const CoreTime &time)
{
    const Pipe busiest = BusiestPipe(time);
    const PipeUse &use = time.use[static_cast<int>(busiest)];
    char head[64];
    std::snprintf(head, sizeof(head), "{\"pipe\":\"%s\",\"busy\":%.0f", PipeName(busiest),
                  time.cycles > 0 ? 100 * use.busy / time.cycles : 0);
    std::string text = head;
    Pipe cause;
    double share;
    if (busiest != Pipe::S && MainCause(time, busiest, &cause, &share)) {
        text += "," + Waiting(cause, share);
    }
    if (const double small = Copies(busiest) ? SmallCopies(use) : 0; small > 0) {
        std::snprintf(head, sizeof(head), ",\"copies_kb\":%.1f", small);
        text += head;
    }
    const bool has_vector = time.use[static_cast<int>(Pipe::V)].instructions > 0;
    const Pipe worker = has_vector ? Pipe::V : Pipe::M;
    const bool works = time.use[static_cast<int>(worker)].instructions > 0;
    if (busiest != worker && works && MainCause(time, worker, &cause, &share)) {
        text += std::string(",\"worker\":{\"pipe\":\"") + PipeName(worker) + "\"," + Waiting(cause, share) + "}";
    }
    return text + "}";
}

}  // namespace evokernel::twin
