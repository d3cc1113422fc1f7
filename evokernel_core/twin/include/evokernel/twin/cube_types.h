// Parameter structures of the matrix instructions. Fields are wider than the instruction's own, so that a
// value which does not fit is reported and not cut; constructors take the documented widths.
#pragma once
#include "evokernel/twin/enums.h"

// How Fixpipe converts the elements it moves out of L0C.
enum QuantMode_t : uint8_t {
    NoQuant, F322F16, F322BF16, DEQF16, VDEQF16, QF322B8_PRE, VQF322B8_PRE, REQ8, VREQ8,
};

namespace AscendC {

using ::QuantMode_t;

constexpr int32_t PAD_SIZE = 4;

enum class CO2Layout : uint8_t { NZ = 0, ROW_MAJOR, COLUMN_MAJOR };
enum class FmatrixMode : uint8_t { FMATRIX_LEFT = 0, FMATRIX_RIGHT = 1 };
enum class HF32Mode : uint8_t { DISABLE = 0, ENABLE = 1 };
enum class HF32TransMode : uint8_t { NEAREST_EVEN = 0, NEAREST_ZERO = 1 };
enum class BlockMode : uint8_t { BLOCK_MODE_NORMAL = 0, BLOCK_MODE_MATRIX, BLOCK_MODE_VECTOR, BLOCK_MODE_SMALL_CHANNEL,
                                 BLOCK_MODE_DEPTHWISE };
enum class DeqScale : uint8_t { DEQ_NONE = 0, DEQ, VDEQ, DEQ8, VDEQ8, DEQ16, VDEQ16 };

struct FixpipeConfig {
    CO2Layout format;
    bool isToUB = false;
};
constexpr FixpipeConfig CFG_NZ = {CO2Layout::NZ};
constexpr FixpipeConfig CFG_ROW_MAJOR = {CO2Layout::ROW_MAJOR};

struct IsResetLoad3dConfig {
    bool isSetFMatrix = true;
    bool isSetPadding = true;
};
constexpr IsResetLoad3dConfig IS_RESER_LOAD3D_DEFAULT_CONFIG = {true, true};

struct Nd2NzParams {
    uint32_t ndNum = 0;
    uint32_t nValue = 0;
    uint32_t dValue = 0;
    uint32_t srcNdMatrixStride = 0;
    uint32_t srcDValue = 0;
    uint32_t dstNzC0Stride = 0;
    uint32_t dstNzNStride = 0;
    uint32_t dstNzMatrixStride = 0;

    Nd2NzParams() = default;
    Nd2NzParams(uint16_t nd_num, uint16_t n, uint16_t d, uint16_t src_matrix, uint16_t src_d, uint16_t dst_c0,
                uint16_t dst_n, uint16_t dst_matrix)
        : ndNum(nd_num), nValue(n), dValue(d), srcNdMatrixStride(src_matrix), srcDValue(src_d), dstNzC0Stride(dst_c0),
          dstNzNStride(dst_n), dstNzMatrixStride(dst_matrix)
    {
    }
};

// Column-major matrices to NZ: named by sources that also serve other chips.
struct Dn2NzParams {
    uint32_t dnNum = 0;
    uint32_t nValue = 0;
    uint32_t dValue = 0;
    uint64_t srcDnMatrixStride = 0;
    uint64_t srcDValue = 0;
    uint32_t dstNzC0Stride = 0;
    uint32_t dstNzNStride = 0;
    uint32_t dstNzMatrixStride = 0;

    Dn2NzParams() = default;
    Dn2NzParams(uint16_t dn_num, uint16_t n, uint16_t d, uint64_t src_matrix, uint64_t src_d, uint16_t dst_c0,
                uint16_t dst_n, uint32_t dst_matrix)
        : dnNum(dn_num), nValue(n), dValue(d), srcDnMatrixStride(src_matrix), srcDValue(src_d), dstNzC0Stride(dst_c0),
          dstNzNStride(dst_n), dstNzMatrixStride(dst_matrix)
    {
    }
};

struct DataCopyEnhancedParams {
    BlockMode blockMode = BlockMode::BLOCK_MODE_NORMAL;
    DeqScale deqScale = DeqScale::DEQ_NONE;
    uint64_t deqValue = 0;
    uint8_t sidStoreMode = 0;
    bool isRelu = false;
    uint64_t padMode = 0;
    uint64_t padValue = 0;
    uint64_t deqTensorAddr = 0;
};

struct LoadData2DParams {
    uint16_t startIndex = 0;
    uint32_t repeatTimes = 0;
    uint16_t srcStride = 0;
    uint8_t sid = 0;
    uint16_t dstGap = 0;
    bool ifTranspose = false;
    uint8_t addrMode = 0;

    LoadData2DParams() = default;
    LoadData2DParams(uint16_t start, uint8_t repeats, uint16_t src_stride, uint8_t id, uint16_t dst_gap, bool transpose,
                     uint8_t mode)
        : startIndex(start), repeatTimes(repeats), srcStride(src_stride), sid(id), dstGap(dst_gap),
          ifTranspose(transpose), addrMode(mode)
    {
    }
};
using LoadData2dParams = LoadData2DParams;

// Of another chip; sources that serve several name it in branches not taken here.
struct LoadData2DParamsV2 {
    uint32_t mStartPosition = 0;
    uint32_t kStartPosition = 0;
    uint16_t mStep = 0;
    uint16_t kStep = 0;
    int32_t srcStride = 0;
    uint16_t dstStride = 0;
    bool ifTranspose = false;
    uint8_t sid = 0;

    LoadData2DParamsV2() = default;
    LoadData2DParamsV2(uint32_t m_start, uint32_t k_start, uint16_t m_step, uint16_t k_step, int32_t src_stride,
                       uint16_t dst_stride, bool transpose, uint8_t id)
        : mStartPosition(m_start), kStartPosition(k_start), mStep(m_step), kStep(k_step), srcStride(src_stride),
          dstStride(dst_stride), ifTranspose(transpose), sid(id)
    {
    }
};

struct LoadData2dTransposeParams {
    uint16_t startIndex = 0;
    uint32_t repeatTimes = 0;
    uint16_t srcStride = 0;
    uint16_t dstGap = 0;
    uint16_t dstFracGap = 0;
    bool addrMode = false;

    LoadData2dTransposeParams() = default;
    LoadData2dTransposeParams(uint16_t start, uint8_t repeats, uint16_t src_stride, uint16_t dst_gap,
                              uint16_t dst_fractal_gap, uint8_t mode)
        : startIndex(start), repeatTimes(repeats), srcStride(src_stride), dstGap(dst_gap), dstFracGap(dst_fractal_gap),
          addrMode(mode != 0)
    {
    }
    LoadData2dTransposeParams(uint16_t start, uint8_t repeats, uint16_t src_stride, uint16_t dst_gap,
                              uint16_t dst_fractal_gap)
        : LoadData2dTransposeParams(start, repeats, src_stride, dst_gap, dst_fractal_gap, 0)
    {
    }
};

template <typename T> struct LoadData3DParamsV2 {
    uint8_t padList[PAD_SIZE] = {0, 0, 0, 0};
    uint16_t l1H = 0;
    uint16_t l1W = 0;
    uint16_t channelSize = 0;
    uint16_t kExtension = 0;
    uint16_t mExtension = 0;
    uint16_t kStartPt = 0;
    uint16_t mStartPt = 0;
    uint8_t strideW = 1;
    uint8_t strideH = 1;
    uint8_t filterW = 1;
    uint8_t filterH = 1;
    uint8_t dilationFilterW = 1;
    uint8_t dilationFilterH = 1;
    bool enTranspose = false;
    bool enSmallK = false;
    T padValue{};
    bool filterSizeW = false;
    bool filterSizeH = false;
    bool fMatrixCtrl = false;

    LoadData3DParamsV2() = default;
    LoadData3DParamsV2(const uint8_t pad[PAD_SIZE], uint16_t height, uint16_t width, uint16_t channels, uint16_t k,
                       uint16_t m, uint16_t k_start, uint16_t m_start, uint8_t stride_w, uint8_t stride_h,
                       uint8_t filter_w, uint8_t filter_h, uint8_t dilation_w, uint8_t dilation_h, bool transpose,
                       bool small_k, T pad_value)
        : l1H(height), l1W(width), channelSize(channels), kExtension(k), mExtension(m), kStartPt(k_start),
          mStartPt(m_start), strideW(stride_w), strideH(stride_h), filterW(filter_w), filterH(filter_h),
          dilationFilterW(dilation_w), dilationFilterH(dilation_h), enTranspose(transpose), enSmallK(small_k),
          padValue(pad_value)
    {
        for (int i = 0; i < PAD_SIZE; ++i) {
            padList[i] = pad[i];
        }
    }
    LoadData3DParamsV2(const uint8_t pad[PAD_SIZE], uint16_t height, uint16_t width, uint16_t channels, uint16_t k,
                       uint16_t m, uint16_t k_start, uint16_t m_start, uint8_t stride_w, uint8_t stride_h,
                       uint8_t filter_w, uint8_t filter_h, uint8_t dilation_w, uint8_t dilation_h, bool transpose,
                       bool small_k, T pad_value, bool wide_filter, bool high_filter, bool right_matrix)
        : LoadData3DParamsV2(pad, height, width, channels, k, m, k_start, m_start, stride_w, stride_h, filter_w,
                             filter_h, dilation_w, dilation_h, transpose, small_k, pad_value)
    {
        filterSizeW = wide_filter;
        filterSizeH = high_filter;
        fMatrixCtrl = right_matrix;
    }
};

struct LoadData3DParamsV2Pro {
    uint16_t channelSize = 0;
    bool enTranspose = false;
    bool enSmallK = false;
    bool filterSizeW = false;
    bool filterSizeH = false;
    bool fMatrixCtrl = false;
    uint64_t extConfig = 0;
    uint64_t filterConfig = 0x10101010101;

    LoadData3DParamsV2Pro() = default;
    LoadData3DParamsV2Pro(uint16_t channels, bool transpose, bool small_k, bool wide_filter, bool high_filter,
                          bool right_matrix, uint64_t extension, uint64_t filter)
        : channelSize(channels), enTranspose(transpose), enSmallK(small_k), filterSizeW(wide_filter),
          filterSizeH(high_filter), fMatrixCtrl(right_matrix), extConfig(extension), filterConfig(filter)
    {
    }
};

struct LoadDataRepeatParam {
    uint16_t repeatStride = 0;
    uint8_t repeatTime = 1;
    uint8_t repeatMode = 0;
    uint16_t dstStride = 0;  // of another chip; without effect here

    LoadDataRepeatParam() = default;
    LoadDataRepeatParam(uint16_t stride, uint8_t times, uint8_t mode)
        : repeatStride(stride), repeatTime(times), repeatMode(mode)
    {
    }
};

template <typename T> struct InitConstValueParams {
    uint16_t repeatTimes = 0;
    uint16_t blockNum = 0;
    uint16_t dstGap = 0;
    T initValue{};

    InitConstValueParams() = default;
    InitConstValueParams(uint16_t repeats, uint16_t blocks, uint16_t gap, T value)
        : repeatTimes(repeats), blockNum(blocks), dstGap(gap), initValue(value)
    {
    }
    InitConstValueParams(uint16_t repeats, T value) : repeatTimes(repeats), blockNum(1), initValue(value) {}
};

struct MmadParams {
    uint32_t m = 0;
    uint32_t n = 0;
    uint32_t k = 0;
    bool isBias = false;
    int32_t fmOffset = 0;
    bool enSsparse = false;
    bool enWinogradA = false;
    bool enWinogradB = false;
    int8_t unitFlag = 0;
    bool disableGemv = false;  // of another chip
    bool kDirectionAlign = false;
    bool cmatrixSource = false;
    bool cmatrixInitVal = true;

    MmadParams() = default;
    MmadParams(uint16_t rows, uint16_t columns, uint16_t depth, bool accumulate, int32_t offset, bool sparse,
               bool winograd_a, bool winograd_b)
        : m(rows), n(columns), k(depth), isBias(accumulate), fmOffset(offset), enSsparse(sparse),
          enWinogradA(winograd_a), enWinogradB(winograd_b)
    {
    }
    MmadParams(uint16_t rows, uint16_t columns, uint16_t depth, int8_t unit_flag, bool c_source, bool c_init)
        : m(rows), n(columns), k(depth), unitFlag(unit_flag), cmatrixSource(c_source), cmatrixInitVal(c_init)
    {
    }
};

struct DataCopyCO12DstParams {
    uint8_t sid = 0;
    uint32_t nSize = 0;
    uint32_t mSize = 0;
    uint32_t dstStride = 0;
    uint32_t srcStride = 0;
    uint8_t unitFlag = 0;
    uint8_t clipReluPre = 0;
    uint8_t eltWiseOp = 0;
    QuantMode_t quantPre = QuantMode_t::NoQuant;
    uint8_t reluPre = 0;
    bool channelSplit = false;
    bool nz2ndEn = false;

    DataCopyCO12DstParams() = default;
    DataCopyCO12DstParams(uint16_t n, uint16_t m, uint32_t dst_stride, uint16_t src_stride, QuantMode_t quant,
                          uint8_t relu, bool split, bool nz2nd)
        : nSize(n), mSize(m), dstStride(dst_stride), srcStride(src_stride), quantPre(quant), reluPre(relu),
          channelSplit(split), nz2ndEn(nz2nd)
    {
    }
};

struct FixpipeParamsV220 {
    uint32_t nSize = 0;
    uint32_t mSize = 0;
    uint32_t srcStride = 0;
    uint32_t dstStride = 0;
    QuantMode_t quantPre = QuantMode_t::NoQuant;
    uint64_t deqScalar = 0;
    uint32_t ndNum = 1;
    uint32_t srcNdStride = 0;
    uint32_t dstNdStride = 0;
    bool reluEn = false;
    uint8_t unitFlag = 0;
    bool isChannelSplit = false;

    FixpipeParamsV220() = default;
    FixpipeParamsV220(uint16_t n, uint16_t m, uint16_t src_stride, uint32_t dst_stride, bool relu)
        : nSize(n), mSize(m), srcStride(src_stride), dstStride(dst_stride), reluEn(relu)
    {
    }
    FixpipeParamsV220(uint16_t n, uint16_t m, uint16_t src_stride, uint32_t dst_stride, bool relu, QuantMode_t quant,
                      uint64_t scalar, uint16_t matrices, uint16_t src_matrix, uint16_t dst_matrix, uint8_t unit_flag)
        : nSize(n), mSize(m), srcStride(src_stride), dstStride(dst_stride), quantPre(quant), deqScalar(scalar),
          ndNum(matrices), srcNdStride(src_matrix), dstNdStride(dst_matrix), reluEn(relu), unitFlag(unit_flag)
    {
    }
};

// The first generation of Fixpipe's parameters: bursts with gaps instead of sizes with strides.
struct QuantParams {
    QuantMode_t quantPre = QuantMode_t::NoQuant;
    uint64_t deqScalar = 0;

    QuantParams() = default;
    QuantParams(QuantMode_t mode) : quantPre(mode) {}
    QuantParams(QuantMode_t mode, uint64_t scalar) : quantPre(mode), deqScalar(scalar) {}
};

struct Nz2NdParams {
    bool nz2ndEn = false;
    uint16_t ndNum = 1;
    uint16_t srcNdStride = 0;
    uint16_t dstNdStride = 0;
    uint16_t originalNSize = 0;

    Nz2NdParams() = default;
    Nz2NdParams(bool enabled, uint16_t matrices, uint16_t src_stride, uint16_t dst_stride, uint16_t columns)
        : nz2ndEn(enabled), ndNum(matrices), srcNdStride(src_stride), dstNdStride(dst_stride), originalNSize(columns)
    {
    }
};

template <typename T> struct FixpipeParams {
    uint16_t cburstNum = 1;
    uint16_t burstLen = 1;
    uint32_t dstStride = 0;
    uint16_t srcStride = 0;
    QuantParams quantParams;
    bool reluEn = false;
    Nz2NdParams nz2ndParams;
    uint8_t unitFlag = 0;

    FixpipeParams() = default;
    FixpipeParams(uint16_t count, uint16_t length, uint16_t src_stride, uint32_t dst_stride)
        : cburstNum(count), burstLen(length), dstStride(dst_stride), srcStride(src_stride)
    {
    }
    FixpipeParams(uint16_t count, uint16_t length, uint16_t src_stride, uint32_t dst_stride, QuantParams quant,
                  bool relu, Nz2NdParams nz2nd)
        : cburstNum(count), burstLen(length), dstStride(dst_stride), srcStride(src_stride), quantParams(quant),
          reluEn(relu), nz2ndParams(nz2nd)
    {
    }
};

// Of another chip; sources that serve several name it in branches not taken here.
template <CO2Layout layout> struct FixpipeParamsArch3510 {};

}  // namespace AscendC
