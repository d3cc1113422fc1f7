// Entry points of the matrix instructions in the compiled library.
#pragma once
#include "evokernel/twin/api.h"
#include "evokernel/twin/cube_types.h"

namespace evokernel::twin {

// Copies between global memory and L1, and inside a core: to L1, the bias table and the Fixpipe buffer.
bool IsCubePosition(const LocalRef &tensor);
void CopyNd2Nz(const LocalRef &dst, const GlobalRef &src, const AscendC::Nd2NzParams &params, At at);
void CopyLocalNd2Nz(const LocalRef &dst, const LocalRef &src, const AscendC::Nd2NzParams &params, At at);
void CopyDn2Nz(At at);
void CheckEnhanced(const AscendC::DataCopyEnhancedParams &params, At at);
void CopyLocalDense(const LocalRef &dst, const LocalRef &src, uint32_t bytes, At at);
void CopyLocalParams(const LocalRef &dst, const LocalRef &src, const AscendC::DataCopyParams &params, At at);
void CopyPadUbToL1(const LocalRef &dst, const LocalRef &src, const AscendC::DataCopyExtParams &rows,
                   const AscendC::Nd2NzParams &params, At at);

// L1 and global memory to L0A and L0B.
void Load2D(const LocalRef &dst, const LocalRef &src, const AscendC::LoadData2DParams &params, At at);
void Load2DGlobal(const LocalRef &dst, const GlobalRef &src, const AscendC::LoadData2DParams &params, At at);
void Load2DV2(At at);
void LoadTransposed(const LocalRef &dst, const LocalRef &src, const AscendC::LoadData2dTransposeParams &params, At at);
void LoadSparse(const LocalRef &dst, const LocalRef &src, const LocalRef &index,
                const AscendC::LoadData2DParams &params, At at);

// The geometry of an image-to-column load, whichever structure it came in.
struct Load3D {
    uint16_t height = 0;
    uint16_t width = 0;
    uint8_t pad[4] = {};  // left, right, top, bottom
    uint16_t channels = 0;
    uint16_t k = 0;
    uint16_t m = 0;
    uint16_t k_start = 0;
    uint16_t m_start = 0;
    uint8_t stride_w = 1;
    uint8_t stride_h = 1;
    uint16_t filter_w = 1;
    uint16_t filter_h = 1;
    uint8_t dilation_w = 1;
    uint8_t dilation_h = 1;
    bool transpose = false;
    bool set_matrix = true;   // take height, width and pad from here, not from SetFmatrix
    bool set_padding = true;  // take the padding value from here, not from SetLoadDataPaddingValue
    uint64_t padding = 0;     // bits of one element
};
void LoadImageToColumn(const LocalRef &dst, const LocalRef &src, const Load3D &load, At at);
void SetFeatureMatrix(uint16_t height, uint16_t width, const uint8_t *pad, At at);
void SetFmatrix(uint16_t height, uint16_t width, const uint8_t *pad, At at);
void SetLoadPadding(uint64_t bits, At at);
void SetLoadBoundary(uint32_t bytes, At at);
void SetLoadRepeat(const AscendC::LoadDataRepeatParam &params, At at);

struct FillCall {
    uint32_t repeats = 0;
    uint32_t blocks = 0;
    uint32_t gap = 0;
    uint64_t bits = 0;
};
void FillMatrix(const LocalRef &dst, const FillCall &fill, At at);

// The matrix unit.
void MatrixMultiply(const LocalRef &dst, const LocalRef &left, const LocalRef &right, const LocalRef *bias,
                    const AscendC::MmadParams &params, bool sparse, At at);
void SetHalfFloat32(bool enabled, At at);
void SetHalfFloat32Rounding(bool to_zero, At at);
void SetMatrixOrder(bool row_major, At at);

// L0C to global memory or L1.
struct FixpipeCall {
    uint32_t n = 0;
    uint32_t m = 0;
    uint64_t src_stride = 0;     // bytes between columns of fractals
    uint64_t dst_stride = 0;     // NZ: bytes between columns of fractals; ND: elements of a row
    bool dst_gap = false;        // NZ: dst_stride is counted from the end of a column
    AscendC::CO2Layout layout = AscendC::CO2Layout::NZ;
    QuantMode_t quant = QuantMode_t::NoQuant;
    uint64_t scalar = 0;
    const LocalRef *vector = nullptr;  // quantisation parameters in L1 (null: those of SetFixPipeConfig)
    bool registers = false;            // scalar and matrices come from the configuration registers
    bool relu = false;
    bool split = false;
    bool unsupported = false;          // asks for what Fixpipe of this chip lacks
    uint8_t unit_flag = 0;
    uint32_t matrices = 1;
    uint64_t src_matrix = 0;  // bytes
    uint64_t dst_matrix = 0;  // elements
    const char *name = "Fixpipe";
};
FixpipeCall ToCall(const AscendC::FixpipeParamsV220 &params, AscendC::CO2Layout layout);
FixpipeCall ToCall(const AscendC::DataCopyCO12DstParams &params);
template <typename T> FixpipeCall ToCall(const AscendC::FixpipeParams<T> &params);
void FixpipeToGlobal(const GlobalRef &dst, const LocalRef &src, const FixpipeCall &call, At at);
void FixpipeToL1(const LocalRef &dst, const LocalRef &src, const FixpipeCall &call, At at);
void SetFixpipeMatrices(uint16_t count, uint16_t src_stride, uint16_t dst_stride, At at);
void SetFixpipeScalar(uint64_t bits, At at);
void SetFixpipeVector(const LocalRef &tensor, bool clear_unit_flags, At at);

// A burst form (gaps after each burst) as sizes and strides. L0C keeps each column of fractals 16-row aligned.
template <typename T> FixpipeCall ToCall(const AscendC::FixpipeParams<T> &params)
{
    FixpipeCall call;
    const uint32_t row_bytes = 16 * sizeof(T);
    call.m = params.burstLen * 32u / row_bytes;
    call.src_stride = uint64_t{(call.m + 15) / 16 * 16} * row_bytes + params.srcStride * 32u;
    call.quant = params.quantParams.quantPre;
    call.scalar = params.quantParams.deqScalar;
    call.relu = params.reluEn;
    call.unit_flag = params.unitFlag;
    if (params.nz2ndParams.nz2ndEn) {
        call.layout = AscendC::CO2Layout::ROW_MAJOR;
        call.n = params.nz2ndParams.originalNSize;
        call.dst_stride = params.dstStride;
        call.matrices = params.nz2ndParams.ndNum;
        call.src_matrix = uint64_t{params.nz2ndParams.srcNdStride} * 1024;
        call.dst_matrix = params.nz2ndParams.dstNdStride;
    } else {
        call.n = params.cburstNum * 16u;
        call.dst_stride = params.dstStride * 32u;
        call.dst_gap = true;
    }
    return call;
}

}  // namespace evokernel::twin
