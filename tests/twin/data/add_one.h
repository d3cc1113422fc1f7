#pragma once
#include "kernel_operator.h"

extern "C" __global__ __vector__ void add_one(GM_ADDR x, uint32_t count)
{
    AscendC::GlobalTensor<float> gm;
    gm.SetGlobalBuffer((__gm__ float *)x, count);
    AscendC::TPipe pipe;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> buffer;
    pipe.InitBuffer(buffer, count * sizeof(float));
    AscendC::LocalTensor<float> local = buffer.Get<float>();
    AscendC::DataCopy(local, gm, count);
    AscendC::PipeBarrier<PIPE_ALL>();
    AscendC::Adds(local, local, 1.0f, count);
    AscendC::PipeBarrier<PIPE_ALL>();
    AscendC::DataCopy(gm, local, count);
}

inline void Launch(uint32_t blocks, void *stream, uint8_t *x, uint32_t count)
{
    add_one<<<blocks, nullptr, stream>>>(x, count);
}
