// DataCopy, DataCopyPad and atomics.
#pragma once
#include "evokernel/twin/cube_api.h"
#include "evokernel/twin/tensor.h"

namespace AscendC {

namespace detail {

// Strides of DataCopyParams are gaps in data blocks of 32 bytes.
inline twin::Burst ToBurst(const DataCopyParams &params)
{
    const uint32_t length = params.blockLen * 32u;
    return twin::Burst{params.blockCount, length, length + params.srcGap * 32u, length + params.dstGap * 32u};
}
inline DataCopyExtParams Extend(const DataCopyParams &params)
{
    return DataCopyExtParams(params.blockCount, params.blockLen, params.srcStride, params.dstStride, 0);
}

}  // namespace detail

template <typename T>
void DataCopy(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const uint32_t count, EVK_AT)
{
    twin::CopyCountIn(dst.Ref(), src.Ref(), count, at);
}
template <typename T>
void DataCopy(const GlobalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t count, EVK_AT)
{
    twin::CopyCountOut(dst.Ref(), src.Ref(), count, at);
}
template <typename T>
void DataCopy(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t count, EVK_AT)
{
    twin::CopyLocalCount(dst.Ref(), src.Ref(), count, at);
}
template <typename T>
void DataCopy(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const DataCopyParams &params, EVK_AT)
{
    twin::CheckCopyParams(params, "DataCopy", at);
    twin::CopyIn(dst.Ref(), src.Ref(), detail::ToBurst(params), at);
}
template <typename T>
void DataCopy(const GlobalTensor<T> &dst, const LocalTensor<T> &src, const DataCopyParams &params, EVK_AT)
{
    twin::CheckCopyParams(params, "DataCopy", at);
    twin::CopyOut(dst.Ref(), src.Ref(), detail::ToBurst(params), at);
}
template <typename T>
void DataCopy(const LocalTensor<T> &dst, const LocalTensor<T> &src, const DataCopyParams &params, EVK_AT)
{
    twin::CheckCopyParams(params, "DataCopy", at);
    if (twin::IsCubePosition(dst.Ref())) {
        return twin::CopyLocalParams(dst.Ref(), src.Ref(), params, at);
    }
    twin::CopyLocal(dst.Ref(), src.Ref(), detail::ToBurst(params), "DataCopy", at);
}

template <typename T>
void DataCopyPad(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const DataCopyExtParams &params,
                 const DataCopyPadExtParams<T> &padding, EVK_AT)
{
    twin::CopyPadIn(
        dst.Ref(), src.Ref(), params,
        twin::Padding{padding.isPad, padding.leftPadding, padding.rightPadding, ToBits<T>(padding.paddingValue)}, at);
}
template <typename T>
void DataCopyPad(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const DataCopyParams &params,
                 const DataCopyPadParams &padding, EVK_AT)
{
    twin::CopyPadIn(dst.Ref(), src.Ref(), detail::Extend(params),
                    twin::Padding{padding.isPad, padding.leftPadding, padding.rightPadding, padding.paddingValue}, at);
}
template <typename T>
void DataCopyPad(const GlobalTensor<T> &dst, const LocalTensor<T> &src, const DataCopyExtParams &params, EVK_AT)
{
    twin::CopyPadOut(dst.Ref(), src.Ref(), params, at);
}
template <typename T>
void DataCopyPad(const GlobalTensor<T> &dst, const LocalTensor<T> &src, const DataCopyParams &params, EVK_AT)
{
    twin::CopyPadOut(dst.Ref(), src.Ref(), detail::Extend(params), at);
}

template <typename T> void SetAtomicAdd(EVK_AT) { twin::SetAtomic(twin::Atomic::Add, twin::kDType<T>, at); }
template <typename T> void SetAtomicMax(EVK_AT) { twin::SetAtomic(twin::Atomic::Max, twin::kDType<T>, at); }
template <typename T> void SetAtomicMin(EVK_AT) { twin::SetAtomic(twin::Atomic::Min, twin::kDType<T>, at); }
inline void SetAtomicNone(EVK_AT) { twin::SetAtomic(twin::Atomic::None, twin::DType::F32, at); }
inline void DisableDmaAtomic(EVK_AT) { twin::SetAtomic(twin::Atomic::None, twin::DType::F32, at); }

template <typename T, CacheLine line, DcciDst target = DcciDst::CACHELINE_ALL>
void DataCacheCleanAndInvalid(const GlobalTensor<T> &tensor, EVK_AT)
{
    twin::CleanDataCache(line == CacheLine::ENTIRE_DATA_CACHE ? nullptr : tensor.Ref().address, at);
}

}  // namespace AscendC
