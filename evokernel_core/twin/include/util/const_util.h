// Values that a call knows before it runs, out of tensors of whole numbers.
#pragma once
#include <vector>

#include "evokernel/operator/contexts.h"

namespace Ops::Base {

template <typename T> bool AppendIntegers(const gert::Tensor &tensor, std::vector<int64_t> *values)
{
    const T *data = tensor.GetData<T>();
    for (int64_t i = 0; data != nullptr && i < tensor.GetShapeSize(); ++i) {
        values->push_back(static_cast<int64_t>(data[i]));
    }
    return data != nullptr;
}
// False where the tensor is not there, its values are not known, or they are no whole numbers.
inline bool ReadIntegers(const gert::Tensor *tensor, std::vector<int64_t> *values)
{
    switch (tensor == nullptr ? ge::DT_UNDEFINED : tensor->GetDataType()) {
        case ge::DT_INT32: return AppendIntegers<int32_t>(*tensor, values);
        case ge::DT_INT64: return AppendIntegers<int64_t>(*tensor, values);
        case ge::DT_UINT32: return AppendIntegers<uint32_t>(*tensor, values);
        case ge::DT_UINT64: return AppendIntegers<uint64_t>(*tensor, values);
        default: return false;
    }
}
template <typename Context, typename T> bool GetConstInt(const Context *context, int64_t index, T &value)
{
    std::vector<int64_t> values;
    if (context == nullptr || !ReadIntegers(context->GetInputTensor(static_cast<size_t>(index)), &values) ||
        values.empty()) {
        return false;
    }
    value = static_cast<T>(values.front());
    return true;
}
template <typename Context> bool GetConstIntToShape(const Context *context, int64_t index, gert::Shape &shape)
{
    std::vector<int64_t> values;
    if (context == nullptr || !ReadIntegers(context->GetInputTensor(static_cast<size_t>(index)), &values)) {
        return false;
    }
    shape.SetDimNum(0);
    for (int64_t value : values) {
        shape.AppendDim(value);
    }
    return true;
}

}  // namespace Ops::Base
