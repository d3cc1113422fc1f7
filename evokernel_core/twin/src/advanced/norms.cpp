// Normalisations over rows: LayerNorm in its forms, Normalize, RmsNorm and DeepNorm. Computed in float.
#include <algorithm>
#include <cmath>

#include "advanced/advanced.h"
#include "evokernel/twin/advanced_rows.h"
#include "vector/walk.h"

namespace evokernel::twin {

namespace {

const char *NameOf(NormKind kind)
{
    static const char *const names[] = {"LayerNorm", "LayerNorm", "LayerNorm", "Normalize", "RmsNorm", "DeepNorm"};
    return names[static_cast<int>(kind)];
}

struct Statistics {
    float mean;
    float variance;
};

Statistics Measure(const std::vector<float> &row, uint32_t n)
{
    std::vector<float> part(row.begin(), row.begin() + n);
    const float mean = PairSum(part) / static_cast<float>(n);
    for (float &value : part) {
        value = (value - mean) * (value - mean);
    }
    return {mean, PairSum(std::move(part)) / static_cast<float>(n)};
}

float MeanSquare(const std::vector<float> &row, uint32_t n)
{
    std::vector<float> part(row.begin(), row.begin() + n);
    for (float &value : part) {
        value *= value;
    }
    return PairSum(std::move(part)) / static_cast<float>(n);
}

void Charge(const Advanced &check, const NormCall &call)
{
    constexpr uint32_t width = 4;
    const uint64_t elements = uint64_t{call.a} * call.stride;
    const bool rms = call.kind == NormKind::Rms;
    const bool measured = call.kind != NormKind::Normalize;
    check.Simple(elements, width, call.src.dtype == DType::F16 ? 2 : 0);
    if (measured) {
        check.Simple(elements, width, rms ? 1 : 3);
        check.ReduceRows(call.a, call.r, width);
        if (!rms) {
            check.ReduceRows(call.a, call.r, width);
        }
    }
    const int parts = (call.gamma != nullptr) + (call.beta != nullptr) + 2 * (call.residual != nullptr);
    check.Simple(elements, width, 1 + parts);
    check.Slow(uint64_t{call.a} * 8, width, 2);
}

void CheckVector(Advanced *check, const LocalRef *ref, uint64_t elements, bool write, const char *name)
{
    if (ref != nullptr) {
        check->Type(*ref, kRealTypes, name);
        write ? check->Out(*ref, elements, name) : check->In(*ref, elements, name);
    }
}

void CheckWidth(Advanced *check, const NormCall &call, const LocalRef *ref, const char *name)
{
    if (ref != nullptr && DTypeBytes(ref->dtype) < DTypeBytes(call.src.dtype)) {
        check->Fail("dtype-unsupported", "needs %s in a type at least as precise as the source; it is %s.", name,
                    DTypeName(ref->dtype));
    }
}

void Check(Advanced *check, const NormCall &call)
{
    if (call.a == 0 || call.r == 0 || call.r > call.stride) {
        check->Fail("tiling-misuse", "got %u rows of %u elements with %u of them in use; ask the host's tiling "
                    "function for its tiling.", call.a, call.stride, call.r);
        return;
    }
    const uint64_t elements = uint64_t{call.a} * call.stride;
    check->Type(call.src, kRealTypes, "src");
    check->Same(call.dst, call.src, "dst");
    check->Blocks(uint64_t{call.stride} * DTypeBytes(call.src.dtype), "rows");
    check->In(call.src, elements, "src");
    if (call.residual != nullptr) {
        check->Same(*call.residual, call.dst, "gx");
        check->In(*call.residual, elements, "gx");
    }
    if (call.kind == NormKind::Deep && call.stride > 2040) {
        check->Fail("param-limit", "supports rows of up to 2040 elements, not %u.", call.stride);
    }
    CheckVector(check, call.gamma, call.r, false, "gamma");
    CheckVector(check, call.beta, call.r, false, "beta");
    CheckWidth(check, call, call.gamma, "gamma");
    CheckWidth(check, call, call.beta, "beta");
    CheckVector(check, call.in_mean, call.a, false, "inputMean");
    CheckVector(check, call.in_variance, call.a, false, "inputVariance");
    CheckVector(check, call.mean, call.a, true, "outputMean");
    CheckVector(check, call.spread, call.a, true, Word("the output of the broadcast"));
    check->Out(call.dst, elements, "dst");
    if (!call.in_place) {
        check->Apart(call.dst, elements, "dst", call.src, elements, "src");
    }
    const uint32_t width = DTypeBytes(call.src.dtype);
    check->Temporary(call.temporary, call.kind == NormKind::Rms ? RmsTemporary(1, call.stride, width)
                                                                : NormTemporary(1, call.stride, width, call.reuse));
}

bool ColumnUndefined(const LocalRef *ref, uint32_t column)
{
    if (ref == nullptr) {
        return false;
    }
    const uint64_t end = ref->address + (uint64_t{column} + 1) * DTypeBytes(ref->dtype);
    return end > ref->limit || Undefined(*ref, column, 1);
}

float ColumnValue(const LocalRef *ref, uint32_t column, float otherwise)
{
    if (ref == nullptr) {
        return otherwise;
    }
    const uint64_t end = ref->address + (uint64_t{column} + 1) * DTypeBytes(ref->dtype);
    return end > ref->limit ? otherwise : NumberAt(*ref, column);
}

// Scale, shift and definedness of the columns, once for all rows.
struct Columns {
    std::vector<float> gamma;
    std::vector<float> beta;
    std::vector<uint8_t> undefined;

    explicit Columns(const NormCall &call) : gamma(call.stride), beta(call.stride), undefined(call.stride)
    {
        for (uint32_t c = 0; c < call.stride; ++c) {
            gamma[c] = ColumnValue(call.gamma, c, 1);
            beta[c] = ColumnValue(call.beta, c, 0);
            undefined[c] = ColumnUndefined(call.gamma, c) || ColumnUndefined(call.beta, c) ? 1 : 0;
        }
    }
};

void SetRowValue(const LocalRef *ref, uint32_t row, float value, bool undefined)
{
    if (ref != nullptr) {
        SetNumber(*ref, row, value);
        MarkElements(*ref, row, 1, undefined);
    }
}

void ComputeRow(const NormCall &call, uint32_t row, const Columns &columns)
{
    const uint64_t first = uint64_t{row} * call.stride;
    std::vector<float> values = Numbers(call.src, first, call.stride);
    bool undefined = Undefined(call.src, first, call.r);
    if (call.residual != nullptr) {
        const std::vector<float> other = Numbers(*call.residual, first, call.stride);
        undefined = undefined || Undefined(*call.residual, first, call.r);
        for (uint32_t c = 0; c < call.stride; ++c) {
            values[c] = call.alpha * values[c] + other[c];
        }
    }
    Statistics measured{0, 0};
    if (call.kind == NormKind::Normalize) {
        measured = {NumberAt(*call.in_mean, row), NumberAt(*call.in_variance, row)};
        undefined = undefined || Undefined(*call.in_mean, row, 1) || Undefined(*call.in_variance, row, 1);
    } else {
        measured = call.kind == NormKind::Rms ? Statistics{0, MeanSquare(values, call.r)} : Measure(values, call.r);
    }
    const float deviation = std::sqrt(measured.variance + call.epsilon);
    const bool whole = !undefined && !Undefined(call.src, first, call.stride);
    std::vector<uint8_t> marks(call.stride);
    for (uint32_t c = 0; c < call.stride; ++c) {
        values[c] = (values[c] - measured.mean) / deviation * columns.gamma[c] + columns.beta[c];
        marks[c] = columns.undefined[c] != 0 || undefined || (!whole && Undefined(call.src, first + c, 1)) ? 1 : 0;
    }
    SetNumbers(call.dst, first, values.data(), call.stride);
    for (uint32_t c = 0; c < call.stride; ++c) {
        MarkElements(call.dst, first + c, 1, marks[c] != 0);
    }
    // DeepNorm's third output is called rstd in its documentation, but the published data hold the variance.
    const bool plain =
        call.kind == NormKind::Layer || call.kind == NormKind::LayerVariance || call.kind == NormKind::Deep;
    SetRowValue(call.mean, row, measured.mean, undefined);
    SetRowValue(call.spread, row, plain ? measured.variance : 1 / deviation, undefined);
}

}  // namespace

uint64_t NormTemporary(uint64_t rows, uint64_t r, uint32_t type_size, bool reuse)
{
    const uint64_t row = AlignTo(r * sizeof(float), kBlockBytes);
    const uint64_t live = type_size == 2 ? 3 : (reuse ? 1 : 2);
    return rows * (live * row + 2 * kBlockBytes);
}

void NormalizeRows(const NormCall &call, At at)
{
    Advanced check(NameOf(call.kind), at);
    Charge(check, call);
    if (TimingOnly()) {
        return;
    }
    Check(&check, call);
    if (!check.Good()) {
        return;
    }
    const Columns columns(call);
    for (uint32_t row = 0; row < call.a; ++row) {
        ComputeRow(call, row, columns);
    }
}

}  // namespace evokernel::twin
