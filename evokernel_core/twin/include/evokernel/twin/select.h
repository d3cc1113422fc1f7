// Compare, Select and GatherMask.
#pragma once
#include "evokernel/twin/tensor.h"

namespace AscendC {

template <typename T, typename U>
void Compare(const LocalTensor<U> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1, CMPMODE mode,
             uint32_t count, EVK_AT)
{
    twin::Compare(dst.Ref(), src0.Ref(), src1.Ref(), mode, twin::Form::Count(count), at);
}
template <typename T, typename U, bool isSetMask = true>
void Compare(const LocalTensor<U> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1, CMPMODE mode,
             const uint64_t mask, int32_t repeatTime, const BinaryRepeatParams &params, EVK_AT)
{
    twin::Compare(dst.Ref(), src0.Ref(), src1.Ref(), mode, twin::MaskForm(isSetMask, mask, repeatTime).Binary(params),
                  at);
}
template <typename T, typename U, bool isSetMask = true>
void Compare(const LocalTensor<U> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1, CMPMODE mode,
             const uint64_t mask[], int32_t repeatTime, const BinaryRepeatParams &params, EVK_AT)
{
    twin::Compare(dst.Ref(), src0.Ref(), src1.Ref(), mode,
                  twin::BitsForm(isSetMask, mask, repeatTime, sizeof(T) <= 2).Binary(params), at);
}
template <typename T, bool isSetMask = true>
void Compare(const LocalTensor<T> &src0, const LocalTensor<T> &src1, CMPMODE mode, const uint64_t mask,
             const BinaryRepeatParams &params, EVK_AT)
{
    twin::CompareToRegister(src0.Ref(), src1.Ref(), mode, twin::MaskForm(isSetMask, mask, 1).Binary(params), at);
}
template <typename T, bool isSetMask = true>
void Compare(const LocalTensor<T> &src0, const LocalTensor<T> &src1, CMPMODE mode, const uint64_t mask[],
             const BinaryRepeatParams &params, EVK_AT)
{
    twin::CompareToRegister(src0.Ref(), src1.Ref(), mode,
                            twin::BitsForm(isSetMask, mask, 1, sizeof(T) <= 2).Binary(params), at);
}

#define EVK_COMPARE_SCALAR(Name)                                                                                     \
    template <typename T, typename U>                                                                                \
    void Name(const LocalTensor<U> &dst, const LocalTensor<T> &src0, const T scalar, CMPMODE mode, uint32_t count,   \
              EVK_AT)                                                                                                \
    {                                                                                                                \
        twin::CompareScalar(dst.Ref(), src0.Ref(), twin::MakeScalar(scalar), mode, twin::Form::Count(count), at);    \
    }                                                                                                                \
    template <typename T, typename U, bool isSetMask = true>                                                         \
    void Name(const LocalTensor<U> &dst, const LocalTensor<T> &src0, const T scalar, CMPMODE mode,                   \
              const uint64_t mask, int32_t repeatTime, const UnaryRepeatParams &params, EVK_AT)                      \
    {                                                                                                                \
        twin::CompareScalar(dst.Ref(), src0.Ref(), twin::MakeScalar(scalar), mode,                                   \
                            twin::MaskForm(isSetMask, mask, repeatTime).Unary(params), at);                          \
    }                                                                                                                \
    template <typename T, typename U, bool isSetMask = true>                                                         \
    void Name(const LocalTensor<U> &dst, const LocalTensor<T> &src0, const T scalar, CMPMODE mode,                   \
              const uint64_t mask[], int32_t repeatTime, const UnaryRepeatParams &params, EVK_AT)                    \
    {                                                                                                                \
        twin::CompareScalar(dst.Ref(), src0.Ref(), twin::MakeScalar(scalar), mode,                                   \
                            twin::BitsForm(isSetMask, mask, repeatTime, sizeof(T) <= 2).Unary(params), at);          \
    }
EVK_COMPARE_SCALAR(Compares)
EVK_COMPARE_SCALAR(CompareScalar)
#undef EVK_COMPARE_SCALAR

template <typename T, typename U>
void Select(const LocalTensor<T> &dst, const LocalTensor<U> &selMask, const LocalTensor<T> &src0,
            const LocalTensor<T> &src1, SELMODE mode, uint32_t count, EVK_AT)
{
    twin::Select(dst.Ref(), selMask.Ref(), src0.Ref(), &src1.Ref(), {}, mode, twin::Form::Count(count), at);
}
template <typename T, typename U>
void Select(const LocalTensor<T> &dst, const LocalTensor<U> &selMask, const LocalTensor<T> &src0, T src1, SELMODE mode,
            uint32_t count, EVK_AT)
{
    twin::Select(dst.Ref(), selMask.Ref(), src0.Ref(), nullptr, twin::MakeScalar(src1), mode, twin::Form::Count(count),
                 at);
}
template <typename T, typename U, bool isSetMask = true>
void Select(const LocalTensor<T> &dst, const LocalTensor<U> &selMask, const LocalTensor<T> &src0,
            const LocalTensor<T> &src1, SELMODE mode, uint64_t mask, int32_t repeatTime,
            const BinaryRepeatParams &params, EVK_AT)
{
    twin::Select(dst.Ref(), selMask.Ref(), src0.Ref(), &src1.Ref(), {}, mode,
                 twin::MaskForm(isSetMask, mask, repeatTime).Binary(params), at);
}
template <typename T, typename U, bool isSetMask = true>
void Select(const LocalTensor<T> &dst, const LocalTensor<U> &selMask, const LocalTensor<T> &src0,
            const LocalTensor<T> &src1, SELMODE mode, const uint64_t mask[], int32_t repeatTime,
            const BinaryRepeatParams &params, EVK_AT)
{
    twin::Select(dst.Ref(), selMask.Ref(), src0.Ref(), &src1.Ref(), {}, mode,
                 twin::BitsForm(isSetMask, mask, repeatTime, sizeof(T) <= 2).Binary(params), at);
}
template <typename T, typename U, bool isSetMask = true>
void Select(const LocalTensor<T> &dst, const LocalTensor<U> &selMask, const LocalTensor<T> &src0, T src1, SELMODE mode,
            uint64_t mask, int32_t repeatTime, const BinaryRepeatParams &params, EVK_AT)
{
    twin::Select(dst.Ref(), selMask.Ref(), src0.Ref(), nullptr, twin::MakeScalar(src1), mode,
                 twin::MaskForm(isSetMask, mask, repeatTime).Binary(params), at);
}
template <typename T, typename U, bool isSetMask = true>
void Select(const LocalTensor<T> &dst, const LocalTensor<U> &selMask, const LocalTensor<T> &src0, T src1, SELMODE mode,
            const uint64_t mask[], int32_t repeatTime, const BinaryRepeatParams &params, EVK_AT)
{
    twin::Select(dst.Ref(), selMask.Ref(), src0.Ref(), nullptr, twin::MakeScalar(src1), mode,
                 twin::BitsForm(isSetMask, mask, repeatTime, sizeof(T) <= 2).Binary(params), at);
}

template <typename T> void SetCmpMask(const LocalTensor<T> &src, EVK_AT) { twin::SetCompareMask(src.Ref(), at); }
template <typename T> void GetCmpMask(const LocalTensor<T> &dst, EVK_AT) { twin::GetCompareMask(dst.Ref(), at); }

enum class GatherMaskMode : uint8_t { VERSION_V1 = 0, VERSION_V2 };
constexpr GatherMaskMode defaultGatherMaskMode = GatherMaskMode::VERSION_V1;

template <typename T, typename U, GatherMaskMode mode = defaultGatherMaskMode>
void GatherMask(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<U> &pattern,
                const bool reduceMode, const uint32_t mask, const GatherMaskParams &params, uint64_t &rsvdCnt, EVK_AT)
{
    rsvdCnt = twin::GatherMask(dst.Ref(), src0.Ref(), &pattern.Ref(), 0, reduceMode, mask, params, at);
}
template <typename T, GatherMaskMode mode = defaultGatherMaskMode>
void GatherMask(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const uint8_t pattern, const bool reduceMode,
                const uint32_t mask, const GatherMaskParams &params, uint64_t &rsvdCnt, EVK_AT)
{
    rsvdCnt = twin::GatherMask(dst.Ref(), src0.Ref(), nullptr, pattern, reduceMode, mask, params, at);
}

}  // namespace AscendC
