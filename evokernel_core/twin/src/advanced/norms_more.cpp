// BatchNorm, GroupNorm, the gradients of LayerNorm and Welford's algorithm. Computed in float.
#include <cmath>

#include "advanced/advanced.h"
#include "evokernel/twin/advanced_rows.h"
#include "vector/walk.h"

namespace evokernel::twin {

namespace {

constexpr uint32_t kFloatWidth = 4;

void CheckReal(Advanced *check, const LocalRef &first, std::initializer_list<const LocalRef *> others)
{
    check->Type(first, kRealTypes, "dst");
    for (const LocalRef *other : others) {
        check->Same(*other, first, Word("every operand"));
    }
}

float SumOf(const LocalRef &tensor, uint64_t first, uint64_t count, uint64_t step)
{
    if (step == 1) {
        return PairSum(Numbers(tensor, first, count));
    }
    float sum = 0;
    for (uint64_t i = 0; i < count; ++i) {
        sum += NumberAt(tensor, first + i * step);
    }
    return sum;
}

void SetOne(const LocalRef &tensor, uint64_t index, float value, bool undefined)
{
    SetNumber(tensor, index, value);
    MarkElements(tensor, index, 1, undefined);
}

void ComputeFeature(const BatchNormCall &call, uint32_t i)
{
    const float rows = static_cast<float>(call.b);
    bool undefined = false;
    for (uint32_t b = 0; b < call.b; ++b) {
        undefined = undefined || Undefined(call.src, uint64_t{b} * call.n + i, 1);
    }
    const float mean = SumOf(call.src, i, call.b, call.n) / rows;
    float squares = 0;
    for (uint32_t b = 0; b < call.b; ++b) {
        const float shifted = NumberAt(call.src, uint64_t{b} * call.n + i) - mean;
        squares += shifted * shifted;
    }
    const float variance = squares / rows;
    for (uint32_t b = 0; b < call.b; ++b) {
        const uint64_t place = uint64_t{b} * call.n + i;
        const float scaled = (NumberAt(call.src, place) - mean) / std::sqrt(variance + call.epsilon);
        SetOne(call.dst, place, scaled * NumberAt(call.gamma, b) + NumberAt(call.beta, b),
               undefined || Undefined(call.gamma, b, 1) || Undefined(call.beta, b, 1));
    }
    SetOne(call.mean, i, mean, undefined);
    SetOne(call.variance, i, variance, undefined);
}

void ComputeGroup(const GroupNormCall &call, uint32_t n, uint32_t g)
{
    const uint32_t channels = call.c / call.groups;
    const uint64_t count = uint64_t{channels} * call.hw;
    const uint64_t first = (uint64_t{n} * call.c + uint64_t{g} * channels) * call.hw;
    const bool undefined = Undefined(call.src, first, count);
    std::vector<float> values = Numbers(call.src, first, count);
    const float mean = PairSum(values) / static_cast<float>(count);
    std::vector<float> squares(count);
    for (uint64_t i = 0; i < count; ++i) {
        squares[i] = (values[i] - mean) * (values[i] - mean);
    }
    const float variance = PairSum(std::move(squares)) / static_cast<float>(count);
    const float deviation = std::sqrt(variance + call.epsilon);
    for (uint32_t k = 0; k < channels; ++k) {
        const uint64_t channel = uint64_t{g} * channels + k;
        const float gamma = NumberAt(call.gamma, channel);
        const float beta = NumberAt(call.beta, channel);
        for (uint32_t i = 0; i < call.hw; ++i) {
            float &value = values[uint64_t{k} * call.hw + i];
            value = (value - mean) / deviation * gamma + beta;
        }
        MarkElements(call.dst, first + uint64_t{k} * call.hw, call.hw,
                     undefined || Undefined(call.gamma, channel, 1) || Undefined(call.beta, channel, 1));
    }
    SetNumbers(call.dst, first, values.data(), count);
    SetOne(call.mean, uint64_t{n} * call.groups + g, mean, undefined);
    SetOne(call.variance, uint64_t{n} * call.groups + g, variance, undefined);
}

void GradientRow(const NormGradCall &call, uint32_t row)
{
    const uint64_t first = uint64_t{row} * call.h;
    const bool undefined = Undefined(call.dy, first, call.n) || Undefined(call.x, first, call.n) ||
                           Undefined(call.variance, row, 1) || Undefined(call.mean, row, 1) ||
                           Undefined(call.gamma, 0, call.n);
    std::vector<float> scaled = Numbers(call.dy, first, call.h);
    std::vector<float> centred = Numbers(call.x, first, call.h);
    const std::vector<float> gamma = Numbers(call.gamma, 0, call.h);
    const float mean = NumberAt(call.mean, row);
    const float rstd = 1 / std::sqrt(NumberAt(call.variance, row) + call.epsilon);
    const float count = static_cast<float>(call.n);
    std::vector<float> by_variance(call.n);
    std::vector<float> by_mean(call.n);
    for (uint32_t c = 0; c < call.h; ++c) {
        scaled[c] *= gamma[c];
        centred[c] -= mean;
        if (c < call.n) {
            by_variance[c] = -0.5F * scaled[c] * centred[c] * rstd * rstd * rstd;
            by_mean[c] = -scaled[c] * rstd;
        }
    }
    const float d_variance = PairSum(std::move(by_variance));
    const float centre = PairSum(std::vector<float>(centred.begin(), centred.begin() + call.n));
    const float d_mean = PairSum(std::move(by_mean)) + d_variance / count * -2.0F * centre;
    for (uint32_t c = 0; c < call.h; ++c) {
        scaled[c] = scaled[c] * rstd + d_variance * (2.0F / count) * centred[c] + d_mean / count;
        centred[c] *= rstd;
    }
    SetNumbers(call.dx, first, scaled.data(), call.h);
    SetNumbers(call.res_for_gamma, first, centred.data(), call.h);
    MarkElements(call.dx, first, call.h, undefined);
    MarkElements(call.res_for_gamma, first, call.h, undefined);
}

}  // namespace

void BatchNormalize(const BatchNormCall &call, At at)
{
    Advanced check("BatchNorm", at);
    const uint64_t elements = uint64_t{call.b} * call.n;
    check.Simple(elements, kFloatWidth, 8 + (call.src.dtype == DType::F16 ? 2 : 0));
    check.Slow(call.n, kFloatWidth, 2);
    if (TimingOnly()) {
        return;
    }
    if (call.b == 0 || call.n == 0) {
        check.Fail("tiling-misuse", "got the shape [%u, %u]; ask GetBatchNormNDTilingInfo for its tiling.", call.b,
                   call.n);
        return;
    }
    CheckReal(&check, call.dst, {&call.mean, &call.variance, &call.src, &call.gamma, &call.beta});
    check.Blocks(uint64_t{call.n} * DTypeBytes(call.src.dtype), Word("rows of S*H"));
    check.In(call.src, elements, "inputX");
    check.In(call.gamma, call.b, "gamma");
    check.In(call.beta, call.b, "beta");
    check.Out(call.mean, call.n, "outputMean");
    check.Out(call.variance, call.n, "outputVariance");
    check.Out(call.dst, elements, "output");
    check.Temporary(call.temporary, NormTemporary(1, call.n, DTypeBytes(call.src.dtype), false));
    for (uint32_t i = 0; i < call.n && check.Good(); ++i) {
        ComputeFeature(call, i);
    }
}

void GroupNormalize(const GroupNormCall &call, At at)
{
    Advanced check("GroupNorm", at);
    const uint64_t elements = uint64_t{call.n} * call.c * call.hw;
    check.Simple(elements, kFloatWidth, 6 + (call.src.dtype == DType::F16 ? 2 : 0));
    if (call.groups != 0 && call.n != 0) {
        const uint64_t rows = uint64_t{call.n} * call.groups;
        check.ReduceRows(rows, elements / rows, kFloatWidth);
        check.ReduceRows(rows, elements / rows, kFloatWidth);
        check.Slow(rows * 8, kFloatWidth, 2);
    }
    if (TimingOnly()) {
        return;
    }
    if (call.n == 0 || call.c == 0 || call.hw == 0 || call.groups == 0 || call.c % call.groups != 0) {
        check.Fail("tiling-misuse", "got the shape [%u, %u, %u] in %u groups; ask GetGroupNormNDTilingInfo for its "
                   "tiling.", call.n, call.c, call.hw, call.groups);
        return;
    }
    CheckReal(&check, call.dst, {&call.mean, &call.variance, &call.src, &call.gamma, &call.beta});
    check.Blocks(uint64_t{call.hw} * DTypeBytes(call.src.dtype), Word("planes of H*W"));
    check.In(call.src, elements, "inputX");
    check.In(call.gamma, call.c, "gamma");
    check.In(call.beta, call.c, "beta");
    check.Out(call.mean, uint64_t{call.n} * call.groups, "outputMean");
    check.Out(call.variance, uint64_t{call.n} * call.groups, "outputVariance");
    check.Out(call.dst, elements, "output");
    const uint64_t group = uint64_t{call.c} / call.groups * call.hw;
    check.Temporary(call.temporary, NormTemporary(1, group, DTypeBytes(call.src.dtype), true));
    for (uint32_t n = 0; n < call.n && check.Good(); ++n) {
        for (uint32_t g = 0; g < call.groups; ++g) {
            ComputeGroup(call, n, g);
        }
    }
}

void LayerNormGradient(const NormGradCall &call, At at)
{
    Advanced check("LayerNormGrad", at);
    const uint64_t elements = uint64_t{call.rows} * call.h;
    check.Simple(elements, kFloatWidth, 14 + (call.x.dtype == DType::F16 ? 4 : 0));
    for (int i = 0; i < 3; ++i) {
        check.ReduceRows(call.rows, call.h, kFloatWidth);
    }
    check.Slow(uint64_t{call.rows} * 8, kFloatWidth, 3);
    if (TimingOnly()) {
        return;
    }
    if (call.rows == 0 || call.h == 0 || call.n == 0 || call.n > call.h) {
        check.Fail("tiling-misuse", "got %u rows of %u elements; ask GetLayerNormGradNDTilingInfo for its tiling.",
                   call.rows, call.h);
        return;
    }
    CheckReal(&check, call.dx, {&call.res_for_gamma, &call.dy, &call.x, &call.variance, &call.mean, &call.gamma});
    check.Blocks(uint64_t{call.h} * DTypeBytes(call.x.dtype), "rows");
    check.In(call.dy, elements, "inputDy");
    check.In(call.x, elements, "inputX");
    check.In(call.variance, call.rows, "inputVariance");
    check.In(call.mean, call.rows, "inputMean");
    check.In(call.gamma, call.h, "inputGamma");
    check.Out(call.dx, elements, "outputPdX");
    check.Out(call.res_for_gamma, elements, "resForGamma");
    check.Temporary(call.temporary, NormTemporary(1, call.h, DTypeBytes(call.x.dtype), false));
    for (uint32_t row = 0; row < call.rows && check.Good(); ++row) {
        GradientRow(call, row);
    }
}

void LayerNormGradientBeta(const LocalRef &d_gamma, const LocalRef &d_beta, const LocalRef &res_for_gamma,
                           const LocalRef &dy, const LocalRef *temporary, uint32_t rows, uint32_t h, At at)
{
    Advanced check("LayerNormGradBeta", at);
    const uint64_t elements = uint64_t{rows} * h;
    check.Simple(elements, kFloatWidth, 3 + (dy.dtype == DType::F16 ? 2 : 0));
    if (TimingOnly()) {
        return;
    }
    if (rows == 0 || h == 0) {
        check.Fail("tiling-misuse", "got %u rows of %u elements; ask GetLayerNormGradBetaNDTilingInfo for its tiling.",
                   rows, h);
        return;
    }
    CheckReal(&check, d_gamma, {&d_beta, &res_for_gamma, &dy});
    check.Blocks(uint64_t{h} * DTypeBytes(dy.dtype), "rows");
    check.In(res_for_gamma, elements, "resForGamma");
    check.In(dy, elements, "inputDy");
    check.Out(d_gamma, h, "outputPdGamma");
    check.Out(d_beta, h, "outputPdBeta");
    check.Temporary(temporary, NormTemporary(1, h, DTypeBytes(dy.dtype), true));
    if (!check.Good()) {
        return;
    }
    std::vector<float> gamma(h);
    std::vector<float> beta(h);
    std::vector<uint8_t> marks(h);
    for (uint32_t row = 0; row < rows; ++row) {
        const uint64_t first = uint64_t{row} * h;
        const std::vector<float> by_gamma = Numbers(res_for_gamma, first, h);
        const std::vector<float> gradient = Numbers(dy, first, h);
        for (uint32_t c = 0; c < h; ++c) {
            gamma[c] += by_gamma[c] * gradient[c];
            beta[c] += gradient[c];
            marks[c] = marks[c] != 0 || Undefined(res_for_gamma, first + c, 1) || Undefined(dy, first + c, 1) ? 1 : 0;
        }
    }
    for (uint32_t c = 0; c < h; ++c) {
        SetOne(d_gamma, c, gamma[c], marks[c] != 0);
        SetOne(d_beta, c, beta[c], marks[c] != 0);
    }
}

uint64_t WelfordTemporary(uint64_t length, uint32_t type_size)
{
    return (type_size == 2 ? 3 : 2) * AlignTo(length * sizeof(float), kBlockBytes);
}

void WelfordStep(const WelfordUpdateCall &call, At at)
{
    Advanced check("WelfordUpdate", at);
    check.Simple(call.length, kFloatWidth, 5 + (call.x.dtype == DType::F16 ? 1 : 0));
    if (TimingOnly()) {
        return;
    }
    if (call.computed == 0 || call.computed > call.length) {
        check.Fail("param-limit", "needs abComputeLength between 1 and abLength, but they are %u and %u.",
                   call.computed, call.length);
        return;
    }
    check.Type(call.x, kRealTypes, "inputX");
    for (const LocalRef *ref : {&call.mean, &call.variance, &call.in_mean, &call.in_variance}) {
        check.Type(*ref, kFloatTypes, Word("means and variances"));
    }
    check.Blocks(uint64_t{call.length} * DTypeBytes(call.x.dtype), "inputX");
    check.In(call.x, call.length, "inputX");
    check.In(call.in_mean, call.length, "inputMean");
    check.In(call.in_variance, call.length, "inputVariance");
    check.Out(call.mean, call.length, "outputMean");
    check.Out(call.variance, call.length, "outputVariance");
    if (!call.in_place) {
        check.Apart(call.mean, call.length, "outputMean", call.in_mean, call.length, "inputMean");
        check.Apart(call.variance, call.length, "outputVariance", call.in_variance, call.length, "inputVariance");
    }
    check.Temporary(call.temporary, WelfordTemporary(8, DTypeBytes(call.x.dtype)));
    for (uint32_t i = 0; i < call.length && check.Good(); ++i) {
        const float mean = NumberAt(call.in_mean, i);
        const float variance = NumberAt(call.in_variance, i);
        const float delta = NumberAt(call.x, i) - mean;
        const bool used = i < call.computed;
        const float next = used ? mean + delta * call.reciprocal : mean;
        const bool undefined = Undefined(call.in_mean, i, 1) || (used && Undefined(call.x, i, 1));
        const bool undefined_too = undefined || Undefined(call.in_variance, i, 1);
        SetOne(call.variance, i, used ? variance + delta * (NumberAt(call.x, i) - next) : variance, undefined_too);
        SetOne(call.mean, i, next, undefined);
    }
}

void WelfordEnd(const WelfordFinalizeCall &call, At at)
{
    Advanced check("WelfordFinalize", at);
    check.Simple(call.length, kFloatWidth, call.counts != nullptr ? 6 : 4);
    check.ReduceRows(1, call.length, kFloatWidth);
    check.ReduceRows(1, call.length, kFloatWidth);
    check.ReduceRows(1, call.length, kFloatWidth);
    if (TimingOnly()) {
        return;
    }
    const bool headed = call.counts == nullptr;
    if (call.length == 0 || (headed && call.head_length + call.tail_length != call.length) ||
        (headed && call.tail_count == 0 && call.tail_length != 0)) {
        check.Fail("param-limit", "needs headCountLength + tailCountLength == abLength, and no tail of count 0; they "
                   "are %u + %u and %u.", call.head_length, call.tail_length, call.length);
        return;
    }
    for (const LocalRef *ref : {&call.mean, &call.variance, &call.in_mean, &call.in_variance}) {
        check.Type(*ref, kFloatTypes, Word("means and variances"));
    }
    check.Blocks(uint64_t{call.length} * kFloatWidth, "inputs");
    check.In(call.in_mean, call.length, "inputMean");
    check.In(call.in_variance, call.length, "inputVariance");
    if (call.counts != nullptr) {
        check.Type(*call.counts, TypeBit(DType::S32), "counts");
        check.In(*call.counts, call.length, "counts");
    }
    check.Out(call.mean, 1, "outputMean");
    check.Out(call.variance, 1, "outputVariance");
    check.Apart(call.mean, 1, "outputMean", call.in_mean, call.length, "inputMean");
    check.Apart(call.variance, 1, "outputVariance", call.in_variance, call.length, "inputVariance");
    check.Temporary(call.temporary, WelfordTemporary(8, kFloatWidth));
    if (!check.Good()) {
        return;
    }
    const std::vector<float> means = Numbers(call.in_mean, 0, call.length);
    const std::vector<float> moments = Numbers(call.in_variance, 0, call.length);
    std::vector<float> counts(call.length, static_cast<float>(call.rn));
    const bool even = headed && call.tail_length == 0;
    for (uint32_t i = 0; i < call.length && !even; ++i) {
        counts[i] = headed ? static_cast<float>(i < call.head_length ? call.head_count : call.tail_count)
                           : NumberAt(*call.counts, i);
    }
    // The mean divides by the whole length: the reciprocals of the parameters say how much that is.
    float total = 0;
    std::vector<float> weighted(call.length);
    for (uint32_t i = 0; i < call.length; ++i) {
        weighted[i] = even ? means[i] : counts[i] * means[i];
        total += counts[i];
    }
    const float mean = PairSum(weighted) * (even ? call.ab_rec : 1 / total);
    for (uint32_t i = 0; i < call.length; ++i) {
        weighted[i] = moments[i] + counts[i] * (means[i] - mean) * (means[i] - mean);
    }
    const bool undefined = Undefined(call.in_mean, 0, call.length) || Undefined(call.in_variance, 0, call.length) ||
                           (call.counts != nullptr && Undefined(*call.counts, 0, call.length));
    SetOne(call.mean, 0, mean, undefined);
    SetOne(call.variance, 0, PairSum(weighted) * call.r_rec, undefined);
}

}  // namespace evokernel::twin
