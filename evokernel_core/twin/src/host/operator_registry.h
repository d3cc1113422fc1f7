// What operators' host code has registered.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "evokernel/operator/definition.h"
#include "evokernel/operator/layouts.h"
#include "evokernel/operator/registry.h"

namespace evokernel::twin::op {

struct Functions {
    gert::OpImplRegisterV2::TilingKernelFunc tiling = nullptr;
    gert::OpImplRegisterV2::InferShapeKernelFunc shape = nullptr;
    gert::OpImplRegisterV2::InferDataTypeKernelFunc types = nullptr;
    std::function<std::shared_ptr<void>()> make_compile_info;
    std::function<ge::graphStatus(gert::TilingParseContext *)> parse;
    std::vector<int32_t> reads_values;
    size_t tiling_capacity = 0;
};

std::map<std::string, ops::OpCreator> &Creators();
std::map<std::string, Functions> &FunctionsOf();

}  // namespace evokernel::twin::op
