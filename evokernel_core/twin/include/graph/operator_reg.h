// What graphs know of an operator, as prototypes register it. No kernel needs it: here a prototype is a node's class
// and its shape function a function; neither is called.
#pragma once
#include "graph/operator.h"

namespace evokernel::twin::op {

struct Prototype {
    Prototype &Part(const char *) { return *this; }
};

}  // namespace evokernel::twin::op

#define REG_OP(Name)                                    \
    namespace op {                                      \
    class Name : public ::ge::Operator {                \
    public:                                             \
        Name() : Operator(#Name, #Name) {}              \
        explicit Name(const char *name) : Operator(name, #Name) {} \
                                                        \
    private:                                            \
        static void Declare()                           \
        {                                               \
            ::evokernel::twin::op::Prototype()
#define INPUT(name, ...) Part(#name)
#define OPTIONAL_INPUT(name, ...) Part(#name)
#define DYNAMIC_INPUT(name, ...) Part(#name)
#define OUTPUT(name, ...) Part(#name)
#define OPTIONAL_OUTPUT(name, ...) Part(#name)
#define DYNAMIC_OUTPUT(name, ...) Part(#name)
#define ATTR(name, ...) Part(#name)
#define REQUIRED_ATTR(name, ...) Part(#name)
#define DATATYPE(name, ...) Part(#name)
#define GRAPH(name) Part(#name)
#define DYNAMIC_GRAPH(name) Part(#name)
#define OP_END_FACTORY_REG(Name) \
    Part(#Name);                 \
    }                            \
    }                            \
    ;                            \
    }

#define IMPLEMT_INFERFUNC(Name, function) static ::ge::graphStatus function([[maybe_unused]] ::ge::Operator &op)
#define IMPLEMT_COMMON_INFERFUNC(function) static ::ge::graphStatus function([[maybe_unused]] ::ge::Operator &op)
#define IMPLEMT_VERIFIER(Name, function) static ::ge::graphStatus function([[maybe_unused]] ::ge::Operator &op)
#define EVK_FUNCTION_OF(Kind, Name, function) [[maybe_unused]] static const auto evokernel##Kind##Name = &function;
#define INFER_FUNC_REG(Name, function) EVK_FUNCTION_OF(Infer, Name, function)
#define COMMON_INFER_FUNC_REG(Name, function) EVK_FUNCTION_OF(Infer, Name, function)
#define VERIFY_FUNC_REG(Name, function) EVK_FUNCTION_OF(Verify, Name, function)
