// Quantisation to int8 and back, and selection by masks of bytes or bits.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "advanced/advanced.h"
#include "evokernel/twin/advanced_data.h"
#include "vector/rounding.h"
#include "vector/walk.h"

namespace evokernel::twin {

namespace {

constexpr uint32_t kByteMask = (1U << static_cast<int>(DType::U8)) | (1U << static_cast<int>(DType::S8)) |
                               (1U << static_cast<int>(DType::U16)) | (1U << static_cast<int>(DType::S16)) |
                               (1U << static_cast<int>(DType::U32)) | (1U << static_cast<int>(DType::S32));

// Of a factor: a number, or an element of a tensor.
struct Factor {
    const LocalRef *tensor;
    float value;

    float At(uint64_t index) const
    {
        if (tensor == nullptr) {
            return value;
        }
        if (tensor->dtype == DType::U64) {  // the low half is a float, the high half is not used
            float low;
            std::memcpy(&low, TheCore().ub + tensor->address + index * 8, sizeof(low));
            return low;
        }
        return NumberAt(*tensor, index);
    }
    bool IsUndefined(uint64_t index) const { return tensor != nullptr && Undefined(*tensor, index, 1); }
};

void Set(const LocalRef &dst, uint64_t index, float value, bool undefined)
{
    SetNumber(dst, index, value);
    MarkElements(dst, index, 1, undefined);
}

float Int4At(const LocalRef &src, uint64_t index)
{
    const uint8_t pair = TheCore().ub[src.address + index / 2];
    const int value = index % 2 == 0 ? pair & 0xF : pair >> 4;
    return static_cast<float>(value >= 8 ? value - 16 : value);
}

bool Int4Undefined(const LocalRef &src, uint64_t index)
{
    return AnyUndefined(static_cast<uint32_t>(src.address + index / 2), 1);
}

}  // namespace

uint64_t QuantTemporary(uint32_t type_size) { return (type_size == 2 ? 2 : 3) * uint64_t{kRepeatBytes}; }
uint64_t DequantTemporary(uint64_t columns) { return AlignTo(columns * sizeof(float), kBlockBytes); }
uint64_t AntiQuantTemporary(uint64_t columns) { return AlignTo(columns * 2 * sizeof(float), kBlockBytes); }

// Half is scaled and shifted in half; float goes through half because no float becomes int8 directly.
void Quantise(const QuantCall &call, At at)
{
    Advanced check("AscendQuant", at);
    const uint32_t width = DTypeBytes(call.src.dtype);
    check.Simple(call.count, width, width == 2 ? 3 : 4);
    if (call.count == 0 || TimingOnly()) {
        return;
    }
    check.Type(call.src, kRealTypes, "src");
    check.Type(call.dst, TypeBit(DType::S8), "dst");
    check.Blocks(call.count, "results");
    check.In(call.src, call.count, "src");
    check.Out(call.dst, call.count, "dst");
    for (const LocalRef *factor : {call.scale, call.offset}) {
        if (factor != nullptr) {
            check.Same(*factor, call.src, Word("a scale or offset"));
            check.In(*factor, call.period, Word("a scale or offset"));
        }
    }
    if (call.scale != nullptr && (call.period == 0 || call.period % 32 != 0 || call.count % call.period != 0)) {
        check.Fail("param-limit", "needs a scaleCount that is a multiple of 32 and divides calCount; they are %u and "
                   "%u.", call.period, call.count);
    }
    check.Temporary(call.temporary, QuantTemporary(width));
    if (!check.Good()) {
        return;
    }
    const Factor scale{call.scale, RoundTo(call.src.dtype, call.scale_value)};
    const Factor offset{call.offset, RoundTo(call.src.dtype, call.offset_value)};
    std::vector<float> values = Numbers(call.src, 0, call.count);
    for (uint32_t i = 0; i < call.count; ++i) {
        const uint32_t channel = call.period != 0 ? i % call.period : 0;
        const float scaled = RoundTo(call.src.dtype, values[i] * scale.At(channel));
        const float shifted = RoundTo(call.src.dtype, scaled + offset.At(channel));
        const bool undefined = Undefined(call.src, i, 1) || scale.IsUndefined(channel) || offset.IsUndefined(channel);
        Set(call.dst, i, RoundTo(DType::F16, shifted), undefined);
    }
}

void Dequantise(const DequantCall &call, At at)
{
    Advanced check("AscendDequant", at);
    check.Simple(uint64_t{call.m} * call.n, 4, call.dst.dtype == DType::F32 ? 2 : 3);
    if (TimingOnly()) {
        return;
    }
    uint32_t rows = call.m;
    uint32_t columns = call.n;
    const uint32_t width = DTypeBytes(call.dst.dtype);
    if (call.count == 0 || call.count > call.n || call.m == 0) {
        check.Fail("param-limit", "needs 1 <= calCount <= n and rows; m, n and calCount are %u, %u and %u.", call.m,
                   call.n, call.count);
        return;
    }
    if (call.single_row && rows == 1 && call.count % (kBlockBytes / width) == 0 && columns % call.count == 0) {
        rows = columns / call.count;
        columns = call.count;
    }
    const uint64_t out_columns = AlignTo(uint64_t{columns} * width, kBlockBytes) / width;
    const DType scale_type = call.scale != nullptr ? call.scale->dtype : call.scale_type;
    const bool to_half = call.dst.dtype == DType::F16;
    check.Type(call.dst, kRealTypes | kBfloatTypes, "dst");
    check.Type(call.src, TypeBit(DType::S32), "src");
    if (to_half != (scale_type == DType::U64) || (!to_half && scale_type != DType::F32 && scale_type != DType::BF16)) {
        check.Fail("dtype-unsupported", "has no form from int32_t to %s with a scale of %s.",
                   DTypeName(call.dst.dtype), DTypeName(scale_type));
    }
    check.Blocks(uint64_t{columns} * 4, "rows");
    check.In(call.src, uint64_t{rows} * columns, "src");
    if (call.scale != nullptr) {
        check.In(*call.scale, call.count, "deqScale");
    }
    check.Out(call.dst, uint64_t{rows} * out_columns, "dst");
    check.Apart(call.dst, uint64_t{rows} * out_columns, "dst", call.src, uint64_t{rows} * columns, "src");
    check.Temporary(call.temporary, DequantTemporary(call.n));
    const Factor scale{call.scale, call.scale_value};
    for (uint32_t row = 0; row < rows && check.Good(); ++row) {
        MarkElements(call.dst, row * out_columns, out_columns, true);
        for (uint32_t i = 0; i < call.count; ++i) {
            const uint64_t from = uint64_t{row} * columns + i;
            Set(call.dst, row * out_columns + i, NumberAt(call.src, from) * scale.At(i),
                Undefined(call.src, from, 1) || scale.IsUndefined(i));
        }
    }
}

void AntiQuantise(const AntiQuantCall &call, At at)
{
    Advanced check("AscendAntiQuant", at);
    const bool pairs = call.src.dtype == DType::S4;
    const uint64_t count = pairs ? uint64_t{call.src.bytes} * 2 : call.src.bytes;
    check.Simple(count, 4, call.dst.dtype == DType::BF16 ? 5 : 3);
    if (count == 0 || TimingOnly()) {
        return;
    }
    const uint64_t n = call.k != 0 ? count / call.k : 0;
    if (call.k == 0 || n == 0 || n * call.k != count) {
        check.Fail("param-limit", "needs a src of whole rows, but it has %llu elements and k is %u.",
                   static_cast<unsigned long long>(count), call.k);
        return;
    }
    check.Type(call.src, TypeBit(DType::S8) | TypeBit(DType::S4), "src");
    check.Type(call.dst, kHalfTypes | kBfloatTypes, "dst");
    check.In(call.src, call.src.bytes, "src");
    check.Out(call.dst, count, "dst");
    if (call.transposed) {
        check.Blocks(uint64_t{call.k} * DTypeBytes(call.src.dtype), Word("rows of k"));
    }
    const uint64_t columns = call.transposed ? call.k : n;  // of src
    const uint64_t rows = count / columns;
    uint64_t height = call.height;
    uint64_t width = call.width;
    if (call.scale != nullptr) {
        check.Same(*call.scale, call.dst, "scale");
        const uint64_t size = call.scale->bytes / DTypeBytes(call.scale->dtype);
        if (height == 0 || width == 0) {
            height = call.transposed ? rows : size / columns;
            width = call.transposed ? size / rows : columns;
        }
        const bool fits = call.transposed ? height == rows && width != 0 && columns % width == 0
                                          : width == columns && height != 0 && rows % height == 0;
        if (!fits) {
            check.Fail("param-limit", "cannot broadcast a scale of [%llu, %llu] over a src of [%llu, %llu]; "
                                      "give its shape in shapeInfo.", static_cast<unsigned long long>(height),
                       static_cast<unsigned long long>(width), static_cast<unsigned long long>(rows),
                       static_cast<unsigned long long>(columns));
            return;
        }
        check.In(*call.scale, height * width, "scale");
    }
    if (call.offset != nullptr) {
        check.Same(*call.offset, call.dst, "offset");
        check.In(*call.offset, height * width, "offset");
    }
    check.Temporary(call.temporary, call.dst.dtype == DType::BF16 ? AntiQuantTemporary(columns) : 0);
    const Factor scale{call.scale, call.scale_value};
    const Factor offset{call.offset, call.offset_value};
    const DType held = call.dst.dtype == DType::F16 ? DType::F16 : DType::F32;  // bfloat16_t is computed in float
    for (uint64_t i = 0; i < count && check.Good(); ++i) {
        uint64_t at_scale = 0;
        if (call.scale != nullptr) {
            at_scale = call.transposed ? i / columns * width + i % columns / (columns / width)
                                       : i / columns / (rows / height) * width + i % columns;
        }
        const float value = pairs ? Int4At(call.src, i) : NumberAt(call.src, i);
        const bool undefined = (pairs ? Int4Undefined(call.src, i) : Undefined(call.src, i, 1)) ||
                               scale.IsUndefined(at_scale) || offset.IsUndefined(at_scale);
        Set(call.dst, i, RoundTo(held, value + offset.At(at_scale)) * scale.At(at_scale), undefined);
    }
}

void DropElements(const LocalRef &dst, const LocalRef &src, const LocalRef &mask, const LocalRef *temporary,
                  float keep, const FilterShape &shape, uint32_t mode, At at)
{
    Advanced check("DropOut", at);
    const uint64_t count = uint64_t{shape.rows} * shape.columns;
    const uint32_t width = DTypeBytes(src.dtype);
    bool bits = mode >= 3;
    if (mode == 0) {
        bits = shape.mask_columns < shape.columns;
    }
    check.Simple(count, width, bits ? 2 : 5);
    if (count == 0 || TimingOnly()) {
        return;
    }
    const uint64_t needed = bits ? (uint64_t{shape.columns} + 7) / 8 : shape.columns;
    check.Type(src, kRealTypes, "src");
    check.Same(dst, src, "dst");
    check.Type(mask, TypeBit(DType::U8), "mask");
    if (keep <= 0 || keep >= 1) {
        check.Fail("param-limit", "needs keepProb between 0 and 1, not %g.", static_cast<double>(keep));
    }
    const bool whole = bits && uint64_t{shape.rows} * shape.mask_columns * 8 == count;  // one run of bits
    if (shape.mask_columns < needed && !whole) {
        check.Fail("param-limit", "needs mask rows of at least %llu bytes for %u elements; they have %u.",
                   static_cast<unsigned long long>(needed), shape.columns, shape.mask_columns);
        return;
    }
    check.In(src, count, "src");
    check.In(mask, uint64_t{shape.rows} * shape.mask_columns, "mask");
    check.Out(dst, count, "dst");
    check.Temporary(temporary, FilterTemporary());
    for (uint64_t i = 0; i < count && check.Good(); ++i) {
        const uint64_t row = i / shape.columns;
        const uint64_t column = i % shape.columns;
        const uint64_t bit = whole ? i : row * shape.mask_columns * 8 + column;
        const uint64_t place = bits ? bit / 8 : row * shape.mask_columns + column;
        const uint8_t byte = TheCore().ub[mask.address + place];
        const bool kept = bits ? (byte >> (bit % 8) & 1) != 0 : byte != 0;
        Set(dst, i, kept ? NumberAt(src, i) * (1 / keep) : 0, Undefined(src, i, 1) || Undefined(mask, place, 1));
    }
}

// The documented steps cast the mask to half and compare it, at most a repeat of it or a row at a time.
uint64_t SelectTemporary(uint64_t columns)
{
    return std::min(FilterTemporary(), AlignTo(columns * DTypeBytes(DType::F16), kBlockBytes));
}

void SelectBytes(const LocalRef &dst, const LocalRef &src, Scalar scalar, bool taken, const LocalRef &mask,
                 const LocalRef &temporary, const FilterShape &shape, bool reuse_mask, At at)
{
    Advanced check("Select", at);
    const uint64_t count = uint64_t{shape.rows} * shape.columns;
    const uint32_t width = DTypeBytes(src.dtype);
    check.Simple(count, width, 5);
    if (count == 0 || TimingOnly()) {
        return;
    }
    check.Type(src, kRealTypes, "src");
    check.Same(dst, src, "dst");
    check.Type(mask, kByteMask, "mask");
    check.Blocks(uint64_t{shape.columns} * width, Word("rows of src"));
    check.Blocks(uint64_t{shape.mask_columns} * DTypeBytes(mask.dtype), Word("rows of mask"));
    if (shape.mask_columns < shape.columns || shape.mask_columns % 16 != 0) {
        check.Fail("param-limit", "needs mask rows of a multiple of 16 elements that cover src; they have %u for %u.",
                   shape.mask_columns, shape.columns);
    }
    const uint64_t mask_count = uint64_t{shape.rows} * shape.mask_columns;
    check.In(src, count, "src");
    check.In(mask, mask_count, "mask");
    check.Out(dst, count, "dst");
    check.Temporary(&temporary, SelectTemporary(shape.columns));
    if (!check.Good()) {
        return;
    }
    const std::vector<float> chosen = Numbers(mask, 0, mask_count);
    for (uint64_t i = 0; i < count; ++i) {
        const uint64_t place = i / shape.columns * shape.mask_columns + i % shape.columns;
        const bool from_src = (chosen[place] != 0) == taken;
        Set(dst, i, from_src ? NumberAt(src, i) : static_cast<float>(scalar.value),
            Undefined(mask, place, 1) || (from_src && Undefined(src, i, 1)));
    }
    if (reuse_mask && shape.mask_columns != shape.columns) {
        MarkElements(mask, 0, mask_count, true);  // the function may have moved it together
    }
}

}  // namespace evokernel::twin
