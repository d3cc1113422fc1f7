// Questions about shapes that host code of operator libraries asks.
#pragma once
#include <string>

#include "evokernel/operator/shape.h"
#include "evokernel/operator/types.h"

namespace Ops::Base {

inline bool IsUnknownRank(const gert::Shape &shape)
{
    return shape.GetDimNum() == 1 && shape.GetDim(0) == ge::UNKNOWN_DIM_NUM;
}
inline bool IsUnknownShape(const gert::Shape &shape)
{
    for (size_t i = 0; i < shape.GetDimNum(); ++i) {
        if (shape.GetDim(i) == ge::UNKNOWN_DIM) {
            return true;
        }
    }
    return false;
}
inline void SetUnknownRank(gert::Shape &shape)
{
    shape.SetDimNum(1);
    shape.SetDim(0, ge::UNKNOWN_DIM_NUM);
}
inline void SetUnknownShape(int64_t rank, gert::Shape &shape)
{
    shape.SetDimNum(static_cast<size_t>(rank));
    for (int64_t i = 0; i < rank; ++i) {
        shape.SetDim(static_cast<size_t>(i), ge::UNKNOWN_DIM);
    }
}
// A scalar as one element.
inline const gert::Shape &EnsureNotScalar(const gert::Shape &shape)
{
    static const gert::Shape one{1};
    return shape.IsScalar() ? one : shape;
}
inline std::string ToString(const gert::Shape &shape)
{
    std::string text = "[";
    for (size_t i = 0; i < shape.GetDimNum(); ++i) {
        text += (i == 0 ? "" : ", ") + std::to_string(shape.GetDim(i));
    }
    return text + "]";
}
inline std::string ToString(ge::DataType type) { return ge::TypeUtils::DataTypeToSerialString(type); }
inline std::string ToString(ge::Format format) { return ge::TypeUtils::FormatToSerialString(format); }

}  // namespace Ops::Base
