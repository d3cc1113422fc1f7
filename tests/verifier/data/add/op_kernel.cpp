#include "kernel_operator.h"
#include "tiling.h"

using namespace AscendC;

// z = x + y, element by element; each block takes a run of whole repeats, the last one the tail.
class KernelAdd {
public:
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, GM_ADDR z, const OpTiling &tiling)
    {
        uint64_t start = GetBlockIdx() * tiling.perBlock;
        count = tiling.total - start < tiling.perBlock ? tiling.total - start : tiling.perBlock;
        tile = tiling.tile;
        xGm.SetGlobalBuffer((__gm__ half *)x + start, count);
        yGm.SetGlobalBuffer((__gm__ half *)y + start, count);
        zGm.SetGlobalBuffer((__gm__ half *)z + start, count);
        pipe.InitBuffer(xQueue, BUFFERS, tile * sizeof(half));
        pipe.InitBuffer(yQueue, BUFFERS, tile * sizeof(half));
        pipe.InitBuffer(zQueue, BUFFERS, tile * sizeof(half));
    }

    __aicore__ inline void Process()
    {
        for (uint64_t offset = 0; offset < count; offset += tile) {
            uint32_t length = static_cast<uint32_t>(count - offset < tile ? count - offset : tile);
            CopyIn(offset, length);
            Compute(length);
            CopyOut(offset, length);
        }
    }

private:
    __aicore__ inline void CopyIn(uint64_t offset, uint32_t length)
    {
        DataCopyExtParams params{1, static_cast<uint32_t>(length * sizeof(half)), 0, 0, 0};
        DataCopyPadExtParams<half> pad{false, 0, 0, 0};
        LocalTensor<half> x = xQueue.AllocTensor<half>();
        LocalTensor<half> y = yQueue.AllocTensor<half>();
        DataCopyPad(x, xGm[offset], params, pad);
        DataCopyPad(y, yGm[offset], params, pad);
        xQueue.EnQue(x);
        yQueue.EnQue(y);
    }

    __aicore__ inline void Compute(uint32_t length)
    {
        LocalTensor<half> x = xQueue.DeQue<half>();
        LocalTensor<half> y = yQueue.DeQue<half>();
        LocalTensor<half> z = zQueue.AllocTensor<half>();
        Add(z, x, y, length);
        zQueue.EnQue(z);
        xQueue.FreeTensor(x);
        yQueue.FreeTensor(y);
    }

    __aicore__ inline void CopyOut(uint64_t offset, uint32_t length)
    {
        LocalTensor<half> z = zQueue.DeQue<half>();
        DataCopyExtParams params{1, static_cast<uint32_t>(length * sizeof(half)), 0, 0, 0};
        DataCopyPad(zGm[offset], z, params);
        zQueue.FreeTensor(z);
    }

    TPipe pipe;
    TQue<QuePosition::VECIN, 1> xQueue, yQueue;
    TQue<QuePosition::VECOUT, 1> zQueue;
    GlobalTensor<half> xGm, yGm, zGm;
    uint64_t count;
    uint32_t tile;
};

extern "C" __global__ __vector__ void add_kernel(GM_ADDR x, GM_ADDR y, GM_ADDR z, GM_ADDR workspace, OpTiling tiling)
{
    KernelAdd kernel;
    kernel.Init(x, y, z, tiling);
    kernel.Process();
}

extern "C" void LaunchOp(void *stream, uint8_t *const *tensors, uint8_t *workspace, const OpTiling &tiling)
{
    add_kernel<<<tiling.blockDim, nullptr, stream>>>(tensors[0], tensors[1], tensors[2], workspace, tiling);
}
