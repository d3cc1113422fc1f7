// DataCopy of slices, and from fractals in UB to rows in global memory: bursts that the library plans.
#include <vector>

#include "checks.h"
#include "core.h"
#include "evokernel/twin/api_vector.h"

namespace evokernel::twin {

namespace {

constexpr uint32_t kBlock = 32;

// Start, end, gap, piece length, and size of a dimension.
struct Slice {
    uint32_t start, end, gap, piece, size;

    uint32_t PieceElements(uint32_t dim, uint32_t width) const { return dim == 0 ? piece * kBlock / width : piece; }
    uint32_t Count(uint32_t dim, uint32_t width) const
    {
        return (end - start + 1 + gap) / (gap + PieceElements(dim, width));
    }
    uint64_t Position(uint32_t index, uint32_t dim, uint32_t width) const
    {
        return start + uint64_t{index} * (gap + PieceElements(dim, width));
    }
};

struct Side {
    const uint32_t *words;

    Slice At(uint32_t dim) const
    {
        const uint32_t *w = words + dim * 5;
        return Slice{w[0], w[1], w[2], w[3], w[4]};
    }
};

bool CheckDim(const Slice &slice, uint32_t dim, uint32_t width, const char *side, At at)
{
    const uint32_t piece = slice.PieceElements(dim, width);
    const bool ordered = slice.start <= slice.end && (slice.size == 0 || slice.end <= slice.size);
    const bool whole = ordered && piece != 0 && (slice.end - slice.start + 1 + slice.gap) % (slice.gap + piece) == 0;
    if (!whole || (dim > 0 && slice.piece != 1)) {
        ReportError("param-limit", at,
                    "DataCopy of slices: dimension %u of the %s spans %u to %u with gaps of %u and segments "
                    "of %u, not integral inside %u.",
                    dim, side, slice.start, slice.end, slice.gap, piece, slice.size);
        return false;
    }
    return true;
}

// Offsets in elements of every row of pieces, over all dimensions but the fastest.
std::vector<uint64_t> RowOffsets(const Side &side, uint32_t dims, uint32_t width)
{
    std::vector<uint64_t> rows{side.At(0).start};
    uint64_t pitch = side.At(0).size;
    for (uint32_t dim = 1; dim < dims; ++dim) {
        const Slice slice = side.At(dim);
        std::vector<uint64_t> next;
        for (uint32_t i = 0; i < slice.Count(dim, width); ++i) {
            for (const uint64_t row : rows) {
                next.push_back(row + slice.Position(i, dim, width) * pitch);
            }
        }
        rows = std::move(next);
        pitch *= slice.size;
    }
    return rows;
}

}  // namespace

void CopySlices(const LocalRef &local, const GlobalRef &global, const uint32_t *local_slices,
                const uint32_t *global_slices, uint32_t dims, bool in, At at)
{
    const uint32_t width = DTypeBytes(local.dtype);
    const Side near{local_slices};
    const Side far{global_slices};
    const Checked row(in ? Api::DataCopySliceIn : Api::DataCopySliceOut, Word("DataCopy of slices"));
    if (!CheckTypes(row, {local.dtype, global.dtype}, at) || !CheckLimit(row, "dimValue", dims, at)) {
        return;
    }
    for (uint32_t dim = 0; dim < dims; ++dim) {
        if (!CheckDim(near.At(dim), dim, width, Word("local tensor"), at) ||
            !CheckDim(far.At(dim), dim, width, Word("global tensor"), at)) {
            return;
        }
        if (near.At(dim).Count(dim, width) != far.At(dim).Count(dim, width) ||
            near.At(dim).piece != far.At(dim).piece) {
            ReportError("param-limit", at, "DataCopy of slices: dimension %u has other pieces on both sides.", dim);
            return;
        }
    }
    const Slice inner = near.At(0);
    const uint32_t length = inner.piece * kBlock;
    const uint32_t near_step = length + inner.gap * width;
    const uint32_t far_step = length + far.At(0).gap * width;
    const std::vector<uint64_t> near_rows = RowOffsets(near, dims, width);
    const std::vector<uint64_t> far_rows = RowOffsets(far, dims, width);
    for (size_t i = 0; i < near_rows.size(); ++i) {
        LocalRef to = local;
        to.address += static_cast<uint32_t>(near_rows[i] * width);
        GlobalRef from = global;
        from.address += far_rows[i] * width;
        from.bytes = global.bytes > far_rows[i] * width ? global.bytes - far_rows[i] * width : 0;
        if (in) {
            CopyIn(to, from, Burst{inner.Count(0, width), length, far_step, near_step}, at);
        } else {
            CopyOut(from, to, Burst{inner.Count(0, width), length, near_step, far_step}, at);
        }
    }
}

namespace {

constexpr const char *kNz2Nd = "DataCopy from NZ to ND";

bool CheckFractals(const FractalRows &how, At at)
{
    const Checked row(Api::DataCopyNz2Nd, kNz2Nd);
    constexpr uint32_t side = 16;
    bool good = CheckLimit(row, "ndNum", how.count, at);
    good = CheckLimit(row, "nValue", how.rows, at) && good;
    good = CheckLimit(row, "dValue", how.columns, at) && good;
    good = CheckLimit(row, "srcNdMatrixStride", how.src_matrix, at) && good;
    good = CheckLimit(row, "srcNStride", how.src_column, at) && good;
    good = CheckLimit(row, "dstDStride", how.dst_row, at) && good;
    good = CheckLimit(row, "dstNdMatrixStride", how.dst_matrix, at) && good;
    if (how.columns % side != 0) {
        ReportError("param-limit", at, "%s takes whole fractals of %u columns, not %u.", kNz2Nd, side, how.columns);
        good = false;
    }
    return good;
}

}  // namespace

void CopyFractalsOut(const GlobalRef &dst, const LocalRef &src, const FractalRows &how, At at)
{
    constexpr uint32_t side = 16;  // elements of a fractal's row
    const uint32_t width = DTypeBytes(src.dtype);
    if (!CheckTypes({Api::DataCopyNz2Nd, kNz2Nd}, {dst.dtype, src.dtype}, at) || how.count == 0 ||
        !CheckFractals(how, at)) {
        return;
    }
    const uint32_t row = side * width;
    for (uint32_t m = 0; m < how.count; ++m) {
        for (uint32_t column = 0; column < how.columns / side; ++column) {
            LocalRef from = src;
            from.address += (m * how.src_matrix * side * side + column * how.src_column * side) * width;
            GlobalRef to = dst;
            const uint64_t offset = (uint64_t{m} * how.dst_matrix + column * side) * width;
            to.address += offset;
            to.bytes = dst.bytes > offset ? dst.bytes - offset : 0;
            CopyOut(to, from, Burst{how.rows, row, row, how.dst_row * width}, at);
        }
    }
}

}  // namespace evokernel::twin
