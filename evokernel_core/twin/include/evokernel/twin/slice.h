// Copies of slices of tensors with several dimensions, and from fractals (NZ) to rows (ND).
#pragma once
#include "evokernel/twin/move.h"

namespace AscendC {

struct SliceInfo {
    SliceInfo() = default;
    SliceInfo(const uint32_t start, const uint32_t end, const uint32_t gap, const uint32_t length,
              const uint32_t shape = 0)
        : startIndex(start), endIndex(end), stride(gap), burstLen(length), shapeValue(shape)
    {
    }

    uint32_t startIndex = 0;
    uint32_t endIndex = 0;
    uint32_t stride = 0;      // elements between two pieces
    uint32_t burstLen = 0;    // of a piece: 32 bytes in the first dimension, 1 in the others
    uint32_t shapeValue = 0;  // elements of the dimension
};

template <typename T>
void DataCopy(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const SliceInfo dstSliceInfo[],
              const SliceInfo srcSliceInfo[], const uint32_t dimValue = 1, EVK_AT)
{
    twin::CopySlices(dst.Ref(), src.Ref(), reinterpret_cast<const uint32_t *>(dstSliceInfo),
                     reinterpret_cast<const uint32_t *>(srcSliceInfo), dimValue, true, at);
}
template <typename T>
void DataCopy(const GlobalTensor<T> &dst, const LocalTensor<T> &src, const SliceInfo dstSliceInfo[],
              const SliceInfo srcSliceInfo[], const uint32_t dimValue = 1, EVK_AT)
{
    twin::CopySlices(src.Ref(), dst.Ref(), reinterpret_cast<const uint32_t *>(srcSliceInfo),
                     reinterpret_cast<const uint32_t *>(dstSliceInfo), dimValue, false, at);
}

struct Nz2NdParamsFull {
    Nz2NdParamsFull() = default;
    Nz2NdParamsFull(const uint16_t num, const uint16_t rows, const uint16_t columns, const uint16_t src_matrix,
                    const uint16_t src_column, const uint16_t dst_row, const uint16_t dst_matrix)
        : ndNum(num), nValue(rows), dValue(columns), srcNdMatrixStride(src_matrix), srcNStride(src_column),
          dstDStride(dst_row), dstNdMatrixStride(dst_matrix)
    {
    }

    uint16_t ndNum = 1;
    uint16_t nValue = 0;
    uint16_t dValue = 0;
    uint16_t srcNdMatrixStride = 0;  // 256 elements
    uint16_t srcNStride = 0;         // 16 elements
    uint16_t dstDStride = 0;         // elements
    uint16_t dstNdMatrixStride = 0;  // elements
};

template <typename T>
void DataCopy(const GlobalTensor<T> &dst, const LocalTensor<T> &src, const Nz2NdParamsFull &params, EVK_AT)
{
    const twin::FractalRows rows{params.ndNum,      params.nValue,     params.dValue,          params.srcNdMatrixStride,
                                 params.srcNStride, params.dstDStride, params.dstNdMatrixStride};
    twin::CopyFractalsOut(dst.Ref(), src.Ref(), rows, at);
}

}  // namespace AscendC
