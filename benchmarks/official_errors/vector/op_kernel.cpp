#include "kernel_operator.h"
#include "tiling.h"

using namespace AscendC;

constexpr int32_t BUFFER_NUM = 2;

class ScaledAdd {
public:
    __aicore__ inline ScaledAdd() {}
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, GM_ADDR z, const OpTiling &tiling, TPipe *pipe)
    {
        tiling_ = tiling;
        const uint32_t offset = GetBlockIdx() * tiling.tiles * TILE_ELEMENTS;
        xGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ half *>(x) + offset);
        yGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ half *>(y) + offset);
        zGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(z) + offset);
        pipe->InitBuffer(xQueue, BUFFER_NUM, TILE_ELEMENTS * sizeof(half));
        pipe->InitBuffer(yQueue, BUFFER_NUM, TILE_ELEMENTS * sizeof(half));
        pipe->InitBuffer(zQueue, BUFFER_NUM, TILE_ELEMENTS * sizeof(float));
        pipe->InitBuffer(sumBuffer, TILE_ELEMENTS * sizeof(half));
        pipe->InitBuffer(maskBuffer, TILE_ELEMENTS / 8);
    }

    __aicore__ inline void Process()
    {
        for (uint32_t tile = 0; tile < tiling_.tiles; ++tile) {
            CopyIn(tile);
            Compute();
            CopyOut(tile);
        }
    }

private:
    __aicore__ inline void CopyIn(uint32_t tile)
    {
        LocalTensor<half> xLocal = xQueue.AllocTensor<half>();
        LocalTensor<half> yLocal = yQueue.AllocTensor<half>();
        DataCopyExtParams copy{1, TILE_ELEMENTS * sizeof(half), 0, 0, 0};
        DataCopyPadExtParams<half> pad{false, 0, 0, 0};
        DataCopyPad(xLocal, xGlobal[tile * TILE_ELEMENTS], copy, pad);
        DataCopy(yLocal, yGlobal[tile * TILE_ELEMENTS], TILE_ELEMENTS);
        xQueue.EnQue(xLocal);
        yQueue.EnQue(yLocal);
    }

    __aicore__ inline void Compute()
    {
        LocalTensor<half> xLocal = xQueue.DeQue<half>();
        LocalTensor<half> yLocal = yQueue.DeQue<half>();
        LocalTensor<float> zLocal = zQueue.AllocTensor<float>();
        LocalTensor<half> sum = sumBuffer.Get<half>();
        LocalTensor<uint8_t> mask = maskBuffer.Get<uint8_t>();
        Add(sum, xLocal, yLocal, TILE_ELEMENTS);
        CompareScalar(mask, sum, static_cast<half>(0), CMPMODE::GT, TILE_ELEMENTS);
        Exp(sum, sum, TILE_ELEMENTS);
        Cast(zLocal, sum, RoundMode::CAST_NONE, TILE_ELEMENTS);
        Muls(zLocal, zLocal, tiling_.scale, TILE_ELEMENTS);
        PipeBarrier<PIPE_V>();
        zQueue.EnQue(zLocal);
        xQueue.FreeTensor(xLocal);
        yQueue.FreeTensor(yLocal);
    }

    __aicore__ inline void CopyOut(uint32_t tile)
    {
        LocalTensor<float> zLocal = zQueue.DeQue<float>();
        DataCopy(zGlobal[tile * TILE_ELEMENTS], zLocal, TILE_ELEMENTS);
        zQueue.FreeTensor(zLocal);
    }

    OpTiling tiling_;
    TQue<TPosition::VECIN, BUFFER_NUM> xQueue;
    TQue<TPosition::VECIN, BUFFER_NUM> yQueue;
    TQue<TPosition::VECOUT, BUFFER_NUM> zQueue;
    TBuf<TPosition::VECCALC> sumBuffer;
    TBuf<TPosition::VECCALC> maskBuffer;
    GlobalTensor<half> xGlobal;
    GlobalTensor<half> yGlobal;
    GlobalTensor<float> zGlobal;
};

extern "C" __global__ __vector__ void scaled_add(GM_ADDR x, GM_ADDR y, GM_ADDR z, OpTiling tiling)
{
    TPipe pipe;
    ScaledAdd op;
    op.Init(x, y, z, tiling, &pipe);
    op.Process();
}

extern "C" void LaunchOp(void *stream, uint8_t *const *tensors, const OpTiling &tiling)
{
    scaled_add<<<tiling.blockDim, nullptr, stream>>>(tensors[0], tensors[1], tensors[2], tiling);
}
