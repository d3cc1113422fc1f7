// The log and the checks of operator libraries' host code.
#pragma once
#include "evokernel/operator/log.h"
#include "util/shape_util.h"

#define OP_LOGD(...) ::evokernel::twin::op::Unsaid(__VA_ARGS__)
#define OP_LOGD_FULL(...) ::evokernel::twin::op::Unsaid(__VA_ARGS__)
#define OP_LOGI(...) ::evokernel::twin::op::Unsaid(__VA_ARGS__)
#define OP_LOGW(...) ::evokernel::twin::op::Unsaid(__VA_ARGS__)
#define OP_EVENT(...) ::evokernel::twin::op::Unsaid(__VA_ARGS__)
#define OP_LOGE(...) ::evokernel::twin::op::Fault(__VA_ARGS__)
#define OP_LOGE_WITHOUT_REPORT(...) ::evokernel::twin::op::Fault(__VA_ARGS__)
#define OP_LOGE_WITH_INVALID_INPUT(...) ::evokernel::twin::op::Invalid(__VA_ARGS__)
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
