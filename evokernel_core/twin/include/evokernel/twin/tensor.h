// LocalTensor and GlobalTensor.
#pragma once
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "evokernel/twin/api.h"
#include "evokernel/twin/shape.h"

namespace AscendC {

namespace twin = ::evokernel::twin;

template <typename T> constexpr uint64_t ToBits(T value)
{
    uint64_t bits = 0;
    if constexpr (sizeof(T) == 1) {
        bits = __builtin_bit_cast(uint8_t, value);
    } else if constexpr (sizeof(T) == 2) {
        bits = __builtin_bit_cast(uint16_t, value);
    } else if constexpr (sizeof(T) == 4) {
        bits = __builtin_bit_cast(uint32_t, value);
    } else {
        bits = __builtin_bit_cast(uint64_t, value);
    }
    return bits;
}

template <typename T> inline T FromBits(uint64_t bits)
{
    T value;
    std::memcpy(&value, &bits, sizeof(T));
    return value;
}

template <typename T> using PrimT = T;
template <typename T, typename U> struct IsSameType : std::is_same<T, U> {};

using TTagType = int32_t;

// The raw address of a tensor, for code that places one by hand.
struct TBuffAddr {
    uint32_t dataLen = 0;  // bytes
    uint32_t bufferAddr = 0;
    uint8_t *bufferHandle = nullptr;
    uint8_t logicPos = 0;
};

// A local tensor's place as code that writes `address_` spells it: the same bytes as LocalRef but for the type of
// the elements, which a tensor keeps whatever place it is given.
struct __attribute__((packed)) TensorPlace {
    uint32_t bufferAddr;
    uint32_t limit;
    uint32_t dataLen;
    uint16_t buffer;
    uint16_t generation;
    uint8_t logicPos;

    operator TBuffAddr() const { return TBuffAddr{dataLen, bufferAddr, nullptr, logicPos}; }
    TensorPlace &operator=(const TBuffAddr &place)
    {
        const twin::LocalRef view =
            twin::AllocStatic(static_cast<TPosition>(place.logicPos), place.bufferAddr, place.dataLen, twin::LastPlace());
        std::memcpy(static_cast<void *>(this), &view, sizeof(*this));
        return *this;
    }
};
static_assert(offsetof(TensorPlace, bufferAddr) == offsetof(twin::LocalRef, address));
static_assert(offsetof(TensorPlace, limit) == offsetof(twin::LocalRef, limit));
static_assert(offsetof(TensorPlace, dataLen) == offsetof(twin::LocalRef, bytes));
static_assert(offsetof(TensorPlace, buffer) == offsetof(twin::LocalRef, buffer));
static_assert(offsetof(TensorPlace, generation) == offsetof(twin::LocalRef, generation));
static_assert(offsetof(TensorPlace, logicPos) == offsetof(twin::LocalRef, position));
static_assert(sizeof(TensorPlace) == offsetof(twin::LocalRef, dtype));

template <typename T> class LocalTensor {
public:
    using PrimType = T;

    union {
        twin::LocalRef ref_ = {};
        TensorPlace address_;
    };

    LocalTensor() { ref_.dtype = twin::kDType<T>; }
    explicit LocalTensor(const twin::LocalRef &ref) : ref_(ref) { ref_.dtype = twin::kDType<T>; }
    // A tensor at a fixed byte address of the memory that `position` stands for.
    LocalTensor(TPosition position, uint32_t address, uint32_t elements, EVK_AT)
    {
        ref_ = twin::AllocStatic(position, address, twin::BytesOf<T>(elements), at);
        ref_.dtype = twin::kDType<T>;
    }

    // A tensor at a fixed byte address of the unified buffer, as long as the buffer goes.
    explicit LocalTensor(uint32_t address, EVK_AT)
    {
        const auto bytes = static_cast<uint32_t>(TOTAL_UB_SIZE) - (address < TOTAL_UB_SIZE ? address : 0);
        *this = LocalTensor(TPosition::VECCALC, address, bytes / sizeof(T), at);
    }
    explicit LocalTensor(const TBuffAddr &place, EVK_AT) { SetAddr(place, at); }

    void SetAddr(const TBuffAddr &place, EVK_AT)
    {
        *this = LocalTensor(static_cast<TPosition>(place.logicPos), place.bufferAddr, place.dataLen / sizeof(T), at);
    }
    template <typename U> void SetAddrWithOffset(LocalTensor<U> &source, uint32_t offset)
    {
        ref_ = source[offset].Ref();
        ref_.dtype = twin::kDType<T>;
    }
    TBuffAddr GetBufferAddr() const { return TBuffAddr{ref_.bytes, ref_.address, nullptr, ref_.position}; }

    // Runs over the whole of this tensor.
    LocalTensor &operator=(const twin::Expression<T> &sum)
    {
        twin::Vector({sum.op, ref_, sum.a, sum.b, {}, false}, twin::Form::Count(GetSize()), twin::LastPlace());
        return *this;
    }

    // One bit for each element of the operands.
    template <typename U> LocalTensor &operator=(const twin::Comparison<U> &both)
    {
        const auto count = static_cast<uint32_t>(both.a.bytes / twin::BytesOf<U>(1));
        twin::Compare(ref_, both.a, both.b, both.mode, twin::Form::Count(count), twin::LastPlace());
        return *this;
    }

    template <typename U> LocalTensor<U> ReinterpretCast() const { return LocalTensor<U>(ref_); }

    LocalTensor operator[](uint32_t offset) const
    {
        LocalTensor part = *this;
        const uint32_t bytes = static_cast<uint32_t>(twin::BytesOf<T>(offset));
        part.ref_.address += bytes;
        part.ref_.bytes = ref_.bytes > bytes ? ref_.bytes - bytes : 0;
        return part;
    }

    T GetValue(uint32_t index, EVK_AT) const { return FromBits<T>(twin::LocalGet(ref_, index, at)); }
    template <typename U> void SetValue(uint32_t index, U value, EVK_AT) const
    {
        twin::LocalSet(ref_, index, ToBits<T>(static_cast<T>(value)), at);
    }

    // tensor(i): a reference to one element.
    class Element {
    public:
        Element(const LocalTensor *tensor, uint32_t index, twin::At at) : tensor_(tensor), index_(index), at_(at) {}
        operator T() const { return tensor_->GetValue(index_, at_); }
        const Element &operator=(T value) const
        {
            tensor_->SetValue(index_, value, at_);
            return *this;
        }

    private:
        const LocalTensor *tensor_;
        uint32_t index_;
        twin::At at_;
    };
    Element operator()(uint32_t index, EVK_AT) const { return Element(this, index, at); }

    uint32_t GetSize() const { return static_cast<uint32_t>(twin::ElementsOf<T>(ref_.bytes)); }
    void SetSize(uint32_t elements) { ref_.bytes = static_cast<uint32_t>(twin::BytesOf<T>(elements)); }
    uint32_t GetLength() const { return ref_.bytes; }
    TPosition GetPosition() const { return static_cast<TPosition>(ref_.position); }
    __ubuf__ T *GetPhyAddr(uint32_t offset = 0) const
    {
        return reinterpret_cast<T *>(twin::LocalAddress(ref_)) + offset;
    }
    void SetBufferLen(uint32_t elements) { SetSize(elements); }
    void SetUserTag(const TTagType tag) { tag_ = tag; }
    TTagType GetUserTag() const { return tag_; }
    void SetShapeInfo(const ShapeInfo &shape) { shape_ = twin::KeepShape(shape); }
    ShapeInfo GetShapeInfo() const { return shape_ == nullptr ? ShapeInfo{} : *shape_; }

    // A data block to the line.
    void Print() { Print(GetSize()); }
    void Print(uint32_t elements)
    {
        constexpr uint32_t per_line = 32 / sizeof(T);
        for (uint32_t i = 0; i < elements; ++i) {
            std::printf(i % per_line == per_line - 1 || i + 1 == elements ? "%g\n" : "%g ",
                        static_cast<double>(static_cast<float>(GetValue(i))));
        }
    }
    // A name is a text of C or a std::string; no header of the interface needs <string>, which each kernel pays for.
    template <typename Name> auto ToFile(const Name &name) const -> decltype(name.c_str(), int32_t())
    {
        return ToFile(name.c_str());
    }
    int32_t ToFile(const char *name) const
    {
        std::FILE *file = std::fopen(name, "wb");
        if (file == nullptr) {
            return 1;
        }
        const size_t written = std::fwrite(GetPhyAddr(), 1, ref_.bytes, file);
        return std::fclose(file) == 0 && written == ref_.bytes ? 0 : 1;
    }

    const twin::LocalRef &Ref() const { return ref_; }

private:
    TTagType tag_ = 0;
    const ShapeInfo *shape_ = nullptr;
};

#define EVK_OPERATOR(Symbol, Name)                                                                       \
    template <typename T>                                                                                \
    twin::Expression<T> operator Symbol(const LocalTensor<T> &a, const LocalTensor<T> &b)                \
    {                                                                                                    \
        return {twin::Api::Name, a.Ref(), b.Ref()};                                                    \
    }
EVK_OPERATOR(+, Add)
EVK_OPERATOR(-, Sub)
EVK_OPERATOR(*, Mul)
EVK_OPERATOR(/, Div)
EVK_OPERATOR(&, And)
EVK_OPERATOR(|, Or)
#undef EVK_OPERATOR

#define EVK_COMPARISON(Symbol, Mode)                                                                     \
    template <typename T>                                                                                \
    twin::Comparison<T> operator Symbol(const LocalTensor<T> &a, const LocalTensor<T> &b)                \
    {                                                                                                    \
        return {CMPMODE::Mode, a.Ref(), b.Ref()};                                                        \
    }
EVK_COMPARISON(<, LT)
EVK_COMPARISON(>, GT)
EVK_COMPARISON(==, EQ)
EVK_COMPARISON(<=, LE)
EVK_COMPARISON(>=, GE)
EVK_COMPARISON(!=, NE)
#undef EVK_COMPARISON

template <typename T> class GlobalTensor {
public:
    using PrimType = T;

    union {
        twin::GlobalRef ref_ = {};
        __gm__ T *address_;  // the first of GlobalRef
    };
    static_assert(offsetof(twin::GlobalRef, address) == 0);

    GlobalTensor() { ref_.dtype = twin::kDType<T>; }

    void SetGlobalBuffer(__gm__ T *address, uint64_t elements)
    {
        SetGlobalBuffer(address);
        ref_.bytes = twin::BytesOf<T>(elements);
    }
    void SetGlobalBuffer(__gm__ T *address)
    {
        ref_.address = reinterpret_cast<uint8_t *>(address);
        ref_.bytes = 0;
    }

    GlobalTensor operator[](uint64_t offset) const
    {
        GlobalTensor part = *this;
        part.ref_.address += twin::BytesOf<T>(offset);
        const uint64_t skipped = twin::BytesOf<T>(offset);
        part.ref_.bytes = ref_.bytes > skipped ? ref_.bytes - skipped : 0;
        return part;
    }

    T GetValue(uint64_t index, EVK_AT) const
    {
        return FromBits<T>(twin::GlobalGet(ref_, static_cast<int64_t>(index), at));
    }
    void SetValue(uint64_t index, T value, EVK_AT) const
    {
        twin::GlobalSet(ref_, static_cast<int64_t>(index), ToBits<T>(value), at);
    }

    class Element {
    public:
        Element(const GlobalTensor *tensor, uint64_t index, twin::At at) : tensor_(tensor), index_(index), at_(at) {}
        operator T() const { return tensor_->GetValue(index_, at_); }
        const Element &operator=(T value) const
        {
            tensor_->SetValue(index_, value, at_);
            return *this;
        }

    private:
        const GlobalTensor *tensor_;
        uint64_t index_;
        twin::At at_;
    };
    Element operator()(uint64_t index, EVK_AT) const { return Element(this, index, at); }

    __gm__ const T *GetPhyAddr() const { return reinterpret_cast<const T *>(ref_.address); }
    __gm__ T *GetPhyAddr(uint64_t offset) const { return reinterpret_cast<T *>(ref_.address) + offset; }
    uint64_t GetSize() const { return twin::ElementsOf<T>(ref_.bytes); }
    template <CacheRwMode mode = CacheRwMode::RW> void SetL2CacheHint(CacheMode hint)
    {
        ref_.bypass_l2 = hint == CacheMode::CACHE_MODE_DISABLE;
    }
    void SetShapeInfo(const ShapeInfo &shape) { shape_ = twin::KeepShape(shape); }
    ShapeInfo GetShapeInfo() const { return shape_ == nullptr ? ShapeInfo{} : *shape_; }
    template <typename U> GlobalTensor<U> ReinterpretCast() const
    {
        GlobalTensor<U> tensor;
        tensor.SetGlobalBuffer(reinterpret_cast<U *>(ref_.address), ref_.bytes / sizeof(U));
        return tensor;
    }

    const twin::GlobalRef &Ref() const { return ref_; }

private:
    const ShapeInfo *shape_ = nullptr;
};

}  // namespace AscendC
