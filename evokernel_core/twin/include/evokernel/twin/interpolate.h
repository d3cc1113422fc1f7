// BilinearInterpolation: gathered blocks times weights, summed over the horizontal repeats.
#pragma once
#include "evokernel/twin/fill.h"
#include "evokernel/twin/vector.h"

namespace AscendC {

namespace detail {

template <typename T, typename Mask>
void Interpolate(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<uint32_t> &offsets,
                 const LocalTensor<T> &src1, Mask mask, uint8_t hRepeat, bool repeatMode, uint16_t dstBlkStride,
                 uint16_t vROffset, uint8_t vRepeat, const LocalTensor<uint8_t> &tmp, twin::At at)
{
    constexpr uint32_t lanes = 256 / sizeof(T);
    constexpr uint32_t block = 32 / sizeof(T);
    const uint32_t repeats = uint32_t{hRepeat} * vRepeat;
    const uint32_t weights = repeats * (repeatMode ? 8 : 1);
    const LocalTensor<T> gathered = tmp.template ReinterpretCast<T>();
    const LocalTensor<T> spread = gathered[repeats * lanes];
    Gatherb(gathered.template ReinterpretCast<uint16_t>(), src0.template ReinterpretCast<uint16_t>(), offsets,
            static_cast<int32_t>(repeats), GatherRepeatParams(1, 8), at);
    Brcb(spread, src1, static_cast<int32_t>((weights + 7) / 8), BrcbRepeatParams(1, 8), at);
    const uint8_t weight_block = repeatMode ? 1 : 0;
    const BinaryRepeatParams multiply(1, 1, weight_block, 8, 8, 8);
    const auto stride = static_cast<uint8_t>(dstBlkStride);
    for (uint32_t v = 0; v < vRepeat; ++v) {
        const LocalTensor<T> row = dst[v * vROffset];
        for (uint32_t h = 0; h < hRepeat; ++h) {
            const uint32_t i = v * hRepeat + h;
            const LocalTensor<T> weight = spread[i * block * (repeatMode ? 8 : 1)];
            const LocalTensor<T> part = gathered[i * lanes];
            if (h == 0) {
                Mul<T, true>(row, part, weight, mask, 1, BinaryRepeatParams(stride, 1, weight_block, 8, 8, 8), at);
            } else {
                Mul<T, true>(part, part, weight, mask, 1, multiply, at);
                Add<T, true>(row, row, part, mask, 1, BinaryRepeatParams(stride, stride, 1, 8, 8, 8), at);
            }
        }
    }
}

}  // namespace detail

template <typename T>
void BilinearInterpolation(const LocalTensor<T> &dst, const LocalTensor<T> &src0,
                           const LocalTensor<uint32_t> &src0Offset, const LocalTensor<T> &src1, uint64_t mask[],
                           uint8_t hRepeat, bool repeatMode, uint16_t dstBlkStride, uint16_t vROffset, uint8_t vRepeat,
                           const LocalTensor<uint8_t> &sharedTmpBuffer, EVK_AT)
{
    detail::Interpolate<T, const uint64_t *>(dst, src0, src0Offset, src1, mask, hRepeat, repeatMode, dstBlkStride,
                                             vROffset, vRepeat, sharedTmpBuffer, at);
}
template <typename T>
void BilinearInterpolation(const LocalTensor<T> &dst, const LocalTensor<T> &src0,
                           const LocalTensor<uint32_t> &src0Offset, const LocalTensor<T> &src1, uint64_t mask,
                           uint8_t hRepeat, bool repeatMode, uint16_t dstBlkStride, uint16_t vROffset, uint8_t vRepeat,
                           const LocalTensor<uint8_t> &sharedTmpBuffer, EVK_AT)
{
    detail::Interpolate<T, uint64_t>(dst, src0, src0Offset, src1, mask, hRepeat, repeatMode, dstBlkStride, vROffset,
                                     vRepeat, sharedTmpBuffer, at);
}

}  // namespace AscendC
