// Parameters of Fixpipe and of DataCopy out of L0C as one structure. Nothing here looks at a core, so that a candidate's
// process makes the structure by itself.
#include "cube/state.h"
#include "kernel_operator.h"

namespace evokernel::twin {

FixpipeCall ToCall(const AscendC::FixpipeParamsV220 &params, AscendC::CO2Layout layout)
{
    FixpipeCall call;
    call.n = params.nSize;
    call.m = params.mSize;
    call.src_stride = uint64_t{params.srcStride} * kL0cRowBytes;
    call.layout = layout;
    call.dst_stride = uint64_t{params.dstStride} * (layout == AscendC::CO2Layout::NZ ? kC0Bytes : 1);
    call.quant = params.quantPre;
    call.scalar = params.deqScalar;
    call.relu = params.reluEn;
    call.split = params.isChannelSplit;
    call.unit_flag = params.unitFlag;
    if (layout == AscendC::CO2Layout::ROW_MAJOR) {
        call.matrices = params.ndNum;
        call.src_matrix = uint64_t{params.srcNdStride} * 1024;
        call.dst_matrix = params.dstNdStride;
    }
    return call;
}

FixpipeCall ToCall(const AscendC::DataCopyCO12DstParams &params)
{
    FixpipeCall call;
    call.name = "DataCopy";
    call.n = params.nSize;
    call.m = params.mSize;
    call.src_stride = uint64_t{params.srcStride} * kL0cRowBytes;
    call.layout = params.nz2ndEn ? AscendC::CO2Layout::ROW_MAJOR : AscendC::CO2Layout::NZ;
    call.dst_stride = uint64_t{params.dstStride} * (params.nz2ndEn ? 1 : kC0Bytes);
    call.quant = params.quantPre;
    call.registers = true;
    call.relu = params.reluPre != 0;
    call.split = params.channelSplit;
    call.unit_flag = params.unitFlag;
    call.unsupported = params.clipReluPre != 0 || params.eltWiseOp != 0;
    return call;
}

}  // namespace evokernel::twin
