// Tiling of the softmax family and of the normalisations: plain structures for the kernel. The lists of
// fields also make the host's classes with set_ and get_ functions.
#pragma once
#include <cstdint>

#define EVK_FIELDS_SoftMaxTiling(F)                                                                                    \
    F(uint32_t, srcM) F(uint32_t, srcK) F(uint32_t, srcSize) F(uint32_t, outMaxM) F(uint32_t, outMaxK)                 \
    F(uint32_t, outMaxSize) F(uint32_t, splitM) F(uint32_t, splitK) F(uint32_t, splitSize) F(uint32_t, reduceM)        \
    F(uint32_t, reduceK) F(uint32_t, reduceSize) F(uint32_t, rangeM) F(uint32_t, tailM) F(uint32_t, tailSplitSize)     \
    F(uint32_t, tailReduceSize)
#define EVK_FIELDS_LogSoftMaxTiling(F)                                                                                 \
    F(uint32_t, srcM) F(uint32_t, srcK) F(uint32_t, srcSize) F(uint32_t, outMaxM) F(uint32_t, outMaxK)                 \
    F(uint32_t, outMaxSize) F(uint32_t, splitM) F(uint32_t, splitK) F(uint32_t, splitSize) F(uint32_t, reduceM)        \
    F(uint32_t, reduceK) F(uint32_t, reduceSize) F(uint32_t, rangeM) F(uint32_t, tailM) F(uint32_t, tailSplitSize)     \
    F(uint32_t, tailReduceSize)
#define EVK_FIELDS_LayerNormTiling(F)                                                                                  \
    F(uint32_t, bLength) F(uint32_t, sLength) F(uint32_t, hLength) F(uint32_t, originalHLength)                        \
    F(uint32_t, inputXSize) F(uint32_t, meanVarSize) F(uint32_t, numberOfTmpBuf) F(uint32_t, meanTmpTensorPos)         \
    F(uint32_t, meanTmpTensorSize) F(uint32_t, varianceTmpTensorPos) F(uint32_t, varianceTmpTensorSize)                \
    F(uint32_t, tmpBufSize) F(uint32_t, oneTmpSize) F(uint32_t, firstTmpStartPos) F(uint32_t, secondTmpStartPos)       \
    F(uint32_t, thirdTmpStartPos) F(uint32_t, loopRound) F(uint32_t, inputRoundSize) F(uint32_t, inputTailSize)        \
    F(uint32_t, inputTailPos) F(uint32_t, meanVarRoundSize) F(uint32_t, meanVarTailSize)                               \
    F(uint32_t, meanVarTailPos) F(uint32_t, bshCurLength) F(uint32_t, bsCurLength) F(float, lastDimValueBack)
#define EVK_FIELDS_DeepNormTiling(F)                                                                                   \
    F(uint32_t, bLength) F(uint32_t, sLength) F(uint32_t, hLength) F(uint32_t, originalHLength)                        \
    F(uint32_t, inputXSize) F(uint32_t, meanVarSize) F(uint32_t, numberOfTmpBuf) F(uint32_t, meanTmpTensorPos)         \
    F(uint32_t, meanTmpTensorSize) F(uint32_t, varianceTmpTensorPos) F(uint32_t, varianceTmpTensorSize)                \
    F(uint32_t, tmpBufSize) F(uint32_t, oneTmpSize) F(uint32_t, firstTmpStartPos) F(uint32_t, secondTmpStartPos)       \
    F(uint32_t, thirdTmpStartPos) F(uint32_t, loopRound) F(uint32_t, inputRoundSize) F(uint32_t, inputTailSize)        \
    F(uint32_t, inputTailPos) F(uint32_t, meanVarRoundSize) F(uint32_t, meanVarTailSize)                               \
    F(uint32_t, meanVarTailPos) F(uint32_t, bshCurLength) F(uint32_t, bsCurLength) F(float, lastDimValueBack)
#define EVK_FIELDS_LayerNormSeparateTiling(F)                                                                          \
    F(uint32_t, aLength) F(uint32_t, rLength) F(uint32_t, halfAddRepeatTimes) F(uint32_t, rHeadLength)                 \
    F(float, k2Rec) F(float, k2RRec) F(uint32_t, inputXSize) F(uint32_t, meanVarSize) F(uint32_t, numberOfTmpBuf)      \
    F(uint32_t, varianceTmpTensorPos) F(uint32_t, varianceTmpTensorSize) F(uint32_t, tmpBufSize)                       \
    F(uint32_t, oneTmpSize) F(uint32_t, firstTmpStartPos) F(uint32_t, secondTmpStartPos)                               \
    F(uint32_t, thirdTmpStartPos) F(uint32_t, loopRound) F(uint32_t, inputRoundSize) F(uint32_t, inputTailSize)        \
    F(uint32_t, inputTailPos) F(uint32_t, meanVarRoundSize) F(uint32_t, meanVarTailSize)                               \
    F(uint32_t, meanVarTailPos) F(uint32_t, arCurLength) F(uint32_t, aCurLength) F(float, rValueBack)
#define EVK_FIELDS_LayerNormGradTiling(F)                                                                              \
    F(uint32_t, stackBufferSize) F(uint32_t, bLength) F(uint32_t, sLength) F(uint32_t, hLength)                        \
    F(uint32_t, originalHLength) F(uint32_t, oneCalSize) F(uint32_t, nohCalSize) F(uint32_t, loopNum)                  \
    F(uint32_t, tailSize) F(uint32_t, nohTailSize) F(uint32_t, tmpTensorBSHPos) F(uint32_t, tmpTensorBSHSize)          \
    F(uint32_t, pdVarTensorPos) F(uint32_t, pdVarTensorSize) F(uint32_t, pdMeanTensorPos)                              \
    F(uint32_t, pdMeanTensorSize) F(uint32_t, x1TensorPos) F(uint32_t, x1TensorSize) F(uint32_t, x2TensorPos)          \
    F(uint32_t, x2TensorSize) F(uint32_t, x3TensorPos) F(uint32_t, x3TensorSize) F(uint32_t, tmpTensorPos)             \
    F(uint32_t, tmpTensorSize) F(uint32_t, tmpTensor1Pos) F(uint32_t, tmpTensor1Size) F(uint32_t, tmpTensor2Pos)       \
    F(uint32_t, tmpTensor2Size) F(uint32_t, lastDimValueBack) F(uint32_t, lastDimValueBackMulTwo)
#define EVK_FIELDS_LayerNormGradBetaTiling(F)                                                                          \
    F(uint32_t, stackBufferSize) F(uint32_t, bLength) F(uint32_t, sLength) F(uint32_t, hLength)                        \
    F(uint32_t, originalHLength) F(uint32_t, bshLength) F(uint32_t, bsLength) F(uint32_t, oneCalSize)                  \
    F(uint32_t, numberOfTmpBuf) F(uint32_t, loopRound) F(uint32_t, inputTailSize) F(uint32_t, inputTailPos)            \
    F(uint32_t, bsTailSize) F(uint32_t, bshCurLength) F(uint32_t, bsCurLength) F(uint32_t, gammaTempTensorPos)         \
    F(uint32_t, betaTempTensorPos) F(uint32_t, inputDyTmpTensorPos) F(uint32_t, resForGammaTmpTensorPos)               \
    F(uint32_t, reserved)
#define EVK_FIELDS_RmsNormTiling(F)                                                                                    \
    F(uint32_t, bLength) F(uint32_t, sLength) F(uint32_t, hLength) F(uint32_t, originalHLength)                        \
    F(float, reciprocalOfHLength) F(uint32_t, mainBshLength) F(uint32_t, mainBsLength)                                 \
    F(uint32_t, mainBsLengthAlign) F(uint32_t, loopRound) F(uint32_t, inputTailPos) F(uint32_t, tailBshLength)         \
    F(uint32_t, tailBsLength)
#define EVK_FIELDS_BatchNormTiling(F)                                                                                  \
    F(uint32_t, originalBLength) F(uint32_t, meanVarSize) F(uint32_t, meanTmpTensorPos)                                \
    F(uint32_t, varianceTmpTensorPos) F(uint32_t, tmpBufSize) F(uint32_t, oneTmpSize) F(uint32_t, firstTmpStartPos)    \
    F(uint32_t, secondTmpStartPos) F(uint32_t, thirdTmpStartPos) F(uint32_t, loopRound) F(uint32_t, inputTailSize)     \
    F(uint32_t, inputTailPos) F(uint32_t, meanVarTailSize) F(uint32_t, meanVarTailPos) F(uint32_t, bshCurLength)       \
    F(uint32_t, shCurLength) F(float, firstDimValueBack) F(uint32_t, castHalfRepStride)                                \
    F(uint32_t, shCurLengthBlockNum) F(uint32_t, castHalfOutRepStride)
#define EVK_FIELDS_GroupNormTiling(F)                                                                                  \
    F(uint32_t, n) F(uint32_t, c) F(uint32_t, hw) F(uint32_t, g) F(uint32_t, d) F(uint32_t, hwAlignSize)               \
    F(uint32_t, dhwAlignSize) F(uint32_t, inputXSize) F(uint32_t, meanVarSize) F(uint32_t, numberOfTmpBuf)             \
    F(uint32_t, meanTmpTensorPos) F(uint32_t, meanTmpTensorSize) F(uint32_t, varianceTmpTensorPos)                     \
    F(uint32_t, varianceTmpTensorSize) F(uint32_t, tmpBufSize) F(uint32_t, oneTmpSize)                                 \
    F(uint32_t, firstTmpStartPos) F(uint32_t, secondTmpStartPos) F(uint32_t, thirdTmpStartPos)                         \
    F(uint32_t, loopRound) F(uint32_t, inputRoundSize) F(uint32_t, inputTailSize) F(uint32_t, inputTailPos)            \
    F(uint32_t, meanVarRoundSize) F(uint32_t, meanVarTailSize) F(uint32_t, meanVarTailPos)                             \
    F(uint32_t, bshCurLength) F(uint32_t, bsCurLength) F(float, factor) F(bool, smallShape)

#define EVK_TILINGS(T)                                                                                                \
    T(SoftMaxTiling) T(LogSoftMaxTiling) T(LayerNormTiling) T(LayerNormSeparateTiling) T(LayerNormGradTiling)         \
    T(LayerNormGradBetaTiling) T(DeepNormTiling) T(RmsNormTiling) T(BatchNormTiling) T(GroupNormTiling)

#define EVK_PLAIN_FIELD(Type, field) Type field = 0;
#define EVK_PLAIN_TILING(Name)             \
    struct Name {                          \
        EVK_FIELDS_##Name(EVK_PLAIN_FIELD) \
    };
namespace AscendC::tiling {
EVK_TILINGS(EVK_PLAIN_TILING)
}  // namespace AscendC::tiling
#undef EVK_PLAIN_TILING
#undef EVK_PLAIN_FIELD

#define EVK_USE_TILING(Name) using AscendC::tiling::Name;
EVK_TILINGS(EVK_USE_TILING)
namespace AscendC {
EVK_TILINGS(EVK_USE_TILING)
}  // namespace AscendC
#undef EVK_USE_TILING
