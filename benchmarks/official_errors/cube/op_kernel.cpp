#include "kernel_operator.h"
#include "tiling.h"

using namespace AscendC;

constexpr uint32_t SIDE = 64;
constexpr uint32_t FRACTAL = 16;
constexpr uint32_t ELEMENTS = SIDE * SIDE;

class SquareProduct {
public:
    __aicore__ inline SquareProduct() {}
    __aicore__ inline void Init(GM_ADDR a, GM_ADDR b, GM_ADDR c, const OpTiling &tiling, TPipe *pipe)
    {
        aGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ half *>(a));
        bGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ half *>(b));
        cGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(c));
        pipe->InitBuffer(a1Queue, 1, ELEMENTS * sizeof(half));
        pipe->InitBuffer(b1Queue, 1, ELEMENTS * sizeof(half));
        pipe->InitBuffer(a2Queue, 1, ELEMENTS * sizeof(half));
        pipe->InitBuffer(b2Queue, 1, ELEMENTS * sizeof(half));
        pipe->InitBuffer(resultQueue, 1, ELEMENTS * sizeof(float));
    }

    __aicore__ inline void Process()
    {
        LocalTensor<half> a1 = a1Queue.AllocTensor<half>();
        LocalTensor<half> b1 = b1Queue.AllocTensor<half>();
        Nd2NzParams copy;
        copy.ndNum = 1;
        copy.nValue = SIDE;
        copy.dValue = SIDE;
        copy.srcDValue = SIDE;
        copy.dstNzC0Stride = SIDE;
        copy.dstNzNStride = 1;
        DataCopy(a1, aGlobal, copy);
        DataCopy(b1, bGlobal, copy);
        a1Queue.EnQue(a1);
        b1Queue.EnQue(b1);
        Split();
        Multiply();
        Store();
    }

private:
    __aicore__ inline void Split()
    {
        LocalTensor<half> a1 = a1Queue.DeQue<half>();
        LocalTensor<half> b1 = b1Queue.DeQue<half>();
        LocalTensor<half> a2 = a2Queue.AllocTensor<half>();
        LocalTensor<half> b2 = b2Queue.AllocTensor<half>();
        LoadData2DParams load;
        load.repeatTimes = SIDE / FRACTAL;
        load.srcStride = 1;
        LoadData(a2, a1, load);
        LoadData(b2, b1, load);
        a2Queue.EnQue(a2);
        b2Queue.EnQue(b2);
        a1Queue.FreeTensor(a1);
        b1Queue.FreeTensor(b1);
    }

    __aicore__ inline void Multiply()
    {
        LocalTensor<half> a2 = a2Queue.DeQue<half>();
        LocalTensor<half> b2 = b2Queue.DeQue<half>();
        LocalTensor<float> result = resultQueue.AllocTensor<float>();
        MmadParams params;
        params.m = SIDE;
        params.n = SIDE;
        params.k = SIDE;
        params.cmatrixInitVal = true;
        Mmad(result, a2, b2, params);
        resultQueue.EnQue(result);
        a2Queue.FreeTensor(a2);
        b2Queue.FreeTensor(b2);
    }

    __aicore__ inline void Store()
    {
        LocalTensor<float> result = resultQueue.DeQue<float>();
        FixpipeParamsV220 params;
        params.nSize = SIDE;
        params.mSize = SIDE;
        params.srcStride = SIDE;
        params.dstStride = SIDE;
        params.ndNum = 1;
        Fixpipe<float, float, CFG_ROW_MAJOR>(cGlobal, result, params);
        resultQueue.FreeTensor(result);
    }

    TQue<TPosition::A1, 1> a1Queue;
    TQue<TPosition::B1, 1> b1Queue;
    TQue<TPosition::A2, 1> a2Queue;
    TQue<TPosition::B2, 1> b2Queue;
    TQue<TPosition::CO1, 1> resultQueue;
    GlobalTensor<half> aGlobal;
    GlobalTensor<half> bGlobal;
    GlobalTensor<float> cGlobal;
};

extern "C" __global__ __cube__ void product(GM_ADDR a, GM_ADDR b, GM_ADDR c, OpTiling tiling)
{
    TPipe pipe;
    SquareProduct op;
    op.Init(a, b, c, tiling, &pipe);
    op.Process();
}

extern "C" void LaunchOp(void *stream, uint8_t *const *tensors, const OpTiling &tiling)
{
    product<<<tiling.blockDim, nullptr, stream>>>(tensors[0], tensors[1], tensors[2], tiling);
}
