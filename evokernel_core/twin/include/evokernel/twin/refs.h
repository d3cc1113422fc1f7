// Type-erased operands: what the thin templates of the API hand to the compiled library.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "evokernel/twin/at.h"
#include "evokernel/twin/half.h"

namespace evokernel::twin {

enum class DType : uint8_t { S4, S8, U8, S16, U16, F16, BF16, S32, U32, F32, S64, U64, F64 };

template <typename T> struct DTypeTrait;
#define EVK_DTYPE(Type, Name)                              \
    template <> struct DTypeTrait<Type> {                  \
        static constexpr DType value = DType::Name;        \
    }
EVK_DTYPE(int4b_t, S4);
EVK_DTYPE(int8_t, S8);
EVK_DTYPE(uint8_t, U8);
EVK_DTYPE(bool, U8);
EVK_DTYPE(int16_t, S16);
EVK_DTYPE(uint16_t, U16);
EVK_DTYPE(half, F16);
EVK_DTYPE(bfloat16_t, BF16);
EVK_DTYPE(int32_t, S32);
EVK_DTYPE(uint32_t, U32);
EVK_DTYPE(float, F32);
EVK_DTYPE(long, S64);
EVK_DTYPE(unsigned long, U64);
EVK_DTYPE(long long, S64);
EVK_DTYPE(unsigned long long, U64);
EVK_DTYPE(double, F64);
#undef EVK_DTYPE

template <typename T> constexpr DType kDType = DTypeTrait<T>::value;

// Two elements of four bits share a byte.
template <typename T> constexpr uint64_t BytesOf(uint64_t elements)
{
    return std::is_same_v<T, int4b_t> ? elements / 2 : elements * sizeof(T);
}
template <typename T> constexpr uint64_t ElementsOf(uint64_t bytes)
{
    return std::is_same_v<T, int4b_t> ? bytes * 2 : bytes / sizeof(T);
}

// A tensor in a core's local memory. `limit` is the first byte after the buffer that it was taken
// from: sub-tensors may not reach beyond it. `buffer` and `generation` tell a tensor that was freed
// from one that is live (buffer 0: not from a queue).
struct LocalRef {
    uint32_t address = 0;
    uint32_t limit = 0;
    uint32_t bytes = 0;
    uint16_t buffer = 0;
    uint16_t generation = 0;
    uint8_t position = 0;
    DType dtype = DType::U8;
};

// A tensor in global memory. `bytes` is 0 where SetGlobalBuffer got no size.
struct GlobalRef {
    uint8_t *address = nullptr;
    uint64_t bytes = 0;
    DType dtype = DType::U8;
    bool bypass_l2 = false;
};

// A scalar operand in the type of the tensor it meets.
struct Scalar {
    double value = 0;
    int64_t integer = 0;
};

template <typename T> constexpr Scalar MakeScalar(T value)
{
    if constexpr (std::is_integral_v<T>) {
        return Scalar{static_cast<double>(value), static_cast<int64_t>(value)};
    } else {
        return Scalar{static_cast<double>(static_cast<float>(value)), 0};
    }
}

// How an instruction walks its operands: a count, or repeats under a mask.
struct Form {
    enum class Kind : uint8_t { Count, Mask, Bits, Register };

    Kind kind = Kind::Count;
    int64_t count = 0;      // elements (Count) or repeats (others)
    uint64_t mask[2] = {};  // Mask: mask[0] active lanes; Bits: the bit mask
    uint16_t dst_block = 1;
    uint16_t src0_block = 1;
    uint16_t src1_block = 1;
    uint16_t dst_repeat = 8;
    uint16_t src0_repeat = 8;
    uint16_t src1_repeat = 8;

    static Form Count(int64_t count)
    {
        Form form;
        form.count = count;
        return form;
    }
    template <typename Params> Form &Unary(const Params &params)
    {
        dst_block = params.dstBlkStride;
        src0_block = params.srcBlkStride;
        dst_repeat = params.dstRepStride;
        src0_repeat = params.srcRepStride;
        return *this;
    }
    template <typename Params> Form &Binary(const Params &params)
    {
        dst_block = params.dstBlkStride;
        src0_block = params.src0BlkStride;
        src1_block = params.src1BlkStride;
        dst_repeat = params.dstRepStride;
        src0_repeat = params.src0RepStride;
        src1_repeat = params.src1RepStride;
        return *this;
    }
};

inline Form MaskForm(bool set_mask, uint64_t mask, int64_t repeats)
{
    Form form;
    form.kind = set_mask ? Form::Kind::Mask : Form::Kind::Register;
    form.count = repeats;
    form.mask[0] = mask;
    return form;
}

inline Form BitsForm(bool set_mask, const uint64_t *mask, int64_t repeats, bool wide = true)
{
    Form form;
    form.kind = set_mask ? Form::Kind::Bits : Form::Kind::Register;
    form.count = repeats;
    if (set_mask && mask != nullptr) {
        form.mask[0] = mask[0];
        form.mask[1] = wide ? mask[1] : 0;
    }
    return form;
}

}  // namespace evokernel::twin
