// c = a b: halves of 1024 x 1024, float result. 16 blocks, each 256 x 256 of the result in two halves.
#include "kernel_operator.h"

using namespace AscendC;

constexpr uint32_t kSide = 1024;
constexpr uint32_t kM = 256;
constexpr uint32_t kN = 128;  // 256 x 128 floats fill L0C
constexpr uint32_t kStep = 128;
constexpr uint32_t kFractal = 16;

class MatmulKernel {
public:
    __aicore__ inline void Init(GM_ADDR a, GM_ADDR b, GM_ADDR c)
    {
        a_.SetGlobalBuffer(reinterpret_cast<__gm__ half *>(a), kSide * kSide);
        b_.SetGlobalBuffer(reinterpret_cast<__gm__ half *>(b), kSide * kSide);
        c_.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(c), kSide * kSide);
        row_ = GetBlockIdx() / (kSide / kM) * kM;
        column_ = GetBlockIdx() % (kSide / kM) * kM;
    }

    __aicore__ inline void Process()
    {
        for (uint32_t n = column_; n < column_ + kM; n += kN) {
            for (uint32_t k = 0; k < kSide; k += kStep) {
                CopyIn(n, k);
                Load();
                Multiply(k == 0);
            }
            CopyOut(n);
        }
    }

private:
    __aicore__ inline void CopyIn(uint32_t n, uint32_t k)
    {
        DataCopy(a1_, a_[row_ * kSide + k], Nd2NzParams(1, kM, kStep, 0, kSide, kM, 1, 0));
        DataCopy(b1_, b_[k * kSide + n], Nd2NzParams(1, kStep, kN, 0, kSide, kStep, 1, 0));
        SetFlag<HardEvent::MTE2_MTE1>(EVENT_ID0);
        WaitFlag<HardEvent::MTE2_MTE1>(EVENT_ID0);
    }

    __aicore__ inline void Load()
    {
        LoadData2DParams rows;
        rows.repeatTimes = kStep / kFractal;
        rows.srcStride = kM / kFractal;
        for (uint32_t i = 0; i < kM / kFractal; ++i) {
            LoadData(a2_[i * kStep * kFractal], a1_[i * kFractal * kFractal], rows);
        }
        LoadData3DParamsV2<half> columns;
        columns.l1H = 1;
        columns.l1W = kStep;
        columns.channelSize = kN;
        columns.kExtension = kN;
        columns.mExtension = kStep;
        LoadData(b2_, b1_, columns);
        SetFlag<HardEvent::MTE1_M>(EVENT_ID0);
        WaitFlag<HardEvent::MTE1_M>(EVENT_ID0);
        SetFlag<HardEvent::MTE1_MTE2>(EVENT_ID0);
        WaitFlag<HardEvent::MTE1_MTE2>(EVENT_ID0);
    }

    __aicore__ inline void Multiply(bool first)
    {
        MmadParams params;
        params.m = kM;
        params.n = kN;
        params.k = kStep;
        params.cmatrixInitVal = first;
        Mmad(l0c_, a2_, b2_, params);
        SetFlag<HardEvent::M_MTE1>(EVENT_ID0);
        WaitFlag<HardEvent::M_MTE1>(EVENT_ID0);
    }

    __aicore__ inline void CopyOut(uint32_t n)
    {
        SetFlag<HardEvent::M_FIX>(EVENT_ID0);
        WaitFlag<HardEvent::M_FIX>(EVENT_ID0);
        Fixpipe(c_[row_ * kSide + n], l0c_, FixpipeParamsV220(kN, kM, kM, kSide, false));
        SetFlag<HardEvent::FIX_M>(EVENT_ID0);
        WaitFlag<HardEvent::FIX_M>(EVENT_ID0);
    }

    LocalTensor<half> a1_{TPosition::A1, 0, kM * kStep};
    LocalTensor<half> b1_{TPosition::B1, kM * kStep * sizeof(half), kStep * kN};
    LocalTensor<half> a2_{TPosition::A2, 0, kM * kStep};
    LocalTensor<half> b2_{TPosition::B2, 0, kStep * kN};
    LocalTensor<float> l0c_{TPosition::CO1, 0, kM * kN};
    GlobalTensor<half> a_;
    GlobalTensor<half> b_;
    GlobalTensor<float> c_;
    uint32_t row_ = 0;
    uint32_t column_ = 0;
};

extern "C" __global__ __cube__ void matmul(GM_ADDR a, GM_ADDR b, GM_ADDR c)
{
    MatmulKernel kernel;
    kernel.Init(a, b, c);
    kernel.Process();
}
