// Pad and UnPad.
#pragma once
#include "evokernel/twin/api_vector.h"
#include "evokernel/twin/tensor.h"
#include "evokernel/twin/tiling_vector.h"

namespace AscendC {

struct PadParams {
    uint16_t leftPad = 0;
    uint16_t rightPad = 0;
    int32_t padValue = 0;
};
struct UnPadParams {
    uint16_t leftPad = 0;
    uint16_t rightPad = 0;
};

template <typename T>
void Pad(const LocalTensor<T> &dstTensor, const LocalTensor<T> &srcTensor, PadParams &padParams,
         const LocalTensor<uint8_t> &sharedTmpBuffer, AscendC::tiling::PadTiling &tiling, EVK_AT)
{
    twin::PadRows(dstTensor.Ref(), srcTensor.Ref(), &sharedTmpBuffer.Ref(), tiling.shape, padParams.leftPad,
                  padParams.rightPad, ToBits<T>(static_cast<T>(padParams.padValue)), at);
}
template <typename T>
void Pad(const LocalTensor<T> &dstTensor, const LocalTensor<T> &srcTensor, PadParams &padParams,
         AscendC::tiling::PadTiling &tiling, EVK_AT)
{
    twin::PadRows(dstTensor.Ref(), srcTensor.Ref(), nullptr, tiling.shape, padParams.leftPad, padParams.rightPad,
                  ToBits<T>(static_cast<T>(padParams.padValue)), at);
}
template <typename T>
void UnPad(const LocalTensor<T> &dstTensor, const LocalTensor<T> &srcTensor, UnPadParams &unPadParams,
           const LocalTensor<uint8_t> &sharedTmpBuffer, AscendC::tiling::UnPadTiling &tiling, EVK_AT)
{
    twin::UnPadRows(dstTensor.Ref(), srcTensor.Ref(), &sharedTmpBuffer.Ref(), tiling.shape, unPadParams.rightPad, at);
}
template <typename T>
void UnPad(const LocalTensor<T> &dstTensor, const LocalTensor<T> &srcTensor, UnPadParams &unPadParams,
           AscendC::tiling::UnPadTiling &tiling, EVK_AT)
{
    twin::UnPadRows(dstTensor.Ref(), srcTensor.Ref(), nullptr, tiling.shape, unPadParams.rightPad, at);
}

}  // namespace AscendC
