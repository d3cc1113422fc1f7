// TopK.
#pragma once
#include "evokernel/twin/api_vector.h"
#include "evokernel/twin/tensor.h"
#include "evokernel/twin/tiling_vector.h"

namespace AscendC {

enum class TopKMode { TOPK_NORMAL, TOPK_NSMALL };
enum class TopKAlgo { RADIX_SELECT, MERGE_SORT };
enum class TopKOrder { UNSET, LARGEST, SMALLEST };

struct TopKConfig {
    TopKAlgo algo = TopKAlgo::MERGE_SORT;
    TopKOrder order = TopKOrder::UNSET;
    bool sorted = true;
};

struct TopKInfo {
    int32_t outter = 1;
    int32_t inner = 0;
    int32_t n = 0;
};

namespace detail {

template <typename T, bool isInitIndex, bool isHasfinish, TopKMode mode>
twin::TopKCall MakeTopK(const LocalTensor<T> &values, const LocalTensor<int32_t> &indices, const LocalTensor<T> &src,
                        const LocalTensor<int32_t> &src_index, const LocalTensor<bool> &finish, int32_t k,
                        const TopkTiling &tiling, const TopKInfo &info, bool largest)
{
    twin::TopKCall call;
    call.values = values.Ref();
    call.indices = indices.Ref();
    call.src = src.Ref();
    call.src_index = src_index.Ref();
    call.finish = finish.Ref();
    call.given_index = isInitIndex;
    call.has_finish = isHasfinish;
    call.small = mode == TopKMode::TOPK_NSMALL;
    call.largest = largest;
    call.k = k;
    call.rows = info.outter;
    call.inner = info.inner;
    call.n = info.n;
    call.tmp_bytes = static_cast<uint32_t>(tiling.tmpLocalSize);
    return call;
}

}  // namespace detail

template <typename T, bool isInitIndex = false, bool isHasfinish = false, bool isReuseSrc = false,
          enum TopKMode topkMode = TopKMode::TOPK_NORMAL>
void TopK(const LocalTensor<T> &dstValueLocal, const LocalTensor<int32_t> &dstIndexLocal,
          const LocalTensor<T> &srcLocal, const LocalTensor<int32_t> &srcIndexLocal,
          const LocalTensor<bool> &finishLocal, const int32_t k, const TopkTiling &tilling, const TopKInfo &topKInfo,
          const bool isLargest = true, EVK_AT)
{
    twin::TopKRows(detail::MakeTopK<T, isInitIndex, isHasfinish, topkMode>(dstValueLocal, dstIndexLocal, srcLocal,
                                                                           srcIndexLocal, finishLocal, k, tilling,
                                                                           topKInfo, isLargest),
                   at);
}
template <typename T, bool isInitIndex = false, bool isHasfinish = false, bool isReuseSrc = false,
          enum TopKMode topkMode = TopKMode::TOPK_NORMAL>
void TopK(const LocalTensor<T> &dstValueLocal, const LocalTensor<int32_t> &dstIndexLocal,
          const LocalTensor<T> &srcLocal, const LocalTensor<int32_t> &srcIndexLocal,
          const LocalTensor<bool> &finishLocal, const LocalTensor<uint8_t> &tmpLocal, const int32_t k,
          const TopkTiling &tilling, const TopKInfo &topKInfo, const bool isLargest = true, EVK_AT)
{
    twin::TopKCall call = detail::MakeTopK<T, isInitIndex, isHasfinish, topkMode>(
        dstValueLocal, dstIndexLocal, srcLocal, srcIndexLocal, finishLocal, k, tilling, topKInfo, isLargest);
    call.tmp = &tmpLocal.Ref();
    twin::TopKRows(call, at);
}

}  // namespace AscendC
