// Types that tiling functions on the host share: element types and shapes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "graph/types.h"

namespace ge {

class Shape {
public:
    Shape() = default;
    explicit Shape(const std::vector<int64_t> &dims) : dims_(dims) {}
    Shape(std::initializer_list<int64_t> dims) : dims_(dims) {}

    size_t GetDimNum() const { return dims_.size(); }
    int64_t GetDim(size_t index) const { return index < dims_.size() ? dims_[index] : 0; }
    bool SetDim(size_t index, int64_t value)
    {
        if (index >= dims_.size()) {
            return false;
        }
        dims_[index] = value;
        return true;
    }
    std::vector<int64_t> GetDims() const { return dims_; }
    // The product; 1 for a scalar.
    int64_t GetShapeSize() const
    {
        int64_t size = 1;
        for (const int64_t dim : dims_) {
            size *= dim;
        }
        return size;
    }

private:
    std::vector<int64_t> dims_;
};

}  // namespace ge

namespace AscendC {

using TensorShape = ge::Shape;
using TensorDataType = ge::DataType;

}  // namespace AscendC
