// What host code says about a call: errors go to the standard error, from where a refusal is told; the rest is not
// kept. The names are those of the operator libraries' log.
#pragma once
#include <cstdio>
#include <sstream>
#include <string>
#include <type_traits>

#include "evokernel/operator/types.h"

namespace evokernel::twin::op {

template <typename... Values> void Unsaid(const Values &...) {}

template <typename T> void Append(std::ostringstream &text, const T &value)
{
    if constexpr (std::is_convertible_v<T, std::string>) {
        text << std::string(value);
    } else if constexpr (std::is_arithmetic_v<T>) {
        text << +value;
    }
}

// A fault in its parts: names, what was given, and the reason.
template <typename Where, typename... Parts> void Invalid(const Where &, const Parts &...parts)
{
    std::ostringstream text;
    ((Append(text, parts), text << "; "), ...);
    std::fprintf(stderr, "%s\n", text.str().c_str());
}

template <typename Where> void Fault(const Where &, const char *text) { std::fprintf(stderr, "%s\n", text); }
// As printf has it; text that is no C string cannot go there.
template <typename Where, typename First, typename... Rest>
void Fault(const Where &, const char *format, const First &first, const Rest &...rest)
{
    if constexpr ((std::is_scalar_v<std::decay_t<First>> && ... && std::is_scalar_v<std::decay_t<Rest>>)) {
        std::fprintf(stderr, format, first, rest...);
        std::fputc('\n', stderr);
    } else {
        std::fprintf(stderr, "%s\n", format);
    }
}

}  // namespace evokernel::twin::op
