// A node of a graph, as far as host code of an operator names it.
#pragma once
#include "graph/ascend_string.h"
#include "graph/types.h"

namespace ge {

class Operator {
public:
    Operator() = default;
    explicit Operator(const AscendString &name) : name_(name) {}
    uint32_t GetName(AscendString &name) const { return name = name_, 0; }

private:
    AscendString name_;
};

}  // namespace ge
