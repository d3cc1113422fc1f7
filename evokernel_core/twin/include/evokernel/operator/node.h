// One call of an operator: its tensors, attributes, and what its tiling function decides.
#pragma once
#include <deque>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "evokernel/operator/shape.h"

namespace evokernel::twin::op {

struct TensorOf {
    gert::StorageShape shape;
    gert::CompileTimeTensorDesc desc;
    std::vector<uint8_t> bytes;
    gert::Tensor tensor;
};

// The tensors of one parameter: none where an optional one is absent, several for a list.
struct Parameter {
    std::vector<TensorOf *> tensors;
};

using Value = std::variant<std::monostate, int64_t, float, bool, std::string, std::vector<int64_t>, std::vector<float>,
                           std::vector<uint8_t>, std::vector<std::vector<int64_t>>>;

struct Node {
    std::string name = "operator";
    std::string type;
    std::deque<TensorOf> storage;
    std::vector<Parameter> inputs;
    std::vector<Parameter> outputs;
    std::vector<Value> attributes;
    std::shared_ptr<void> compile_info;
    bool deterministic = false;
    uint64_t tiling_key = 0;
    uint32_t block_dim = 0;
    uint32_t schedule_mode = 0;
    std::vector<size_t> workspaces;
    std::vector<uint8_t> tiling;
    size_t tiling_bytes = 0;

    static TensorOf *At(const std::vector<Parameter> &parameters, size_t index, size_t instance)
    {
        const bool there = index < parameters.size() && instance < parameters[index].tensors.size();
        return there ? parameters[index].tensors[instance] : nullptr;
    }
    // The tensor at a place among all that are there.
    static TensorOf *Flat(const std::vector<Parameter> &parameters, size_t index)
    {
        for (const Parameter &parameter : parameters) {
            if (index < parameter.tensors.size()) {
                return parameter.tensors[index];
            }
            index -= parameter.tensors.size();
        }
        return nullptr;
    }
    static size_t Count(const std::vector<Parameter> &parameters)
    {
        size_t count = 0;
        for (const Parameter &parameter : parameters) {
            count += parameter.tensors.size();
        }
        return count;
    }
};

}  // namespace evokernel::twin::op
