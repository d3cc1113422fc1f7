// The softmax family.
#pragma once
#include "evokernel/twin/advanced_rows.h"
#include "evokernel/twin/host_rows.h"
#include "evokernel/twin/tensor.h"

namespace AscendC {

struct SoftMaxShapeInfo {
    uint32_t srcM = 0;
    uint32_t srcK = 0;
    uint32_t oriSrcM = 0;
    uint32_t oriSrcK = 0;

    constexpr SoftMaxShapeInfo() = default;
    constexpr SoftMaxShapeInfo(uint32_t m, uint32_t k, uint32_t original_m, uint32_t original_k)
        : srcM(m), srcK(k), oriSrcM(original_m), oriSrcK(original_k)
    {
    }
};

struct SoftMaxParams {
    uint32_t srcM{0};
    uint32_t srcK{0};
    uint32_t oriSrcM{0};
    uint32_t oriSrcK{0};
    uint32_t loopCnt{0};
    uint32_t splitMeanCnt{0};
    float alpha{0};
};

enum class SoftmaxMode { SOFTMAX_NORMAL = 0, SOFTMAX_OUTPUT_WITHOUT_BRC = 1 };

struct SoftmaxConfig {
    bool isCheckTiling = true;
    uint32_t oriSrcM = 0;
    uint32_t oriSrcK = 0;
    SoftmaxMode mode = SoftmaxMode::SOFTMAX_NORMAL;
};
inline constexpr SoftmaxConfig SOFTMAX_DEFAULT_CFG = {true, 0, 0, SoftmaxMode::SOFTMAX_NORMAL};

namespace detail {

// The shape: of the constant configuration, else of the shape info, else of the tiling.
template <typename Tiling>
twin::SoftmaxCall SoftmaxOf(twin::SoftmaxKind kind, const twin::LocalRef &dst, const twin::LocalRef &src,
                            const Tiling &tiling, const SoftMaxShapeInfo &info, bool nz,
                            const SoftmaxConfig &config = SOFTMAX_DEFAULT_CFG)
{
    twin::SoftmaxCall call{};
    call.kind = kind;
    call.dst = dst;
    call.src = src;
    const bool told = info.srcM != 0 && info.srcK != 0;
    call.m = told ? info.srcM : tiling.srcM;
    call.k = told ? info.srcK : tiling.srcK;
    call.n = told && info.oriSrcK != 0 ? info.oriSrcK : call.k;
    if (config.oriSrcK != 0) {
        call.n = config.oriSrcK;
        const uint32_t block = 32 / twin::DTypeBytes(src.dtype);
        call.k = told ? call.k : (config.oriSrcK + block - 1) / block * block;
        call.m = told ? call.m : config.oriSrcM;
    }
    call.nz = nz;
    call.single = config.mode == SoftmaxMode::SOFTMAX_OUTPUT_WITHOUT_BRC;
    return call;
}

}  // namespace detail

#define EVK_SOFTMAX(Name, Kind, Dst, Stat, TemporaryParameter, TemporaryRef)                                         \
    template <typename T, bool isReuseSource = false, bool isBasicBlock = false, bool isDataFormatNZ = false,        \
              const SoftmaxConfig &config = SOFTMAX_DEFAULT_CFG>                                                     \
    void Name(const LocalTensor<Dst> &dst, const LocalTensor<Stat> &sum, const LocalTensor<Stat> &max,               \
              const LocalTensor<Dst> &src, TemporaryParameter const SoftMaxTiling &tiling,                           \
              const SoftMaxShapeInfo &info = {}, EVK_AT)                                                             \
    {                                                                                                                \
        auto call = detail::SoftmaxOf(twin::SoftmaxKind::Kind, dst.Ref(), src.Ref(), tiling, info, isDataFormatNZ,   \
                                      config);                                                                       \
        call.sum = &sum.Ref();                                                                                       \
        call.max = &max.Ref();                                                                                       \
        call.single = false;                                                                                         \
        call.temporary = TemporaryRef;                                                                               \
        twin::Softmax(call, at);                                                                                     \
    }
#define EVK_TEMPORARY const LocalTensor<uint8_t> &temporary,
EVK_SOFTMAX(SoftMax, Plain, T, T, EVK_TEMPORARY, &temporary.Ref())
EVK_SOFTMAX(SoftMax, Plain, T, T, , nullptr)
EVK_SOFTMAX(SoftMax, Plain, half, float, EVK_TEMPORARY, &temporary.Ref())
EVK_SOFTMAX(SoftMax, Plain, half, float, , nullptr)
EVK_SOFTMAX(SimpleSoftMax, Simple, T, T, EVK_TEMPORARY, &temporary.Ref())
EVK_SOFTMAX(SimpleSoftMax, Simple, T, T, , nullptr)
EVK_SOFTMAX(SimpleSoftMax, Simple, half, float, EVK_TEMPORARY, &temporary.Ref())
EVK_SOFTMAX(SimpleSoftMax, Simple, half, float, , nullptr)
#undef EVK_SOFTMAX

// Without sums and maxima.
template <typename T, bool isReuseSource = false, bool isBasicBlock = false,
          const SoftmaxConfig &config = SOFTMAX_DEFAULT_CFG>
void SoftMax(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &temporary,
             const SoftMaxTiling &tiling, const SoftMaxShapeInfo &info = {}, EVK_AT)
{
    auto call =
        detail::SoftmaxOf(twin::SoftmaxKind::Plain, dst.Ref(), src.Ref(), tiling, info, false, config);
    call.temporary = &temporary.Ref();
    twin::Softmax(call, at);
}
template <typename T, bool isReuseSource = false, bool isBasicBlock = false,
          const SoftmaxConfig &config = SOFTMAX_DEFAULT_CFG>
void SoftMax(const LocalTensor<T> &dst, const LocalTensor<T> &src, const SoftMaxTiling &tiling,
             const SoftMaxShapeInfo &info = {}, EVK_AT)
{
    twin::Softmax(detail::SoftmaxOf(twin::SoftmaxKind::Plain, dst.Ref(), src.Ref(), tiling, info, false, config), at);
}

template <typename T, bool isReuseSource = false, bool isDataFormatNZ = false>
void LogSoftMax(const LocalTensor<T> &dst, const LocalTensor<T> &sum, const LocalTensor<T> &max,
                const LocalTensor<T> &src, const LocalTensor<uint8_t> &temporary, const LogSoftMaxTiling &tiling,
                const SoftMaxShapeInfo &info = {}, EVK_AT)
{
    auto call = detail::SoftmaxOf(twin::SoftmaxKind::Log, dst.Ref(), src.Ref(), tiling, info, isDataFormatNZ);
    call.sum = &sum.Ref();
    call.max = &max.Ref();
    call.temporary = &temporary.Ref();
    twin::Softmax(call, at);
}

#define EVK_FLASH(Dst, Stat, TemporaryParameter, TemporaryRef)                                                       \
    template <typename T, bool isReuseSource = false, bool isBasicBlock = false>                                     \
    void SoftmaxFlash(const LocalTensor<Dst> &dst, const LocalTensor<Stat> &sum, const LocalTensor<Stat> &max,       \
                      const LocalTensor<Dst> &src, const LocalTensor<Dst> &expMax, const LocalTensor<Stat> &inSum,   \
                      const LocalTensor<Stat> &inMax, TemporaryParameter const SoftMaxTiling &tiling,                \
                      bool isUpdate = false, const SoftMaxShapeInfo &info = {}, EVK_AT)                              \
    {                                                                                                                \
        auto call = detail::SoftmaxOf(twin::SoftmaxKind::Flash, dst.Ref(), src.Ref(), tiling, info, false);          \
        call.sum = &sum.Ref();                                                                                       \
        call.max = &max.Ref();                                                                                       \
        call.update = isUpdate;                                                                                      \
        call.exp_max = isUpdate ? &expMax.Ref() : nullptr;                                                           \
        call.in_sum = isUpdate ? &inSum.Ref() : nullptr;                                                             \
        call.in_max = isUpdate ? &inMax.Ref() : nullptr;                                                             \
        call.temporary = TemporaryRef;                                                                               \
        twin::Softmax(call, at);                                                                                     \
    }
EVK_FLASH(T, T, EVK_TEMPORARY, &temporary.Ref())
EVK_FLASH(T, T, , nullptr)
EVK_FLASH(half, float, EVK_TEMPORARY, &temporary.Ref())
EVK_FLASH(half, float, , nullptr)
#undef EVK_FLASH

#define EVK_FLASH_V2(Dst, Stat, ReduceMaxParameter, ReduceMaxRef, TemporaryParameter, TemporaryRef)                  \
    template <typename T, bool isUpdate = false, bool isReuseSource = false, bool isBasicBlock = false,              \
              bool isDataFormatNZ = false, const SoftmaxConfig &config = SOFTMAX_DEFAULT_CFG>                        \
    void SoftmaxFlashV2(const LocalTensor<Dst> &dst, ReduceMaxParameter const LocalTensor<Stat> &sum,                \
                        const LocalTensor<Stat> &max, const LocalTensor<Dst> &src, const LocalTensor<Dst> &expMax,   \
                        const LocalTensor<Stat> &inSum, const LocalTensor<Stat> &inMax,                              \
                        TemporaryParameter const SoftMaxTiling &tiling, const SoftMaxShapeInfo &info = {}, EVK_AT)   \
    {                                                                                                                \
        auto call = detail::SoftmaxOf(twin::SoftmaxKind::FlashV2, dst.Ref(), src.Ref(), tiling, info,                \
                                      isDataFormatNZ, config);                                                       \
        call.sum = &sum.Ref();                                                                                       \
        call.max = &max.Ref();                                                                                       \
        call.update = isUpdate;                                                                                      \
        call.exp_max = isUpdate ? &expMax.Ref() : nullptr;                                                           \
        call.in_sum = isUpdate ? &inSum.Ref() : nullptr;                                                             \
        call.in_max = isUpdate ? &inMax.Ref() : nullptr;                                                             \
        call.reduce_max = isUpdate ? static_cast<const twin::LocalRef *>(ReduceMaxRef) : nullptr;                    \
        call.temporary = TemporaryRef;                                                                               \
        if (static_cast<const twin::LocalRef *>(ReduceMaxRef) == nullptr || call.single) {                           \
            twin::Softmax(call, at);                                                                                 \
        }                                                                                                            \
    }
#define EVK_REDUCE_MAX const LocalTensor<T> &reduceMax,
EVK_FLASH_V2(T, T, , nullptr, EVK_TEMPORARY, &temporary.Ref())
EVK_FLASH_V2(T, T, , nullptr, , nullptr)
EVK_FLASH_V2(half, float, , nullptr, EVK_TEMPORARY, &temporary.Ref())
EVK_FLASH_V2(half, float, , nullptr, , nullptr)
EVK_FLASH_V2(T, T, EVK_REDUCE_MAX, &reduceMax.Ref(), EVK_TEMPORARY, &temporary.Ref())
EVK_FLASH_V2(T, T, EVK_REDUCE_MAX, &reduceMax.Ref(), , nullptr)
#undef EVK_REDUCE_MAX
#undef EVK_FLASH_V2

#define EVK_FLASH_V3(TemporaryParameter, TemporaryRef)                                                               \
    template <typename T, typename U, bool isUpdate = false, bool isReuseSource = false, bool isBasicBlock = false,  \
              bool isDataFormatNZ = false, const SoftmaxConfig &config = SOFTMAX_DEFAULT_CFG>                        \
    void SoftmaxFlashV3(const LocalTensor<T> &dst, const LocalTensor<U> &mean, const LocalTensor<U> &sum,            \
                        const LocalTensor<U> &max, const LocalTensor<T> &src, const LocalTensor<T> &expMax,          \
                        const LocalTensor<U> &inMean, const LocalTensor<U> &inSum, const LocalTensor<U> &inMax,      \
                        TemporaryParameter const SoftMaxTiling &tiling, const SoftMaxParams &params, EVK_AT)         \
    {                                                                                                                \
        auto call = detail::SoftmaxOf(twin::SoftmaxKind::FlashV3, dst.Ref(), src.Ref(), tiling,                      \
                                      {params.srcM, params.srcK, params.oriSrcM, params.oriSrcK}, false);            \
        call.mean = &mean.Ref();                                                                                     \
        call.sum = &sum.Ref();                                                                                       \
        call.max = &max.Ref();                                                                                       \
        call.update = isUpdate;                                                                                      \
        call.exp_max = isUpdate ? &expMax.Ref() : nullptr;                                                           \
        call.in_mean = isUpdate ? &inMean.Ref() : nullptr;                                                           \
        call.in_sum = isUpdate ? &inSum.Ref() : nullptr;                                                             \
        call.in_max = isUpdate ? &inMax.Ref() : nullptr;                                                             \
        call.loop = params.loopCnt;                                                                                  \
        call.alpha = params.alpha;                                                                                   \
        call.temporary = TemporaryRef;                                                                               \
        twin::Softmax(call, at);                                                                                     \
    }
EVK_FLASH_V3(EVK_TEMPORARY, &temporary.Ref())
EVK_FLASH_V3(, nullptr)
#undef EVK_FLASH_V3

#define EVK_GRAD(TemporaryParameter, TemporaryRef)                                                                   \
    template <typename T, bool isReuseSource = false, bool isDataFormatNZ = false>                                   \
    void SoftmaxGrad(const LocalTensor<T> &dst, const LocalTensor<T> &grad, const LocalTensor<T> &src,               \
                     TemporaryParameter const SoftMaxTiling &tiling, bool isFront = false,                           \
                     const SoftMaxShapeInfo &info = {}, EVK_AT)                                                      \
    {                                                                                                                \
        auto call = detail::SoftmaxOf(isFront ? twin::SoftmaxKind::GradFront : twin::SoftmaxKind::Grad, dst.Ref(),   \
                                      src.Ref(), tiling, info, isDataFormatNZ);                                      \
        call.grad = &grad.Ref();                                                                                     \
        call.temporary = TemporaryRef;                                                                               \
        twin::Softmax(call, at);                                                                                     \
    }                                                                                                                \
    template <typename T, bool isBasicBlock = false, bool isDataFormatNZ = false>                                    \
    void SoftmaxGradFront(const LocalTensor<T> &dst, const LocalTensor<T> &grad, const LocalTensor<T> &src,          \
                          TemporaryParameter const SoftMaxTiling &tiling, const SoftMaxShapeInfo &info = {}, EVK_AT) \
    {                                                                                                                \
        auto call = detail::SoftmaxOf(twin::SoftmaxKind::GradFront, dst.Ref(), src.Ref(), tiling, info,              \
                                      isDataFormatNZ);                                                               \
        call.grad = &grad.Ref();                                                                                     \
        call.temporary = TemporaryRef;                                                                               \
        twin::Softmax(call, at);                                                                                     \
    }
EVK_GRAD(EVK_TEMPORARY, &temporary.Ref())
EVK_GRAD(, nullptr)
#undef EVK_GRAD
#undef EVK_TEMPORARY

// Sets every row whose maximum has the bits `from` to `to`.
template <typename T1, typename T2, bool isDataFormatNZ = false, uint8_t stepSizeMode = 0>
bool AdjustSoftMaxRes(const LocalTensor<T1> &softMaxRes, const LocalTensor<T2> &maxTensor, const uint32_t from,
                      const T1 to, const SoftMaxShapeInfo &info, EVK_AT)
{
    return twin::AdjustRows(softMaxRes.Ref(), maxTensor.Ref(), from, twin::MakeScalar(to), info.srcM, info.srcK,
                            isDataFormatNZ, stepSizeMode != 0, at);
}

// The tiling anew, in the kernel, for a shape that the host did not know.
constexpr SoftMaxTiling SoftMaxFlashV2TilingFunc(const SoftMaxShapeInfo &shapeInfo, const uint32_t /*dataTypeSize1*/,
                                                 const uint32_t dataTypeSize2, const uint32_t localWorkSpaceSize,
                                                 const bool = false, const bool = false, const bool = false,
                                                 const bool = false)
{
    SoftMaxTiling tiling;
    detail::SplitSoftmax(shapeInfo.srcM, shapeInfo.srcK, dataTypeSize2, localWorkSpaceSize, tiling);
    return tiling;
}

}  // namespace AscendC
