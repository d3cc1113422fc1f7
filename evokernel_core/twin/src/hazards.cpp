#include "hazards.h"

#include <cstdio>
#include <cstring>
#include <map>
#include <tuple>
#include <unordered_map>

namespace evokernel::twin {

namespace {

constexpr size_t kMaxHazards = 100;
constexpr size_t kMaxText = 400;  // bytes of a value that is a text, such as a condition of the kernel's

// The phrases that a text may be, by where it lies: those of all wordings that live, and of constants.
std::unordered_map<const char *, const Phrase *> &Known()
{
    static auto &known = *new std::unordered_map<const char *, const Phrase *>;  // outlives them all
    return known;
}

Phrase TextValue(const char *text)
{
    const auto known = Known().find(text);
    if (known != Known().end()) {
        return *known->second;
    }
    size_t length = strnlen(text, kMaxText);
    while (length == kMaxText && length > 0 && (text[length] & 0xC0) == 0x80) {
        --length;  // within a character
    }
    return {std::string(text, length), "", {}};
}

Phrase Filled(const char *format, va_list arguments)
{
    Phrase phrase{"", format, {}};
    for (const char *at = format; *at != 0;) {
        if (*at != '%' || at[1] == '%') {
            phrase.text += *at;
            at += *at == '%' ? 2 : 1;
            continue;
        }
        const std::string spec(at, std::strspn(at + 1, "-+ #0123456789.hlz") + 2);
        const char kind = spec.back();
        char number[64] = "";
        if (kind == 's') {
            phrase.values.push_back(TextValue(va_arg(arguments, const char *)));
        } else {
            if (std::strchr("feg", kind) != nullptr) {
                std::snprintf(number, sizeof(number), spec.c_str(), va_arg(arguments, double));
            } else if (spec.find_first_of("lz") != std::string::npos) {
                std::snprintf(number, sizeof(number), spec.c_str(), va_arg(arguments, long long));
            } else {
                std::snprintf(number, sizeof(number), spec.c_str(), va_arg(arguments, int));
            }
            phrase.values.push_back({number, "", {}});
        }
        phrase.text += phrase.values.back().text;
        at += spec.size();
    }
    return phrase;
}

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
    const Hazard hazard{code, severity, Filled(format, arguments), file, at.line};
    if (worse) {
        store.hazards[seen->second] = hazard;
        return;
    }
    store.seen.emplace(std::make_tuple(code, file, at.line), store.hazards.size());
    store.hazards.push_back(hazard);
}

}  // namespace

Wording::Wording(Phrase phrase)
    : phrase_(new Phrase(std::move(phrase)), [](const Phrase *gone) {
          Known().erase(gone->text.c_str());
          delete gone;
      })
{
    Known()[phrase_->text.c_str()] = phrase_.get();
}

Wording Wording::Of(const char *format, va_list arguments) { return Wording(Filled(format, arguments)); }

Wording::Wording(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    *this = Of(format, arguments);
    va_end(arguments);
}

const char *Word(const char *constant)
{
    if (Known().find(constant) == Known().end()) {
        Known()[constant] = new Phrase{constant, constant, {}};
    }
    return constant;
}

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
