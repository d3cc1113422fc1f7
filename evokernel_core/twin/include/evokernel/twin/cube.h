// Matrix instructions: LoadData, Mmad, Fixpipe, Fill and the copies of the matrix side.
#pragma once
#include "evokernel/twin/cube_api.h"
#include "evokernel/twin/move.h"

namespace AscendC {

namespace detail {

template <typename T> twin::Load3D ToLoad(const LoadData3DParamsV2<T> &params)
{
    twin::Load3D load;
    load.height = params.l1H;
    load.width = params.l1W;
    for (int i = 0; i < PAD_SIZE; ++i) {
        load.pad[i] = params.padList[i];
    }
    load.channels = params.channelSize;
    load.k = params.kExtension;
    load.m = params.mExtension;
    load.k_start = params.kStartPt;
    load.m_start = params.mStartPt;
    load.stride_w = params.strideW;
    load.stride_h = params.strideH;
    load.filter_w = static_cast<uint16_t>(params.filterW + (params.filterSizeW ? 256 : 0));
    load.filter_h = static_cast<uint16_t>(params.filterH + (params.filterSizeH ? 256 : 0));
    load.dilation_w = params.dilationFilterW;
    load.dilation_h = params.dilationFilterH;
    load.transpose = params.enTranspose;
    load.padding = ToBits<T>(params.padValue);
    return load;
}

inline twin::Load3D ToLoad(const LoadData3DParamsV2Pro &params)
{
    twin::Load3D load;
    const auto field = [](uint64_t bits, int shift) { return static_cast<uint16_t>(bits >> shift & 0xFFFF); };
    const auto octet = [](uint64_t bits, int shift) { return static_cast<uint8_t>(bits >> shift & 0xFF); };
    load.channels = params.channelSize;
    load.k = field(params.extConfig, 0);
    load.m = field(params.extConfig, 16);
    load.k_start = field(params.extConfig, 32);
    load.m_start = field(params.extConfig, 48);
    load.stride_w = octet(params.filterConfig, 0);
    load.stride_h = octet(params.filterConfig, 8);
    load.filter_w = static_cast<uint16_t>(octet(params.filterConfig, 16) + (params.filterSizeW ? 256 : 0));
    load.filter_h = static_cast<uint16_t>(octet(params.filterConfig, 24) + (params.filterSizeH ? 256 : 0));
    load.dilation_w = octet(params.filterConfig, 32);
    load.dilation_h = octet(params.filterConfig, 40);
    load.transpose = params.enTranspose;
    load.set_matrix = false;
    load.set_padding = false;
    return load;
}

}  // namespace detail

// Copies.
template <typename T>
void DataCopy(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const Nd2NzParams &intriParams, EVK_AT)
{
    twin::CopyNd2Nz(dst.Ref(), src.Ref(), intriParams, at);
}
template <typename T>
void DataCopy(const LocalTensor<T> &dst, const LocalTensor<T> &src, const Nd2NzParams &intriParams, EVK_AT)
{
    twin::CopyLocalNd2Nz(dst.Ref(), src.Ref(), intriParams, at);
}
template <typename T>
void DataCopy(const LocalTensor<T> &, const GlobalTensor<T> &, const Dn2NzParams &, EVK_AT)
{
    twin::CopyDn2Nz(at);
}
template <typename T, typename U>
void DataCopy(const LocalTensor<T> &dst, const LocalTensor<U> &src, const DataCopyParams &repeatParams, EVK_AT)
{
    twin::CopyLocalParams(dst.Ref(), src.Ref(), repeatParams, at);
}
template <typename T>
void DataCopyPad(const LocalTensor<T> &dst, const LocalTensor<T> &src, const DataCopyExtParams &dataCopyParams,
                 const Nd2NzParams &nd2nzParams, EVK_AT)
{
    twin::CopyPadUbToL1(dst.Ref(), src.Ref(), dataCopyParams, nd2nzParams, at);
}
template <typename T, typename U>
void DataCopy(const GlobalTensor<T> &dst, const LocalTensor<U> &src, const DataCopyCO12DstParams &intriParams, EVK_AT)
{
    twin::FixpipeToGlobal(dst.Ref(), src.Ref(), twin::ToCall(intriParams), at);
}
template <typename T, typename U>
void DataCopy(const LocalTensor<T> &dst, const LocalTensor<U> &src, const DataCopyCO12DstParams &intriParams, EVK_AT)
{
    twin::FixpipeToL1(dst.Ref(), src.Ref(), twin::ToCall(intriParams), at);
}

// The enhanced form: what it adds to a plain copy exists on other chips only.
template <typename T>
void DataCopy(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const DataCopyParams &intriParams,
              const DataCopyEnhancedParams &enhancedParams, EVK_AT)
{
    twin::CheckEnhanced(enhancedParams, at);
    DataCopy(dst, src, intriParams, at);
}
template <typename T>
void DataCopy(const GlobalTensor<T> &dst, const LocalTensor<T> &src, const DataCopyParams &intriParams,
              const DataCopyEnhancedParams &enhancedParams, EVK_AT)
{
    twin::CheckEnhanced(enhancedParams, at);
    DataCopy(dst, src, intriParams, at);
}
template <typename T, typename U>
void DataCopy(const LocalTensor<T> &dst, const LocalTensor<U> &src, const DataCopyParams &intriParams,
              const DataCopyEnhancedParams &enhancedParams, EVK_AT)
{
    twin::CheckEnhanced(enhancedParams, at);
    DataCopy(dst, src, intriParams, at);
}

// L1 and global memory to L0A and L0B.
template <typename T>
void LoadData(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LoadData2DParams &loadDataParams, EVK_AT)
{
    twin::Load2D(dst.Ref(), src.Ref(), loadDataParams, at);
}
template <typename T>
void LoadData(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const LoadData2DParams &loadDataParams, EVK_AT)
{
    twin::Load2DGlobal(dst.Ref(), src.Ref(), loadDataParams, at);
}
template <typename T, typename Source>
void LoadData(const LocalTensor<T> &, const Source &, const LoadData2DParamsV2 &, EVK_AT)
{
    twin::Load2DV2(at);
}
template <typename T, const IsResetLoad3dConfig &defaultConfig = IS_RESER_LOAD3D_DEFAULT_CONFIG, typename U = PrimT<T>>
void LoadData(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LoadData3DParamsV2<U> &loadDataParams, EVK_AT)
{
    twin::Load3D load = detail::ToLoad(loadDataParams);
    load.set_matrix = defaultConfig.isSetFMatrix;
    load.set_padding = defaultConfig.isSetPadding;
    twin::LoadImageToColumn(dst.Ref(), src.Ref(), load, at);
}
template <typename T>
void LoadData(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LoadData3DParamsV2Pro &loadDataParams, EVK_AT)
{
    twin::LoadImageToColumn(dst.Ref(), src.Ref(), detail::ToLoad(loadDataParams), at);
}
template <typename T>
void LoadDataWithTranspose(const LocalTensor<T> &dst, const LocalTensor<T> &src,
                           const LoadData2dTransposeParams &loadDataParams, EVK_AT)
{
    twin::LoadTransposed(dst.Ref(), src.Ref(), loadDataParams, at);
}
template <typename T = int8_t, typename U = uint8_t>
void LoadDataWithSparse(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<U> &idx,
                        const LoadData2DParams &loadDataParam, EVK_AT)
{
    twin::LoadSparse(dst.Ref(), src.Ref(), idx.Ref(), loadDataParam, at);
}

inline void SetFmatrix(uint16_t l1H, uint16_t l1W, const uint8_t padList[4], const FmatrixMode &, EVK_AT)
{
    twin::SetFmatrix(l1H, l1W, padList, at);
}
template <typename T> void SetLoadDataPaddingValue(const T padValue, EVK_AT)
{
    twin::SetLoadPadding(ToBits<T>(padValue), at);
}
inline void SetLoadDataBoundary(uint32_t boundaryValue, EVK_AT) { twin::SetLoadBoundary(boundaryValue, at); }
inline void SetLoadDataRepeat(const LoadDataRepeatParam &repeatParams, EVK_AT)
{
    twin::SetLoadRepeat(repeatParams, at);
}

template <typename T, typename U = PrimT<T>>
void Fill(const LocalTensor<T> &dst, const InitConstValueParams<U> &initConstValueParams, EVK_AT)
{
    twin::FillMatrix(dst.Ref(),
                     {initConstValueParams.repeatTimes, initConstValueParams.blockNum, initConstValueParams.dstGap,
                      ToBits<U>(initConstValueParams.initValue)},
                     at);
}
template <typename T, typename U = PrimT<T>>
void InitConstValue(const LocalTensor<T> &dst, const InitConstValueParams<U> &initConstValueParams, EVK_AT)
{
    Fill<T, U>(dst, initConstValueParams, at);
}

// The matrix unit.
template <typename T, typename U, typename S>
void Mmad(const LocalTensor<T> &dst, const LocalTensor<U> &fm, const LocalTensor<S> &filter,
          const MmadParams &mmadParams, EVK_AT)
{
    twin::MatrixMultiply(dst.Ref(), fm.Ref(), filter.Ref(), nullptr, mmadParams, false, at);
}
template <typename T, typename U, typename S, typename V>
void Mmad(const LocalTensor<T> &dst, const LocalTensor<U> &fm, const LocalTensor<S> &filter, const LocalTensor<V> &bias,
          const MmadParams &mmadParams, EVK_AT)
{
    twin::MatrixMultiply(dst.Ref(), fm.Ref(), filter.Ref(), &bias.Ref(), mmadParams, false, at);
}
template <typename T = int32_t, typename U = int8_t>
void MmadWithSparse(const LocalTensor<T> &dst, const LocalTensor<U> &fm, const LocalTensor<U> &filter,
                    const MmadParams &mmadParams, EVK_AT)
{
    twin::MatrixMultiply(dst.Ref(), fm.Ref(), filter.Ref(), nullptr, mmadParams, true, at);
}

inline void SetHF32Mode(HF32Mode mode, EVK_AT) { twin::SetHalfFloat32(mode == HF32Mode::ENABLE, at); }
inline void SetHF32Mode(bool mode, EVK_AT) { twin::SetHalfFloat32(mode, at); }
inline void SetHF32TransMode(HF32TransMode mode, EVK_AT)
{
    twin::SetHalfFloat32Rounding(mode == HF32TransMode::NEAREST_ZERO, at);
}
inline void SetHF32TransMode(bool toZero, EVK_AT) { twin::SetHalfFloat32Rounding(toZero, at); }
inline void SetMMRowMajor(EVK_AT) { twin::SetMatrixOrder(true, at); }
inline void SetMMColumnMajor(EVK_AT) { twin::SetMatrixOrder(false, at); }
inline void SetMMLayoutTransform(bool rowMajor, EVK_AT) { twin::SetMatrixOrder(rowMajor, at); }

// Out of L0C.
template <typename T, typename U, const FixpipeConfig &config = CFG_ROW_MAJOR>
void Fixpipe(const GlobalTensor<T> &dst, const LocalTensor<U> &src, const FixpipeParamsV220 &intriParams, EVK_AT)
{
    twin::FixpipeToGlobal(dst.Ref(), src.Ref(), twin::ToCall(intriParams, config.format), at);
}
template <typename T, typename U, const FixpipeConfig &config = CFG_ROW_MAJOR, typename S = uint64_t>
void Fixpipe(const GlobalTensor<T> &dst, const LocalTensor<U> &src, const LocalTensor<S> &cbufWorkspace,
             const FixpipeParamsV220 &intriParams, EVK_AT)
{
    twin::FixpipeCall call = twin::ToCall(intriParams, config.format);
    call.vector = &cbufWorkspace.Ref();
    twin::FixpipeToGlobal(dst.Ref(), src.Ref(), call, at);
}
template <typename T, typename U, const FixpipeConfig &config = CFG_ROW_MAJOR>
void Fixpipe(const LocalTensor<T> &dst, const LocalTensor<U> &src, const FixpipeParamsV220 &intriParams, EVK_AT)
{
    twin::FixpipeToL1(dst.Ref(), src.Ref(), twin::ToCall(intriParams, CO2Layout::NZ), at);
}
template <typename T, typename U, const FixpipeConfig &config = CFG_ROW_MAJOR, typename S = uint64_t>
void Fixpipe(const LocalTensor<T> &dst, const LocalTensor<U> &src, const LocalTensor<S> &cbufWorkspace,
             const FixpipeParamsV220 &intriParams, EVK_AT)
{
    twin::FixpipeCall call = twin::ToCall(intriParams, CO2Layout::NZ);
    call.vector = &cbufWorkspace.Ref();
    twin::FixpipeToL1(dst.Ref(), src.Ref(), call, at);
}
template <typename T, typename U>
void Fixpipe(const GlobalTensor<T> &dst, const LocalTensor<U> &src, const FixpipeParams<U> &intriParams, EVK_AT)
{
    twin::FixpipeToGlobal(dst.Ref(), src.Ref(), twin::ToCall(intriParams), at);
}
template <typename T, typename U>
void Fixpipe(const LocalTensor<T> &dst, const LocalTensor<U> &src, const FixpipeParams<U> &intriParams, EVK_AT)
{
    twin::FixpipeToL1(dst.Ref(), src.Ref(), twin::ToCall(intriParams), at);
}
template <typename T, typename U>
void Fixpipe(const GlobalTensor<T> &dst, const LocalTensor<U> &src, const LocalTensor<uint64_t> &cbufWorkspace,
             const FixpipeParams<U> &intriParams, EVK_AT)
{
    twin::FixpipeCall call = twin::ToCall(intriParams);
    call.vector = &cbufWorkspace.Ref();
    twin::FixpipeToGlobal(dst.Ref(), src.Ref(), call, at);
}
template <typename T, typename U>
void Fixpipe(const LocalTensor<T> &dst, const LocalTensor<U> &src, const LocalTensor<uint64_t> &cbufWorkspace,
             const FixpipeParams<U> &intriParams, EVK_AT)
{
    twin::FixpipeCall call = twin::ToCall(intriParams);
    call.vector = &cbufWorkspace.Ref();
    twin::FixpipeToL1(dst.Ref(), src.Ref(), call, at);
}

inline void SetFixpipeNz2ndFlag(uint16_t ndNum, uint16_t srcNdStride, uint16_t dstNdStride, EVK_AT)
{
    twin::SetFixpipeMatrices(ndNum, srcNdStride, dstNdStride, at);
}
inline void SetFixpipePreQuantFlag(uint64_t config, EVK_AT) { twin::SetFixpipeScalar(config, at); }
template <typename T>
void SetFixPipeConfig(const LocalTensor<T> &, const LocalTensor<T> &quantPre, bool isUnitFlag = false, EVK_AT)
{
    twin::SetFixpipeVector(quantPre.Ref(), isUnitFlag, at);
}
template <typename T, bool setRelu = false>
void SetFixPipeConfig(const LocalTensor<T> &preData, bool isUnitFlag = false, EVK_AT)
{
    twin::SetFixpipeVector(preData.Ref(), isUnitFlag, at);
}

}  // namespace AscendC
