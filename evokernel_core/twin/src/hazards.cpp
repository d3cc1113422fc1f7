#include "hazards.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <map>
#include <tuple>

namespace evokernel::twin {

namespace {

constexpr size_t kMaxHazards = 100;

struct Store {
    std::vector<Hazard> hazards;
    std::map<std::tuple<std::string, std::string, int>, size_t> seen;  // index of the hazard
};

Store &TheStore()
{
    static Store store;
    return store;
}

void Record(const char *code, const char *severity, At at, const char *format, va_list arguments)
{
    if (sampled::active && std::strncmp(code, "uninitialised-", 14) == 0) {
        return;
    }
    Store &store = TheStore();
    const std::string file = at.file == nullptr ? "" : at.file;
    const auto seen = store.seen.find({code, file, at.line});
    const bool worse = seen != store.seen.end() && store.hazards[seen->second].severity != severity &&
                       std::strcmp(severity, "error") == 0;
    if (seen == store.seen.end() ? store.hazards.size() >= kMaxHazards : !worse) {
        return;
    }
    char text[512];
    std::vsnprintf(text, sizeof(text), format, arguments);
    const Hazard hazard{code, severity, text, file, at.line};
    if (worse) {
        store.hazards[seen->second] = hazard;
        return;
    }
    store.seen.emplace(std::make_tuple(code, file, at.line), store.hazards.size());
    store.hazards.push_back(hazard);
}

}  // namespace

void ReportError(const char *code, At at, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    Record(code, "error", at, format, arguments);
    va_end(arguments);
}

void ReportWarning(const char *code, At at, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    Record(code, "warning", at, format, arguments);
    va_end(arguments);
}

const std::vector<Hazard> &Hazards() { return TheStore().hazards; }

void ClearHazards() { TheStore() = Store{}; }

bool HasErrors()
{
    for (const Hazard &hazard : Hazards()) {
        if (hazard.severity == "error") {
            return true;
        }
    }
    return false;
}

}  // namespace evokernel::twin
