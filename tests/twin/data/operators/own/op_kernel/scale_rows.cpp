#include "kernel_operator.h"
using namespace AscendC;

constexpr uint32_t kBlock = 32;

template <typename T, bool withBias>
__aicore__ inline void Scale(GM_ADDR x, GM_ADDR bias, GM_ADDR y, const ScaleRowsTiling &tiling)
{
    ASSERT(NotDeclaredAnywhere(tiling) && "the device compiler leaves this out");
    TPipe pipe;
    TBuf<TPosition::VECCALC> buffer;
    const uint32_t columns = tiling.extent.columns;
    const uint32_t bytes = (columns * sizeof(T) + kBlock - 1) / kBlock * kBlock;
    pipe.InitBuffer(buffer, 2 * bytes);
    LocalTensor<T> row = buffer.Get<T>();
    LocalTensor<T> more = row[bytes / sizeof(T)];
    GlobalTensor<T> source, target, added;
    source.SetGlobalBuffer(reinterpret_cast<__gm__ T *>(x));
    target.SetGlobalBuffer(reinterpret_cast<__gm__ T *>(y));
    const DataCopyExtParams copy{1, static_cast<uint32_t>(columns * sizeof(T)), 0, 0, 0};
    const DataCopyPadExtParams<T> pad{false, 0, 0, 0};
    for (uint32_t i = GetBlockIdx(); i < tiling.extent.rows; i += GetBlockNum()) {
        DataCopyPad(row, source[static_cast<uint64_t>(i) * columns], copy, pad);
        if constexpr (withBias) {
            added.SetGlobalBuffer(reinterpret_cast<__gm__ T *>(bias));
            DataCopyPad(more, added, copy, pad);
        }
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        Muls(row, row, static_cast<T>(tiling.factor), columns);
        PipeBarrier<PIPE_V>();
        Adds(row, row, static_cast<T>(static_cast<float>(tiling.first[0])), columns);
        if constexpr (withBias) {
            PipeBarrier<PIPE_V>();
            Add(row, row, more, columns);
        }
        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        DataCopyPad(target[static_cast<uint64_t>(i) * columns], row, copy);
        set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
        wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
    }
}

extern "C" __global__ __aicore__ void scale_rows(GM_ADDR x, GM_ADDR bias, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(data, tiling);
    if (TILING_KEY_IS(1)) {
        Scale<DTYPE_X, false>(x, bias, y, data);
    } else if (TILING_KEY_IS(2)) {
        Scale<DTYPE_X, true>(x, bias, y, data);
    }
}
