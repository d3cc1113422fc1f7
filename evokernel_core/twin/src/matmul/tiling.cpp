// Cuts a matrix product: over the cores first, then into base blocks, then how many of them L1 holds.
//
// Each level takes the candidate with the least modelled cycles: the cube multiplies 16x16 by 16xK0 in one
// cycle, and a core reads global memory at 32 bytes a cycle (hardware.md of the twin's model).
#include <algorithm>
#include <cstdio>

#include "evokernel/twin/matmul/host_tiling.h"

namespace matmul_tiling {

namespace {

constexpr int32_t kCube = 16;            // rows and columns of a fractal
constexpr double kLoadRate = 32;         // bytes a cycle from global memory
constexpr double kBlockOverhead = 40;    // cycles: starting the instructions of one base block
constexpr double kRaggedRows = 1.27;     // rows that are no multiple of 256 bytes load at 0.785 of the rate
constexpr double kRaggedSplit = 1.4;      // a last core with less to do needs tails in the kernel
constexpr int32_t kAccumulatorBytes = 4;
constexpr int32_t kMaxBase = 1024;

int32_t Ceil(int32_t value, int32_t unit) { return (value + unit - 1) / unit; }
int32_t Align(int32_t value, int32_t unit) { return Ceil(value, unit) * unit; }

int32_t HalfBytes(DataType type)
{
    switch (type) {
        case DataType::DT_INT4: return 1;
        case DataType::DT_INT8:
        case DataType::DT_UINT8: return 2;
        case DataType::DT_FLOAT:
        case DataType::DT_INT32:
        case DataType::DT_UINT32: return 8;
        default: return 4;
    }
}

int64_t Bytes(int64_t elements, DataType type) { return elements * HalfBytes(type) / 2; }
int32_t C0(DataType type) { return 64 / HalfBytes(type); }

int64_t Fail(const char *reason)
{
    std::fprintf(stderr, "GetTiling: %s\n", reason);
    return -1;
}

struct Sizes {
    TilingExtent all, single, base;
    int32_t m_cores = 1, n_cores = 1, k_cores = 1;
};

// What base blocks must be multiples of: whole fractals on both sides of every buffer that they pass.
struct Units {
    int32_t m, n, k;
};

Units UnitsOf(const TilingRequest &request)
{
    const int32_t c0 = C0(request.a.type);
    Units units{kCube, kCube, std::max(c0, kCube)};
    if (request.a.transposed) {
        units.m = std::max(kCube, c0);
    }
    if (!request.b.transposed) {
        units.n = std::max(kCube, c0);
    }
    if (!request.a.transposed && request.b.transposed) {
        units.k = request.sparse ? 2 * c0 : c0;
    }
    return units;
}

double CubeCycles(const TilingRequest &request, int32_t m, int32_t n, int32_t k)
{
    const int32_t c0 = C0(request.a.type);
    const double rate = request.a.type == DataType::DT_FLOAT ? 4.0 : 1.0;  // fp32 runs at a quarter
    const double depth = request.a.type == DataType::DT_FLOAT ? Ceil(k, kCube) : Ceil(k, c0);
    return rate * Ceil(m, kCube) * Ceil(n, kCube) * depth;
}

double LoadCycles(const TilingRequest &request, int32_t m, int32_t n, int32_t k)
{
    return static_cast<double>(Bytes(int64_t{m} * k, request.a.type) + Bytes(int64_t{n} * k, request.b.type)) /
           kLoadRate;
}

// Rows and columns of A and B that a core copies. With a fixed base block each block brings its own.
TilingExtent Copied(const TilingRequest &request, const TilingExtent &single)
{
    if (request.fixed.m <= 0 || request.fixed.n <= 0) {
        return single;
    }
    return {single.m * Ceil(single.n, request.fixed.n), single.n * Ceil(single.m, request.fixed.m), single.k};
}

// One core's time if it had `single` to do; a split that leaves little for the last core wastes the others' time
// no more than that core's share, so only the largest part counts.
double CoreCycles(const TilingRequest &request, const TilingExtent &single)
{
    const TilingExtent copied = Copied(request, single);
    return std::max(CubeCycles(request, single.m, single.n, single.k),
                    LoadCycles(request, copied.m, copied.n, copied.k)) +
           static_cast<double>(Bytes(int64_t{single.m} * single.n, request.c.type)) / kLoadRate;
}

int32_t SingleUnit(int32_t wanted, int32_t natural) { return wanted > 0 ? wanted : natural; }

bool InRange(int32_t value, int32_t least, int32_t most)
{
    return (least <= 0 || value >= least) && (most <= 0 || value <= most);
}

bool SingleAllowed(const TilingRequest &request, const TilingExtent &single)
{
    const TilingExtent &least = request.single_min;
    const TilingExtent &most = request.single_max;
    return InRange(single.m, least.m, most.m) && InRange(single.n, least.n, most.n) &&
           InRange(single.k, least.k, most.k);
}

int32_t Share(int32_t all, int32_t parts, int32_t unit) { return std::min(Align(Ceil(all, parts), unit), all); }

// A fixed base block is the unit that a core's part is cut by: the cores then have no ragged blocks inside.
int32_t CutUnit(int32_t align, int32_t fixed, int32_t natural)
{
    return align > 0 ? align : std::max(SingleUnit(fixed, natural), natural);
}

double Raggedness(const TilingExtent &all, const TilingExtent &single)
{
    return all.m % single.m == 0 && all.n % single.n == 0 ? 1.0 : kRaggedSplit;
}

struct Split {
    double cycles = 0;
    int32_t cores = 0;
    TilingExtent single;
};

// Fewer cores only where that costs nothing; an even number of them because a block of a mixed launch has two.
// Among equals narrow parts where there is a bias, of which each core then reads less, and flat ones elsewhere:
// rows of C stay whole.
bool Better(const Split &other, const Split &best, bool with_bias)
{
    if (best.cores == 0 || other.cycles < best.cycles * 0.999) {
        return true;
    }
    if (other.cycles > best.cycles * 1.001) {
        return false;
    }
    const bool even = other.cores % 2 == 0;
    const bool best_even = best.cores % 2 == 0;
    if (even != best_even || other.cores != best.cores) {
        return even != best_even ? even : other.cores < best.cores;
    }
    return with_bias ? other.single.n < best.single.n : other.single.m < best.single.m;
}

// A matrix in a core's own memory is all there is of it.
bool WholeOnCore(const TilingOperand &operand) { return operand.position != TPosition::GM; }

bool SplitOverCores(const TilingRequest &request, Sizes *sizes)
{
    const Units natural = UnitsOf(request);
    const TilingExtent &all = sizes->all;
    const TilingExtent &given = request.single;
    const int32_t unit_m = CutUnit(request.align.m, request.fixed.m, natural.m);
    const int32_t unit_n = CutUnit(request.align.n, request.fixed.n, natural.n);
    const int32_t unit_k = SingleUnit(request.align.k, natural.k);
    Split best;
    for (int32_t k_parts = 1; k_parts <= (request.split_k ? request.cores : 1); ++k_parts) {
        for (int32_t m_parts = 1; m_parts * k_parts <= request.cores; ++m_parts) {
            for (int32_t n_parts = 1; m_parts * n_parts * k_parts <= request.cores; ++n_parts) {
                Split trial;
                trial.single.m = given.m > 0 ? given.m : Share(all.m, WholeOnCore(request.a) ? 1 : m_parts, unit_m);
                trial.single.n = given.n > 0 ? given.n : Share(all.n, WholeOnCore(request.b) ? 1 : n_parts, unit_n);
                trial.single.k = given.k > 0 ? given.k : Share(all.k, k_parts, unit_k);
                const int64_t cores = int64_t{Ceil(all.m, trial.single.m)} * Ceil(all.n, trial.single.n) *
                                      (request.split_k || given.k > 0 ? Ceil(all.k, trial.single.k) : 1);
                trial.cores = static_cast<int32_t>(std::min<int64_t>(cores, 1 << 20));
                trial.cycles = CoreCycles(request, trial.single) * Raggedness(all, trial.single);
                if (trial.cores <= request.cores && SingleAllowed(request, trial.single) &&
                    Better(trial, best, request.has_bias)) {
                    best = trial;
                }
            }
        }
    }
    if (best.cores == 0) {
        return false;
    }
    sizes->single = best.single;
    sizes->m_cores = Ceil(all.m, best.single.m);
    sizes->n_cores = Ceil(all.n, best.single.n);
    sizes->k_cores = best.cores / (sizes->m_cores * sizes->n_cores);
    return true;
}

// Bytes that a base block of C may take in the unified buffer, where the kernel keeps it in a queue.
uint64_t UbShare(const TilingRequest &request) { return request.ub / 2; }

bool BaseFits(const TilingRequest &request, int32_t m, int32_t n)
{
    const uint64_t accumulator = uint64_t(m) * n * kAccumulatorBytes;
    if (accumulator > request.l0c) {
        return false;
    }
    if (request.has_bias && uint64_t(n) * kAccumulatorBytes > request.bt) {
        return false;
    }
    const bool to_ub = request.c.position == TPosition::VECIN || request.c.position == TPosition::VECCALC;
    return !to_ub || uint64_t(Bytes(int64_t{m} * n, request.c.type)) <= UbShare(request);
}

// The deepest base block whose two copies fit L0A and L0B.
int32_t DeepestK(const TilingRequest &request, int32_t m, int32_t n, int32_t single_k, int32_t unit)
{
    const int64_t a = static_cast<int64_t>(request.l0a) / 2 / std::max<int64_t>(1, Bytes(m, request.a.type));
    const int64_t b = static_cast<int64_t>(request.l0b) / 2 / std::max<int64_t>(1, Bytes(n, request.b.type));
    int64_t k = std::min({a, b, int64_t{Align(single_k, unit)}, int64_t{4096 - unit}});
    if (request.base_max.k > 0) {
        k = std::min<int64_t>(k, request.base_max.k);
    }
    return static_cast<int32_t>(k / unit * unit);
}

double RowPenalty(const TilingOperand &operand, int32_t inner)
{
    return Bytes(inner, operand.type) % 256 == 0 ? 1.0 : kRaggedRows;
}

// Modelled cycles of a core's part in blocks of m x n x k: whole blocks multiply, and every row of blocks reads
// B once more, every column A.
double BlockCycles(const TilingRequest &request, const TilingExtent &single, int32_t m, int32_t n, int32_t k)
{
    const int32_t rows = Ceil(single.m, m);
    const int32_t columns = Ceil(single.n, n);
    const double cube = CubeCycles(request, Align(single.m, kCube), Align(single.n, kCube), single.k);
    const double a = static_cast<double>(Bytes(int64_t{columns} * single.m * single.k, request.a.type)) *
                     RowPenalty(request.a, request.a.transposed ? m : 128);
    const double b = static_cast<double>(Bytes(int64_t{rows} * single.n * single.k, request.b.type)) *
                     RowPenalty(request.b, request.b.transposed ? 128 : n);
    const double traffic = (a + b) / kLoadRate;
    return std::max(cube, traffic) + 0.25 * std::min(cube, traffic) +
           kBlockOverhead * rows * columns * Ceil(single.k, k);
}

bool FixedAllowed(const TilingRequest &request, const TilingExtent &single, const Units &units)
{
    const TilingExtent &fixed = request.fixed;
    if (fixed.m > 0 && (fixed.m % kCube != 0 || fixed.m > Align(single.m, std::max(kCube, units.m)))) {
        return false;
    }
    return fixed.n <= 0 || (fixed.n % kCube == 0 && fixed.n <= Align(single.n, std::max(kCube, units.n)));
}

bool ChooseBase(const TilingRequest &request, const TilingExtent &single, TilingExtent *base)
{
    const Units units = UnitsOf(request);
    if (!FixedAllowed(request, single, units)) {
        return false;
    }
    const int32_t most_m = std::min(Align(single.m, units.m), kMaxBase);
    const int32_t most_n = std::min(Align(single.n, units.n), kMaxBase);
    double best = -1;
    for (int32_t m = request.fixed.m > 0 ? request.fixed.m : units.m; m <= most_m; m += units.m) {
        for (int32_t n = request.fixed.n > 0 ? request.fixed.n : units.n; n <= most_n; n += units.n) {
            const int32_t k = request.fixed.k > 0 ? request.fixed.k : DeepestK(request, m, n, single.k, units.k);
            if (k > 0 && BaseFits(request, m, n) && InRange(m, request.base_min.m, request.base_max.m) &&
                InRange(n, request.base_min.n, request.base_max.n)) {
                const double cycles = BlockCycles(request, single, m, n, k);
                if (best < 0 || cycles < best) {
                    best = cycles;
                    *base = TilingExtent{m, n, k};
                }
            }
            if (request.fixed.n > 0) {
                break;
            }
        }
        if (request.fixed.m > 0) {
            break;
        }
    }
    return best >= 0;
}

// L1 bytes of one base block of A or B, as ND2NZ pads them.
int64_t BlockBytes(const TilingOperand &operand, int32_t rows, int32_t columns)
{
    const int32_t c0 = C0(operand.type);
    return Bytes(int64_t{Align(rows, std::max(kCube, c0))} * Align(columns, std::max(kCube, c0)), operand.type);
}

struct Depth {
    int32_t step_m = 1, step_n = 1, step_k = 1, buffers_a = 1, buffers_b = 1;
};

int64_t DepthBytes(const Depth &depth, int64_t a, int64_t b)
{
    return a * depth.step_m * depth.step_k * depth.buffers_a + b * depth.step_n * depth.step_k * depth.buffers_b;
}

// As much of K as fits beside a second copy; where all of K fits once, the rows or columns that stay.
Depth ChooseDepth(const TilingRequest &request, const Sizes &sizes, int64_t a, int64_t b, int64_t room)
{
    const int32_t rows = Ceil(sizes.single.m, sizes.base.m);
    const int32_t columns = Ceil(sizes.single.n, sizes.base.n);
    const int32_t depth_k = Ceil(sizes.single.k, sizes.base.k);
    Depth depth;
    if (request.config.scheduleType == ScheduleType::N_BUFFER_33) {
        depth = Depth{std::min(rows, 3), 1, depth_k, 1, 2};
        return depth;
    }
    Depth whole{rows, columns, depth_k, 1, 1};
    if (DepthBytes(whole, a, b) <= room) {
        return whole;
    }
    depth.buffers_a = rows * depth_k > 1 ? 2 : 1;
    depth.buffers_b = columns * depth_k > 1 ? 2 : 1;
    if (DepthBytes(depth, a, b) > room) {
        depth.buffers_a = 1;
        depth.buffers_b = 1;
    }
    for (int32_t step = 1; step <= depth_k; ++step) {
        Depth deeper = depth;
        deeper.step_k = step;
        if (DepthBytes(deeper, a, b) <= room && Ceil(depth_k, step) < Ceil(depth_k, depth.step_k)) {
            depth = deeper;
        }
    }
    return depth;
}

bool InLocal(const TilingOperand &operand) { return operand.position == TPosition::TSCM; }

void Fill(const TilingRequest &request, const Sizes &sizes, const Depth &depth, AscendC::tiling::TCubeTiling *out)
{
    *out = AscendC::tiling::TCubeTiling{};
    out->usedCoreNum = sizes.m_cores * sizes.n_cores * sizes.k_cores;
    out->M = request.org_m > 0 ? request.org_m : sizes.all.m;
    out->N = request.org_n > 0 ? request.org_n : sizes.all.n;
    out->Ka = request.org_ka > 0 ? request.org_ka : sizes.all.k;
    out->Kb = request.org_kb > 0 ? request.org_kb : sizes.all.k;
    out->singleCoreM = sizes.single.m;
    out->singleCoreN = sizes.single.n;
    out->singleCoreK = sizes.single.k;
    out->baseM = sizes.base.m;
    out->baseN = sizes.base.n;
    out->baseK = sizes.base.k;
    out->stepM = depth.step_m;
    out->stepN = depth.step_n;
    out->stepKa = depth.step_k;
    out->stepKb = depth.step_k;
    out->depthA1 = depth.step_m * depth.step_k * depth.buffers_a;
    out->depthB1 = depth.step_n * depth.step_k * depth.buffers_b;
    out->isBias = request.has_bias ? 1 : 0;
    out->iterateOrder = request.traverse == MatrixTraverse::FIRSTN ? 1 : 0;
}

void FillBuffers(const TilingRequest &request, int64_t a, int64_t b, AscendC::tiling::TCubeTiling *out)
{
    const int64_t accumulator = int64_t{out->baseM} * out->baseN * kAccumulatorBytes;
    out->dbL0A = 2;
    out->dbL0B = 2;
    out->dbL0C = accumulator * 2 <= static_cast<int64_t>(request.l0c) ? 2 : 1;
    const int64_t bias = request.has_bias ? int64_t{out->baseN} * kAccumulatorBytes : 0;
    out->shareL1Size = static_cast<int32_t>((InLocal(request.a) ? 0 : a * out->depthA1) +
                                            (InLocal(request.b) ? 0 : b * out->depthB1) + bias);
    out->shareL0CSize = static_cast<int32_t>(accumulator);
    out->batchM = 1;
    out->batchN = 1;
    out->singleBatchM = 1;
    out->singleBatchN = 1;
}

void FillLayouts(const TilingRequest &request, AscendC::tiling::TCubeTiling *out)
{
    const TilingLayout &a = request.layout_a;
    const TilingLayout &b = request.layout_b;
    const TilingLayout &c = request.layout_c;
    out->ALayoutInfoB = a.b;
    out->ALayoutInfoS = a.s;
    out->ALayoutInfoN = a.n;
    out->ALayoutInfoG = a.g;
    out->ALayoutInfoD = a.d;
    out->BLayoutInfoB = b.b;
    out->BLayoutInfoS = b.s;
    out->BLayoutInfoN = b.n;
    out->BLayoutInfoG = b.g;
    out->BLayoutInfoD = b.d;
    out->CLayoutInfoB = c.b;
    out->CLayoutInfoS1 = c.s;
    out->CLayoutInfoN = c.n;
    out->CLayoutInfoG = c.g;
    out->CLayoutInfoS2 = c.d;
    out->BatchNum = request.batch;
}

TilingExtent WholeShape(const TilingRequest &request)
{
    TilingExtent all = request.shape;
    all.m = all.m > 0 ? all.m : request.org_m;
    all.n = all.n > 0 ? all.n : request.org_n;
    all.k = all.k > 0 ? all.k : std::min(request.org_ka, request.org_kb);
    if (request.a.format == CubeFormat::VECTOR || request.a.format == CubeFormat::SCALAR) {
        all.m = 1;
    }
    return all;
}

}  // namespace

int64_t ComputeTiling(const TilingRequest &request, AscendC::tiling::TCubeTiling *tiling)
{
    Sizes sizes;
    sizes.all = WholeShape(request);
    if (std::min({sizes.all.m, sizes.all.n, sizes.all.k}) <= 0) {
        return Fail("M, N and K must be positive; call SetShape or SetOrgShape.");
    }
    if (request.split_k && request.has_bias) {
        return Fail("a product that is split along K takes no bias; add it afterwards.");
    }
    if (HalfBytes(request.a.type) != HalfBytes(request.b.type)) {
        return Fail("A and B must have elements of one width.");
    }
    sizes.single = sizes.all;
    if (request.multi_core && !SplitOverCores(request, &sizes)) {
        return Fail("the single-core shape needs more cores than SetDim allows.");
    }
    if (!ChooseBase(request, sizes.single, &sizes.base)) {
        return Fail("no base block fits L0A, L0B and L0C with the fixed or allowed sizes.");
    }
    const TilingExtent &base = sizes.base;
    const int64_t a = request.a.transposed ? BlockBytes(request.a, base.k, base.m) : BlockBytes(request.a, base.m, base.k);
    const int64_t b = request.b.transposed ? BlockBytes(request.b, base.n, base.k) : BlockBytes(request.b, base.k, base.n);
    const int64_t bias = request.has_bias ? int64_t{base.n} * kAccumulatorBytes : 0;
    const int64_t room = static_cast<int64_t>(request.l1) - bias;
    const Depth depth = ChooseDepth(request, sizes, InLocal(request.a) ? 0 : a, InLocal(request.b) ? 0 : b, room);
    if (DepthBytes(depth, InLocal(request.a) ? 0 : a, InLocal(request.b) ? 0 : b) > room) {
        return Fail("the base blocks of A and B do not fit L1; allow smaller ones.");
    }
    Fill(request, sizes, depth, tiling);
    FillBuffers(request, a, b, tiling);
    FillLayouts(request, tiling);
    return 0;
}

}  // namespace matmul_tiling
