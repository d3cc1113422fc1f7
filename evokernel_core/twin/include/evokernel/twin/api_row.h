// A row of the table of the interface, as the header that is made of the table has it (evokernel_core/hardware/ascend/api).
#pragma once
#include <cstdint>

#include "evokernel/twin/enums.h"
#include "evokernel/twin/refs.h"

namespace evokernel::twin {

// Which constants of a chip say how long an instruction takes.
enum class Cost : uint8_t {
    None, Simple, Transcendental, MulAddDst, ReduceRepeat, ReduceBlock,
    Gather, GatherBlock, GatherMask, Sort, Transpose,
};

// The types of a destination and of its sources that go together; no sources: all are of the destination's type.
// `modes`: bits of the enumerators (rounding, comparison) that these types take, 0 where a row has no modes.
struct TypeRule {
    DType types[4];
    uint8_t sources;
    uint32_t modes;
};
constexpr DType kNoType = DType::S4;  // fills the rest of `types`
template <typename Mode> constexpr uint32_t ModeBit(Mode mode) { return 1U << static_cast<unsigned>(mode); }

// The values that a parameter takes, both ends included.
struct Limit {
    const char *parameter;
    int64_t low;
    int64_t high;
};

enum RowFlags : uint8_t {
    kLanes = 1,         // computed lane by lane by the function of the row's key
    kTwoSources = 2,
    kReadsDst = 4,
    kOverflows = 8,     // to infinity, from finite values
    kAccumulates = 16,  // a destination that does not advance may be its own second source
};

struct ApiRow {
    const char *name;
    Cost cost;
    uint8_t flags;
    uint16_t first_rule;
    uint16_t rules;
    uint16_t first_limit;
    uint16_t limits;
    uint16_t alignment;  // bytes, of every operand; 0 where they differ
    int32_t repeats;     // at most, of one instruction; 0 where it has none

    constexpr bool Has(RowFlags flag) const { return (flags & flag) != 0; }
};

constexpr bool SameText(const char *a, const char *b)
{
    while (*a != 0 && *a == *b) {
        ++a;
        ++b;
    }
    return *a == *b;
}

constexpr const Limit &FindLimit(const ApiRow &row, const Limit *limits, const char *parameter)
{
    for (const Limit *limit = limits + row.first_limit; limit != limits + row.first_limit + row.limits; ++limit) {
        if (SameText(limit->parameter, parameter)) {
            return *limit;
        }
    }
    throw parameter;
}

}  // namespace evokernel::twin
