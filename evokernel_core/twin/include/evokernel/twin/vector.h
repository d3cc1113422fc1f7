// Element-wise instructions: count, contiguous-mask, bit-mask and operator forms.
#pragma once
#include "evokernel/twin/api_vector.h"
#include "evokernel/twin/tensor.h"

namespace AscendC {

namespace detail {

inline twin::VecCall Call(twin::Api op, const twin::LocalRef &dst, const twin::LocalRef &src0,
                          const twin::LocalRef &src1, twin::Scalar scalar = {})
{
    return twin::VecCall{op, dst, src0, src1, scalar, false};
}

}  // namespace detail

#define EVK_BINARY(Name, Op)                                                                                         \
    template <typename T>                                                                                            \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,                     \
              const int32_t &count, EVK_AT)                                                                          \
    {                                                                                                                \
        twin::Vector(detail::Call(twin::Api::Op, dst.Ref(), src0.Ref(), src1.Ref()), twin::Form::Count(count), at); \
    }                                                                                                                \
    template <typename T, bool isSetMask = true>                                                                     \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1, uint64_t mask,      \
              const int32_t repeatTime, const BinaryRepeatParams &params, EVK_AT)                                    \
    {                                                                                                                \
        twin::Vector(detail::Call(twin::Api::Op, dst.Ref(), src0.Ref(), src1.Ref()),                               \
                     twin::MaskForm(isSetMask, mask, repeatTime).Binary(params), at);                                \
    }                                                                                                                \
    template <typename T, bool isSetMask = true>                                                                     \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,                     \
              const uint64_t mask[], const int32_t repeatTime, const BinaryRepeatParams &params, EVK_AT)             \
    {                                                                                                                \
        twin::Vector(detail::Call(twin::Api::Op, dst.Ref(), src0.Ref(), src1.Ref()),                               \
                     twin::BitsForm(isSetMask, mask, repeatTime, sizeof(T) <= 2).Binary(params), at);                \
    }                                                                                                                \
    template <typename T, bool isSetMask = true, typename C, EVK_ONLY(C, int32_t)>                                   \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1, const C &count)     \
    {                                                                                                                \
        Name(dst, src0, src1, count, twin::LastPlace());                                                             \
    }                                                                                                                \
    template <typename T, bool isSetMask = true, typename R, EVK_ONLY(R, uint8_t)>                                   \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1, uint64_t mask,      \
              const R repeatTime, const BinaryRepeatParams &params, EVK_AT)                                          \
    {                                                                                                                \
        Name<T, isSetMask>(dst, src0, src1, mask, static_cast<int32_t>(repeatTime), params, at);                     \
    }                                                                                                                \
    template <typename T, bool isSetMask = true, typename M, typename R, EVK_ONLY(M, uint64_t), EVK_ONLY(R, uint8_t)>\
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1, M mask,             \
              const R repeatTime, const BinaryRepeatParams &params)                                                  \
    {                                                                                                                \
        Name<T, isSetMask>(dst, src0, src1, mask, static_cast<int32_t>(repeatTime), params, twin::LastPlace());      \
    }

#define EVK_UNARY(Name, Op)                                                                                          \
    template <typename T>                                                                                            \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const int32_t &count, EVK_AT)                    \
    {                                                                                                                \
        twin::Vector(detail::Call(twin::Api::Op, dst.Ref(), src.Ref(), {}), twin::Form::Count(count), at);         \
    }                                                                                                                \
    template <typename T, bool isSetMask = true>                                                                     \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, uint64_t mask, const int32_t repeatTime,         \
              const UnaryRepeatParams &params, EVK_AT)                                                               \
    {                                                                                                                \
        twin::Vector(detail::Call(twin::Api::Op, dst.Ref(), src.Ref(), {}),                                        \
                     twin::MaskForm(isSetMask, mask, repeatTime).Unary(params), at);                                 \
    }                                                                                                                \
    template <typename T, bool isSetMask = true>                                                                     \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint64_t mask[], const int32_t repeatTime, \
              const UnaryRepeatParams &params, EVK_AT)                                                               \
    {                                                                                                                \
        twin::Vector(detail::Call(twin::Api::Op, dst.Ref(), src.Ref(), {}),                                        \
                     twin::BitsForm(isSetMask, mask, repeatTime, sizeof(T) <= 2).Unary(params), at);                 \
    }                                                                                                                \
    template <typename T, bool isSetMask = true, typename C, EVK_ONLY(C, int32_t)>                                   \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const C &count)                                  \
    {                                                                                                                \
        Name(dst, src, count, twin::LastPlace());                                                                    \
    }

// The scalar's type must be the element type, as on the device.
#define EVK_UNARY_SCALAR(Name, Op)                                                                                   \
    template <typename T, bool isSetMask = true>                                                                     \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &scalarValue, const int32_t &count,      \
              EVK_AT)                                                                                                \
    {                                                                                                                \
        twin::Vector(detail::Call(twin::Api::Op, dst.Ref(), src.Ref(), {}, twin::MakeScalar(scalarValue)),         \
                     twin::Form::Count(count), at);                                                                  \
    }                                                                                                                \
    template <typename T, bool isSetMask = true>                                                                     \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &scalarValue, uint64_t mask,             \
              const int32_t repeatTime, const UnaryRepeatParams &params, EVK_AT)                                     \
    {                                                                                                                \
        twin::Vector(detail::Call(twin::Api::Op, dst.Ref(), src.Ref(), {}, twin::MakeScalar(scalarValue)),         \
                     twin::MaskForm(isSetMask, mask, repeatTime).Unary(params), at);                                 \
    }                                                                                                                \
    template <typename T, bool isSetMask = true>                                                                     \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &scalarValue, const uint64_t mask[],     \
              const int32_t repeatTime, const UnaryRepeatParams &params, EVK_AT)                                     \
    {                                                                                                                \
        twin::Vector(detail::Call(twin::Api::Op, dst.Ref(), src.Ref(), {}, twin::MakeScalar(scalarValue)),         \
                     twin::BitsForm(isSetMask, mask, repeatTime, sizeof(T) <= 2).Unary(params), at);                 \
    }                                                                                                                \
    template <typename T, bool isSetMask = true, typename C, EVK_ONLY(C, int32_t)>                                   \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &scalarValue, const C &count)            \
    {                                                                                                                \
        Name<T, isSetMask>(dst, src, scalarValue, count, twin::LastPlace());                                         \
    }

EVK_BINARY_INSTRUCTIONS(EVK_BINARY)
EVK_UNARY_INSTRUCTIONS(EVK_UNARY)
EVK_SCALAR_INSTRUCTIONS(EVK_UNARY_SCALAR)

#undef EVK_BINARY
#undef EVK_UNARY
#undef EVK_UNARY_SCALAR

template <typename T, bool isSetMask = true>
void ShiftRight(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &scalarValue, const int32_t &count,
                bool roundEn = false, EVK_AT)
{
    twin::Vector({twin::Api::ShiftRight, dst.Ref(), src.Ref(), {}, twin::MakeScalar(scalarValue), roundEn},
                 twin::Form::Count(count), at);
}
template <typename T, bool isSetMask = true>
void ShiftRight(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &scalarValue, uint64_t mask,
                const int32_t repeatTime, const UnaryRepeatParams &params, bool roundEn = false, EVK_AT)
{
    twin::Vector({twin::Api::ShiftRight, dst.Ref(), src.Ref(), {}, twin::MakeScalar(scalarValue), roundEn},
                 twin::MaskForm(isSetMask, mask, repeatTime).Unary(params), at);
}
template <typename T, bool isSetMask = true>
void ShiftRight(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &scalarValue, const uint64_t mask[],
                const int32_t repeatTime, const UnaryRepeatParams &params, bool roundEn = false, EVK_AT)
{
    twin::Vector({twin::Api::ShiftRight, dst.Ref(), src.Ref(), {}, twin::MakeScalar(scalarValue), roundEn},
                 twin::BitsForm(isSetMask, mask, repeatTime, sizeof(T) <= 2).Unary(params), at);
}

template <typename T, typename U>
void Axpy(const LocalTensor<T> &dst, const LocalTensor<U> &src, const U &scalarValue, const int32_t &count, EVK_AT)
{
    twin::Vector(detail::Call(twin::Api::Axpy, dst.Ref(), src.Ref(), {}, twin::MakeScalar(scalarValue)),
                 twin::Form::Count(count), at);
}
template <typename T, typename U, bool isSetMask = true>
void Axpy(const LocalTensor<T> &dst, const LocalTensor<U> &src, const U &scalarValue, uint64_t mask,
          const int32_t repeatTime, const UnaryRepeatParams &params, EVK_AT)
{
    twin::Vector(detail::Call(twin::Api::Axpy, dst.Ref(), src.Ref(), {}, twin::MakeScalar(scalarValue)),
                 twin::MaskForm(isSetMask, mask, repeatTime).Unary(params), at);
}
template <typename T, typename U, bool isSetMask = true>
void Axpy(const LocalTensor<T> &dst, const LocalTensor<U> &src, const U &scalarValue, const uint64_t mask[],
          const int32_t repeatTime, const UnaryRepeatParams &params, EVK_AT)
{
    twin::Vector(detail::Call(twin::Api::Axpy, dst.Ref(), src.Ref(), {}, twin::MakeScalar(scalarValue)),
                 twin::BitsForm(isSetMask, mask, repeatTime, sizeof(T) <= 2).Unary(params), at);
}

template <typename T, typename U>
void MulAddDst(const LocalTensor<T> &dst, const LocalTensor<U> &src0, const LocalTensor<U> &src1,
               const int32_t &count, EVK_AT)
{
    twin::Vector(detail::Call(twin::Api::MulAddDst, dst.Ref(), src0.Ref(), src1.Ref()), twin::Form::Count(count),
                 at);
}
template <typename T, typename U, bool isSetMask = true>
void MulAddDst(const LocalTensor<T> &dst, const LocalTensor<U> &src0, const LocalTensor<U> &src1, uint64_t mask,
               const int32_t repeatTime, const BinaryRepeatParams &params, EVK_AT)
{
    twin::Vector(detail::Call(twin::Api::MulAddDst, dst.Ref(), src0.Ref(), src1.Ref()),
                 twin::MaskForm(isSetMask, mask, repeatTime).Binary(params), at);
}
template <typename T, typename U, bool isSetMask = true>
void MulAddDst(const LocalTensor<T> &dst, const LocalTensor<U> &src0, const LocalTensor<U> &src1,
               const uint64_t mask[], const int32_t repeatTime, const BinaryRepeatParams &params, EVK_AT)
{
    twin::Vector(detail::Call(twin::Api::MulAddDst, dst.Ref(), src0.Ref(), src1.Ref()),
                 twin::BitsForm(isSetMask, mask, repeatTime, sizeof(T) <= 2).Binary(params), at);
}

#define EVK_FUSED(Name)                                                                                              \
    template <typename T, typename U>                                                                                \
    void Name(const LocalTensor<T> &dst, const LocalTensor<U> &src0, const LocalTensor<U> &src1,                     \
              const int32_t &count, EVK_AT)                                                                          \
    {                                                                                                                \
        twin::FusedCast(twin::Api::Name, dst.Ref(), src0.Ref(), src1.Ref(), twin::Form::Count(count), at);        \
    }                                                                                                                \
    template <typename T, typename U, bool isSetMask = true>                                                         \
    void Name(const LocalTensor<T> &dst, const LocalTensor<U> &src0, const LocalTensor<U> &src1, uint64_t mask,      \
              const int32_t repeatTime, const BinaryRepeatParams &params, EVK_AT)                                    \
    {                                                                                                                \
        twin::FusedCast(twin::Api::Name, dst.Ref(), src0.Ref(), src1.Ref(),                                       \
                        twin::MaskForm(isSetMask, mask, repeatTime).Binary(params), at);                             \
    }                                                                                                                \
    template <typename T, typename U, bool isSetMask = true>                                                         \
    void Name(const LocalTensor<T> &dst, const LocalTensor<U> &src0, const LocalTensor<U> &src1,                     \
              const uint64_t mask[], const int32_t repeatTime, const BinaryRepeatParams &params, EVK_AT)             \
    {                                                                                                                \
        twin::FusedCast(twin::Api::Name, dst.Ref(), src0.Ref(), src1.Ref(),                                       \
                        twin::BitsForm(isSetMask, mask, repeatTime, sizeof(U) <= 2).Binary(params), at);             \
    }
EVK_FUSED(AddReluCast)
EVK_FUSED(SubReluCast)
EVK_FUSED(MulCast)
#undef EVK_FUSED

template <typename T, typename U>
void Cast(const LocalTensor<T> &dst, const LocalTensor<U> &src, const RoundMode &mode, const uint32_t count, EVK_AT)
{
    twin::Cast(dst.Ref(), src.Ref(), mode, twin::Form::Count(count), at);
}
template <typename T, typename U, bool isSetMask = true>
void Cast(const LocalTensor<T> &dst, const LocalTensor<U> &src, const RoundMode &mode, const uint64_t mask,
          const int32_t repeatTime, const UnaryRepeatParams &params, EVK_AT)
{
    twin::Cast(dst.Ref(), src.Ref(), mode, twin::MaskForm(isSetMask, mask, repeatTime).Unary(params), at);
}
template <typename T, typename U, bool isSetMask = true>
void Cast(const LocalTensor<T> &dst, const LocalTensor<U> &src, const RoundMode &mode, const uint64_t mask[],
          const int32_t repeatTime, const UnaryRepeatParams &params, EVK_AT)
{
    constexpr bool wide = sizeof(T) <= 2 && sizeof(U) <= 2;
    twin::Cast(dst.Ref(), src.Ref(), mode, twin::BitsForm(isSetMask, mask, repeatTime, wide).Unary(params), at);
}

// isSetMask comes first of the flags in the forms with a mask, as documented.
#define EVK_DEQUANT(Name)                                                                                            \
    template <typename T, typename U, bool isVecDeq = true, bool halfBlock = true>                                   \
    void Name(const LocalTensor<T> &dst, const LocalTensor<U> &src, const uint32_t count, EVK_AT)                    \
    {                                                                                                                \
        twin::Dequantize(dst.Ref(), src.Ref(), {isVecDeq, halfBlock}, twin::Form::Count(count), at);                 \
    }                                                                                                                \
    template <typename T, typename U, bool isSetMask = true, bool isVecDeq = true, bool halfBlock = true>            \
    void Name(const LocalTensor<T> &dst, const LocalTensor<U> &src, const int32_t mask, uint8_t repeatTime,          \
              const UnaryRepeatParams &params, EVK_AT)                                                               \
    {                                                                                                                \
        twin::Dequantize(dst.Ref(), src.Ref(), {isVecDeq, halfBlock},                                                \
                         twin::MaskForm(isSetMask, static_cast<uint64_t>(mask), repeatTime).Unary(params), at);      \
    }                                                                                                                \
    template <typename T, typename U, bool isSetMask = true, bool isVecDeq = true, bool halfBlock = true>            \
    void Name(const LocalTensor<T> &dst, const LocalTensor<U> &src, const uint64_t mask[], uint8_t repeatTime,       \
              const UnaryRepeatParams &params, EVK_AT)                                                               \
    {                                                                                                                \
        twin::Dequantize(dst.Ref(), src.Ref(), {isVecDeq, halfBlock},                                                \
                         twin::BitsForm(isSetMask, mask, repeatTime, sizeof(U) <= 2).Unary(params), at);             \
    }
EVK_DEQUANT(CastDeq)
EVK_DEQUANT(CastDequant)
#undef EVK_DEQUANT

template <typename T, typename U>
void AddDeqRelu(const LocalTensor<T> &dst, const LocalTensor<U> &src0, const LocalTensor<U> &src1,
                const int32_t &count, EVK_AT)
{
    twin::AddDequantize(dst.Ref(), src0.Ref(), src1.Ref(), twin::Form::Count(count), at);
}
template <typename T, typename U, bool isSetMask = true>
void AddDeqRelu(const LocalTensor<T> &dst, const LocalTensor<U> &src0, const LocalTensor<U> &src1, uint64_t mask,
                const uint8_t repeatTime, const BinaryRepeatParams &params, EVK_AT)
{
    twin::AddDequantize(dst.Ref(), src0.Ref(), src1.Ref(), twin::MaskForm(isSetMask, mask, repeatTime).Binary(params),
                        at);
}
template <typename T, typename U, bool isSetMask = true>
void AddDeqRelu(const LocalTensor<T> &dst, const LocalTensor<U> &src0, const LocalTensor<U> &src1,
                const uint64_t mask[], const uint8_t repeatTime, const BinaryRepeatParams &params, EVK_AT)
{
    twin::AddDequantize(dst.Ref(), src0.Ref(), src1.Ref(),
                        twin::BitsForm(isSetMask, mask, repeatTime, false).Binary(params), at);
}
template <bool isSetMask>
void AddDeqRelu(const LocalTensor<half> &dst, const LocalTensor<int32_t> &src0, const LocalTensor<int32_t> &src1,
                uint64_t mask, const uint8_t repeatTime, const BinaryRepeatParams &params, EVK_AT)
{
    AddDeqRelu<half, int32_t, isSetMask>(dst, src0, src1, mask, repeatTime, params, at);
}
template <bool isSetMask>
void AddDeqRelu(const LocalTensor<half> &dst, const LocalTensor<int32_t> &src0, const LocalTensor<int32_t> &src1,
                const uint64_t mask[], const uint8_t repeatTime, const BinaryRepeatParams &params, EVK_AT)
{
    AddDeqRelu<half, int32_t, isSetMask>(dst, src0, src1, mask, repeatTime, params, at);
}

struct VdeqInfo {
    VdeqInfo() = default;
    VdeqInfo(const float scales[16], const int16_t offsets[16], const bool signs[16])
    {
        for (int i = 0; i < 16; ++i) {
            vdeqScale[i] = scales[i];
            vdeqOffset[i] = offsets[i];
            vdeqSignMode[i] = signs[i];
        }
    }

    float vdeqScale[16] = {};
    int16_t vdeqOffset[16] = {};
    bool vdeqSignMode[16] = {};
};

inline void SetDeqScale(half scale) { twin::SetDeqScale(scale); }
inline void SetDeqScale(float scale, int16_t offset, bool signMode) { twin::SetDequant(scale, offset, signMode); }
template <typename T> void SetDeqScale(const LocalTensor<T> &vdeq, const VdeqInfo &info, EVK_AT)
{
    static_assert(sizeof(T) == 8, "SetDeqScale takes a table of uint64_t.");
    twin::SetDequantVector(vdeq.Ref(), info.vdeqScale, info.vdeqOffset, info.vdeqSignMode, at);
}

}  // namespace AscendC
