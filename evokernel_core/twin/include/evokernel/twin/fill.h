// Duplicate, Copy, Brcb, CreateVecIndex, Gather, Transpose.
#pragma once
#include "evokernel/twin/tensor.h"

namespace AscendC {

namespace detail {

inline twin::Form Destination(twin::Form form, uint16_t block, uint16_t repeat)
{
    form.dst_block = block;
    form.dst_repeat = repeat;
    return form;
}

}  // namespace detail

template <typename T>
void Duplicate(const LocalTensor<T> &dst, const T &scalarValue, const int32_t &count, EVK_AT)
{
    twin::Duplicate(dst.Ref(), twin::MakeScalar(scalarValue), ToBits<T>(scalarValue), twin::Form::Count(count), at);
}
template <typename T, bool isSetMask = true>
void Duplicate(const LocalTensor<T> &dst, const T &scalarValue, uint64_t mask, const int32_t repeatTime,
               const uint16_t dstBlockStride, const uint8_t dstRepeatStride, EVK_AT)
{
    twin::Duplicate(dst.Ref(), twin::MakeScalar(scalarValue), ToBits<T>(scalarValue),
                    detail::Destination(twin::MaskForm(isSetMask, mask, repeatTime), dstBlockStride, dstRepeatStride),
                    at);
}
template <typename T, bool isSetMask = true>
void Duplicate(const LocalTensor<T> &dst, const T &scalarValue, const uint64_t mask[], const int32_t repeatTime,
               const uint16_t dstBlockStride, const uint8_t dstRepeatStride, EVK_AT)
{
    twin::Duplicate(dst.Ref(), twin::MakeScalar(scalarValue), ToBits<T>(scalarValue),
                    detail::Destination(twin::BitsForm(isSetMask, mask, repeatTime, sizeof(T) <= 2), dstBlockStride,
                                        dstRepeatStride),
                    at);
}

namespace detail {

inline twin::Form CopyForm(twin::Form form, const CopyRepeatParams &params)
{
    form.dst_block = params.dstStride;
    form.src0_block = params.srcStride;
    form.dst_repeat = params.dstRepeatSize;
    form.src0_repeat = params.srcRepeatSize;
    return form;
}

}  // namespace detail

template <typename T, bool isSetMask = true>
void Copy(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint64_t mask, const int32_t repeatTime,
          const CopyRepeatParams &params, EVK_AT)
{
    twin::CopyVector(dst.Ref(), src.Ref(), detail::CopyForm(twin::MaskForm(isSetMask, mask, repeatTime), params), at);
}
template <typename T, bool isSetMask = true>
void Copy(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint64_t mask[], const int32_t repeatTime,
          const CopyRepeatParams &params, EVK_AT)
{
    twin::CopyVector(
        dst.Ref(), src.Ref(),
        detail::CopyForm(twin::BitsForm(isSetMask, mask, repeatTime, sizeof(T) <= 2), params), at);
}
template <typename T> void Copy(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t count, EVK_AT)
{
    twin::CopyVector(dst.Ref(), src.Ref(), twin::Form::Count(count), at);
}

template <typename T>
void Brcb(const LocalTensor<T> &dst, const LocalTensor<T> &src, const int32_t repeatTime,
          const BrcbRepeatParams &params, EVK_AT)
{
    twin::Brcb(dst.Ref(), src.Ref(), repeatTime, params.dstBlkStride, params.dstRepStride, at);
}

template <typename T> void CreateVecIndex(LocalTensor<T> dst, const T &firstValue, uint32_t count, EVK_AT)
{
    twin::CreateVecIndex(dst.Ref(), twin::MakeScalar(firstValue), twin::MakeScalar(T(1)), twin::Form::Count(count),
                         "CreateVecIndex", at);
}
template <typename T>
void CreateVecIndex(LocalTensor<T> &dst, const T &firstValue, uint64_t mask, int32_t repeatTime, uint16_t dstBlkStride,
                    uint8_t dstRepStride, EVK_AT)
{
    twin::CreateVecIndex(dst.Ref(), twin::MakeScalar(firstValue), twin::MakeScalar(T(1)),
                         detail::Destination(twin::MaskForm(true, mask, repeatTime), dstBlkStride, dstRepStride),
                         "CreateVecIndex", at);
}
template <typename T>
void CreateVecIndex(LocalTensor<T> &dst, const T &firstValue, uint64_t mask[], int32_t repeatTime,
                    uint16_t dstBlkStride, uint8_t dstRepStride, EVK_AT)
{
    twin::CreateVecIndex(
        dst.Ref(), twin::MakeScalar(firstValue), twin::MakeScalar(T(1)),
        detail::Destination(twin::BitsForm(true, mask, repeatTime, sizeof(T) <= 2), dstBlkStride, dstRepStride),
        "CreateVecIndex", at);
}

#define EVK_PROGRESSION(Name)                                                                                        \
    template <typename T>                                                                                            \
    void Name(const LocalTensor<T> &dst, const T firstValue, const T diffValue, const int32_t count, EVK_AT)         \
    {                                                                                                                \
        twin::CreateVecIndex(dst.Ref(), twin::MakeScalar(firstValue), twin::MakeScalar(diffValue),                   \
                             twin::Form::Count(count), #Name, at);                                                   \
    }
EVK_PROGRESSION(ArithProgression)
EVK_PROGRESSION(Arange)
#undef EVK_PROGRESSION

template <typename T>
void Gather(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint32_t> &srcOffset,
            const uint32_t srcBaseAddr, const uint32_t count, EVK_AT)
{
    twin::Gather(dst.Ref(), src.Ref(), srcOffset.Ref(), srcBaseAddr, twin::Form::Count(count), at);
}
template <typename T>
void Gather(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint32_t> &srcOffset,
            const uint32_t srcBaseAddr, const uint64_t mask, const int32_t repeatTime, const uint16_t dstRepStride,
            EVK_AT)
{
    twin::Gather(dst.Ref(), src.Ref(), srcOffset.Ref(), srcBaseAddr,
                 detail::Destination(twin::MaskForm(true, mask, repeatTime), 1, dstRepStride), at);
}
template <typename T>
void Gather(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint32_t> &srcOffset,
            const uint32_t srcBaseAddr, const uint64_t mask[], const int32_t repeatTime, const uint16_t dstRepStride,
            EVK_AT)
{
    twin::Gather(dst.Ref(), src.Ref(), srcOffset.Ref(), srcBaseAddr,
                 detail::Destination(twin::BitsForm(true, mask, repeatTime, sizeof(T) <= 2), 1, dstRepStride), at);
}

struct GatherRepeatParams {
    uint16_t dstBlkStride = 1;
    uint16_t dstRepStride = 8;

    GatherRepeatParams() = default;
    GatherRepeatParams(uint16_t block, uint16_t repeat) : dstBlkStride(block), dstRepStride(repeat) {}
};

template <typename T>
void Gatherb(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<uint32_t> &offset,
             const int32_t repeatTime, const GatherRepeatParams &params, EVK_AT)
{
    twin::Gatherb(dst.Ref(), src0.Ref(), offset.Ref(), repeatTime, params.dstBlkStride, params.dstRepStride, at);
}

template <typename T> void Transpose(const LocalTensor<T> &dst, const LocalTensor<T> &src, EVK_AT)
{
    twin::Transpose16(dst.Ref(), src.Ref(), at);
}

}  // namespace AscendC
