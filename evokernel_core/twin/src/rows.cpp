// High-level reductions over rows and broadcasting.
#include <algorithm>
#include <cstring>
#include <vector>

#include "walk.h"

namespace evokernel::twin {

namespace {

uint32_t RoundUp(uint32_t value, uint32_t unit) { return (value + unit - 1) / unit * unit; }

float LoadFloat(const LocalRef &tensor, uint64_t index)
{
    const uint32_t width = DTypeBytes(tensor.dtype);
    const uint8_t *from = TheCore().ub + tensor.address + index * width;
    if (width == 2) {
        uint16_t bits;
        std::memcpy(&bits, from, 2);
        return HalfValue(bits);
    }
    float value;
    std::memcpy(&value, from, 4);
    return value;
}

void StoreFloat(const LocalRef &tensor, uint64_t index, float value)
{
    const uint32_t width = DTypeBytes(tensor.dtype);
    uint8_t *to = TheCore().ub + tensor.address + index * width;
    if (width == 2) {
        const uint16_t bits = HalfBits(value);
        std::memcpy(to, &bits, 2);
    } else {
        std::memcpy(to, &value, 4);
    }
}

// The pairwise tree that the reduction instructions build, in float.
float Fold(Reduce op, std::vector<float> values)
{
    if (op != Reduce::Sum) {
        return op == Reduce::Max ? *std::max_element(values.begin(), values.end())
                                 : *std::min_element(values.begin(), values.end());
    }
    while (values.size() > 1) {
        std::vector<float> next((values.size() + 1) / 2);
        for (size_t i = 0; i < next.size(); ++i) {
            next[i] = 2 * i + 1 < values.size() ? values[2 * i] + values[2 * i + 1] : values[2 * i];
        }
        values = std::move(next);
    }
    return values[0];
}

struct Shape {
    uint32_t outer;
    uint32_t n;
    uint32_t outer_stride;  // elements
    uint32_t n_stride;
};

void ChargeRows(uint32_t rows, uint32_t n, uint32_t width, const char *name, At at)
{
    const Chip &chip = CurrentChip();
    const uint32_t lanes = kRepeatBytes / width;
    const double rate = width == 2 ? chip.reduce_repeat_b16 : chip.reduce_repeat_b32;
    for (uint64_t left = (n + lanes - 1) / lanes;; left = (left + lanes - 1) / lanes) {
        RunVector(name, static_cast<double>(rows) * static_cast<double>(left) * lanes / rate, at);
        if (left <= 1) {
            return;
        }
    }
}

bool FloatType(const LocalRef &tensor, bool half_too, const char *name, At at)
{
    if (tensor.dtype == DType::F32 || (half_too && tensor.dtype == DType::F16)) {
        return true;
    }
    ReportError("dtype-unsupported", at, "%s supports %s on this chip, not %s.", name,
                half_too ? "half and float" : "float", DTypeName(tensor.dtype));
    return false;
}

void Run(Reduce op, bool mean, const LocalRef &dst, const LocalRef &src, const Shape &shape, const char *name, At at)
{
    const uint32_t width = DTypeBytes(src.dtype);
    const uint64_t last = uint64_t{shape.outer - 1} * shape.outer_stride + uint64_t{shape.n - 1} * shape.n_stride + 1;
    if (LocalRange(src, last * width, 32, false, name, "src", at) == nullptr ||
        LocalRange(dst, uint64_t{shape.outer} * width, 32, true, name, "dst", at) == nullptr) {
        return;
    }
    std::vector<float> values(shape.n);
    for (uint32_t row = 0; row < shape.outer; ++row) {
        bool undefined = false;
        for (uint32_t i = 0; i < shape.n; ++i) {
            const uint64_t index = uint64_t{row} * shape.outer_stride + uint64_t{i} * shape.n_stride;
            values[i] = LoadFloat(src, index);
            undefined = undefined || AnyUndefined(src.address + static_cast<uint32_t>(index) * width, width);
        }
        const float result = Fold(op, values);
        StoreFloat(dst, row, mean ? result / static_cast<float>(shape.n) : result);
        std::memset(TheCore().undefined + dst.address + row * width, undefined ? 1 : 0, width);
    }
}

}  // namespace

void RowReduce(Reduce op, bool mean, const LocalRef &dst, const LocalRef &src, uint32_t rows, uint32_t inner,
               uint32_t n, At at)
{
    const char *name = mean ? "Mean" : "Sum";
    const uint32_t width = DTypeBytes(src.dtype);
    if (rows == 0 || n == 0) {
        return;
    }
    ChargeRows(rows, n, width, name, at);
    if (TheCore().timing || !FloatType(src, true, name, at)) {
        return;
    }
    if (inner * width % kBlockBytes != 0 || n > inner) {
        ReportError("alignment", at, "%s needs rows of a multiple of 32 bytes that hold n; inner is %u, n is %u.", name,
                    inner, n);
        return;
    }
    Run(op, mean, dst, src, Shape{rows, n, inner, 1}, name, at);
}

void PatternReduce(Reduce op, bool mean, bool rows_kept, const LocalRef &dst, const LocalRef &src,
                   const uint32_t *shape, bool padded, At at)
{
    static const char *const names[] = {"ReduceSum", "ReduceMax", "ReduceMin"};
    const char *name = mean ? "ReduceMean" : names[static_cast<int>(op)];
    const uint32_t width = DTypeBytes(src.dtype);
    if (shape[0] == 0 || shape[1] == 0) {
        return;
    }
    const uint32_t stride = padded ? RoundUp(shape[1] * width, kBlockBytes) / width : shape[1];
    if (rows_kept) {
        ChargeRows(shape[0], shape[1], width, name, at);
    } else {  // adds of whole rows
        const double row = (stride * width + kRepeatBytes - 1) / kRepeatBytes;
        for (uint32_t i = 1; i < shape[0]; ++i) {
            RunVector(name, row, at);
        }
    }
    if (TheCore().timing || !FloatType(src, op != Reduce::Sum, name, at)) {
        return;
    }
    const Shape walk = rows_kept ? Shape{shape[0], shape[1], stride, 1} : Shape{shape[1], shape[0], 1, stride};
    Run(op, mean, dst, src, walk, name, at);
}

void BroadcastTensor(const LocalRef &dst, const LocalRef &src, const uint32_t *dst_shape, const uint32_t *src_shape,
                     int dims, int axis, At at)
{
    const uint32_t width = DTypeBytes(dst.dtype);
    const uint32_t rows = dims == 1 ? 1 : dst_shape[0];
    const uint32_t columns = dst_shape[dims - 1];
    const uint32_t src_rows = dims == 1 ? 1 : src_shape[0];
    const uint32_t src_columns = src_shape[dims - 1];
    const uint64_t bytes = uint64_t{rows} * columns * width;
    RunVector("Broadcast", static_cast<double>(bytes + kRepeatBytes - 1) / kRepeatBytes, at);
    Core &core = TheCore();
    if (core.timing) {
        return;
    }
    const bool fits = (src_rows == rows || src_rows == 1) && (src_columns == columns || src_columns == 1);
    const bool aligned = dims == 1 || axis == 1 || src_columns * width % kBlockBytes == 0;
    if (!fits || !aligned) {
        ReportError("alignment", at, "Broadcast of [%u, %u] to [%u, %u] is not possible on this chip.", src_rows,
                    src_columns, rows, columns);
        return;
    }
    if (LocalRange(src, uint64_t{src_rows} * src_columns * width, 32, false, "Broadcast", "src", at) == nullptr ||
        LocalRange(dst, bytes, 32, true, "Broadcast", "dst", at) == nullptr) {
        return;
    }
    for (uint32_t r = 0; r < rows; ++r) {
        for (uint32_t c = 0; c < columns; ++c) {
            const uint32_t from = src.address + ((src_rows == 1 ? 0 : r) * src_columns + (src_columns == 1 ? 0 : c)) * width;
            const uint32_t to = dst.address + (r * columns + c) * width;
            std::memcpy(core.ub + to, core.ub + from, width);
            std::memcpy(core.undefined + to, core.undefined + from, width);
        }
    }
}

}  // namespace evokernel::twin
