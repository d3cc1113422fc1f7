#include "hazards.h"

#include <cstdarg>
#include <cstdio>
#include <set>
#include <tuple>

namespace evokernel::twin {

namespace {

constexpr size_t kMaxHazards = 100;

struct Store {
    std::vector<Hazard> hazards;
    std::set<std::tuple<std::string, std::string, int>> seen;
};

Store &TheStore()
{
    static Store store;
    return store;
}

void Record(const char *code, const char *severity, At at, const char *format, va_list arguments)
{
    Store &store = TheStore();
    const std::string file = at.file == nullptr ? "" : at.file;
    if (store.hazards.size() >= kMaxHazards || !store.seen.emplace(code, file, at.line).second) {
        return;
    }
    char text[512];
    std::vsnprintf(text, sizeof(text), format, arguments);
    store.hazards.push_back(Hazard{code, severity, text, file, at.line});
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
