// TransDataTo5HD, the transposes of images and fractal layouts, TransData.
#pragma once
#include "evokernel/twin/api_vector.h"
#include "evokernel/twin/layout.h"
#include "evokernel/twin/tensor.h"
#include "evokernel/twin/tiling_vector.h"

namespace AscendC {

constexpr int32_t NCHW_CONV_ADDR_LIST_SIZE = 16;

struct TransDataTo5HDParams {
    TransDataTo5HDParams() = default;
    TransDataTo5HDParams(const bool dst_high, const bool src_high, const uint8_t repeats, const uint16_t dst_repeat,
                         const uint16_t src_repeat)
        : dstHighHalf(dst_high), srcHighHalf(src_high), repeatTimes(repeats), dstRepStride(dst_repeat),
          srcRepStride(src_repeat)
    {
    }

    bool dstHighHalf = false;
    bool srcHighHalf = false;
    uint8_t repeatTimes = 1;
    uint16_t dstRepStride = 0;
    uint16_t srcRepStride = 0;
};

namespace detail {

inline twin::BlockTranspose ToBlocks(const TransDataTo5HDParams &params)
{
    return {params.dstHighHalf, params.srcHighHalf, params.repeatTimes, params.dstRepStride, params.srcRepStride};
}

}  // namespace detail

template <typename T>
void TransDataTo5HD(const LocalTensor<T> (&dstList)[NCHW_CONV_ADDR_LIST_SIZE],
                    const LocalTensor<T> (&srcList)[NCHW_CONV_ADDR_LIST_SIZE],
                    const TransDataTo5HDParams &nchwconvParams, EVK_AT)
{
    twin::LocalRef dst[NCHW_CONV_ADDR_LIST_SIZE];
    twin::LocalRef src[NCHW_CONV_ADDR_LIST_SIZE];
    for (int i = 0; i < NCHW_CONV_ADDR_LIST_SIZE; ++i) {
        dst[i] = dstList[i].Ref();
        src[i] = srcList[i].Ref();
    }
    twin::TransposeBlocks(dst, src, detail::ToBlocks(nchwconvParams), at);
}
template <typename T>
void TransDataTo5HD(uint64_t dstList[NCHW_CONV_ADDR_LIST_SIZE], uint64_t srcList[NCHW_CONV_ADDR_LIST_SIZE],
                    const TransDataTo5HDParams &nchwconvParams, EVK_AT)
{
    twin::LocalRef dst[NCHW_CONV_ADDR_LIST_SIZE];
    twin::LocalRef src[NCHW_CONV_ADDR_LIST_SIZE];
    for (int i = 0; i < NCHW_CONV_ADDR_LIST_SIZE; ++i) {
        dst[i] = twin::LocalAt(dstList[i], twin::kDType<T>, "TransDataTo5HD", at);
        src[i] = twin::LocalAt(srcList[i], twin::kDType<T>, "TransDataTo5HD", at);
    }
    twin::TransposeBlocks(dst, src, detail::ToBlocks(nchwconvParams), at);
}
// The same by pointers, as kernels of older versions call it.
template <typename T>
void TransDataTo5HDImpl(__ubuf__ T *dstList[NCHW_CONV_ADDR_LIST_SIZE], __ubuf__ T *srcList[NCHW_CONV_ADDR_LIST_SIZE],
                        const TransDataTo5HDParams &nchwconvParams, EVK_AT)
{
    twin::LocalRef dst[NCHW_CONV_ADDR_LIST_SIZE];
    twin::LocalRef src[NCHW_CONV_ADDR_LIST_SIZE];
    for (int i = 0; i < NCHW_CONV_ADDR_LIST_SIZE; ++i) {
        dst[i] = twin::LocalAt(dstList[i], twin::kDType<T>, "TransDataTo5HD", at);
        src[i] = twin::LocalAt(srcList[i], twin::kDType<T>, "TransDataTo5HD", at);
    }
    twin::TransposeBlocks(dst, src, detail::ToBlocks(nchwconvParams), at);
}
template <typename T>
void TransDataTo5HD(const LocalTensor<uint64_t> &dst, const LocalTensor<uint64_t> &src,
                    const TransDataTo5HDParams &nchwconvParams, EVK_AT)
{
    uint64_t to[NCHW_CONV_ADDR_LIST_SIZE];
    uint64_t from[NCHW_CONV_ADDR_LIST_SIZE];
    twin::LocalWords(dst.Ref(), to, NCHW_CONV_ADDR_LIST_SIZE, "TransDataTo5HD", at);
    twin::LocalWords(src.Ref(), from, NCHW_CONV_ADDR_LIST_SIZE, "TransDataTo5HD", at);
    TransDataTo5HD<T>(to, from, nchwconvParams, at);
}

enum class TransposeType : uint8_t {
    TRANSPOSE_TYPE_NONE,
    TRANSPOSE_NZ2ND_0213,
    TRANSPOSE_NZ2NZ_0213,
    TRANSPOSE_NZ2NZ_012_WITH_N,
    TRANSPOSE_NZ2ND_012_WITH_N,
    TRANSPOSE_NZ2ND_012_WITHOUT_N,
    TRANSPOSE_NZ2NZ_012_WITHOUT_N,
    TRANSPOSE_ND2ND_ONLY,
    TRANSPOSE_ND_UB_GM,
    TRANSPOSE_GRAD_ND_UB_GM,
    TRANSPOSE_ND2ND_B16,
    TRANSPOSE_NCHW2NHWC,
    TRANSPOSE_NHWC2NCHW,
    TRANSPOSE_ND2ND_021,
    TRANSPOSE_ND2ND_102,
    TRANSPOSE_ND2ND_210,
    TRANSPOSE_ND2NZ_WITH_INTLV,
};

struct TransposeParamsExt {
    TransposeParamsExt() = default;
    TransposeParamsExt(const uint16_t n, const uint16_t c, const uint16_t h, const uint16_t w, const TransposeType type)
        : nSize(n), cSize(c), hSize(h), wSize(w), transposeType(type)
    {
    }

    uint16_t nSize = 0;
    uint16_t cSize = 0;
    uint16_t hSize = 0;
    uint16_t wSize = 0;
    TransposeType transposeType = TransposeType::TRANSPOSE_ND2ND_B16;
};

template <typename T>
void Transpose(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &sharedTmpBuffer,
               const TransposeParamsExt &params, EVK_AT)
{
    const uint32_t shape[4] = {params.nSize, params.cSize, params.hSize, params.wSize};
    switch (params.transposeType) {
        case TransposeType::TRANSPOSE_TYPE_NONE:
            return;
        case TransposeType::TRANSPOSE_ND2ND_B16:
            return twin::TransposeImage(twin::Reshape::Nd2Nd, dst.Ref(), src.Ref(), sharedTmpBuffer.Ref(), shape, at);
        case TransposeType::TRANSPOSE_NCHW2NHWC:
            return twin::TransposeImage(twin::Reshape::Nchw2Nhwc, dst.Ref(), src.Ref(), sharedTmpBuffer.Ref(), shape,
                                        at);
        case TransposeType::TRANSPOSE_NHWC2NCHW:
            return twin::TransposeImage(twin::Reshape::Nhwc2Nchw, dst.Ref(), src.Ref(), sharedTmpBuffer.Ref(), shape,
                                        at);
        default:
            return twin::UnknownTranspose(static_cast<uint32_t>(params.transposeType), at);
    }
}

#define EVK_TRANSPOSE(Name)                                                                                          \
    template <typename T>                                                                                            \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &sharedTmpBuffer,     \
              TransposeType transposeType, ConfusionTransposeTiling &tiling, EVK_AT)                                 \
    {                                                                                                                \
        twin::TransposeLayout(static_cast<uint32_t>(transposeType), dst.Ref(), src.Ref(), &sharedTmpBuffer.Ref(),    \
                              tiling.tmpBytes, tiling.shape, at);                                                    \
    }                                                                                                                \
    template <typename T>                                                                                            \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, TransposeType transposeType,                     \
              ConfusionTransposeTiling &tiling, EVK_AT)                                                              \
    {                                                                                                                \
        twin::TransposeLayout(static_cast<uint32_t>(transposeType), dst.Ref(), src.Ref(), nullptr, 0, tiling.shape,  \
                              at);                                                                                   \
    }
EVK_TRANSPOSE(Transpose)
EVK_TRANSPOSE(ConfusionTranspose)
#undef EVK_TRANSPOSE

struct TransDataConfig {
    DataFormat srcFormat;
    DataFormat dstFormat;
};

template <typename T, typename U> struct TransDataParams {
    T srcLayout;
    U dstLayout;
};

namespace detail {

// The [N, C, D, H, W] of a conversion, from the layout that has it.
template <typename L> void PlainSizes(const L &layout, uint32_t *sizes)
{
    const auto shape = layout.GetShape();
    static_assert(std::tuple_size_v<std::decay_t<decltype(shape)>> == 5, "The NCDHW layout has five dimensions.");
    sizes[0] = static_cast<uint32_t>(std::get<0>(shape));
    sizes[1] = static_cast<uint32_t>(std::get<1>(shape));
    sizes[2] = static_cast<uint32_t>(std::get<2>(shape));
    sizes[3] = static_cast<uint32_t>(std::get<3>(shape));
    sizes[4] = static_cast<uint32_t>(std::get<4>(shape));
}

constexpr bool IsFractalPair(const TransDataConfig &config)
{
    const DataFormat other = config.srcFormat == DataFormat::NCDHW ? config.dstFormat : config.srcFormat;
    return (config.srcFormat == DataFormat::NCDHW || config.dstFormat == DataFormat::NCDHW) &&
           (other == DataFormat::NDC1HWC0 || other == DataFormat::FRACTAL_Z_3D);
}
constexpr twin::Fractal FractalOf(const TransDataConfig &config)
{
    if (config.srcFormat == DataFormat::NCDHW) {
        return config.dstFormat == DataFormat::NDC1HWC0 ? twin::Fractal::ToNdc1hwc0 : twin::Fractal::ToZ3d;
    }
    return config.srcFormat == DataFormat::NDC1HWC0 ? twin::Fractal::FromNdc1hwc0 : twin::Fractal::FromZ3d;
}

template <const TransDataConfig &config, typename T, typename U, typename S>
void RunTransData(const LocalTensor<T> &dst, const LocalTensor<T> &src, const twin::LocalRef *tmp,
                  const TransDataParams<U, S> &params, twin::At at)
{
    static_assert(IsFractalPair(config), "TransData converts between NCDHW and NDC1HWC0 or FRACTAL_Z_3D.");
    uint32_t sizes[5];
    if constexpr (config.srcFormat == DataFormat::NCDHW) {
        PlainSizes(params.srcLayout, sizes);
    } else {
        PlainSizes(params.dstLayout, sizes);
    }
    twin::TransposeFractal(FractalOf(config), dst.Ref(), src.Ref(), tmp, sizes, at);
}

}  // namespace detail

template <const TransDataConfig &config, typename T, typename U, typename S>
void TransData(const LocalTensor<T> &dstTensor, const LocalTensor<T> &srcTensor,
               const LocalTensor<uint8_t> &sharedTmpBuffer, const TransDataParams<U, S> &params, EVK_AT)
{
    detail::RunTransData<config>(dstTensor, srcTensor, &sharedTmpBuffer.Ref(), params, at);
}
template <const TransDataConfig &config, typename T, typename U, typename S>
void TransData(const LocalTensor<T> &dstTensor, const LocalTensor<T> &srcTensor, const TransDataParams<U, S> &params,
               EVK_AT)
{
    detail::RunTransData<config>(dstTensor, srcTensor, nullptr, params, at);
}

}  // namespace AscendC
