// ListTensorDesc: a dynamic list of tensors in global memory. The block starts with the offset in bytes of
// the data addresses; before them lies, for each tensor, a word with the number of its dimensions (low
// half) and its index (high half), followed by one word for each dimension.
#pragma once
#include "evokernel/twin/tensor.h"

namespace AscendC {

template <typename T> class TensorDesc {
public:
    void SetShapeAddr(uint64_t *address) { shape_ = address; }
    uint64_t GetDim() const { return dims_; }
    uint64_t GetIndex() const { return index_; }
    uint64_t GetShape(uint32_t offset) const { return shape_[offset]; }
    T *GetDataPtr() const { return data_; }
    GlobalTensor<T> GetDataObj() const
    {
        GlobalTensor<T> tensor;
        tensor.SetGlobalBuffer(data_);
        return tensor;
    }

private:
    friend class ListTensorDesc;

    uint64_t *shape_ = nullptr;
    uint64_t dims_ = 0;
    uint64_t index_ = 0;
    T *data_ = nullptr;
};

class ListTensorDesc {
public:
    ListTensorDesc() = default;
    explicit ListTensorDesc(__gm__ void *data, uint32_t length = 0xffffffff, uint32_t shapeSize = 0xffffffff, EVK_AT)
    {
        Init(data, length, shapeSize, at);
    }
    void Init(__gm__ void *data, uint32_t length = 0xffffffff, uint32_t shapeSize = 0xffffffff, EVK_AT)
    {
        words_ = static_cast<uint64_t *>(data);
        addresses_ = Word(0, at) / sizeof(uint64_t);
        size_ = 0;
        for (uint64_t at_word = 1; at_word < addresses_; at_word += 1 + DimsAt(at_word, at)) {
            ++size_;
        }
        twin::CheckTensorList(length, shapeSize, (addresses_ + size_) * sizeof(uint64_t), size_, at);
    }
    template <class T> void GetDesc(TensorDesc<T> &desc, uint32_t index, EVK_AT) const
    {
        uint64_t word = 1;
        for (uint32_t i = 0; i < index; ++i) {
            word += 1 + DimsAt(word, at);
        }
        desc.dims_ = DimsAt(word, at);
        desc.index_ = Word(word, at) >> 32;
        for (uint64_t i = 0; i < desc.dims_ && desc.shape_ != nullptr; ++i) {
            desc.shape_[i] = Word(word + 1 + i, at);
        }
        desc.data_ = GetDataPtr<T>(index, at);
    }
    template <class T> T *GetDataPtr(uint32_t index, EVK_AT) const
    {
        return reinterpret_cast<T *>(Word(addresses_ + index, at));
    }
    uint32_t GetSize() const { return size_; }

private:
    uint64_t Word(uint64_t index, twin::At at) const { return twin::GlobalWord(words_ + index, at); }
    uint64_t DimsAt(uint64_t word, twin::At at) const { return Word(word, at) & 0xffffffff; }

    uint64_t *words_ = nullptr;
    uint64_t addresses_ = 0;
    uint32_t size_ = 0;
};

}  // namespace AscendC
