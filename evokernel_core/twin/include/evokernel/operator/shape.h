// Shapes and tensors as tiling and shape functions of an operator see them.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "evokernel/operator/types.h"

namespace gert {

// At most 25 dimensions; none for a scalar.
class Shape {
public:
    static constexpr size_t kMaxDimNum = 25;
    static constexpr int64_t kInvalidDimValue = INT64_MIN;

    Shape() = default;
    Shape(std::initializer_list<int64_t> dims)
    {
        for (const int64_t dim : dims) {
            AppendDim(dim);
        }
    }

    size_t GetDimNum() const { return count_; }
    void SetDimNum(size_t count) { count_ = count < kMaxDimNum ? count : kMaxDimNum; }
    int64_t GetDim(size_t index) const { return index < kMaxDimNum ? dims_[index] : kInvalidDimValue; }
    void SetDim(size_t index, int64_t value)
    {
        if (index < kMaxDimNum) {
            dims_[index] = value;
        }
    }
    Shape &AppendDim(int64_t value)
    {
        if (count_ < kMaxDimNum) {
            dims_[count_++] = value;
        }
        return *this;
    }
    const int64_t &operator[](size_t index) const { return dims_[index]; }
    int64_t &operator[](size_t index) { return dims_[index]; }
    bool IsScalar() const { return count_ == 0; }
    void SetScalar() { count_ = 0; }
    // The product, 1 for a scalar.
    int64_t GetShapeSize() const
    {
        int64_t size = 1;
        for (size_t i = 0; i < count_; ++i) {
            size *= dims_[i];
        }
        return size;
    }
    bool operator==(const Shape &other) const
    {
        bool same = count_ == other.count_;
        for (size_t i = 0; same && i < count_; ++i) {
            same = dims_[i] == other.dims_[i];
        }
        return same;
    }
    bool operator!=(const Shape &other) const { return !(*this == other); }

private:
    size_t count_ = 0;
    std::array<int64_t, kMaxDimNum> dims_{};
};

// A shape as the network has it, and as it lies in memory.
class StorageShape {
public:
    StorageShape() = default;
    StorageShape(std::initializer_list<int64_t> origin, std::initializer_list<int64_t> storage)
        : origin_(origin), storage_(storage)
    {
    }
    const Shape &GetOriginShape() const { return origin_; }
    const Shape &GetShape() const { return storage_; }
    const Shape &GetStorageShape() const { return storage_; }
    Shape &MutableOriginShape() { return origin_; }
    Shape &MutableStorageShape() { return storage_; }
    bool operator==(const StorageShape &other) const
    {
        return origin_ == other.origin_ && storage_ == other.storage_;
    }
    bool operator!=(const StorageShape &other) const { return !(*this == other); }

private:
    Shape origin_;
    Shape storage_;
};

class StorageFormat {
public:
    StorageFormat() = default;
    StorageFormat(ge::Format origin, ge::Format storage) : origin_(origin), storage_(storage) {}
    ge::Format GetOriginFormat() const { return origin_; }
    ge::Format GetStorageFormat() const { return storage_; }

private:
    ge::Format origin_ = ge::FORMAT_ND;
    ge::Format storage_ = ge::FORMAT_ND;
};

// What is known of a tensor before its shape is.
class CompileTimeTensorDesc {
public:
    CompileTimeTensorDesc() = default;
    CompileTimeTensorDesc(ge::DataType type, StorageFormat format) : type_(type), format_(format) {}
    ge::DataType GetDataType() const { return type_; }
    const StorageFormat &GetFormat() const { return format_; }
    ge::Format GetOriginFormat() const { return format_.GetOriginFormat(); }
    ge::Format GetStorageFormat() const { return format_.GetStorageFormat(); }

private:
    ge::DataType type_ = ge::DT_UNDEFINED;
    StorageFormat format_;
};

// A tensor whose elements are on the host where the operator depends on their values, else null.
class Tensor {
public:
    Tensor() = default;
    Tensor(const StorageShape &shape, const CompileTimeTensorDesc &desc, const void *data, size_t bytes)
        : shape_(shape), desc_(desc), data_(data), bytes_(bytes)
    {
    }
    const Shape &GetOriginShape() const { return shape_.GetOriginShape(); }
    const Shape &GetStorageShape() const { return shape_.GetStorageShape(); }
    const StorageShape &GetShape() const { return shape_; }
    int64_t GetShapeSize() const { return shape_.GetStorageShape().GetShapeSize(); }
    size_t GetSize() const { return bytes_; }
    ge::DataType GetDataType() const { return desc_.GetDataType(); }
    ge::Format GetOriginFormat() const { return desc_.GetOriginFormat(); }
    ge::Format GetStorageFormat() const { return desc_.GetStorageFormat(); }
    const StorageFormat &GetFormat() const { return desc_.GetFormat(); }
    const void *GetAddr() const { return data_; }
    template <typename T>
    const T *GetData() const
    {
        return static_cast<const T *>(data_);
    }

private:
    StorageShape shape_;
    CompileTimeTensorDesc desc_;
    const void *data_ = nullptr;
    size_t bytes_ = 0;
};

}  // namespace gert
