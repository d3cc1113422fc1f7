#include "kernel_operator.h"
#include "tiling.h"

using namespace AscendC;

// y[r] = exp(x[r] - max x[r]) / sum exp(x[r] - max x[r]), computed in float; rows are dealt in turn.
class KernelSoftmax {
public:
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, const OpTiling &tiling)
    {
        rows = tiling.rows;
        columns = tiling.columns;
        padded = (columns + LANES - 1) / LANES * LANES;
        xGm.SetGlobalBuffer((__gm__ half *)x, static_cast<uint64_t>(rows) * columns);
        yGm.SetGlobalBuffer((__gm__ half *)y, static_cast<uint64_t>(rows) * columns);
        pipe.InitBuffer(inQueue, 2, padded * sizeof(half));
        pipe.InitBuffer(outQueue, 2, padded * sizeof(half));
        pipe.InitBuffer(rowBuffer, padded * sizeof(float));
        pipe.InitBuffer(scratchBuffer, padded * sizeof(float));
        pipe.InitBuffer(resultBuffer, 32);
    }

    __aicore__ inline void Process()
    {
        for (uint32_t row = GetBlockIdx(); row < rows; row += GetBlockNum()) {
            CopyIn(row);
            Compute();
            CopyOut(row);
        }
    }

private:
    static constexpr uint32_t LANES = 64;

    __aicore__ inline void CopyIn(uint32_t row)
    {
        LocalTensor<half> x = inQueue.AllocTensor<half>();
        DataCopyExtParams params{1, static_cast<uint32_t>(columns * sizeof(half)), 0, 0, 0};
        DataCopyPadExtParams<half> pad{false, 0, 0, 0};
        DataCopyPad(x, xGm[static_cast<uint64_t>(row) * columns], params, pad);
        inQueue.EnQue(x);
    }

    __aicore__ inline void Compute()
    {
        LocalTensor<half> x = inQueue.DeQue<half>();
        LocalTensor<float> values = rowBuffer.Get<float>();
        LocalTensor<float> scratch = scratchBuffer.Get<float>();
        LocalTensor<float> result = resultBuffer.Get<float>();
        Cast(values, x, RoundMode::CAST_NONE, columns);
        inQueue.FreeTensor(x);
        PipeBarrier<PIPE_V>();
        ReduceMax(result, values, scratch, columns);
        event_t ready = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::V_S));
        SetFlag<HardEvent::V_S>(ready);
        WaitFlag<HardEvent::V_S>(ready);
        float largest = result.GetValue(0);
        Adds(values, values, -largest, columns);
        PipeBarrier<PIPE_V>();
        Exp(values, values, columns);
        PipeBarrier<PIPE_V>();
        ReduceSum(result, values, scratch, columns);
        SetFlag<HardEvent::V_S>(ready);
        WaitFlag<HardEvent::V_S>(ready);
        float sum = result.GetValue(0);
        Muls(values, values, 1.0f / sum, columns);
        PipeBarrier<PIPE_V>();
        LocalTensor<half> y = outQueue.AllocTensor<half>();
        Cast(y, values, RoundMode::CAST_RINT, columns);
        outQueue.EnQue(y);
    }

    __aicore__ inline void CopyOut(uint32_t row)
    {
        LocalTensor<half> y = outQueue.DeQue<half>();
        DataCopyExtParams params{1, static_cast<uint32_t>(columns * sizeof(half)), 0, 0, 0};
        DataCopyPad(yGm[static_cast<uint64_t>(row) * columns], y, params);
        outQueue.FreeTensor(y);
    }

    TPipe pipe;
    TQue<QuePosition::VECIN, 1> inQueue;
    TQue<QuePosition::VECOUT, 1> outQueue;
    TBuf<QuePosition::VECCALC> rowBuffer, scratchBuffer, resultBuffer;
    GlobalTensor<half> xGm, yGm;
    uint32_t rows, columns, padded;
};

extern "C" __global__ __vector__ void softmax_kernel(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, OpTiling tiling)
{
    KernelSoftmax kernel;
    kernel.Init(x, y, tiling);
    kernel.Process();
}

extern "C" void LaunchOp(void *stream, uint8_t *const *tensors, uint8_t *workspace, const OpTiling &tiling)
{
    softmax_kernel<<<tiling.blockDim, nullptr, stream>>>(tensors[0], tensors[1], workspace, tiling);
}
