// The log and the checks of operator libraries' host code.
#pragma once
#include <algorithm>
#include <cmath>

#include "evokernel/operator/log.h"
#include "util/shape_util.h"

namespace Ops::Base {

// What a message calls the operator: its name, or that of its context.
inline std::string GetOpInfo(const std::string &name) { return name; }
inline std::string GetOpInfo(const char *name) { return name == nullptr ? "nil" : name; }
template <typename Context> std::string GetOpInfo(const Context *context)
{
    return context == nullptr ? "nil" : GetOpInfo(context->GetNodeName());
}
inline const char *GetSafeStr(const std::string &text) { return text.c_str(); }
inline const char *GetSafeStr(const char *text) { return text; }

}  // namespace Ops::Base

#define D_OP_LOGD(...) ::evokernel::twin::op::Unsaid(__VA_ARGS__)
#define D_OP_LOGI(...) ::evokernel::twin::op::Unsaid(__VA_ARGS__)
#define D_OP_LOGW(...) ::evokernel::twin::op::Unsaid(__VA_ARGS__)
#define D_OP_LOGE(...) ::evokernel::twin::op::Fault(__VA_ARGS__)
#define REPORT_INNER_ERR_MSG(...) ::evokernel::twin::op::Fault(__VA_ARGS__)
#define REPORT_INNER_ERROR(...) ::evokernel::twin::op::Fault(__VA_ARGS__)
#define REPORT_CALL_ERROR(...) ::evokernel::twin::op::Fault(__VA_ARGS__)

#define OP_LOGD(...) ::evokernel::twin::op::Unsaid(__VA_ARGS__)
#define OP_LOGD_FULL(...) ::evokernel::twin::op::Unsaid(__VA_ARGS__)
#define OP_LOGI(...) ::evokernel::twin::op::Unsaid(__VA_ARGS__)
#define OP_LOGW(...) ::evokernel::twin::op::Unsaid(__VA_ARGS__)
#define OP_EVENT(...) ::evokernel::twin::op::Unsaid(__VA_ARGS__)
#define OP_LOGE(...) ::evokernel::twin::op::Fault(__VA_ARGS__)
#define OP_LOGE_WITHOUT_REPORT(...) ::evokernel::twin::op::Fault(__VA_ARGS__)
#define OP_LOGE_WITH_INVALID_INPUT(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_FOR_FILE_OPEN(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_FOR_FILE_PARSE(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_FOR_FILE_PATH(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_ARGUMENT_WITH_REASON(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_CONFIG(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_CONFIGS_WITH_REASON(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_CONFIG_WITH_REASON(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_GRAPH_NODE(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_STRIDE(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_LIBOPAPI_REPORT(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_WITH_INVALID_ATTR(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_WITH_INVALID_ATTR_SIZE(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_WITH_INVALID_INPUT_DTYPE(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_WITH_INVALID_INPUT_FORMAT(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_WITH_INVALID_INPUT_SHAPE(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_WITH_INVALID_INPUT_SHAPESIZE(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_VALUE(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_VALUE_WITH_REASON(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_VALUES(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_VALUES_WITH_REASON(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_DTYPE(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_DTYPE_WITH_REASON(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_DTYPES(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_DTYPES_WITH_REASON(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPE(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPE_WITH_REASON(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPES(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPES_WITH_REASON(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPEDIM(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPEDIM_WITH_REASON(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPEDIMS(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPEDIMS_WITH_REASON(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPESIZE(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPESIZE_WITH_REASON(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPESIZES(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPESIZES_WITH_REASON(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_FORMAT(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_FORMAT_WITH_REASON(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_FORMATS(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_FORMATS_WITH_REASON(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_LISTSIZE(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_LISTSIZE_WITH_REASON(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_TENSORNUM(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_TENSORNUMS(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_TENSORNUMS_WITH_REASON(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_TENSORNUM_WITH_REASON(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)

// The names that they had before.
#define OpLogSub(module, level, ...) \
    ((level) == DLOG_ERROR ? ::evokernel::twin::op::Fault(__VA_ARGS__) : ::evokernel::twin::op::Unsaid(__VA_ARGS__))
#define OPS_REPORT_VECTOR_INNER_ERR(...) ::evokernel::twin::op::Fault(__VA_ARGS__)
#define OPS_REPORT_CUBE_INNER_ERR(...) ::evokernel::twin::op::Fault(__VA_ARGS__)
#define VECTOR_INNER_ERR_REPORT_TILIING(...) ::evokernel::twin::op::Fault(__VA_ARGS__)
#define CUBE_INNER_ERR_REPORT(...) ::evokernel::twin::op::Fault(__VA_ARGS__)

#define OP_CHECK_IF(condition, complaint, leave) \
    do {                                         \
        if (condition) {                         \
            complaint;                           \
            leave;                               \
        }                                        \
    } while (false)
#define OP_CHECK_NULL_WITH_CONTEXT_RET(context, pointer, result)         \
    do {                                                                 \
        if ((pointer) == nullptr) {                                      \
            ::evokernel::twin::op::Invalid(context, #pointer, "is null"); \
            return result;                                               \
        }                                                                \
    } while (false)
#define OP_CHECK_NULL_WITH_CONTEXT(context, pointer) \
    OP_CHECK_NULL_WITH_CONTEXT_RET(context, pointer, ::ge::GRAPH_FAILED)
