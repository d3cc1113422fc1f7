// Checks of calls by the table of the interface (evokernel_core/hardware/ascend/api).
#pragma once
#include "core.h"
#include "evokernel/twin/api_table.h"

namespace evokernel::twin {

// What a check speaks of: a row of the table, and the name that the kernel called where that is another one.
struct Checked {
    const ApiRow *row;
    const char *name;

    Checked(Api api) : Checked(api, RowOf(api).name) {}
    Checked(Api api, const char *called) : row(&RowOf(api)), name(called) {}
};

// The types of a call: the destination's and those of the sources.
struct CallTypes {
    DType dst;
    DType sources[3];
    uint8_t count;

    explicit CallTypes(DType only) : dst(only), sources{}, count(0) {}
    CallTypes(DType to, DType from) : dst(to), sources{from}, count(1) {}
    CallTypes(DType to, DType a, DType b) : dst(to), sources{a, b}, count(2) {}
    CallTypes(DType to, DType a, DType b, DType c) : dst(to), sources{a, b, c}, count(3) {}
};

// The row's rule for these types; null where it has none. A source beyond a rule's last has the type of that one.
const TypeRule *RuleFor(const ApiRow &row, const CallTypes &types);

// Reports `dtype-unsupported` and returns false where the row has no rule for the types.
bool CheckTypes(const Checked &checked, const CallTypes &types, At at);

// Reports `dtype-unsupported` and returns false where the row does not take these types in this mode.
bool CheckMode(const Checked &checked, const CallTypes &types, uint32_t mode_bit, const char *mode, At at);

// Reports `param-limit` and returns false where `value` is outside of the row's limit of the parameter.
bool CheckLimit(const Checked &checked, const char *parameter, int64_t value, At at);

// Reports `repeat-limit` and returns false where the row's instruction has not so many repeats.
bool CheckRepeats(const Checked &checked, int64_t repeats, At at);

}  // namespace evokernel::twin
