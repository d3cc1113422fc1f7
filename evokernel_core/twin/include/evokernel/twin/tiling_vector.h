// Tilings of TopK, Pad, UnPad and Transpose: what the host computes and the kernel reads.
#pragma once
#include <cstdint>

namespace AscendC::tiling {

// The fields that are documented. The twin sorts by its own plan and reads the sizes only.
struct TopkTiling {
    int32_t tmpLocalSize = 0;
    int32_t allDataSize = 0;
    int32_t innerDataSize = 0;
    uint32_t sortRepeat = 0;
    int32_t mrgSortRepeat = 0;
    int32_t kAlignFourBytes = 0;
    int32_t kAlignTwoBytes = 0;
    int32_t maskOffset = 0;
    int32_t maskVreducev2FourBytes = 0;
    int32_t maskVreducev2TwoBytes = 0;
    int32_t mrgSortSrc1offset = 0;
    int32_t mrgSortSrc2offset = 0;
    int32_t mrgSortSrc3offset = 0;
    int32_t mrgSortTwoQueueSrc1Offset = 0;
    int32_t mrgFourQueueTailPara1 = 0;
    int32_t mrgFourQueueTailPara2 = 0;
    int32_t srcIndexOffset = 0;
    uint32_t copyUbToUbBlockCount = 0;
    int32_t topkMrgSrc1MaskSizeOffset = 0;
    int32_t topkNSmallSrcIndexOffset = 0;
    uint32_t vreduceValMask0 = 0;
    uint32_t vreduceValMask1 = 0;
    uint32_t vreduceIdxMask0 = 0;
    uint32_t vreduceIdxMask1 = 0;
    uint16_t vreducehalfValMask0 = 0;
    uint16_t vreducehalfValMask1 = 0;
    uint16_t vreducehalfValMask2 = 0;
    uint16_t vreducehalfValMask3 = 0;
    uint16_t vreducehalfValMask4 = 0;
    uint16_t vreducehalfValMask5 = 0;
    uint16_t vreducehalfValMask6 = 0;
    uint16_t vreducehalfValMask7 = 0;
};

// height, width, valid width, bytes of temporary space.
struct PadTiling {
    uint32_t shape[4] = {};
};
struct UnPadTiling {
    uint32_t shape[4] = {};
};

// 18 words, as the public sample sizes it: scenario, temporary bytes, then the shape.
struct ConfusionTransposeTiling {
    uint32_t scenario = 0;
    uint32_t tmpBytes = 0;
    uint32_t shape[4] = {};
    uint32_t reserved[12] = {};
};
static_assert(sizeof(ConfusionTransposeTiling) == 18 * sizeof(uint32_t), "Kernels read 18 words.");

}  // namespace AscendC::tiling

using AscendC::tiling::ConfusionTransposeTiling;
using AscendC::tiling::PadTiling;
using AscendC::tiling::TopkTiling;
using AscendC::tiling::UnPadTiling;

namespace optiling {

using AscendC::tiling::ConfusionTransposeTiling;
using AscendC::tiling::PadTiling;
using AscendC::tiling::TopkTiling;
using AscendC::tiling::UnPadTiling;

}  // namespace optiling
