// y[i] = x[index[i]] by the scalar unit: each element is read and written with GetValue and SetValue.
#include "kernel_operator.h"

using namespace AscendC;

constexpr uint32_t kTable = 4096;
constexpr uint32_t kPerBlock = 2048;

extern "C" __global__ __vector__ void gather(GM_ADDR x, GM_ADDR index, GM_ADDR y)
{
    TPipe pipe;
    TBuf<TPosition::VECCALC> table_buffer, index_buffer, out_buffer;
    pipe.InitBuffer(table_buffer, kTable * sizeof(float));
    pipe.InitBuffer(index_buffer, kPerBlock * sizeof(int32_t));
    pipe.InitBuffer(out_buffer, kPerBlock * sizeof(float));
    LocalTensor<float> table = table_buffer.Get<float>();
    LocalTensor<int32_t> places = index_buffer.Get<int32_t>();
    LocalTensor<float> out = out_buffer.Get<float>();
    GlobalTensor<float> from, to;
    GlobalTensor<int32_t> indices;
    const uint32_t first = GetBlockIdx() * kPerBlock;
    from.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(x), kTable);
    indices.SetGlobalBuffer(reinterpret_cast<__gm__ int32_t *>(index) + first, kPerBlock);
    to.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(y) + first, kPerBlock);
    DataCopy(table, from, kTable);
    DataCopy(places, indices, kPerBlock);
    PipeBarrier<PIPE_ALL>();
    for (uint32_t i = 0; i < kPerBlock; ++i) {
        out.SetValue(i, table.GetValue(places.GetValue(i)));
    }
    PipeBarrier<PIPE_ALL>();
    DataCopy(to, out, kPerBlock);
}
