// The attributes of an operator's call, by their places.
#pragma once
#include <vector>

#include "evokernel/operator/node.h"

namespace gert {

// Elements side by side whose type the reader knows.
class ContinuousVector {
public:
    ContinuousVector() = default;
    ContinuousVector(const void *data, size_t size) : data_(data), size_(size) {}
    size_t GetSize() const { return size_; }
    size_t GetCapacity() const { return size_; }
    const void *GetData() const { return data_; }

private:
    const void *data_ = nullptr;
    size_t size_ = 0;
};

template <typename T>
class TypedContinuousVector : public ContinuousVector {
public:
    using ContinuousVector::ContinuousVector;
    const T *GetData() const { return static_cast<const T *>(ContinuousVector::GetData()); }
};

class ContinuousVectorVector {
public:
    ContinuousVectorVector() = default;
    explicit ContinuousVectorVector(const std::vector<std::vector<int64_t>> &lists)
    {
        for (const auto &list : lists) {
            lists_.emplace_back(list.data(), list.size());
        }
    }
    size_t GetSize() const { return lists_.size(); }
    const ContinuousVector *Get(size_t index) const { return index < lists_.size() ? &lists_[index] : nullptr; }

private:
    std::vector<ContinuousVector> lists_;
};

class RuntimeAttrs {
public:
    explicit RuntimeAttrs(const std::vector<evokernel::twin::op::Value> &values);

    size_t GetAttrNum() const { return slots_.size(); }
    // The value in the form that its kind has; null where the call leaves it out.
    template <typename T>
    const T *GetAttrPointer(size_t index) const
    {
        return static_cast<const T *>(Address(index));
    }
    const int64_t *GetInt(size_t index) const { return GetAttrPointer<int64_t>(index); }
    const float *GetFloat(size_t index) const { return GetAttrPointer<float>(index); }
    const bool *GetBool(size_t index) const { return GetAttrPointer<bool>(index); }
    const char *GetStr(size_t index) const { return GetAttrPointer<char>(index); }
    const TypedContinuousVector<int64_t> *GetListInt(size_t index) const
    {
        return GetAttrPointer<TypedContinuousVector<int64_t>>(index);
    }
    const TypedContinuousVector<float> *GetListFloat(size_t index) const
    {
        return GetAttrPointer<TypedContinuousVector<float>>(index);
    }
    const ContinuousVectorVector *GetListListInt(size_t index) const
    {
        return GetAttrPointer<ContinuousVectorVector>(index);
    }

private:
    struct Slot {
        const void *value = nullptr;
        ContinuousVector list;
        ContinuousVectorVector lists;
        bool is_list = false;
        bool is_lists = false;
    };
    const void *Address(size_t index) const;
    std::vector<Slot> slots_;
};

}  // namespace gert
