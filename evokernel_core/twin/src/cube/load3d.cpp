// LoadData of convolutions: a feature map NC1HWC0 in L1 is unrolled to a matrix (image to column), of which one block
// goes to L0A or, transposed, to L0B.
#include <algorithm>
#include <cstring>

#include "cube/space.h"
#include "sampled.h"

namespace evokernel::twin {

namespace {

constexpr uint32_t kRows = 16;

// The unrolled matrix: one row for each position of the filter, columns in the order (C1, Kh, Kw, C0).
struct Unrolled {
    uint32_t width_bytes;  // of one element; half bytes are handled as whole ones of two elements
    uint32_t c0;           // elements of a full channel block
    uint32_t full;         // full channel blocks
    uint32_t tail;         // channels of the last, narrower block
    uint32_t height;
    uint32_t width;
    uint32_t out_height;
    uint32_t out_width;
    const Load3D *load;

    uint32_t Rows() const { return out_height * out_width; }
    uint32_t Taps() const { return uint32_t{load->filter_h} * load->filter_w; }
    uint32_t Columns() const { return Taps() * (full * c0 + tail); }
};

uint32_t OutputSize(uint32_t size, uint32_t pad, uint32_t filter, uint32_t dilation, uint32_t stride)
{
    const uint32_t reach = (filter - 1) * dilation + 1;
    return size + pad < reach || stride == 0 ? 0 : (size + pad - reach) / stride + 1;
}

// The source byte of element (row, column), or -1 where it is padding.
int64_t SourceOf(const Unrolled &matrix, uint32_t row, uint32_t column)
{
    const Load3D &load = *matrix.load;
    const uint32_t whole = matrix.full * matrix.c0 * matrix.Taps();
    const bool in_tail = column >= whole;
    const uint32_t rest = in_tail ? column - whole : column;
    const uint32_t per_tap = in_tail ? matrix.tail : matrix.c0;
    const uint32_t c1 = in_tail ? matrix.full : rest / (matrix.c0 * matrix.Taps());
    const uint32_t tap = rest / per_tap % matrix.Taps();
    const int64_t h = int64_t{row / matrix.out_width} * load.stride_h +
                      int64_t{tap / load.filter_w} * load.dilation_h - load.pad[2];
    const int64_t w = int64_t{row % matrix.out_width} * load.stride_w +
                      int64_t{tap % load.filter_w} * load.dilation_w - load.pad[0];
    if (h < 0 || w < 0 || h >= matrix.height || w >= matrix.width) {
        return -1;
    }
    const int64_t plane = int64_t{matrix.height} * matrix.width;
    const int64_t inside = (h * matrix.width + w) * per_tap + rest % per_tap;
    return (c1 * plane * matrix.c0 + inside) * matrix.width_bytes;
}

// One 16 x C0 piece of the matrix, as rows of 32 bytes.
struct Piece {
    uint8_t data[kFractalBytes];
    uint8_t undefined[kFractalBytes];
};

class Gatherer {
public:
    Gatherer(const Unrolled &matrix, const Cells &from, uint64_t limit, Touches *reads)
        : matrix_(matrix), from_(from), limit_(limit), reads_(reads)
    {
    }

    // Gathers rows from `row` on and columns from `column` on; what lies outside the matrix stays undefined.
    void Gather(uint32_t row, uint32_t rows, uint32_t column, uint32_t columns, Piece *piece)
    {
        std::memset(piece->undefined, kUndefined, kFractalBytes);
        std::memset(piece->data, 0xFF, kFractalBytes);
        for (uint32_t r = 0; r < rows && row + r < matrix_.Rows(); ++r) {
            GatherRow(row + r, column, columns, piece->data + r * kC0Bytes, piece->undefined + r * kC0Bytes);
        }
    }

private:
    void GatherRow(uint32_t row, uint32_t column, uint32_t columns, uint8_t *data, uint8_t *shadow)
    {
        const uint32_t end = std::min(column + columns, matrix_.Columns());
        const uint32_t step = Run(column);
        for (uint32_t c = column; c < end; c += step) {
            const uint32_t bytes = std::min(step, end - c) * matrix_.width_bytes;
            const uint32_t place = (c - column) * matrix_.width_bytes;
            const int64_t source = SourceOf(matrix_, row, c);
            if (source < 0) {
                Pad(data + place, bytes);
                std::memset(shadow + place, 0, bytes);
            } else {
                Take(source, bytes, data + place, shadow + place);
            }
        }
    }

    // Elements that lie together in the source.
    uint32_t Run(uint32_t column) const
    {
        const uint32_t whole = matrix_.full * matrix_.c0 * matrix_.Taps();
        return column < whole ? matrix_.c0 : std::max(1U, matrix_.tail);
    }

    void Pad(uint8_t *data, uint32_t bytes) const
    {
        for (uint32_t i = 0; i < bytes; i += matrix_.width_bytes) {
            std::memcpy(data + i, &matrix_.load->padding, matrix_.width_bytes);
        }
    }

    void Take(int64_t source, uint32_t bytes, uint8_t *data, uint8_t *shadow)
    {
        uint64_t address = from_.address + static_cast<uint64_t>(source);
        if (limit_ != 0 && address >= limit_) {
            address %= limit_;  // beyond the boundary reading goes on at the start of L1
        }
        const LocalMemory &l1 = TheCore().In(Space::L1);
        if (address + bytes > l1.capacity) {
            return;
        }
        std::memcpy(data, l1.data + address, bytes);
        std::memcpy(shadow, l1.undefined + address, bytes);
        reads_->Add(address, bytes);
    }

    const Unrolled &matrix_;
    const Cells &from_;
    uint64_t limit_;
    Touches *reads_;
};

// The block that goes to L0, all repeats together.
struct Block {
    uint32_t m;
    uint32_t k;
    uint32_t m1;  // rows and columns in pieces
    uint32_t k1;
};

// Where row `r` of a piece (16 x C0) goes when the piece is not transposed: Zz.
void StorePlain(const Piece &piece, const Block &block, uint32_t m1, uint32_t k1, const Cells &to)
{
    const uint64_t target = (uint64_t{m1} * block.k1 + k1) * kFractalBytes;
    std::memcpy(to.data + target, piece.data, kFractalBytes);
    std::memcpy(to.undefined + target, piece.undefined, kFractalBytes);
}

// The byte of transposed element (k, m): fractals of 16 k by 8 or 16 m, in rows of fractals along m for L0A (Zz of
// the transposed matrix), in columns for L0B (Zn).
uint64_t TransposedPlace(const Block &block, bool left, uint32_t width, uint32_t k, uint32_t m)
{
    const uint32_t c0 = kC0Bytes / width;
    const uint64_t row = k / kRows;
    const uint64_t column = m / c0;
    const uint64_t rows = CeilDiv(block.k1 * c0, kRows);
    const uint64_t columns = uint64_t{block.m1} * kRows / c0;
    const uint64_t fractal = left ? row * columns + column : column * rows + row;
    return fractal * kFractalBytes + (k % kRows) * kC0Bytes + m % c0 * width;
}

void StoreTransposed(const Piece &piece, const Block &block, uint32_t m1, uint32_t k1, uint32_t width, const Cells &to)
{
    const uint32_t c0 = kC0Bytes / width;
    const bool left = to.space == Space::L0A;
    for (uint32_t c = 0; c < c0; ++c) {
        for (uint32_t r = 0; r < kRows; r += std::min(c0, kRows)) {
            const uint64_t target = TransposedPlace(block, left, width, k1 * c0 + c, m1 * kRows + r);
            for (uint32_t i = 0; i < std::min(c0, kRows); ++i) {
                const uint32_t source = (r + i) * kC0Bytes + c * width;
                std::memcpy(to.data + target + i * width, piece.data + source, width);
                std::memcpy(to.undefined + target + i * width, piece.undefined + source, width);
            }
        }
    }
}

// What the pieces will write: all of the block, or of its transposed rows of 32 bytes, of which the last fractals
// may have fewer.
void TouchBlock(const Block &block, bool transpose, uint32_t width, const Cells &to)
{
    if (!transpose) {
        return to.Touched(0, uint64_t{block.m1} * block.k1 * kFractalBytes, true);
    }
    Touches writes(to.space, true);
    const uint32_t c0 = kC0Bytes / width;
    for (uint32_t m = 0; race::installed && m < block.m1 * kRows; m += std::min(c0, kRows)) {
        for (uint32_t k = 0; k < block.k1 * c0; ++k) {
            writes.Add(to.address + TransposedPlace(block, to.space == Space::L0A, width, k, m), kC0Bytes);
        }
    }
    writes.Tell();
}

// L0B takes the wider types only, and so does a transposed load to L0A.
bool WideEnough(const LocalRef &dst, const LocalRef &src, bool transpose)
{
    return (SpaceOf(dst) == Space::L0A && !transpose) || BitsOf(src.dtype) >= 16;
}

bool ChannelsFit(DType dtype, uint32_t channels)
{
    const uint32_t c0 = C0Of(dtype);
    const uint32_t tail = channels % c0;
    if (c0 == 64) {
        return tail == 0 || tail == 8 || tail == 16 || tail == 32;
    }
    return tail == 0 || tail == 4 || (tail == 8 && c0 >= 16) || (tail == 16 && c0 == 32);
}

bool CheckLoad(const LocalRef &dst, const LocalRef &src, const Load3D &load, At at)
{
    bool good = CheckTypes(Api::LoadData3D, {dst.dtype, src.dtype}, at);
    if (good && !WideEnough(dst, src, load.transpose && SpaceOf(dst) == Space::L0A)) {
        ReportError("dtype-unsupported", at, "LoadData of convolutions does not move %s%s to %s on this chip.",
                    DTypeName(src.dtype), load.transpose ? Word(" transposed") : "", SpaceName(SpaceOf(dst)));
        good = false;
    }
    if (!ChannelsFit(src.dtype, load.channels)) {
        ReportError("param-limit", at,
                    "LoadData takes whole blocks of %u channels and a rest of 4, 8 or 16 of %s, not %u channels.",
                    C0Of(src.dtype), DTypeName(src.dtype), load.channels);
        good = false;
    }
    if (load.k_start % C0Of(src.dtype) != 0) {
        ReportError("param-limit", at, "LoadData takes a kStartPt that is a multiple of %u for %s, not %u.",
                    C0Of(src.dtype), DTypeName(src.dtype), load.k_start);
        good = false;
    }
    good = CheckLimit(Api::LoadData3D, "l1H", load.height, at) && good;
    good = CheckLimit(Api::LoadData3D, "l1W", load.width, at) && good;
    good = CheckLimit(Api::LoadData3D, "mStartPt", load.m_start, at) && good;
    good = CheckLimit(Api::LoadData3D, "strideW", load.stride_w, at) && good;
    good = CheckLimit(Api::LoadData3D, "strideH", load.stride_h, at) && good;
    good = CheckLimit(Api::LoadData3D, "dilationFilterW", load.dilation_w, at) && good;
    return CheckLimit(Api::LoadData3D, "dilationFilterH", load.dilation_h, at) && good;
}

// The registers' share of a load whose call leaves them alone.
Load3D WithRegisters(Load3D load, const CubeState &state)
{
    if (!load.set_matrix) {
        load.height = state.height;
        load.width = state.width;
        std::copy(std::begin(state.pad), std::end(state.pad), load.pad);
    }
    if (!load.set_padding) {
        load.padding = state.padding;
    }
    return load;
}

// Bytes a cycle by the documented table: strides and loads that span rows of the feature map are slower.
double Rate(const Load3D &load, Space target, uint32_t rows_spanned)
{
    const bool left = target == Space::L0A;
    const double floor = left ? 32 : 512.0 / 18;
    const double spanned = rows_spanned > 1 ? rows_spanned : 0;
    if (load.stride_w == 1) {
        return spanned == 0 ? LoadRate(target) : std::max(floor, 512 / (spanned + (left ? 2 : 4)));
    }
    if (load.stride_w == 2 || load.stride_w == 4 || load.stride_w == 8) {
        return std::max(floor, 512 / (load.stride_w * 2.0 + (left ? 0 : 2) + spanned));
    }
    return floor;
}

Unrolled Unroll(const Load3D &load, DType dtype)
{
    Unrolled matrix{};
    const uint32_t per_byte = BitsOf(dtype) == 4 ? 2 : 1;
    matrix.load = &load;
    matrix.width_bytes = DTypeBytes(dtype);
    matrix.c0 = C0Of(dtype) / per_byte;
    matrix.full = load.channels / C0Of(dtype);
    matrix.tail = load.channels % C0Of(dtype) / per_byte;
    matrix.height = load.height;
    matrix.width = load.width;
    matrix.out_height =
        OutputSize(load.height, load.pad[2] + load.pad[3], load.filter_h, load.dilation_h, load.stride_h);
    matrix.out_width =
        OutputSize(load.width, load.pad[0] + load.pad[1], load.filter_w, load.dilation_w, load.stride_w);
    return matrix;
}

// The first row and column of piece (m1, k1): repeats step over the matrix by their own stride.
struct Origin {
    uint32_t row;
    uint32_t rows;
    uint32_t column;
    uint32_t columns;
};

Origin PieceOrigin(const Load3D &load, const CubeState &state, uint32_t c0, uint32_t m1, uint32_t k1)
{
    const uint32_t m_pieces = CeilDiv(load.m, kRows);
    const uint32_t k_pieces = CeilDiv(load.k, c0);
    const uint32_t m_repeat = m1 / m_pieces;
    const uint32_t k_repeat = k1 / k_pieces;
    const uint32_t m_inside = m1 % m_pieces * kRows;
    const uint32_t k_inside = k1 % k_pieces * c0;
    return Origin{load.m_start + m_repeat * state.repeat_stride * kRows + m_inside,
                  std::min(kRows, load.m - m_inside),
                  load.k_start + k_repeat * state.repeat_stride * c0 + k_inside, std::min(c0, load.k - k_inside)};
}

uint64_t TargetBytes(const Block &block, uint32_t width, bool transpose, bool left)
{
    if (!transpose) {
        return uint64_t{block.m1} * block.k1 * kFractalBytes;
    }
    const uint32_t c0 = kC0Bytes / width;
    // Up to the last row that is written: the rest of its fractal stays as it was.
    const uint64_t last = TransposedPlace(block, left, width, block.k1 * c0 - 1, block.m1 * kRows - 1);
    return last / kC0Bytes * kC0Bytes + kC0Bytes;
}

bool NothingToDo(const Load3D &load, const CubeState &state)
{
    return load.height == 0 || load.width == 0 || load.channels == 0 || load.k == 0 || load.m == 0 ||
           load.filter_w == 0 || load.filter_h == 0 || state.repeat_time == 0;
}

}  // namespace

void LoadImageToColumn(const LocalRef &dst, const LocalRef &src, const Load3D &given, At at)
{
    constexpr const char *api = "LoadData";
    Core &core = TheCore();
    const CubeState &state = core.matrix;
    Load3D load = WithRegisters(given, state);
    if (load.set_matrix) {
        SetFeatureMatrix(load.height, load.width, load.pad, at);
    }
    if (NothingToDo(load, state)) {
        return;
    }
    const Unrolled matrix = Unroll(load, src.dtype);
    const bool by_rows = state.repeat_mode == 0;
    Block block{load.m, load.k, CeilDiv(load.m, kRows), CeilDiv(load.k, C0Of(src.dtype))};
    block.m1 *= by_rows ? state.repeat_time : 1U;
    block.k1 *= by_rows ? 1U : state.repeat_time;
    const uint32_t spanned =
        matrix.out_width == 0 ? 1 : (load.m_start % matrix.out_width + load.m - 1) / matrix.out_width + 1;
    const uint32_t moved = block.m1 * block.k1 * kFractalBytes;
    // Rows of a feature map of width 1 lie one after the other: nothing is spanned.
    RunCube(Pipe::MTE1, api, CurrentChip().load_overhead +
            moved / Rate(load, SpaceOf(dst), load.filter_h == 1 && matrix.out_width == 1 ? 1 : spanned), at);
    if (core.timing || !CheckLoad(dst, src, load, at)) {
        return;
    }
    const bool left = SpaceOf(dst) == Space::L0A;
    const bool transpose = !left || load.transpose;
    Cells from;
    Cells to;
    if (!OpenCells(src, kC0Bytes, kC0Bytes, false, api, "src", at, SpaceBit(Space::L1), &from) ||
        !OpenCells(dst, TargetBytes(block, matrix.width_bytes, transpose, left), kFractalBytes, true, api, "dst", at,
                   SpaceBit(Space::L0A) | SpaceBit(Space::L0B), &to)) {
        return;
    }
    const uint64_t map = uint64_t{matrix.height} * matrix.width * (matrix.full * matrix.c0 + matrix.tail) *
                         matrix.width_bytes;
    if (state.boundary == 0 && from.address + map > core.In(Space::L1).capacity) {
        ReportError("out-of-bounds", at, "LoadData reads a feature map of %llu bytes at byte %u of L1, beyond its end.",
                    static_cast<unsigned long long>(map), from.address);
        return;
    }
    if (sampled::active && state.boundary == 0 && sampled::Empty(Space::L1, from.address, map)) {
        return sampled::Clear(to.space, to.address, TargetBytes(block, matrix.width_bytes, transpose, left));
    }
    sampled::Open(Space::L1, 0, core.In(Space::L1).capacity);
    Touches reads(Space::L1, false);
    TouchBlock(block, transpose, matrix.width_bytes, to);
    Gatherer gatherer(matrix, from, state.boundary, &reads);
    Piece piece;
    const uint32_t c0 = matrix.c0;
    Load3D bytes = load;
    if (src.dtype == DType::S4) {  // two elements a byte
        bytes.k = static_cast<uint16_t>((load.k + 1) / 2);
        bytes.k_start = load.k_start / 2;
    }
    for (uint32_t m1 = 0; m1 < block.m1; ++m1) {
        for (uint32_t k1 = 0; k1 < block.k1; ++k1) {
            const Origin origin = PieceOrigin(bytes, state, c0, m1, k1);
            gatherer.Gather(origin.row, origin.rows, origin.column, origin.columns, &piece);
            if (transpose) {
                StoreTransposed(piece, block, m1, k1, matrix.width_bytes, to);
            } else {
                StorePlain(piece, block, m1, k1, to);
            }
        }
    }
    reads.Tell();
}

void SetFmatrix(uint16_t height, uint16_t width, const uint8_t *pad, At at)
{
    if (CheckLimit(Api::SetFmatrix, "l1H", height, at) && CheckLimit(Api::SetFmatrix, "l1W", width, at)) {
        SetFeatureMatrix(height, width, pad, at);
    }
}

void SetFeatureMatrix(uint16_t height, uint16_t width, const uint8_t *pad, At at)
{
    Core &core = TheCore();
    core.time.Scalar(CurrentChip().flag);
    core.last_at = at;
    core.matrix.height = height;
    core.matrix.width = width;
    std::copy(pad, pad + 4, core.matrix.pad);
}

void SetLoadPadding(uint64_t bits, At at)
{
    TheCore().time.Scalar(CurrentChip().flag);
    TheCore().last_at = at;
    TheCore().matrix.padding = bits;
}

void SetLoadBoundary(uint32_t bytes, At at)
{
    TheCore().time.Scalar(CurrentChip().flag);
    TheCore().last_at = at;
    if (bytes != 0 && (bytes < 1024 || bytes > SpaceBytes(Space::L1))) {
        ReportError("param-limit", at, "SetLoadDataBoundary takes 0 or 1024 to %llu bytes, not %u.",
                    static_cast<unsigned long long>(SpaceBytes(Space::L1)), bytes);
        return;
    }
    TheCore().matrix.boundary = bytes;
}

void SetLoadRepeat(const AscendC::LoadDataRepeatParam &params, At at)
{
    TheCore().time.Scalar(CurrentChip().flag);
    TheCore().last_at = at;
    if (!CheckLimit(Api::SetLoadDataRepeat, "repeatMode", params.repeatMode, at)) {
        return;
    }
    TheCore().matrix.repeat_stride = params.repeatStride;
    TheCore().matrix.repeat_time = params.repeatTime;
    TheCore().matrix.repeat_mode = params.repeatMode;
}

}  // namespace evokernel::twin
