// An amount that the tiling chooses is added to what lies above zero, or taken from it.
#include "shift_rows_tiling_key.h"
#include "kernel_operator.h"
using namespace AscendC;

class Rows {
public:
    __aicore__ inline void Take(TPipe &pipe) { pipe_ = pipe; }
    TPipe pipe_;
};

__aicore__ inline void Allocate(TPipe pipe, TBuf<TPosition::VECCALC> &buffer, uint32_t bytes)
{
    pipe.InitBuffer(buffer, bytes);
}

template <typename T, bool down, int amount>
__global__ __aicore__ void shift_rows(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(data, tiling);
    constexpr uint32_t lanes = 256 / sizeof(T);
    TPipe pipe;
    TBuf<TPosition::VECCALC> buffer;
    Allocate(pipe, buffer, 4 * lanes * sizeof(T));
    LocalTensor<T> value = buffer.Get<T>(), zero = value[lanes], moved = value[2 * lanes];
    LocalTensor<uint8_t> above = value[3 * lanes].template ReinterpretCast<uint8_t>();
    GlobalTensor<T> source, target;
    source.SetGlobalBuffer(reinterpret_cast<__gm__ T *>(x));
    target.SetGlobalBuffer(reinterpret_cast<__gm__ T *>(y));
    value.SetSize(lanes), zero.SetSize(lanes);
    for (uint32_t i = 0; i < data.repeats; ++i) {
        DataCopy(value, source[i * lanes], lanes);
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        Duplicate(zero, static_cast<T>(0), lanes);
        Adds(moved, value, static_cast<T>(down ? -amount : amount), lanes);
        PipeBarrier<PIPE_V>();
        above = value > zero;
        PipeBarrier<PIPE_V>();
        Select(value, above, moved, value, SELMODE::VSEL_TENSOR_TENSOR_MODE, lanes);
        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        DataCopy(target[i * lanes], value, lanes);
        set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
        wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
    }
}
