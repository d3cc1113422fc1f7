// Mmad and MmadWithSparse: C = A x B, with A in L0A (Zz), B in L0B (Zn) and C in L0C (Nz).
#include <algorithm>
#include <cstring>
#include <vector>

#include "cube/multiply.h"
#include "cube/space.h"
#include "vector/convert.h"
#include "sampled.h"

namespace evokernel::twin {

namespace {

struct Product {
    uint32_t m;       // as given
    uint32_t n;
    uint32_t k;
    uint32_t rows;    // what is computed: whole tiles, or one row of a vector
    uint32_t columns;
    uint32_t c0;      // elements of 32 bytes
    uint32_t k1;      // fractals of K that are read
    uint32_t a_k1;    // fractals of K that a row of L0A holds
    bool vector;      // A is one dense row
};

Product Plan(const AscendC::MmadParams &params, DType dtype, bool sparse)
{
    Product plan{};
    plan.m = params.m;
    plan.n = params.n;
    plan.k = params.k;
    plan.vector = params.m == 1;
    plan.rows = CeilDiv(params.m, kTile) * kTile;
    plan.columns = CeilDiv(params.n, kTile) * kTile;
    plan.c0 = C0Of(dtype);
    plan.k1 = CeilDiv(params.k, plan.c0);
    plan.a_k1 = dtype == DType::F32 && params.kDirectionAlign ? CeilDiv(params.k, 16) * 2 : plan.k1;
    if (sparse) {
        plan.vector = false;
    }
    return plan;
}

bool CheckOperandTypes(const LocalRef &dst, const LocalRef &left, const LocalRef &right, const LocalRef *bias, Api api,
                       At at)
{
    return bias == nullptr ? CheckTypes(api, {dst.dtype, left.dtype, right.dtype}, at)
                           : CheckTypes(api, {dst.dtype, left.dtype, right.dtype, bias->dtype}, at);
}

bool CheckSizes(const AscendC::MmadParams &params, Api api, At at)
{
    bool good = CheckLimit(api, "m", params.m, at);
    good = CheckLimit(api, "n", params.n, at) && good;
    good = CheckLimit(api, "k", params.k, at) && good;
    if (params.unitFlag != 0 && params.unitFlag != 2 && params.unitFlag != 3) {
        ReportError("param-limit", at, "%s takes a unitFlag of 0, 2 or 3, not %d.", RowOf(api).name,
                    params.unitFlag);
        good = false;
    }
    return good;
}

// HF32: 11 bits of mantissa.
float ToHalfFloat32(float value, bool ties_to_zero)
{
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    if ((bits & 0x7F800000U) == 0x7F800000U) {
        return value;
    }
    constexpr uint32_t dropped = 12;
    const uint32_t half = 1U << (dropped - 1);
    const uint32_t odd = ties_to_zero ? 0 : (bits >> dropped) & 1;
    bits += half - 1 + odd;
    bits &= ~((1U << dropped) - 1);
    std::memcpy(&value, &bits, sizeof(value));
    return value;
}

// `n` elements of a matrix as the numbers that the unit multiplies.
void Widen(DType dtype, const uint8_t *from, uint32_t n, float *to)
{
    switch (dtype) {
        case DType::S4:
            for (uint32_t i = 0; i < n; ++i) {
                to[i] = static_cast<float>(static_cast<int8_t>(Nibble(from, i) << 4) >> 4);
            }
            return;
        case DType::S8:
            std::transform(from, from + n, to, [](uint8_t value) { return static_cast<float>(static_cast<int8_t>(value)); });
            return;
        case DType::F16:
            return HalfToFloat(reinterpret_cast<const uint16_t *>(from), to, n);
        case DType::BF16:
            return BfloatToFloat(reinterpret_cast<const uint16_t *>(from), to, n);
        default:
            std::memcpy(to, from, n * sizeof(float));
    }
    const CubeState &state = TheCore().matrix;
    if (state.half_float) {
        std::transform(to, to + n, to, [&](float value) { return ToHalfFloat32(value, state.half_float_to_zero); });
    }
}

bool RowUndefined(const uint8_t *shadow, uint32_t elements, DType dtype)
{
    return AnyMarked(shadow, (elements * BitsOf(dtype) + 7) / 8);
}

// Unpacks A to dense rows. Rows of which any used element is undefined are marked.
void UnpackLeft(const Cells &a, DType dtype, const Product &plan, Tiles &tiles, uint8_t *bad)
{
    tiles.left.assign(uint64_t{plan.rows} * plan.k, 0.0F);
    if (plan.vector) {
        Widen(dtype, a.data, plan.k, tiles.left.data());
        std::memset(bad, 1, plan.rows);
        bad[0] = RowUndefined(a.undefined, plan.k, dtype) ? 1 : 0;
        return;
    }
    float widened[64];
    for (uint32_t row = 0; row < plan.rows; ++row) {
        bad[row] = 0;
        for (uint32_t k1 = 0; k1 < plan.k1; ++k1) {
            const uint64_t offset =
                (uint64_t{row / kTile} * plan.a_k1 + k1) * kFractalBytes + row % kTile * kC0Bytes;
            const uint32_t used = std::min(plan.c0, plan.k - k1 * plan.c0);
            bad[row] |= RowUndefined(a.undefined + offset, used, dtype) ? 1 : 0;
            Widen(dtype, a.data + offset, used, widened);
            std::copy(widened, widened + used, tiles.left.data() + uint64_t{row} * plan.k + k1 * plan.c0);
        }
    }
}

// Unpacks B to panels of 16 columns.
void UnpackRight(const Cells &b, DType dtype, const Product &plan, Tiles &tiles, uint8_t *bad)
{
    tiles.right.assign(uint64_t{plan.columns} * plan.k, 0.0F);
    const uint32_t n1 = plan.columns / kTile;
    float widened[64];
    for (uint32_t column = 0; column < plan.columns; ++column) {
        bad[column] = 0;
        float *panel = tiles.right.data() + uint64_t{column / kTile} * kTile * plan.k + column % kTile;
        for (uint32_t k1 = 0; k1 < plan.k1; ++k1) {
            const uint64_t offset =
                (uint64_t{k1} * n1 + column / kTile) * kFractalBytes + column % kTile * kC0Bytes;
            const uint32_t used = std::min(plan.c0, plan.k - k1 * plan.c0);
            bad[column] |= RowUndefined(b.undefined + offset, used, dtype) ? 1 : 0;
            Widen(dtype, b.data + offset, used, widened);
            for (uint32_t i = 0; i < used; ++i) {
                panel[(uint64_t{k1} * plan.c0 + i) * kTile] = widened[i];
            }
        }
    }
}

// What C holds before the product is added.
enum class Start { Zero, Bias, Keep };

void FillStart(Start start, const Cells &c, const Cells &bias, const Product &plan)
{
    if (start == Start::Keep) {
        return;
    }
    const uint64_t bytes = uint64_t{plan.rows} * plan.columns * 4;
    if (start == Start::Zero) {
        std::memset(c.data, 0, bytes);
        std::memset(c.undefined, 0, bytes);
        return;
    }
    const uint32_t panel = plan.rows * kTile * 4;
    for (uint32_t column = 0; column < plan.columns; column += kTile) {
        for (uint32_t row = 0; row < plan.rows; ++row) {
            const uint64_t target = uint64_t{column / kTile} * panel + row * kTile * 4;
            std::memcpy(c.data + target, bias.data + column * 4, kTile * 4);
            std::memcpy(c.undefined + target, bias.undefined + column * 4, kTile * 4);
        }
    }
}

void SpreadUndefined(const Cells &c, const Product &plan, const std::vector<uint8_t> &rows,
                     const std::vector<uint8_t> &columns)
{
    const bool any = std::memchr(rows.data(), 1, plan.rows) != nullptr ||
                     std::memchr(columns.data(), 1, plan.columns) != nullptr;
    if (!any) {
        return;
    }
    for (uint32_t column = 0; column < plan.columns; ++column) {
        uint8_t *panel = c.undefined + uint64_t{column / kTile} * plan.rows * kTile * 4 + column % kTile * 4;
        for (uint32_t row = 0; row < plan.rows; ++row) {
            if ((rows[row] | columns[column]) != 0) {
                std::memset(panel + row * kTile * 4, kUndefined, 4);
            }
        }
    }
}

void Compute(const Cells &a, const Cells &b, const Cells &c, DType dtype, const Product &plan)
{
    Tiles tiles;
    tiles.rows = plan.rows;
    tiles.columns = plan.columns;
    tiles.k = plan.k;
    std::vector<uint8_t> rows(plan.rows);
    std::vector<uint8_t> columns(plan.columns);
    UnpackLeft(a, dtype, plan, tiles, rows.data());
    if (sampled::active && std::memchr(rows.data(), 0, plan.rows) == nullptr) {
        return SpreadUndefined(c, plan, rows, columns);
    }
    UnpackRight(b, dtype, plan, tiles, columns.data());
    if (sampled::active) {
        tiles.idle_rows = rows;
        tiles.idle_columns = columns;
    }
    if (C0Of(dtype) <= 16) {
        MultiplyFloat(tiles, reinterpret_cast<float *>(c.data));
    } else {
        MultiplyInteger(tiles, reinterpret_cast<int32_t *>(c.data));
    }
    SpreadUndefined(c, plan, rows, columns);
}

// B holds two of each four rows; A's elements are chosen by the 2-bit indices that came with B.
void ComputeSparse(const Cells &a, const Cells &b, const Cells &c, const Product &plan)
{
    Product half = plan;
    half.k = plan.k / 2;
    half.k1 = CeilDiv(half.k, plan.c0);
    Tiles tiles;
    std::vector<uint8_t> rows(plan.rows);
    std::vector<uint8_t> columns(plan.columns);
    UnpackLeft(a, DType::S8, plan, tiles, rows.data());
    UnpackRight(b, DType::S8, half, tiles, columns.data());
    const uint8_t *index = TheCore().matrix.index + b.address / 4;
    auto *sums = reinterpret_cast<int32_t *>(c.data);
    for (uint32_t column = 0; column < plan.columns; ++column) {
        const float *panel = tiles.right.data() + uint64_t{column / kTile} * kTile * half.k + column % kTile;
        for (uint32_t row = 0; row < plan.rows; ++row) {
            const float *left = tiles.left.data() + uint64_t{row} * plan.k;
            int64_t sum = 0;
            for (uint32_t i = 0; i < half.k; ++i) {
                const uint64_t fractal = uint64_t{i / plan.c0} * (plan.columns / kTile) + column / kTile;
                const uint8_t four = index[fractal * 128 + column % kTile * 8 + i % plan.c0 / 4];
                const uint32_t place = ((four >> (i % 4 * 2)) & 3) + (i % 2);
                sum += static_cast<int64_t>(left[i / 2 * 4 + std::min(place, 3U)] * panel[uint64_t{i} * kTile]);
            }
            int32_t &cell = sums[uint64_t{column / kTile} * plan.rows * kTile + row * kTile + column % kTile];
            cell = static_cast<int32_t>(std::clamp<int64_t>(cell + sum, INT32_MIN, INT32_MAX));
        }
    }
    SpreadUndefined(c, plan, rows, columns);
}

// Blocks that this instruction writes must be free: Fixpipe has taken the last result out of them.
void MarkUnits(const Cells &c, const Product &plan, int unit_flag, At at)
{
    CubeState &state = TheCore().matrix;
    const uint32_t first = c.address / kUnitBytes;
    const uint32_t last = (c.address + plan.rows * plan.columns * 4 - 1) / kUnitBytes;
    bool waits = false;
    std::vector<uint8_t> &units = UnitFlags();
    for (uint32_t i = first; i <= last && i < units.size(); ++i) {
        waits = waits || units[i] != 0;
        units[i] = unit_flag == 3 ? 1 : 0;
    }
    state.unit_at = at;
    if (waits) {
        ReportError("l0c-unit-flag", at,
                    "Mmad writes blocks of L0C whose result no Fixpipe with a unitFlag took out; the hardware waits "
                    "for ever. Give the Fixpipe before it unitFlag 3, or earlier Mmads of the same sum unitFlag 2.");
    }
}

double Cycles(const Product &plan, DType dtype, bool sparse)
{
    const Chip &chip = CurrentChip();
    const double tiles = static_cast<double>(CeilDiv(plan.m, kTile)) * CeilDiv(plan.n, kTile);
    double per_fractal = 1;
    if (dtype == DType::F32) {
        per_fractal = TheCore().matrix.half_float ? 1 : chip.mmad_float_cycles;
    }
    const double fractals = sparse ? CeilDiv(plan.k / 2, plan.c0) : plan.k1;
    return tiles * fractals * per_fractal;
}

Start StartOf(const AscendC::MmadParams &params, const LocalRef *bias)
{
    if (bias != nullptr) {
        return Start::Bias;
    }
    if (params.cmatrixInitVal && !params.isBias) {
        return Start::Zero;
    }
    return params.cmatrixSource ? Start::Bias : Start::Keep;
}

// Small products that go on with a sum in L0C need a PipeBarrier<PIPE_M> between them; a unit flag orders
// the product with the Fixpipe that takes it out.
void MarkOrder(Core &core, const Product &plan, const AscendC::MmadParams &params, Start start)
{
    constexpr uint32_t enough = 10;  // tiles of the result: documentation of Mmad
    if (start != Start::Keep || plan.rows / kTile * (plan.columns / kTile) >= enough) {
        race::Pipelined(core);
    }
    if (params.unitFlag != 0) {
        race::UnitFlagged(core);
    }
}

uint64_t LeftBytes(const Product &plan, DType dtype)
{
    if (plan.vector) {
        return CeilDiv(plan.k * BitsOf(dtype), 8);
    }
    return (uint64_t{plan.rows / kTile - 1} * plan.a_k1 + plan.k1) * kFractalBytes;
}

}  // namespace

std::vector<uint8_t> &UnitFlags()
{
    std::vector<uint8_t> &units = TheCore().matrix.unit;
    units.resize(SpaceBytes(Space::L0C) / kUnitBytes);
    return units;
}

void MatrixMultiply(const LocalRef &dst, const LocalRef &left, const LocalRef &right, const LocalRef *bias,
                    const AscendC::MmadParams &params, bool sparse, At at)
{
    const Api row = sparse ? Api::MmadWithSparse : Api::Mmad;
    const char *api = RowOf(row).name;
    if (params.m == 0 || params.n == 0 || params.k == 0) {
        return;
    }
    Core &core = TheCore();
    const Product plan = Plan(params, left.dtype, sparse);
    BeginInstruction(Pipe::M, api, at);
    const Chip &chip = CurrentChip();
    core.time.Run(Pipe::M, chip.mmad_overhead + Cycles(plan, left.dtype, sparse), api, at.line, at.file,
                  chip.mmad_latency - chip.mmad_overhead);
    if (core.timing || !CheckOperandTypes(dst, left, right, bias, row, at) || !CheckSizes(params, row, at)) {
        return;
    }
    const uint32_t b_k1 = sparse ? CeilDiv(plan.k / 2, plan.c0) : plan.k1;
    if (sampled::active && (sampled::Empty(Space::L0A, left.address, LeftBytes(plan, left.dtype)) ||
                            sampled::Empty(Space::L0B, right.address, uint64_t{b_k1} * plan.columns * kC0Bytes))) {
        sampled::Clear(Space::L0C, dst.address, uint64_t{plan.rows} * plan.columns * 4);
        if (params.unitFlag != 0) {
            Cells c;
            c.address = dst.address;
            MarkUnits(c, plan, params.unitFlag, at);
        }
        return;
    }
    const Start start = StartOf(params, bias);
    MarkOrder(core, plan, params, start);
    LocalRef table;
    table.position = static_cast<uint8_t>(AscendC::TPosition::C2);
    table.limit = core.In(Space::BT).capacity;
    Cells a;
    Cells b;
    Cells c;
    Cells d;
    bool good = OpenCells(left, LeftBytes(plan, left.dtype), kFractalBytes, false, api, Word("the left matrix"), at,
                          SpaceBit(Space::L0A), &a);
    good = OpenCells(right, uint64_t{b_k1} * plan.columns * kC0Bytes, kFractalBytes, false, api, Word("the right matrix"), at,
                     SpaceBit(Space::L0B), &b) && good;
    good = OpenCells(dst, uint64_t{plan.rows} * plan.columns * 4, 1024, true, api, "dst", at, SpaceBit(Space::L0C),
                     &c) && good;
    if (start == Start::Bias) {
        good = OpenCells(bias != nullptr ? *bias : table, uint64_t{plan.n} * 4, 64, false, api, "bias", at,
                         SpaceBit(Space::BT), &d) && good;
        good = good && d.address + plan.columns * 4 <= core.In(Space::BT).capacity;
    }
    if (!good) {
        return;
    }
    a.Touched(0, LeftBytes(plan, left.dtype), false);
    b.Touched(0, uint64_t{b_k1} * plan.columns * kC0Bytes, false);
    if (start == Start::Bias) {
        d.Touched(0, uint64_t{plan.n} * 4, false);
    }
    if (start == Start::Keep) {
        c.Touched(0, uint64_t{plan.rows} * plan.columns * 4, false);
    }
    c.Touched(0, uint64_t{plan.rows} * plan.columns * 4, true);
    if (params.unitFlag != 0) {
        MarkUnits(c, plan, params.unitFlag, at);
    }
    FillStart(start, c, d, plan);
    if (sparse) {
        ComputeSparse(a, b, c, plan);
    } else {
        Compute(a, b, c, left.dtype, plan);
    }
}

void SetHalfFloat32(bool enabled, At at)
{
    TheCore().time.Scalar(CurrentChip().flag);
    TheCore().last_at = at;
    TheCore().matrix.half_float = enabled;
}

void SetHalfFloat32Rounding(bool to_zero, At at)
{
    TheCore().time.Scalar(CurrentChip().flag);
    TheCore().last_at = at;
    TheCore().matrix.half_float_to_zero = to_zero;
}

void SetMatrixOrder(bool row_major, At at)
{
    TheCore().time.Scalar(CurrentChip().flag);
    TheCore().last_at = at;
    TheCore().matrix.row_major = row_major;
}

}  // namespace evokernel::twin
