#include "kernel_operator.h"
#include "tiling.h"

class KernelRelu {
public:
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, const OpTiling &tiling)
    {
        const uint32_t start = AscendC::GetBlockIdx() * tiling.perBlock;
        count_ = tiling.total - start < tiling.perBlock ? tiling.total - start : tiling.perBlock;
        tile_ = tiling.tile;
        xGm_.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(x) + start, count_);
        yGm_.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(y) + start, count_);
        pipe_.InitBuffer(in_, 2, tile_ * sizeof(float));
        pipe_.InitBuffer(out_, 2, tile_ * sizeof(float));
    }

    __aicore__ inline void Process()
    {
        for (uint32_t offset = 0; offset < count_; offset += tile_) {
            const uint32_t length = count_ - offset < tile_ ? count_ - offset : tile_;
            const AscendC::DataCopyExtParams params{1, static_cast<uint32_t>(length * sizeof(float)), 0, 0, 0};
            const AscendC::DataCopyPadExtParams<float> pad{false, 0, 0, 0.0f};
            auto x = in_.AllocTensor<float>();
            AscendC::DataCopyPad(x, xGm_[offset], params, pad);
            in_.EnQue(x);
            x = in_.DeQue<float>();
            auto y = out_.AllocTensor<float>();
            AscendC::Relu(y, x, length);
            out_.EnQue(y);
            in_.FreeTensor(x);
            y = out_.DeQue<float>();
            AscendC::DataCopyPad(yGm_[offset], y, params);
            out_.FreeTensor(y);
        }
    }

private:
    AscendC::TPipe pipe_;
    AscendC::TQue<AscendC::TPosition::VECIN, 1> in_;
    AscendC::TQue<AscendC::TPosition::VECOUT, 1> out_;
    AscendC::GlobalTensor<float> xGm_, yGm_;
    uint32_t count_ = 0;
    uint32_t tile_ = 0;
};

extern "C" __global__ __aicore__ void relu_kernel(GM_ADDR x, GM_ADDR y, OpTiling tiling)
{
    KernelRelu kernel;
    kernel.Init(x, y, tiling);
    kernel.Process();
}

extern "C" void LaunchOp(void *stream, uint8_t *const *tensors, uint8_t *workspace, const OpTiling &tiling)
{
    relu_kernel<<<tiling.blockDim, nullptr, stream>>>(tensors[0], tensors[1], tiling);
}
