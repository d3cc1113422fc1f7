#include "kernel_operator.h"

using namespace AscendC;

struct ScaleTiling {
    uint32_t total;
    float factor;
};

// z = x * factor * tiling.factor; every block takes an equal share.
extern "C" __global__ __vector__ void scale(GM_ADDR x, GM_ADDR z, uint32_t total, float factor, ScaleTiling tiling,
                                            GM_ADDR workspace)
{
    const uint32_t share = total / GetBlockNum();
    GlobalTensor<float> xGm, zGm;
    xGm.SetGlobalBuffer((__gm__ float *)x + GetBlockIdx() * share, share);
    zGm.SetGlobalBuffer((__gm__ float *)z + GetBlockIdx() * share, share);
    TPipe pipe;
    TQue<QuePosition::VECIN, 1> in;
    TQue<QuePosition::VECOUT, 1> out;
    pipe.InitBuffer(in, 1, share * sizeof(float));
    pipe.InitBuffer(out, 1, share * sizeof(float));
    LocalTensor<float> a = in.AllocTensor<float>();
    DataCopy(a, xGm, share);
    in.EnQue(a);
    a = in.DeQue<float>();
    LocalTensor<float> b = out.AllocTensor<float>();
    Muls(b, a, factor * tiling.factor, share);
    out.EnQue(b);
    in.FreeTensor(a);
    b = out.DeQue<float>();
    DataCopy(zGm, b, share);
    out.FreeTensor(b);
}
