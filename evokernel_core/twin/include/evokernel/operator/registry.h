// Functions that are registered apart from an operator's description.
#pragma once
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "evokernel/operator/contexts.h"

namespace gert {

// Where the values that a tiling function reads may be; here always on the host.
enum class TilingPlacement : uint32_t { TILING_ON_HOST = 0, TILING_ON_AICPU = 1 };

// What is registered under one operator's type; the same entry whoever asks.
class OpImplRegisterV2 {
public:
    using InferShapeKernelFunc = ge::graphStatus (*)(InferShapeContext *);
    using InferShapeRangeKernelFunc = ge::graphStatus (*)(InferShapeRangeContext *);
    using InferDataTypeKernelFunc = ge::graphStatus (*)(InferDataTypeContext *);
    using TilingKernelFunc = ge::graphStatus (*)(TilingContext *);

    explicit OpImplRegisterV2(const char *type);
    OpImplRegisterV2 &InferShape(InferShapeKernelFunc function);
    OpImplRegisterV2 &InferShapeRange(InferShapeRangeKernelFunc) { return *this; }
    OpImplRegisterV2 &InferDataType(InferDataTypeKernelFunc function);
    OpImplRegisterV2 &Tiling(TilingKernelFunc function, size_t most_bytes = 2048);
    OpImplRegisterV2 &TilingInputsDataDependency(std::initializer_list<int32_t> inputs);
    OpImplRegisterV2 &TilingInputsDataDependency(std::initializer_list<int32_t> inputs,
                                                 std::initializer_list<TilingPlacement>)
    {
        return TilingInputsDataDependency(inputs);
    }
    OpImplRegisterV2 &InputsDataDependency(std::initializer_list<int32_t> inputs)
    {
        return TilingInputsDataDependency(inputs);
    }
    template <typename F>
    OpImplRegisterV2 &GenSimplifiedKey(F) { return *this; }
    template <typename F>
    OpImplRegisterV2 &OpExecuteFunc(F) { return *this; }
    template <typename T>
    OpImplRegisterV2 &PrivateAttr(const char *, T) { return *this; }
    OpImplRegisterV2 &PrivateAttr(const char *) { return *this; }
    template <typename Info, typename F>
    OpImplRegisterV2 &TilingParse(F function)
    {
        // A context is all that such a function takes, or one of an older kind with the same contents.
        return Parsed([]() -> std::shared_ptr<void> { return std::make_shared<Info>(); },
                      [function](TilingParseContext *context) { return Called(function, context); });
    }

private:
    template <typename Context>
    static ge::graphStatus Called(ge::graphStatus (*function)(Context *), TilingParseContext *context)
    {
        return function(reinterpret_cast<Context *>(context));
    }
    OpImplRegisterV2 &Parsed(std::function<std::shared_ptr<void>()> make,
                             std::function<ge::graphStatus(TilingParseContext *)> parse);
    std::string type_;
};

}  // namespace gert

namespace optiling {

// Host code of operators spells these without their namespace.
using std::map;
using std::string;
using std::vector;

}  // namespace optiling

#define EVK_REGISTERED_AGAIN(Type, line) \
    [[maybe_unused]] static const auto kEvokernelRegistered##Type##line = ::gert::OpImplRegisterV2(#Type)
#define EVK_REGISTERED(Type, line) EVK_REGISTERED_AGAIN(Type, line)
#define IMPL_OP(Type) EVK_REGISTERED(Type, __COUNTER__)
#define IMPL_OP_OPTILING(Type) EVK_REGISTERED(Type, __COUNTER__)
#define IMPL_OP_INFERSHAPE(Type) EVK_REGISTERED(Type, __COUNTER__)
#define IMPL_OP_INFERDATATYPE(Type) EVK_REGISTERED(Type, __COUNTER__)
