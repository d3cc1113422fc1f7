// Each tensor of a list plus one, and in place the number of their elements.
#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void add_lists(
    GM_ADDR x, GM_ADDR total, GM_ADDR y, GM_ADDR totalOut, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(data, tiling);
    ListTensorDesc sources(reinterpret_cast<__gm__ void *>(x)), targets(reinterpret_cast<__gm__ void *>(y));
    GlobalTensor<float> sum;
    sum.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(totalOut));
    float elements = sum.GetValue(0);
    for (uint32_t i = 0; i < data.tensors; ++i) {
        uint64_t sizes[8];
        TensorDesc<float> desc;
        desc.SetShapeAddr(sizes);
        sources.GetDesc(desc, i);
        uint64_t count = 1;
        for (uint32_t d = 0; d < desc.GetDim(); ++d) {
            count *= desc.GetShape(d);
        }
        GlobalTensor<float> from, to;
        from.SetGlobalBuffer(sources.GetDataPtr<float>(i));
        to.SetGlobalBuffer(targets.GetDataPtr<float>(i));
        for (uint64_t k = 0; k < count; ++k) {
            to.SetValue(k, from.GetValue(k) + 1.0f);
        }
        DataCacheCleanAndInvalid<float, CacheLine::ENTIRE_DATA_CACHE, DcciDst::CACHELINE_OUT>(to);
        elements += static_cast<float>(count);
    }
    sum.SetValue(0, elements);
    DataCacheCleanAndInvalid<float, CacheLine::ENTIRE_DATA_CACHE, DcciDst::CACHELINE_OUT>(sum);
}
