// z = x + y of floats, double-buffered. The count is a multiple of the tile and of the blocks.
#include "kernel_operator.h"

using namespace AscendC;

constexpr uint32_t kTile = 2048;  // 8 KB: six buffers fit in the unified buffer

class AddKernel {
public:
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t count)
    {
        share_ = count / GetBlockNum();
        const uint64_t start = static_cast<uint64_t>(GetBlockIdx()) * share_;
        x_.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(x) + start, share_);
        y_.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(y) + start, share_);
        z_.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(z) + start, share_);
        pipe_.InitBuffer(inX_, 2, kTile * sizeof(float));
        pipe_.InitBuffer(inY_, 2, kTile * sizeof(float));
        pipe_.InitBuffer(outZ_, 2, kTile * sizeof(float));
    }

    __aicore__ inline void Process()
    {
        for (uint32_t start = 0; start < share_; start += kTile) {
            CopyIn(start);
            Compute();
            CopyOut(start);
        }
    }

private:
    __aicore__ inline void CopyIn(uint32_t start)
    {
        LocalTensor<float> x = inX_.AllocTensor<float>();
        LocalTensor<float> y = inY_.AllocTensor<float>();
        DataCopy(x, x_[start], kTile);
        DataCopy(y, y_[start], kTile);
        inX_.EnQue(x);
        inY_.EnQue(y);
    }

    __aicore__ inline void Compute()
    {
        LocalTensor<float> x = inX_.DeQue<float>();
        LocalTensor<float> y = inY_.DeQue<float>();
        LocalTensor<float> z = outZ_.AllocTensor<float>();
        Add(z, x, y, kTile);
        outZ_.EnQue(z);
        inX_.FreeTensor(x);
        inY_.FreeTensor(y);
    }

    __aicore__ inline void CopyOut(uint32_t start)
    {
        LocalTensor<float> z = outZ_.DeQue<float>();
        DataCopy(z_[start], z, kTile);
        outZ_.FreeTensor(z);
    }

    TPipe pipe_;
    TQue<TPosition::VECIN, 2> inX_;
    TQue<TPosition::VECIN, 2> inY_;
    TQue<TPosition::VECOUT, 2> outZ_;
    GlobalTensor<float> x_;
    GlobalTensor<float> y_;
    GlobalTensor<float> z_;
    uint32_t share_ = 0;
};

extern "C" __global__ __aicore__ void add(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t count)
{
    AddKernel kernel;
    kernel.Init(x, y, z, count);
    kernel.Process();
}
