// Normalisations.
#pragma once
#include "evokernel/twin/advanced_rows.h"
#include "evokernel/twin/patterns.h"
#include "evokernel/twin/tensor.h"
#include "evokernel/twin/tiling_structs.h"

namespace AscendC {

struct LayerNormConfig {
    bool isNoBeta = false;
    bool isNoGamma = false;
    bool isOnlyOutput = false;
    bool isOutputRstd = true;
};
inline constexpr LayerNormConfig LNCFG_NORM{};

struct LayerNormPara {
    uint32_t aLength;
    uint32_t rLength;
    uint32_t rLengthWithPadding;
};

struct NormalizeConfig {
    ReducePattern reducePattern = ReducePattern::AR;
    int32_t aLength = -1;
    bool isNoBeta = false;
    bool isNoGamma = false;
    bool isOnlyOutput = false;
};
inline constexpr NormalizeConfig NLCFG_NORM{};

struct NormalizePara {
    uint32_t aLength;
    uint32_t rLength;
    uint32_t rLengthWithPadding;
};

enum class DataFormat : uint8_t;

struct LayerNormGradShapeInfo {
    DataFormat dataFormat = DataFormat{0};  // ND
};

struct WelfordUpdateConfig {
    bool isInplace = false;
};
inline constexpr WelfordUpdateConfig WFUPDATE_DEFAULT_CFG = {false};

struct WelfordUpdateParam {
    uint32_t rnLength;
    uint32_t abLength;
    uint32_t abComputeLength;
    float nRec;
};

struct WelfordFinalizeConfig {
    bool isCorrection = false;
};
inline constexpr WelfordFinalizeConfig WFFINALIZE_DEFAULT_CFG = {false};

struct WelfordFinalizePara {
    uint32_t rnLength;
    uint32_t abLength;
    uint32_t headCount;
    uint32_t headCountLength;
    uint32_t tailCount;
    uint32_t tailCountLength;
    float abRec;
    float rRec;
    float rRecWithCorrection;
};

namespace detail {

template <typename Tiling>
twin::NormCall RowsOf(twin::NormKind kind, const twin::LocalRef &dst, const twin::LocalRef &src, const Tiling &tiling,
                      float epsilon)
{
    twin::NormCall call{};
    call.kind = kind;
    call.dst = dst;
    call.src = src;
    call.a = tiling.bLength * tiling.sLength;
    call.r = tiling.originalHLength;
    call.stride = tiling.hLength;
    call.epsilon = epsilon;
    return call;
}

template <typename Para>
twin::NormCall RowsOf(twin::NormKind kind, const twin::LocalRef &dst, const twin::LocalRef &src, const Para &para,
                      float epsilon, bool)
{
    twin::NormCall call{};
    call.kind = kind;
    call.dst = dst;
    call.src = src;
    call.a = para.aLength;
    call.r = para.rLength;
    call.stride = para.rLengthWithPadding;
    call.epsilon = epsilon;
    return call;
}

}  // namespace detail

#define EVK_TEMPORARY const LocalTensor<uint8_t> &temporary,

#define EVK_LAYER_NORM(TemporaryParameter, TemporaryRef)                                                             \
    template <typename T, bool isReuseSource = false>                                                                \
    void LayerNorm(const LocalTensor<T> &output, const LocalTensor<T> &outputMean,                                   \
                   const LocalTensor<T> &outputVariance, const LocalTensor<T> &inputX, const LocalTensor<T> &gamma,  \
                   const LocalTensor<T> &beta, TemporaryParameter const T epsilon, const LayerNormTiling &tiling,    \
                   EVK_AT)                                                                                           \
    {                                                                                                                \
        auto call = detail::RowsOf(twin::NormKind::Layer, output.Ref(), inputX.Ref(), tiling,                        \
                                   static_cast<float>(epsilon));                                                     \
        call.mean = &outputMean.Ref();                                                                               \
        call.spread = &outputVariance.Ref();                                                                         \
        call.gamma = &gamma.Ref();                                                                                   \
        call.beta = &beta.Ref();                                                                                     \
        call.in_place = true;                                                                                        \
        call.reuse = isReuseSource;                                                                                  \
        call.temporary = TemporaryRef;                                                                               \
        twin::NormalizeRows(call, at);                                                                               \
    }
EVK_LAYER_NORM(EVK_TEMPORARY, &temporary.Ref())
EVK_LAYER_NORM(, nullptr)
#undef EVK_LAYER_NORM

#define EVK_LAYER_NORM_RSTD(TemporaryParameter, TemporaryRef)                                                        \
    template <typename U, typename T, bool isReuseSource = false, const LayerNormConfig &config = LNCFG_NORM>        \
    void LayerNorm(const LocalTensor<T> &output, const LocalTensor<float> &outputMean,                               \
                   const LocalTensor<float> &outputRstd, const LocalTensor<T> &inputX, const LocalTensor<U> &gamma,  \
                   const LocalTensor<U> &beta, const float epsilon, TemporaryParameter const LayerNormPara &para,    \
                   const LayerNormSeparateTiling &tiling, EVK_AT)                                                    \
    {                                                                                                                \
        static_cast<void>(tiling);                                                                                   \
        constexpr auto kind = config.isOutputRstd ? twin::NormKind::LayerRstd : twin::NormKind::LayerVariance;       \
        auto call = detail::RowsOf(kind, output.Ref(), inputX.Ref(), para, epsilon, true);                           \
        call.mean = &outputMean.Ref();                                                                               \
        call.spread = &outputRstd.Ref();                                                                             \
        call.gamma = config.isNoGamma ? nullptr : &gamma.Ref();                                                      \
        call.beta = config.isNoBeta ? nullptr : &beta.Ref();                                                         \
        call.temporary = TemporaryRef;                                                                               \
        twin::NormalizeRows(call, at);                                                                               \
    }
EVK_LAYER_NORM_RSTD(EVK_TEMPORARY, &temporary.Ref())
EVK_LAYER_NORM_RSTD(, nullptr)
#undef EVK_LAYER_NORM_RSTD

#define EVK_NORMALIZE(TemporaryParameter, TemporaryRef)                                                              \
    template <typename U, typename T, bool isReuseSource = false, const NormalizeConfig &config = NLCFG_NORM>        \
    void Normalize(const LocalTensor<T> &output, const LocalTensor<float> &outputRstd,                               \
                   const LocalTensor<float> &inputMean, const LocalTensor<float> &inputVariance,                     \
                   const LocalTensor<T> &inputX, const LocalTensor<U> &gamma, const LocalTensor<U> &beta,            \
                   TemporaryParameter const float epsilon, const NormalizePara &para, EVK_AT)                        \
    {                                                                                                                \
        auto call = detail::RowsOf(twin::NormKind::Normalize, output.Ref(), inputX.Ref(), para, epsilon, true);      \
        call.spread = &outputRstd.Ref();                                                                             \
        call.in_mean = &inputMean.Ref();                                                                             \
        call.in_variance = &inputVariance.Ref();                                                                     \
        call.gamma = config.isNoGamma ? nullptr : &gamma.Ref();                                                      \
        call.beta = config.isNoBeta ? nullptr : &beta.Ref();                                                         \
        call.temporary = TemporaryRef;                                                                               \
        twin::NormalizeRows(call, at);                                                                               \
    }
EVK_NORMALIZE(EVK_TEMPORARY, &temporary.Ref())
EVK_NORMALIZE(, nullptr)
#undef EVK_NORMALIZE

#define EVK_RMS_NORM(TemporaryParameter, TemporaryRef)                                                               \
    template <typename T, bool isBasicBlock = false>                                                                 \
    void RmsNorm(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &gamma,                  \
                 TemporaryParameter const T epsilon, const RmsNormTiling &tiling, EVK_AT)                            \
    {                                                                                                                \
        auto call = detail::RowsOf(twin::NormKind::Rms, dst.Ref(), src.Ref(), tiling, static_cast<float>(epsilon));  \
        call.gamma = &gamma.Ref();                                                                                   \
        call.in_place = true;                                                                                        \
        call.temporary = TemporaryRef;                                                                               \
        twin::NormalizeRows(call, at);                                                                               \
    }
EVK_RMS_NORM(EVK_TEMPORARY, &temporary.Ref())
EVK_RMS_NORM(, nullptr)
#undef EVK_RMS_NORM

#define EVK_DEEP_NORM(TemporaryParameter, TemporaryRef)                                                              \
    template <typename T, bool isReuseSrc = false, bool isBasicBlock = false>                                        \
    void DeepNorm(const LocalTensor<T> &dst, const LocalTensor<T> &mean, const LocalTensor<T> &rstd,                 \
                  const LocalTensor<T> &src, const LocalTensor<T> &gx, const LocalTensor<T> &beta,                   \
                  const LocalTensor<T> &gamma, TemporaryParameter const T alpha, const T epsilon,                    \
                  const DeepNormTiling &tiling, EVK_AT)                                                              \
    {                                                                                                                \
        auto call = detail::RowsOf(twin::NormKind::Deep, dst.Ref(), src.Ref(), tiling, static_cast<float>(epsilon)); \
        call.mean = &mean.Ref();                                                                                     \
        call.spread = &rstd.Ref();                                                                                   \
        call.residual = &gx.Ref();                                                                                   \
        call.gamma = &gamma.Ref();                                                                                   \
        call.beta = &beta.Ref();                                                                                     \
        call.alpha = static_cast<float>(alpha);                                                                      \
        call.in_place = isReuseSrc;                                                                                  \
        call.reuse = isReuseSrc;                                                                                     \
        call.temporary = TemporaryRef;                                                                               \
        twin::NormalizeRows(call, at);                                                                               \
    }
EVK_DEEP_NORM(EVK_TEMPORARY, &temporary.Ref())
EVK_DEEP_NORM(, nullptr)
#undef EVK_DEEP_NORM

#define EVK_BATCH_NORM(TemporaryParameter, TemporaryRef)                                                             \
    template <typename T, bool isReuseSource = false, bool isBasicBlock = false>                                     \
    void BatchNorm(const LocalTensor<T> &output, const LocalTensor<T> &outputMean,                                   \
                   const LocalTensor<T> &outputVariance, const LocalTensor<T> &inputX, const LocalTensor<T> &gamma,  \
                   const LocalTensor<T> &beta, TemporaryParameter const T epsilon, const BatchNormTiling &tiling,    \
                   EVK_AT)                                                                                           \
    {                                                                                                                \
        twin::BatchNormalize({output.Ref(), outputMean.Ref(), outputVariance.Ref(), inputX.Ref(), gamma.Ref(),       \
                              beta.Ref(), TemporaryRef, tiling.originalBLength, tiling.meanVarSize,                  \
                              static_cast<float>(epsilon)},                                                          \
                             at);                                                                                    \
    }
EVK_BATCH_NORM(EVK_TEMPORARY, &temporary.Ref())
EVK_BATCH_NORM(, nullptr)
#undef EVK_BATCH_NORM

#define EVK_GROUP_NORM(TemporaryParameter, TemporaryRef)                                                             \
    template <typename T, bool isReuseSource = false>                                                                \
    void GroupNorm(const LocalTensor<T> &output, const LocalTensor<T> &outputMean,                                   \
                   const LocalTensor<T> &outputVariance, const LocalTensor<T> &inputX, const LocalTensor<T> &gamma,  \
                   const LocalTensor<T> &beta, TemporaryParameter const T epsilon, const GroupNormTiling &tiling,    \
                   EVK_AT)                                                                                           \
    {                                                                                                                \
        twin::GroupNormalize({output.Ref(), outputMean.Ref(), outputVariance.Ref(), inputX.Ref(), gamma.Ref(),       \
                              beta.Ref(), TemporaryRef, tiling.n, tiling.c, tiling.hw, tiling.g,                     \
                              static_cast<float>(epsilon)},                                                          \
                             at);                                                                                    \
    }
EVK_GROUP_NORM(EVK_TEMPORARY, &temporary.Ref())
EVK_GROUP_NORM(, nullptr)
#undef EVK_GROUP_NORM

#define EVK_LAYER_NORM_GRAD(TemporaryParameter, TemporaryRef)                                                        \
    template <typename T, bool isReuseSource = false>                                                                \
    void LayerNormGrad(const LocalTensor<T> &outputPdX, const LocalTensor<T> &resForGamma,                           \
                       const LocalTensor<T> &inputDy, const LocalTensor<T> &inputX,                                  \
                       const LocalTensor<T> &inputVariance, const LocalTensor<T> &inputMean,                         \
                       const LocalTensor<T> &inputGamma, TemporaryParameter T epsilon,                               \
                       const LayerNormGradTiling &tiling, const LayerNormGradShapeInfo &shapeInfo = {}, EVK_AT)      \
    {                                                                                                                \
        static_cast<void>(shapeInfo);                                                                                \
        twin::LayerNormGradient({outputPdX.Ref(), resForGamma.Ref(), inputDy.Ref(), inputX.Ref(),                    \
                                 inputVariance.Ref(), inputMean.Ref(), inputGamma.Ref(), TemporaryRef,               \
                                 tiling.bLength * tiling.sLength, tiling.hLength, tiling.originalHLength,            \
                                 static_cast<float>(epsilon)},                                                       \
                                at);                                                                                 \
    }                                                                                                                \
    template <typename T, bool isReuseSource = false>                                                                \
    void LayerNormGradBeta(const LocalTensor<T> &outputPdGamma, const LocalTensor<T> &outputPdBeta,                  \
                           const LocalTensor<T> &resForGamma, const LocalTensor<T> &inputDy,                         \
                           TemporaryParameter const LayerNormGradBetaTiling &tiling, EVK_AT)                         \
    {                                                                                                                \
        twin::LayerNormGradientBeta(outputPdGamma.Ref(), outputPdBeta.Ref(), resForGamma.Ref(), inputDy.Ref(),       \
                                    TemporaryRef, tiling.bLength * tiling.sLength, tiling.hLength, at);              \
    }
EVK_LAYER_NORM_GRAD(EVK_TEMPORARY, &temporary.Ref())
EVK_LAYER_NORM_GRAD(, nullptr)
#undef EVK_LAYER_NORM_GRAD

#define EVK_WELFORD_UPDATE(TemporaryParameter, TemporaryRef)                                                         \
    template <typename T, typename U, bool isReuseSource = false,                                                    \
              const WelfordUpdateConfig &config = WFUPDATE_DEFAULT_CFG>                                              \
    void WelfordUpdate(const LocalTensor<U> &outputMean, const LocalTensor<U> &outputVariance,                       \
                       const LocalTensor<U> &inputMean, const LocalTensor<U> &inputVariance,                         \
                       const LocalTensor<T> &inputX, TemporaryParameter const WelfordUpdateParam &para, EVK_AT)      \
    {                                                                                                                \
        twin::WelfordStep({outputMean.Ref(), outputVariance.Ref(), inputMean.Ref(), inputVariance.Ref(),             \
                           inputX.Ref(), TemporaryRef, para.abLength, para.abComputeLength, para.nRec,               \
                           config.isInplace},                                                                        \
                          at);                                                                                       \
    }
EVK_WELFORD_UPDATE(EVK_TEMPORARY, &temporary.Ref())
EVK_WELFORD_UPDATE(, nullptr)
#undef EVK_WELFORD_UPDATE

#define EVK_WELFORD_FINALIZE(CountsParameter, CountsRef, TemporaryParameter, TemporaryRef)                           \
    template <bool isReuseSource = false, const WelfordFinalizeConfig &config = WFFINALIZE_DEFAULT_CFG>              \
    void WelfordFinalize(const LocalTensor<float> &outputMean, const LocalTensor<float> &outputVariance,             \
                         const LocalTensor<float> &inputMean, const LocalTensor<float> &inputVariance,               \
                         CountsParameter TemporaryParameter const WelfordFinalizePara &para, EVK_AT)                 \
    {                                                                                                                \
        twin::WelfordEnd({outputMean.Ref(), outputVariance.Ref(), inputMean.Ref(), inputVariance.Ref(), CountsRef,   \
                          TemporaryRef, para.rnLength, para.abLength, para.headCount, para.headCountLength,          \
                          para.tailCount, para.tailCountLength, para.abRec,                                          \
                          config.isCorrection ? para.rRecWithCorrection : para.rRec},                                \
                         at);                                                                                        \
    }
#define EVK_COUNTS const LocalTensor<int32_t> &counts,
EVK_WELFORD_FINALIZE(, nullptr, EVK_TEMPORARY, &temporary.Ref())
EVK_WELFORD_FINALIZE(, nullptr, , nullptr)
EVK_WELFORD_FINALIZE(EVK_COUNTS, &counts.Ref(), EVK_TEMPORARY, &temporary.Ref())
EVK_WELFORD_FINALIZE(EVK_COUNTS, &counts.Ref(), , nullptr)
#undef EVK_COUNTS
#undef EVK_WELFORD_FINALIZE
#undef EVK_TEMPORARY

}  // namespace AscendC
