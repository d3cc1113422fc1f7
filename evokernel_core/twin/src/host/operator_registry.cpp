// The operators, functions and tiling structures that a program's host code registers.
#include "host/operator_registry.h"

#include <cstdlib>
#include <cxxabi.h>

namespace evokernel::twin::op {

std::map<std::string, ops::OpCreator> &Creators()
{
    static std::map<std::string, ops::OpCreator> creators;
    return creators;
}

std::map<std::string, Functions> &FunctionsOf()
{
    static std::map<std::string, Functions> functions;
    return functions;
}

std::vector<Layout> &Layouts()
{
    static std::vector<Layout> layouts;
    return layouts;
}

std::map<std::string, std::string> &Tilings()
{
    static std::map<std::string, std::string> tilings;
    return tilings;
}

void Append(const char *structure, const std::string &type, const char *field, int64_t count)
{
    auto &layouts = Layouts();
    if (layouts.empty() || layouts.back().name != structure) {
        layouts.push_back({structure, {}});
    }
    layouts.back().fields.push_back({type, field, count});
}

std::string Plain(const std::type_info &type)
{
    int status = 0;
    char *text = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
    std::string name = status == 0 && text != nullptr ? text : type.name();
    std::free(text);
    const size_t last = name.rfind("::");
    return last == std::string::npos ? name : name.substr(last + 2);
}

}  // namespace evokernel::twin::op

namespace ops {

int Register(const char *type, OpCreator create)
{
    evokernel::twin::op::Creators()[type] = create;
    return 0;
}

}  // namespace ops

namespace gert {

using evokernel::twin::op::FunctionsOf;

OpImplRegisterV2::OpImplRegisterV2(const char *type) : type_(type) { FunctionsOf()[type_]; }

OpImplRegisterV2 &OpImplRegisterV2::InferShape(InferShapeKernelFunc function)
{
    FunctionsOf()[type_].shape = function;
    return *this;
}

OpImplRegisterV2 &OpImplRegisterV2::InferDataType(InferDataTypeKernelFunc function)
{
    FunctionsOf()[type_].types = function;
    return *this;
}

OpImplRegisterV2 &OpImplRegisterV2::Tiling(TilingKernelFunc function, size_t most_bytes)
{
    FunctionsOf()[type_].tiling = function;
    FunctionsOf()[type_].tiling_capacity = most_bytes;
    return *this;
}

OpImplRegisterV2 &OpImplRegisterV2::TilingInputsDataDependency(std::initializer_list<int32_t> inputs)
{
    FunctionsOf()[type_].reads_values.assign(inputs.begin(), inputs.end());
    return *this;
}

OpImplRegisterV2 &OpImplRegisterV2::Parsed(std::function<std::shared_ptr<void>()> make,
                                           std::function<ge::graphStatus(TilingParseContext *)> parse)
{
    FunctionsOf()[type_].make_compile_info = std::move(make);
    FunctionsOf()[type_].parse = std::move(parse);
    return *this;
}

}  // namespace gert
