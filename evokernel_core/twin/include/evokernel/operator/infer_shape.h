// Shape functions that operators of a library share.
#pragma once
#include <algorithm>
#include <vector>

#include "evokernel/operator/contexts.h"
#include "util/shape_util.h"

namespace Ops::Base {

template <typename Rank, typename Axis> constexpr bool CheckAxisBounds(Rank rank, Axis axis)
{
    return static_cast<int64_t>(axis) >= -static_cast<int64_t>(rank) &&
           static_cast<int64_t>(axis) < static_cast<int64_t>(rank);
}

// Sizes are matched from the last one on; one that is 1, or is not there, is as long as the other's.
inline bool BroadcastShape(const std::vector<const gert::Shape *> &shapes, gert::Shape *result)
{
    size_t rank = 0;
    for (const gert::Shape *shape : shapes) {
        rank = std::max(rank, shape->GetDimNum());
    }
    std::vector<int64_t> sizes(rank, 1);
    for (const gert::Shape *shape : shapes) {
        if (IsUnknownRank(*shape)) {
            SetUnknownRank(*result);
            return true;
        }
        for (size_t i = 0; i < shape->GetDimNum(); ++i) {
            int64_t &size = sizes[rank - 1 - i];
            const int64_t other = shape->GetDim(shape->GetDimNum() - 1 - i);
            if (size == 1 || (size == ge::UNKNOWN_DIM && other != 1)) {
                size = other;
            } else if (other != 1 && other != ge::UNKNOWN_DIM && other != size) {
                return false;
            }
        }
    }
    result->SetDimNum(rank);
    for (size_t i = 0; i < rank; ++i) {
        result->SetDim(i, sizes[i]);
    }
    return true;
}
inline bool BroadcastShape(const gert::Shape *a, const gert::Shape *b, gert::Shape *result)
{
    return BroadcastShape({a, b}, result);
}

inline ge::graphStatus InferShape4Broadcast(gert::InferShapeContext *context, size_t count)
{
    std::vector<const gert::Shape *> shapes;
    for (size_t i = 0; i < count; ++i) {
        shapes.push_back(context->GetInputShape(i));
    }
    gert::Shape *result = context->GetOutputShape(0);
    const bool known = result != nullptr && std::find(shapes.begin(), shapes.end(), nullptr) == shapes.end();
    return known && BroadcastShape(shapes, result) ? ge::GRAPH_SUCCESS : ge::GRAPH_FAILED;
}
inline ge::graphStatus InferShape4Broadcast(gert::InferShapeContext *context)
{
    return InferShape4Broadcast(context, context->GetComputeNodeInputNum());
}

// Every output is like the first input.
inline ge::graphStatus InferShape4Elewise(gert::InferShapeContext *context)
{
    const gert::Shape *shape = context->GetInputShape(0);
    for (size_t i = 0; i < context->GetComputeNodeOutputNum(); ++i) {
        gert::Shape *result = context->GetOutputShape(i);
        if (shape == nullptr || result == nullptr) {
            return ge::GRAPH_FAILED;
        }
        *result = *shape;
    }
    return ge::GRAPH_SUCCESS;
}

template <typename T>
ge::graphStatus ReduceDims(const gert::Shape *shape, const T *axes, int32_t count, bool keep, gert::Shape *result)
{
    if (IsUnknownRank(*shape)) {
        SetUnknownRank(*result);
        return ge::GRAPH_SUCCESS;
    }
    const auto rank = static_cast<int64_t>(shape->GetDimNum());
    std::vector<bool> reduced(static_cast<size_t>(std::max<int64_t>(rank, 1)), false);
    for (int32_t i = 0; i < count; ++i) {
        if (!CheckAxisBounds(reduced.size(), axes[i])) {
            return ge::GRAPH_FAILED;
        }
        const auto axis = static_cast<int64_t>(axes[i]);
        reduced[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(reduced.size()) : axis)] = true;
    }
    const gert::Shape before = *shape;
    result->SetDimNum(0);
    for (int64_t i = 0; i < rank; ++i) {
        const bool gone = reduced[static_cast<size_t>(i)];
        if (!gone || keep) {
            result->AppendDim(gone ? 1 : before.GetDim(static_cast<size_t>(i)));
        }
    }
    return ge::GRAPH_SUCCESS;
}
template <typename T>
ge::graphStatus ReduceDimsWithKeepDims(const gert::Shape *shape, const T *axes, int32_t count, gert::Shape *result)
{
    return ReduceDims(shape, axes, count, true, result);
}
template <typename T>
ge::graphStatus ReduceDimsWithoutKeepDims(const gert::Shape *shape, const T *axes, int32_t count, gert::Shape *result)
{
    return ReduceDims(shape, axes, count, false, result);
}

}  // namespace Ops::Base
