// Entry points of the library for high-level functions that work on rows: softmax, normalisations, reductions.
#pragma once
#include "evokernel/twin/refs.h"

namespace evokernel::twin {

enum class SoftmaxKind : uint8_t { Plain, Simple, Flash, FlashV2, FlashV3, Log, Grad, GradFront };

// Absent operands are null. `m` rows of `k` elements, of which `n` count; `sum` and `max` hold one value a row,
// spread over 32 bytes unless `single`.
struct SoftmaxCall {
    SoftmaxKind kind;
    LocalRef dst;
    LocalRef src;
    const LocalRef *sum = nullptr;
    const LocalRef *max = nullptr;
    const LocalRef *mean = nullptr;
    const LocalRef *exp_max = nullptr;
    const LocalRef *reduce_max = nullptr;
    const LocalRef *in_sum = nullptr;
    const LocalRef *in_max = nullptr;
    const LocalRef *in_mean = nullptr;
    const LocalRef *grad = nullptr;
    const LocalRef *temporary = nullptr;
    uint32_t m = 0;
    uint32_t k = 0;
    uint32_t n = 0;
    bool nz = false;
    bool single = false;
    bool update = false;
    uint32_t loop = 1;
    float alpha = 0;
};
void Softmax(const SoftmaxCall &call, At at);
bool AdjustRows(const LocalRef &rows, const LocalRef &max, uint32_t from, Scalar to, uint32_t m, uint32_t k, bool nz,
                bool every, At at);
// Bytes of the temporary for `rows` rows of `k` elements: a row in float; its maximum, its sum and one more.
constexpr uint64_t SoftmaxTemporary(uint64_t rows, uint64_t k)
{
    constexpr uint64_t spread = 3 * 32;
    return rows * ((k + 63) / 64 * 64 * sizeof(float) + spread);
}

enum class NormKind : uint8_t { Layer, LayerRstd, LayerVariance, Normalize, Rms, Deep };

// a rows of r elements at a distance of `stride`. Absent operands are null.
struct NormCall {
    NormKind kind;
    LocalRef dst;
    LocalRef src;
    const LocalRef *mean = nullptr;
    const LocalRef *spread = nullptr;  // variance or 1 / standard deviation
    const LocalRef *in_mean = nullptr;
    const LocalRef *in_variance = nullptr;
    const LocalRef *residual = nullptr;
    const LocalRef *gamma = nullptr;
    const LocalRef *beta = nullptr;
    const LocalRef *temporary = nullptr;
    uint32_t a = 0;
    uint32_t r = 0;
    uint32_t stride = 0;
    float epsilon = 0;
    float alpha = 0;
    bool in_place = false;  // dst may be src
    bool reuse = false;     // the source may be overwritten, which saves a part of the temporary
};
void NormalizeRows(const NormCall &call, At at);

// Rows of each batch, feature by feature: output [b, n], mean and variance [n], gamma and beta [b].
struct BatchNormCall {
    LocalRef dst, mean, variance, src, gamma, beta;
    const LocalRef *temporary = nullptr;
    uint32_t b = 0;
    uint32_t n = 0;
    float epsilon = 0;
};
void BatchNormalize(const BatchNormCall &call, At at);

struct GroupNormCall {
    LocalRef dst, mean, variance, src, gamma, beta;
    const LocalRef *temporary = nullptr;
    uint32_t n = 0;
    uint32_t c = 0;
    uint32_t hw = 0;
    uint32_t groups = 0;
    float epsilon = 0;
};
void GroupNormalize(const GroupNormCall &call, At at);

struct NormGradCall {
    LocalRef dx, res_for_gamma, dy, x, variance, mean, gamma;
    const LocalRef *temporary = nullptr;
    uint32_t rows = 0;
    uint32_t h = 0;
    uint32_t n = 0;
    float epsilon = 0;
};
void LayerNormGradient(const NormGradCall &call, At at);
void LayerNormGradientBeta(const LocalRef &d_gamma, const LocalRef &d_beta, const LocalRef &res_for_gamma,
                           const LocalRef &dy, const LocalRef *temporary, uint32_t rows, uint32_t h, At at);

struct WelfordUpdateCall {
    LocalRef mean, variance, in_mean, in_variance, x;
    const LocalRef *temporary = nullptr;
    uint32_t length = 0;
    uint32_t computed = 0;
    float reciprocal = 0;
    bool in_place = false;
};
void WelfordStep(const WelfordUpdateCall &call, At at);

struct WelfordFinalizeCall {
    LocalRef mean, variance, in_mean, in_variance;
    const LocalRef *counts = nullptr;
    const LocalRef *temporary = nullptr;
    uint32_t rn = 0, length = 0, head_count = 0, head_length = 0, tail_count = 0, tail_length = 0;
    float ab_rec = 0;
    float r_rec = 0;
};
void WelfordEnd(const WelfordFinalizeCall &call, At at);

// RmsNorm's rule: rows in float, twice for half, and a value for each row.
constexpr uint64_t RmsTemporary(uint64_t rows, uint64_t h, uint32_t type_size)
{
    return (rows * h * (type_size == 2 ? 2 : 1) + (rows + 7) / 8 * 8) * sizeof(float);
}
// Bytes of the temporaries of the other normalisations, for so many rows.
uint64_t NormTemporary(uint64_t rows, uint64_t r, uint32_t type_size, bool reuse);
uint64_t WelfordTemporary(uint64_t length, uint32_t type_size);

}  // namespace evokernel::twin
