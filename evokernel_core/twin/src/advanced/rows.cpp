// High-level reductions over rows, running sums and broadcasting.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "advanced/advanced.h"
#include "evokernel/twin/advanced_data.h"
#include "vector/walk.h"

namespace evokernel::twin {

namespace {

float Fold(RowOp op, std::vector<float> values)
{
    switch (op) {
        case RowOp::Sum: return PairSum(std::move(values));
        case RowOp::Mean: {
            const auto count = static_cast<float>(values.size());
            return PairSum(std::move(values)) / count;
        }
        case RowOp::Max: return *std::max_element(values.begin(), values.end());
        case RowOp::Min: return *std::min_element(values.begin(), values.end());
        case RowOp::Prod: {
            float product = 1;
            for (const float value : values) {
                product *= value;
            }
            return product;
        }
        case RowOp::Any: return std::any_of(values.begin(), values.end(), [](float v) { return v != 0; }) ? 1.0F : 0;
        case RowOp::All: return std::all_of(values.begin(), values.end(), [](float v) { return v != 0; }) ? 1.0F : 0;
    }
    return 0;
}

struct Shape {
    uint64_t outer;
    uint64_t n;
    uint64_t outer_stride;  // elements
    uint64_t n_stride;
};

void ReduceTo(RowOp op, const LocalRef &dst, const LocalRef &src, const Shape &shape)
{
    for (uint64_t row = 0; row < shape.outer; ++row) {
        std::vector<float> values;
        bool undefined = false;
        if (shape.n_stride == 1) {
            values = Numbers(src, row * shape.outer_stride, shape.n);
            undefined = Undefined(src, row * shape.outer_stride, shape.n);
        } else {
            values.resize(shape.n);
            for (uint64_t i = 0; i < shape.n; ++i) {
                const uint64_t index = row * shape.outer_stride + i * shape.n_stride;
                values[i] = NumberAt(src, index);
                undefined = undefined || Undefined(src, index, 1);
            }
        }
        SetNumber(dst, row, Fold(op, std::move(values)));
        MarkElements(dst, row, 1, undefined);
    }
}

const char *PatternName(RowOp op)
{
    static const char *const names[] = {"ReduceSum",  "ReduceMean", "ReduceMax", "ReduceMin",
                                        "ReduceProd", "ReduceAny",  "ReduceAll"};
    return names[static_cast<int>(op)];
}

uint32_t PatternTypes(RowOp op)
{
    if (op == RowOp::Max || op == RowOp::Min) {
        return kRealTypes;
    }
    return op == RowOp::Any || op == RowOp::All ? kFloatTypes | TypeBit(DType::U8) : kFloatTypes;
}

void CopyElement(const LocalRef &dst, uint64_t to, const LocalRef &src, uint64_t from, uint32_t width)
{
    Core &core = TheCore();
    const uint64_t target = dst.address + to * width;
    const uint64_t source = src.address + from * width;
    std::memcpy(core.ub + target, core.ub + source, width);
    std::memcpy(core.undefined + target, core.undefined + source, width);
}

uint64_t Product(const uint32_t *shape, int dims)
{
    uint64_t product = 1;
    for (int i = 0; i < dims; ++i) {
        product *= shape[i];
    }
    return product;
}

}  // namespace

uint64_t RowReduceTemporary(uint64_t n, uint32_t type_size)
{
    const uint64_t repeats = (n * type_size + kRepeatBytes - 1) / kRepeatBytes;
    return AlignTo(std::max<uint64_t>(repeats, 1) * type_size, kBlockBytes);
}

void RowReduce(RowOp op, const LocalRef &dst, const LocalRef &src, const LocalRef *temporary, DType accumulate,
               uint32_t rows, uint32_t inner, uint32_t n, At at)
{
    Advanced check(op == RowOp::Mean ? "Mean" : "Sum", at);
    const uint32_t width = DTypeBytes(src.dtype);
    const uint32_t wide = DTypeBytes(accumulate);
    check.Simple(uint64_t{rows} * n, wide, wide > width ? 1 : 0);
    check.ReduceRows(rows, n, wide);
    check.Simple(rows, width, op == RowOp::Mean ? 1 : 0);
    if (TimingOnly()) {
        return;
    }
    check.Type(src, kRealTypes, "src");
    check.Same(dst, src, "dst");
    check.Blocks(uint64_t{inner} * width, "rows");
    if (rows == 0 || n == 0 || n > inner) {
        check.Fail("param-limit", "needs rows that hold n elements, but inner is %u, n is %u and outter is %u.", inner,
                   n, rows);
        return;
    }
    check.In(src, uint64_t{rows} * inner, "src");
    check.Out(dst, rows, "dst");
    check.Apart(dst, rows, "dst", src, uint64_t{rows} * inner, "src");
    check.Temporary(temporary, RowReduceTemporary(n, wide));
    if (check.Good()) {
        ReduceTo(op, dst, src, Shape{rows, n, inner, 1});
    }
}

uint64_t PatternTemporary(RowOp op, uint64_t rows, uint64_t columns, uint32_t type_size, bool rows_kept, bool reuse)
{
    const uint64_t row = AlignTo(columns * type_size, kBlockBytes);
    if (op == RowOp::Any || op == RowOp::All || op == RowOp::Prod) {
        return std::max<uint64_t>(row, kRepeatBytes);
    }
    if (reuse) {
        return rows_kept ? AlignTo(rows * type_size, kBlockBytes) : 0;
    }
    return rows_kept ? kRepeatBytes : row;
}

void PatternReduce(RowOp op, bool rows_kept, const LocalRef &dst, const LocalRef &src, const LocalRef *temporary,
                   const uint32_t *shape, bool padded, At at)
{
    Advanced check(PatternName(op), at);
    const uint32_t width = DTypeBytes(src.dtype);
    const uint64_t stride = AlignTo(uint64_t{shape[1]} * width, kBlockBytes) / width;
    if (shape[0] == 0 || shape[1] == 0) {
        return;
    }
    if (rows_kept) {
        check.ReduceRows(shape[0], shape[1], std::max<uint32_t>(width, 2));
    } else {  // whole rows are combined
        for (uint32_t i = 1; i < shape[0]; ++i) {
            check.Simple(stride, std::max<uint32_t>(width, 2));
        }
    }
    if (TimingOnly()) {
        return;
    }
    check.Type(src, PatternTypes(op), "src");
    check.Same(dst, src, "dst");
    if (!padded) {
        check.Fail("param-limit", "supports only srcInnerPad = true on this chip; pad the inner axis to 32 bytes.");
    }
    const uint64_t results = rows_kept ? shape[0] : shape[1];
    check.In(src, uint64_t{shape[0] - 1} * stride + shape[1], "src");
    check.Out(dst, results, "dst");
    check.Apart(dst, results, "dst", src, uint64_t{shape[0]} * stride, "src");
    check.Temporary(temporary, PatternTemporary(op, shape[0], shape[1], width, rows_kept, true));
    if (check.Good()) {
        ReduceTo(op, dst, src, rows_kept ? Shape{shape[0], shape[1], stride, 1} : Shape{shape[1], shape[0], 1, stride});
    }
}

uint64_t CumulativeTemporary(uint64_t outer, uint64_t inner, uint32_t type_size, bool along_rows)
{
    const uint64_t wide = type_size == 2 ? sizeof(float) : 0;
    const uint64_t block = 16 * inner;  // a transposed block of 16 rows
    static_cast<void>(outer);
    return along_rows ? 2 * block * sizeof(float) : std::max<uint64_t>(inner * wide, kBlockBytes);
}

void CumulativeSum(const LocalRef &dst, const LocalRef *last_row, const LocalRef &src, const LocalRef *temporary,
                   uint32_t outer, uint32_t inner, bool along_rows, At at)
{
    Advanced check("CumSum", at);
    const uint32_t width = DTypeBytes(src.dtype);
    const uint64_t elements = uint64_t{outer} * inner;
    const uint32_t steps = along_rows ? inner : outer;
    for (uint32_t i = 0; i < steps; ++i) {
        check.Simple(along_rows ? outer : inner, 4);
    }
    check.Simple(elements, 4, (width == 2 ? 2 : 0) + (along_rows ? 2 : 0));
    if (TimingOnly()) {
        return;
    }
    check.Type(src, kRealTypes, "src");
    check.Same(dst, src, "dst");
    check.Blocks(uint64_t{inner} * width, "rows");
    if (elements == 0) {
        check.Fail("param-limit", "needs outter and inner above 0; they are %u and %u.", outer, inner);
        return;
    }
    check.In(src, elements, "src");
    check.Out(dst, elements, "dst");
    if (last_row != nullptr) {
        check.Same(*last_row, src, "lastRow");
        check.Out(*last_row, inner, "lastRow");
    }
    check.Temporary(temporary, CumulativeTemporary(outer, inner, width, along_rows));
    if (!check.Good()) {
        return;
    }
    std::vector<float> sums = Numbers(src, 0, elements);
    std::vector<uint8_t> marks(elements);
    for (uint64_t i = 0; i < elements; ++i) {
        const bool first = along_rows ? i % inner == 0 : i < inner;
        const uint64_t before = i - (along_rows ? 1 : inner);
        sums[i] += first ? 0 : sums[before];
        marks[i] = Undefined(src, i, 1) || (!first && marks[before] != 0) ? 1 : 0;
    }
    SetNumbers(dst, 0, sums.data(), elements);
    for (uint64_t i = 0; i < elements; ++i) {
        MarkElements(dst, i, 1, marks[i] != 0);
    }
    for (uint64_t i = 0; last_row != nullptr && i < inner; ++i) {
        CopyElement(*last_row, i, dst, elements - inner + i, width);
    }
}

void XorSum(const LocalRef &dst, const LocalRef &a, const LocalRef &b, const LocalRef *temporary, uint32_t count,
            At at)
{
    Advanced check("ReduceXorSum", at);
    check.Simple(count, 2, 6);
    check.ReduceRows(1, count, 4);
    if (count == 0 || TimingOnly()) {
        return;
    }
    check.Type(a, TypeBit(DType::S16), "src0");
    check.Same(b, a, "src1");
    check.Same(dst, a, "dst");
    check.In(a, count, "src0");
    check.In(b, count, "src1");
    check.Out(dst, 1, "dst");
    check.Apart(dst, 1, "dst", a, count, "src0");
    check.Apart(dst, 1, "dst", b, count, "src1");
    check.Temporary(temporary, AlignTo(uint64_t{count} * 2, kBlockBytes));
    if (!check.Good()) {
        return;
    }
    int64_t sum = 0;
    for (uint32_t i = 0; i < count; ++i) {
        int16_t x;
        int16_t y;
        std::memcpy(&x, TheCore().ub + a.address + i * 2, 2);
        std::memcpy(&y, TheCore().ub + b.address + i * 2, 2);
        sum += static_cast<int16_t>(x ^ y);
    }
    SetNumber(dst, 0, static_cast<float>(std::clamp<int64_t>(sum, -32768, 32767)));
    MarkElements(dst, 0, 1, Undefined(a, 0, count) || Undefined(b, 0, count));
}

uint64_t BroadcastTemporary(uint64_t columns, uint32_t type_size)
{
    // 8-bit types go through half; the last axis is filled block by block.
    const uint64_t wide = type_size == 1 ? 2 : type_size;
    return std::max<uint64_t>(AlignTo(columns * (type_size == 1 ? wide : 0), kBlockBytes), kRepeatBytes);
}

void BroadcastTensor(const LocalRef &dst, const LocalRef &src, const LocalRef *temporary, const uint32_t *dst_shape,
                     const uint32_t *src_shape, int dims, At at)
{
    Advanced check("Broadcast", at);
    const uint32_t width = DTypeBytes(dst.dtype);
    const uint64_t elements = Product(dst_shape, dims);
    check.Simple(elements, std::max<uint32_t>(width, 2), width == 1 ? 3 : 1);
    if (elements == 0 || TimingOnly()) {
        return;
    }
    check.Same(src, dst, "src");
    for (int i = 0; i < dims; ++i) {
        if (src_shape[i] != dst_shape[i] && src_shape[i] != 1) {
            check.Fail("param-limit", "needs each size of src equal to that of dst or 1; dimension %d has %u and %u.",
                       i, src_shape[i], dst_shape[i]);
        }
    }
    check.In(src, Product(src_shape, dims), "src");
    check.Out(dst, elements, "dst");
    check.Apart(dst, elements, "dst", src, Product(src_shape, dims), "src");
    check.Temporary(temporary, BroadcastTemporary(1, width));
    for (uint64_t place = 0; place < elements && check.Good(); ++place) {
        uint64_t left = place;
        uint64_t from = 0;
        uint64_t step = 1;
        for (int i = dims - 1; i >= 0; --i) {
            from += (src_shape[i] == 1 ? 0 : left % dst_shape[i]) * step;
            left /= dst_shape[i];
            step *= src_shape[i];
        }
        CopyElement(dst, place, src, from, width);
    }
}

void BroadcastAxis(const LocalRef &dst, const LocalRef &src, const LocalRef *temporary, const uint32_t *dst_shape,
                   const uint32_t *src_shape, int dims, int axis, At at)
{
    constexpr uint32_t types = kRealTypes | (1U << static_cast<int>(DType::S8)) | (1U << static_cast<int>(DType::U8));
    Advanced check("Broadcast", at);
    if (!TimingOnly()) {
        check.Type(dst, types, "dst");
        const uint64_t row = uint64_t{src_shape[dims - 1]} * DTypeBytes(src.dtype);
        if (dims == 2 && axis == 0 && src_shape[0] != dst_shape[0]) {
            check.Blocks(row, "rows");
        }
        if (src_shape[axis] != 1 && src_shape[axis] != dst_shape[axis]) {
            check.Fail("param-limit", "broadcasts axis %d only from size 1, not from %u.", axis, src_shape[axis]);
        }
    }
    if (check.Good()) {
        BroadcastTensor(dst, src, temporary, dst_shape, src_shape, dims, at);
    }
}

}  // namespace evokernel::twin
