// The softmax family. Each row is computed in float and rounded where a result is stored.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "advanced/advanced.h"
#include "evokernel/twin/advanced_rows.h"
#include "vector/walk.h"

namespace evokernel::twin {

namespace {

constexpr uint32_t kFractal = 16;  // columns of a fractal in NZ

const char *NameOf(SoftmaxKind kind)
{
    static const char *const names[] = {"SoftMax",        "SimpleSoftMax", "SoftmaxFlash", "SoftmaxFlashV2",
                                        "SoftmaxFlashV3", "LogSoftMax",    "SoftmaxGrad",  "SoftmaxGradFront"};
    return names[static_cast<int>(kind)];
}

// The matrix of one operand: where its elements are.
struct Matrix {
    LocalRef ref;
    uint32_t m;
    uint32_t k;
    bool nz;

    uint64_t Index(uint32_t row, uint32_t column) const
    {
        return nz ? (uint64_t{column / kFractal} * m + row) * kFractal + column % kFractal
                  : uint64_t{row} * k + column;
    }
    std::vector<float> Row(uint32_t row) const
    {
        if (!nz) {
            return Numbers(ref, uint64_t{row} * k, k);
        }
        std::vector<float> values(k);
        for (uint32_t c = 0; c < k; c += kFractal) {
            const std::vector<float> part = Numbers(ref, Index(row, c), kFractal);
            std::copy(part.begin(), part.end(), values.begin() + c);
        }
        return values;
    }
    bool RowUndefined(uint32_t row, uint32_t first, uint32_t end) const
    {
        if (!nz) {
            return Undefined(ref, Index(row, first), end - first);
        }
        bool undefined = false;
        for (uint32_t c = first; c < end; ++c) {
            undefined = undefined || Undefined(ref, Index(row, c), 1);
        }
        return undefined;
    }
    void SetRow(uint32_t row, const std::vector<float> &values, const std::vector<uint8_t> &marks) const
    {
        const uint32_t step = nz ? kFractal : k;
        for (uint32_t c = 0; c < k; c += step) {
            SetNumbers(ref, Index(row, c), values.data() + c, step);
            for (uint32_t i = 0; i < step; ++i) {
                MarkElements(ref, Index(row, c + i), 1, marks[c + i] != 0);
            }
        }
    }
};

// One value a row: spread over a block of 32 bytes, or alone.
struct PerRow {
    const LocalRef *ref;
    bool single;

    uint32_t Width() const { return single ? 1 : kBlockBytes / DTypeBytes(ref->dtype); }
    float Get(uint32_t row) const { return NumberAt(*ref, uint64_t{row} * Width()); }
    bool IsUndefined(uint32_t row) const { return Undefined(*ref, uint64_t{row} * Width(), 1); }
    void Set(uint32_t row, float value, bool undefined) const
    {
        if (ref == nullptr) {
            return;
        }
        const std::vector<float> values(Width(), value);
        SetNumbers(*ref, uint64_t{row} * Width(), values.data(), Width());
        MarkElements(*ref, uint64_t{row} * Width(), Width(), undefined);
    }
};

float RowMax(const std::vector<float> &row, uint32_t n)
{
    float result = row[0];
    for (uint32_t i = 1; i < n; ++i) {
        result = row[i] > result || std::isnan(row[i]) ? row[i] : result;
    }
    return result;
}

float RowSum(const std::vector<float> &row, uint32_t n)
{
    return PairSum(std::vector<float>(row.begin(), row.begin() + n));
}

void ExpRow(std::vector<float> *row, float shift)
{
    for (float &value : *row) {
        value = std::exp(value - shift);
    }
}

void Scale(std::vector<float> *row, float divisor)
{
    for (float &value : *row) {
        value = value / divisor;
    }
}

// Softmax PASA: each eighth of the row is moved towards the row's mean.
float CentreEighths(std::vector<float> *row, uint32_t k, float factor)
{
    std::vector<float> sums(64);
    for (uint32_t j = 0; j < 64; ++j) {
        sums[j] = PairSum(std::vector<float>(row->begin() + j * 8, row->begin() + j * 8 + 8));
    }
    for (uint32_t c = 512; c < k; ++c) {
        sums[c % 64] += (*row)[c];
    }
    const uint32_t eighth = k / 8;
    std::vector<float> means(8);
    for (uint32_t j = 0; j < 8; ++j) {
        means[j] = PairSum(std::vector<float>(sums.begin() + j * 8, sums.begin() + j * 8 + 8)) /
                   static_cast<float>(eighth);
    }
    const float mean = PairSum(means) / 8;
    for (uint32_t c = 0; c < k; ++c) {
        (*row)[c] -= (mean - means[std::min<uint32_t>(c / eighth, 7)]) * factor;
    }
    return mean;
}

class Family {
public:
    Family(const SoftmaxCall &call, At at)
        : call_(call),
          check_(NameOf(call.kind), at),
          src_{call.src, call.m, call.k, call.nz},
          dst_{call.dst, call.m, call.k, call.nz},
          sum_{call.sum, call.single},
          max_{call.max, call.single},
          mean_{call.mean, call.single},
          exp_max_{call.exp_max, call.single}
    {
    }

    void Run()
    {
        Charge();
        if (TimingOnly()) {
            return;
        }
        Check();
        if (!check_.Good()) {
            return;
        }
        for (uint32_t row = 0; row < call_.m; ++row) {
            Compute(row);
        }
    }

private:
    bool Gradient() const { return call_.kind == SoftmaxKind::Grad || call_.kind == SoftmaxKind::GradFront; }
    uint64_t Elements() const { return uint64_t{call_.m} * call_.k; }

    void Charge()
    {
        constexpr uint32_t width = 4;  // computed in float
        const int casts = call_.src.dtype == DType::F16 ? 2 : 0;
        check_.Simple(Elements(), width, casts + (Gradient() ? 3 : 1));
        if (Gradient()) {
            check_.ReduceRows(call_.m, call_.k, width);
            return;
        }
        check_.Slow(Elements(), width, call_.kind == SoftmaxKind::FlashV2 ? 1 : 2);
        if (call_.kind != SoftmaxKind::Simple) {
            check_.ReduceRows(call_.m, call_.k, width);
            check_.ReduceRows(call_.m, call_.k, width);
            check_.Simple(uint64_t{call_.m} * 8, width, 2);
        }
        if (call_.update) {
            check_.Slow(uint64_t{call_.m} * 8, width);
            check_.Simple(uint64_t{call_.m} * 8, width, 4);
        }
        if (call_.kind == SoftmaxKind::FlashV3) {
            check_.ReduceRows(call_.m, call_.k, width);
            check_.Simple(Elements(), width, 1);
            check_.Simple(uint64_t{call_.m} * 8, width, 8);
        }
    }

    void CheckPerRow(const LocalRef *ref, bool write, const char *name)
    {
        if (ref == nullptr) {
            return;
        }
        check_.Type(*ref, kRealTypes, name);
        const uint64_t elements = uint64_t{call_.m} * PerRow{ref, call_.single}.Width();
        write ? check_.Out(*ref, elements, name) : check_.In(*ref, elements, name);
    }

    void Check()
    {
        const bool v3 = call_.kind == SoftmaxKind::FlashV3;
        if (call_.m == 0 || call_.k == 0 || call_.n == 0 || call_.n > call_.k) {
            check_.Fail("tiling-misuse", "got %u rows of %u elements with %u of them in use; give the shape in the "
                        "shape info or the tiling.", call_.m, call_.k, call_.n);
            return;
        }
        check_.Type(call_.src, v3 ? kHalfTypes : kRealTypes, "src");
        check_.Same(call_.src, call_.dst, "src");
        check_.Blocks(uint64_t{call_.k} * DTypeBytes(call_.src.dtype), "rows");
        if (call_.nz && (call_.k % kFractal != 0 || call_.m % kFractal != 0)) {
            check_.Fail("alignment", "in the NZ format needs multiples of 16 rows and columns, not [%u, %u].", call_.m,
                        call_.k);
        }
        if (v3 && (call_.k < 512 || call_.k % 64 != 0 || call_.m % 8 != 0)) {
            check_.Fail("alignment", "needs a multiple of 8 rows of at least 512 elements, a multiple of 64, not "
                        "[%u, %u].", call_.m, call_.k);
        }
        check_.In(call_.src, Elements(), "src");
        if (call_.grad != nullptr) {
            check_.Same(*call_.grad, call_.dst, "grad");
            check_.In(*call_.grad, Elements(), "grad");
        }
        CheckPerRow(call_.in_sum, false, "inSum");
        CheckPerRow(call_.in_max, false, "inMax");
        CheckPerRow(call_.in_mean, false, "inMean");
        CheckPerRow(call_.sum, call_.kind != SoftmaxKind::Simple, "sum");
        CheckPerRow(call_.max, call_.kind != SoftmaxKind::Simple, "max");
        CheckPerRow(call_.mean, true, "mean");
        CheckPerRow(call_.exp_max, true, "expMax");
        CheckPerRow(call_.reduce_max, true, "outReduceMax");
        if (call_.sum != nullptr && call_.max != nullptr) {
            check_.Same(*call_.sum, *call_.max, "sum");
        }
        const uint64_t block = kBlockBytes / DTypeBytes(call_.dst.dtype);
        check_.Out(call_.dst, call_.kind == SoftmaxKind::GradFront ? call_.m * block : Elements(), "dst");
        if (call_.kind == SoftmaxKind::Log) {
            check_.Apart(call_.dst, Elements(), "dst", call_.src, Elements(), "src");
        }
        check_.Temporary(call_.temporary, SoftmaxTemporary(1, call_.k));
    }

    // Of every column: whether its result has a value. Padding columns depend on themselves too.
    std::vector<uint8_t> Marks(uint32_t row, bool undefined) const
    {
        std::vector<uint8_t> marks(call_.k, undefined ? 1 : 0);
        for (uint32_t c = call_.n; c < call_.k && !undefined; ++c) {
            marks[c] = src_.RowUndefined(row, c, c + 1) ? 1 : 0;
        }
        return marks;
    }

    void Compute(uint32_t row)
    {
        bool undefined = src_.RowUndefined(row, 0, call_.n);
        switch (call_.kind) {
            case SoftmaxKind::Grad:
            case SoftmaxKind::GradFront: return Gradient(row, undefined);
            case SoftmaxKind::Simple: return Simple(row, undefined);
            case SoftmaxKind::FlashV3: return Pasa(row, undefined);
            default: break;
        }
        std::vector<float> values = src_.Row(row);
        const float own = RowMax(values, call_.n);
        float top = own;
        float before = 0;
        float carried = 0;
        if (call_.update) {
            before = PerRow{call_.in_max, call_.single}.Get(row);
            carried = PerRow{call_.in_sum, call_.single}.Get(row);
            undefined = undefined || PerRow{call_.in_max, call_.single}.IsUndefined(row) ||
                        PerRow{call_.in_sum, call_.single}.IsUndefined(row);
            top = std::max(top, before);
        }
        const std::vector<uint8_t> marks = Marks(row, undefined);
        ExpRow(&values, top);
        float sum = RowSum(values, call_.n);
        float factor = call_.update ? std::exp(before - top) : 0;
        sum += call_.update ? factor * carried : 0;
        if (call_.kind == SoftmaxKind::Log) {
            Scale(&values, sum);  // the logarithm is the decimal one
            std::transform(values.begin(), values.end(), values.begin(), [](float v) { return std::log10(v); });
        } else if (call_.kind != SoftmaxKind::FlashV2) {
            Scale(&values, sum);
            factor = factor * carried / sum;
        }
        dst_.SetRow(row, values, marks);
        sum_.Set(row, sum, undefined);
        max_.Set(row, top, undefined);
        if (call_.update) {
            exp_max_.Set(row, factor, undefined);
            PerRow{call_.reduce_max, call_.single}.Set(row, own, undefined);
        }
    }

    void Simple(uint32_t row, bool undefined)
    {
        undefined = undefined || sum_.IsUndefined(row) || max_.IsUndefined(row);
        const std::vector<uint8_t> marks = Marks(row, undefined);
        std::vector<float> values = src_.Row(row);
        ExpRow(&values, max_.Get(row));
        Scale(&values, sum_.Get(row));
        dst_.SetRow(row, values, marks);
    }

    void Gradient(uint32_t row, bool undefined)
    {
        const Matrix grad{*call_.grad, call_.m, call_.k, call_.nz};
        undefined = undefined || grad.RowUndefined(row, 0, call_.n);
        std::vector<float> values = src_.Row(row);
        const std::vector<float> other = grad.Row(row);
        std::vector<float> products(call_.n);
        for (uint32_t i = 0; i < call_.n; ++i) {
            products[i] = values[i] * other[i];
        }
        const float sum = PairSum(std::move(products));
        if (call_.kind == SoftmaxKind::GradFront) {
            return PerRow{&call_.dst, false}.Set(row, sum, undefined);
        }
        std::vector<uint8_t> marks = Marks(row, undefined);
        for (uint32_t i = 0; i < call_.k; ++i) {
            marks[i] = marks[i] != 0 || grad.RowUndefined(row, i, i + 1) ? 1 : 0;
            values[i] = (other[i] - sum) * values[i];
        }
        dst_.SetRow(row, values, marks);
    }

    void Pasa(uint32_t row, bool undefined)
    {
        const float factor = call_.alpha / (1 - call_.alpha);
        std::vector<float> values = src_.Row(row);
        const float global = CentreEighths(&values, call_.k, factor);
        float mean = global;
        float before = 0;
        float carried = 0;
        float shift_before = 0;
        if (call_.update) {
            const PerRow in_mean{call_.in_mean, call_.single};
            const PerRow in_max{call_.in_max, call_.single};
            const PerRow in_sum{call_.in_sum, call_.single};
            undefined = undefined || in_mean.IsUndefined(row) || in_max.IsUndefined(row) || in_sum.IsUndefined(row);
            const float loops = static_cast<float>(call_.loop);
            mean = (global + in_mean.Get(row) * (loops - 1)) / loops;
            shift_before = (in_mean.Get(row) - mean) * factor;
            before = in_max.Get(row);
            carried = in_sum.Get(row);
        }
        const float shift = (global - mean) * factor;
        float top = shift + RowMax(values, call_.k);
        top = call_.update ? std::max(top, shift_before + before) : top;
        ExpRow(&values, top - shift);
        const float scale = call_.update ? std::exp(before - top + shift_before) : 0;
        const float sum = RowSum(values, call_.k) + (call_.update ? scale * carried : 0);
        dst_.SetRow(row, values, Marks(row, undefined));
        mean_.Set(row, mean, undefined);
        sum_.Set(row, sum, undefined);
        max_.Set(row, top, undefined);
        if (call_.update) {
            exp_max_.Set(row, scale, undefined);
        }
    }

    const SoftmaxCall &call_;
    Advanced check_;
    Matrix src_;
    Matrix dst_;
    PerRow sum_;
    PerRow max_;
    PerRow mean_;
    PerRow exp_max_;
};

}  // namespace

void Softmax(const SoftmaxCall &call, At at) { Family(call, at).Run(); }

bool AdjustRows(const LocalRef &rows, const LocalRef &max, uint32_t from, Scalar to, uint32_t m, uint32_t k, bool nz,
                bool every, At at)
{
    Advanced check("AdjustSoftMaxRes", at);
    const uint32_t width = DTypeBytes(rows.dtype);
    const uint64_t step = every ? 1 : kBlockBytes / DTypeBytes(max.dtype);
    check.Simple(uint64_t{m} * step, DTypeBytes(max.dtype), 1);
    if (TimingOnly()) {
        return false;
    }
    check.Type(rows, kRealTypes, "softMaxRes");
    check.Type(max, kRealTypes, "maxTensor");
    check.Blocks(uint64_t{k} * width, "rows");
    check.In(max, uint64_t{m} * step, "maxTensor");
    check.Out(rows, uint64_t{m} * k, "softMaxRes");
    if (!check.Good()) {
        return false;
    }
    const Matrix matrix{rows, m, k, nz};
    bool changed = false;
    for (uint32_t row = 0; row < m; ++row) {
        uint32_t bits = 0;
        std::memcpy(&bits, TheCore().ub + max.address + row * step * DTypeBytes(max.dtype), DTypeBytes(max.dtype));
        if (bits == from) {
            changed = true;
            check.Simple(k, width, 1);
            const bool undefined = Undefined(max, row * step, 1);
            matrix.SetRow(row, std::vector<float>(k, static_cast<float>(to.value)),
                          std::vector<uint8_t>(k, undefined ? 1 : 0));
        }
    }
    return changed;
}

}  // namespace evokernel::twin
