// Tiling templates: which template arguments a kernel may have, and the tiling key of one choice.
//
// A key holds the parameters in the order of their declaration, the first in the lowest bits; a UINT
// parameter as its place among the values that are declared, any other one as its value.
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "evokernel/twin/data_types.h"

constexpr uint32_t ASCENDC_TPL_DTYPE = 0;
constexpr uint32_t ASCENDC_TPL_FORMAT = 1;
constexpr uint32_t ASCENDC_TPL_UINT = 2;
constexpr uint32_t ASCENDC_TPL_BOOL = 3;
constexpr uint32_t ASCENDC_TPL_KERNEL_TYPE = 4;
constexpr uint32_t ASCENDC_TPL_DETERMINISTIC = 5;
constexpr uint32_t ASCENDC_TPL_SHARED_KERNEL_TYPE = 6;
constexpr uint32_t ASCENDC_TPL_TILING_STRUCT = 7;

#define ASCENDC_TPL_1_BW 1
#define ASCENDC_TPL_2_BW 2
#define ASCENDC_TPL_4_BW 4
#define ASCENDC_TPL_8_BW 8
#define ASCENDC_TPL_UI_RANGE 0
#define ASCENDC_TPL_UI_LIST 1
#define ASCENDC_TPL_UI_MIX 2
#define ASCENDC_TPL_INPUT(index) (0x10000 + (index))
#define ASCENDC_TPL_OUTPUT(index) (0x20000 + (index))
#define ASCENDC_TPL_AIV_ONLY 0
#define ASCENDC_TPL_AIC_ONLY 1
#define ASCENDC_TPL_MIX_AIV_1_0 2
#define ASCENDC_TPL_MIX_AIC_1_0 3
#define ASCENDC_TPL_MIX_AIC_1_1 4
#define ASCENDC_TPL_MIX_AIC_1_2 5
#define ASCENDC_TPL_AICORE 6
#define ASCENDC_TPL_VECTORCORE 7
#define ASCENDC_TPL_MIX_AICORE 8
#define ASCENDC_TPL_MIX_VECTOR_CORE 9

struct ParamStruct {
    const char *name;
    uint32_t paramType;
    uint8_t bitWidth;
    std::vector<uint64_t> vals;
    const char *macroType;

    template <typename... Values>
    ParamStruct(const char *name_, uint32_t type, uint8_t bits, const char *macro, Values... values)
        : name(name_), paramType(type), bitWidth(bits), vals{static_cast<uint64_t>(values)...}, macroType(macro)
    {
    }
};
using TilingDeclareParams = std::vector<ParamStruct>;
using TilingSelectParams = std::vector<std::vector<ParamStruct>>;

#define ASCENDC_TPL_DTYPE_DECL(x, ...) \
    ParamStruct { #x, ASCENDC_TPL_DTYPE, ASCENDC_TPL_8_BW, "DECL", __VA_ARGS__ }
#define ASCENDC_TPL_DATATYPE_DECL(x, ...) ASCENDC_TPL_DTYPE_DECL(x, __VA_ARGS__)
#define ASCENDC_TPL_FORMAT_DECL(x, ...) \
    ParamStruct { #x, ASCENDC_TPL_FORMAT, ASCENDC_TPL_8_BW, "DECL", __VA_ARGS__ }
#define ASCENDC_TPL_UINT_DECL(x, bits, ...) \
    ParamStruct { #x, ASCENDC_TPL_UINT, bits, "DECL", __VA_ARGS__ }
#define ASCENDC_TPL_BOOL_DECL(x, ...) \
    ParamStruct { #x, ASCENDC_TPL_BOOL, ASCENDC_TPL_1_BW, "DECL", __VA_ARGS__ }
#define ASCENDC_TPL_KERNEL_TYPE_DECL(x, ...) \
    ParamStruct { #x, ASCENDC_TPL_SHARED_KERNEL_TYPE, ASCENDC_TPL_8_BW, "DECL", __VA_ARGS__ }

#define ASCENDC_TPL_DTYPE_SEL(x, ...) \
    ParamStruct { #x, ASCENDC_TPL_DTYPE, ASCENDC_TPL_8_BW, "SEL", __VA_ARGS__ }
#define ASCENDC_TPL_DATATYPE_SEL(x, ...) ASCENDC_TPL_DTYPE_SEL(x, __VA_ARGS__)
#define ASCENDC_TPL_FORMAT_SEL(x, ...) \
    ParamStruct { #x, ASCENDC_TPL_FORMAT, ASCENDC_TPL_8_BW, "SEL", __VA_ARGS__ }
#define ASCENDC_TPL_UINT_SEL(x, ...) \
    ParamStruct { #x, ASCENDC_TPL_UINT, 0, "SEL", __VA_ARGS__ }
#define ASCENDC_TPL_BOOL_SEL(x, ...) \
    ParamStruct { #x, ASCENDC_TPL_BOOL, ASCENDC_TPL_1_BW, "SEL", __VA_ARGS__ }
#define ASCENDC_TPL_TILING_STRUCT_SEL(x, ...) \
    ParamStruct { #x, ASCENDC_TPL_TILING_STRUCT, 0, "SEL" }
#define ASCENDC_TPL_KERNEL_TYPE_SEL(...) \
    ParamStruct { "kernel_type", ASCENDC_TPL_KERNEL_TYPE, ASCENDC_TPL_8_BW, "SEL", __VA_ARGS__ }
#define ASCENDC_TPL_DETERMINISTIC_SEL(...) \
    ParamStruct { "deterministic", ASCENDC_TPL_DETERMINISTIC, ASCENDC_TPL_1_BW, "SEL", __VA_ARGS__ }
#define ASCENDC_TPL_SHARED_KERNEL_TYPE_SEL(x, ...) \
    ParamStruct { #x, ASCENDC_TPL_SHARED_KERNEL_TYPE, ASCENDC_TPL_8_BW, "SEL", __VA_ARGS__ }

#define ASCENDC_TPL_ARGS_DECL(x, ...)                                   \
    [[maybe_unused]] static const char *const kEvokernelTemplate = #x; \
    [[maybe_unused]] static TilingDeclareParams g_tilingDeclareParams{__VA_ARGS__}
#define ASCENDC_TPL_ARGS_SEL(...) \
    { __VA_ARGS__ }
#ifdef EVOKERNEL_OPERATOR_HOST
#define EVK_TEMPLATE_KNOWN                                \
    ;                                                     \
    [[maybe_unused]] static const bool kEvokernelKnown = \
        AscendC::DeclareTemplate(kEvokernelTemplate, g_tilingDeclareParams, g_tilingSelectParams)
#else
#define EVK_TEMPLATE_KNOWN
#endif
#define ASCENDC_TPL_SEL(...) \
    [[maybe_unused]] static TilingSelectParams g_tilingSelectParams{__VA_ARGS__} EVK_TEMPLATE_KNOWN

namespace AscendC {

constexpr uint64_t INVALID_TILING_KEY = ~uint64_t{0};

// The key, or INVALID_TILING_KEY where the values are not among what is declared and selected.
uint64_t EncodeTilingKey(const TilingDeclareParams &declared, const TilingSelectParams &selected,
                         std::vector<uint64_t> values);

// What is declared of the kernel `name`, for the program that tells of an operator's host code.
bool DeclareTemplate(const char *name, const TilingDeclareParams &declared, const TilingSelectParams &selected);

}  // namespace AscendC

namespace evokernel::twin {

// One parameter of a kernel's template: its kind (ASCENDC_TPL_x), bits of the key, and the values in its order.
struct TemplateParameter {
    uint32_t kind;
    uint32_t bits;
    std::vector<uint64_t> values;
};
// `first_key`: the key of the first choice that is selected.
struct TemplateOf {
    std::string name;
    std::vector<TemplateParameter> parameters;
    uint64_t first_key;
};
std::vector<TemplateOf> &Templates();

template <typename... Numbers>
std::vector<uint64_t> Values(Numbers... numbers)
{
    return {static_cast<uint64_t>(numbers)...};
}

}  // namespace evokernel::twin

#define GET_TPL_TILING_KEY(...) \
    AscendC::EncodeTilingKey(g_tilingDeclareParams, g_tilingSelectParams, evokernel::twin::Values(__VA_ARGS__))
#define ASCENDC_TPL_SEL_PARAM(context, ...) (context)->SetTilingKey(GET_TPL_TILING_KEY(__VA_ARGS__))
