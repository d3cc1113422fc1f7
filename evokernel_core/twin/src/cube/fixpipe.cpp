// Fixpipe and DataCopy out of L0C: NZ to NZ or ND, converted on the way, to global memory or L1.
#include <algorithm>
#include <cstring>
#include <vector>

#include "cube/gm.h"
#include "cube/quant.h"
#include "cube/space.h"
#include "sampled.h"

namespace evokernel::twin {

using AscendC::CO2Layout;

namespace {

constexpr uint32_t kLanes = 16;            // columns of one fractal of L0C

// A call with everything that registers and types decide.
struct Plan {
    FixpipeCall call;
    uint32_t width;        // bytes of an element of the target
    uint32_t lanes;        // columns of one fractal of the target
    uint64_t dst_stride;   // bytes
    uint64_t dst_matrix;
    std::vector<uint64_t> parameters;
    uint32_t step;         // between the parameters of two columns
};

bool Nd(const Plan &plan) { return plan.call.layout == CO2Layout::ROW_MAJOR; }

// 8-bit results join two fractals, a channel split halves them.
uint32_t TargetLanes(const FixpipeCall &call, uint32_t width)
{
    return width == 1 ? 2 * kLanes : call.split ? kLanes / 2 : kLanes;
}

uint32_t TargetColumns(const Plan &plan) { return CeilDiv(plan.call.n, plan.lanes); }

// Columns of the target's fractal `column`; the last one may be narrower.
uint32_t ColumnLanes(const Plan &plan, uint32_t column)
{
    const uint32_t all = CeilDiv(plan.call.n, std::min(plan.lanes, kLanes)) * std::min(plan.lanes, kLanes);
    return std::min(plan.lanes, all - column * plan.lanes);
}

uint64_t SourceExtent(const FixpipeCall &call)
{
    const uint64_t columns = CeilDiv(call.n, kLanes);
    return (call.matrices - 1) * call.src_matrix + (columns - 1) * call.src_stride + uint64_t{call.m} * kL0cRowBytes;
}

uint64_t TargetExtent(const Plan &plan)
{
    if (Nd(plan)) {
        return (plan.call.matrices - 1) * plan.dst_matrix + (plan.call.m - 1) * plan.dst_stride +
               uint64_t{plan.call.n} * plan.width;
    }
    const uint32_t last = TargetColumns(plan) - 1;
    return last * plan.dst_stride + uint64_t{plan.call.m} * ColumnLanes(plan, last) * plan.width;
}

constexpr uint64_t kMatrixUnit = 1024;  // bytes of a fractal in L0C, in which its matrices are apart

bool CheckLayout(const FixpipeCall &call, At at)
{
    const Checked row(Api::Fixpipe, call.name);
    bool good = CheckLimit(row, "nSize", call.n, at);
    const bool nd = call.layout == CO2Layout::ROW_MAJOR;
    good = CheckLimit(row, nd ? Word("mSize of ND") : "mSize", call.m, at) && good;
    good = CheckLimit(row, "ndNum", call.matrices, at) && good;
    if (nd && call.matrices > 1) {
        good = CheckLimit(row, "srcNdStride", static_cast<int64_t>(call.src_matrix / kMatrixUnit), at) && good;
        good = CheckLimit(row, "dstNdStride", static_cast<int64_t>(call.dst_matrix), at) && good;
    }
    const uint32_t unit = call.split ? 8 : 16;
    if (!nd && call.n % unit != 0) {
        ReportError("param-limit", at, "%s to NZ takes an nSize that is a multiple of %u, not %u.", call.name, unit,
                    call.n);
        good = false;
    }
    if (call.dst_stride == 0 && !call.dst_gap) {
        ReportError("param-limit", at, "%s takes a dstStride other than 0.", call.name);
        good = false;
    }
    if (call.unit_flag != 0 && call.unit_flag != 2 && call.unit_flag != 3) {
        ReportError("param-limit", at, "%s takes a unitFlag of 0, 2 or 3, not %u.", call.name, call.unit_flag);
        good = false;
    }
    if (call.split && (nd || call.unit_flag != 0)) {
        ReportError("param-limit", at, "%s splits channels only to NZ and without unitFlag.", call.name);
        good = false;
    }
    return good;
}

bool CheckConversion(const FixpipeCall &call, DType from, DType to, bool l1, At at)
{
    const bool split = call.split && (l1 || to != DType::F32);
    if (SupportsQuant(call.quant, from, to) && !(l1 && call.quant == QuantMode_t::NoQuant) && !split) {
        return true;
    }
    ReportError("dtype-unsupported", at, "%s does not convert %s into %s in %s with this quantPre%s on this "
                                         "chip.",
                call.name, DTypeName(from), DTypeName(to), l1 ? "L1" : Word("global memory"),
                split ? Word(" and a channel split") : "");
    return false;
}

// The parameters of all columns: from L1, from the Fixpipe buffer, or one for all.
bool ReadParameters(Plan &plan, At at)
{
    const FixpipeCall &call = plan.call;
    const CubeState &state = TheCore().matrix;
    plan.parameters.assign(1, call.registers ? state.scalar : call.scalar);
    plan.step = 0;
    if (!IsVectorQuant(call.quant)) {
        return true;
    }
    LocalRef place;
    if (call.vector != nullptr) {
        place = *call.vector;
    } else if (state.vector_set) {
        place.address = state.vector_address;
        place.position = static_cast<uint8_t>(AscendC::TPosition::C2PIPE2GM);
        place.limit = TheCore().In(Space::FB).capacity;
        place.dtype = DType::U64;
    } else {
        ReportError("param-limit", at, "%s quantises each column by itself; give it the tensor of parameters or call "
                    "SetFixPipeConfig first.", call.name);
        return false;
    }
    const uint64_t bytes = uint64_t{call.n} * 8;
    Cells cells;
    if (!OpenCells(place, bytes, call.vector != nullptr ? 32 : 128, false, call.name, Word("the quantisation tensor"), at,
                   SpaceBit(Space::L1) | SpaceBit(Space::FB), &cells)) {
        return false;
    }
    cells.Touched(0, bytes, false);
    if (AnyMarked(cells.undefined, bytes)) {
        ReportUndefined(call.name, place, bytes, at);
    }
    plan.parameters.resize(call.n);
    std::memcpy(plan.parameters.data(), cells.data, bytes);
    plan.step = 1;
    return true;
}

// Blocks that are read must hold a finished result; unitFlag 3 frees them.
void TakeUnits(const FixpipeCall &call, const Cells &source, At at)
{
    std::vector<uint8_t> &units = UnitFlags();
    bool waits = false;
    bool half = false;
    for (uint32_t matrix = 0; matrix < call.matrices; ++matrix) {
        for (uint32_t column = 0; column < CeilDiv(call.n, kLanes); ++column) {
            const uint64_t start = source.address + matrix * call.src_matrix + column * call.src_stride;
            for (uint64_t unit = start / kUnitBytes; unit <= (start + call.m * kL0cRowBytes - 1) / kUnitBytes; ++unit) {
                waits = waits || (call.unit_flag != 0 && units[unit] == 0);
                half = half || (call.unit_flag == 0 && units[unit] != 0);
                units[unit] = call.unit_flag == 3 ? 0 : units[unit];
            }
        }
    }
    if (waits) {
        ReportError("l0c-unit-flag", at,
                    "%s with a unitFlag reads blocks of L0C that no Mmad with unitFlag 3 finished; the hardware waits "
                    "for ever. Give the last Mmad of the sum unitFlag 3.", call.name);
    }
    if (half) {
        ReportError("l0c-unit-flag", at,
                    "%s without unitFlag reads what Mmad wrote with one; set it on both or on neither.", call.name);
        std::fill(units.begin(), units.end(), uint8_t{0});
    }
}

// `n` columns of a row of L0C from `column` on, converted. Returns whether all of them held values.
class Converter {
public:
    Converter(const Plan &plan, const Cells &source, DType from, DType to)
        : plan_(plan), source_(source), from_(from), to_(to), values_(plan.call.n + 2 * kLanes),
          bytes_((plan.call.n + 2 * kLanes) * size_t{4}), shadow_(values_.size())
    {
    }

    const uint8_t *Convert(uint64_t matrix, uint32_t row, uint32_t column, uint32_t n)
    {
        any_undefined_ = false;
        for (uint32_t done = 0; done < n;) {
            const uint32_t lane = (column + done) % kLanes;
            const uint32_t count = std::min(n - done, kLanes - lane);
            const uint64_t offset = matrix + (column + done) / kLanes * plan_.call.src_stride + row * kL0cRowBytes + lane * 4;
            std::memcpy(values_.data() + done, source_.data + offset, count * 4);
            for (uint32_t i = 0; i < count; ++i) {
                shadow_[done + i] = AnyMarked(source_.undefined + offset + i * 4, 4) ? kUndefined : 0;
                any_undefined_ = any_undefined_ || shadow_[done + i] != 0;
            }
            done += count;
        }
        const uint64_t *parameters = plan_.parameters.data() + uint64_t{column} * plan_.step;
        const uint32_t known = plan_.step == 0 ? n : std::min(n, plan_.call.n - column);
        Quantise(plan_.call.quant, from_, to_, plan_.call.relu, reinterpret_cast<const uint8_t *>(values_.data()), known,
                 parameters, plan_.step, bytes_.data());
        return bytes_.data();
    }

    bool AnyUndefined() const { return any_undefined_; }
    const std::vector<uint8_t> &Shadow() const { return shadow_; }

private:
    const Plan &plan_;
    const Cells &source_;
    DType from_;
    DType to_;
    std::vector<uint32_t> values_;
    std::vector<uint8_t> bytes_;
    std::vector<uint8_t> shadow_;
    bool any_undefined_ = false;
};

// Calls `write(target offset, bytes, count of elements, converter)` for each dense piece of the target.
template <typename Write> void ForEachPiece(const Plan &plan, Converter &converter, Write write)
{
    const FixpipeCall &call = plan.call;
    for (uint32_t matrix = 0; Nd(plan) && matrix < call.matrices; ++matrix) {
        for (uint32_t row = 0; row < call.m; ++row) {
            const uint8_t *bytes = converter.Convert(matrix * call.src_matrix, row, 0, call.n);
            write(matrix * plan.dst_matrix + row * plan.dst_stride, bytes, call.n);
        }
    }
    for (uint32_t column = 0; !Nd(plan) && column < TargetColumns(plan); ++column) {
        const uint32_t lanes = ColumnLanes(plan, column);
        for (uint32_t row = 0; row < call.m; ++row) {
            const uint8_t *bytes = converter.Convert(0, row, column * plan.lanes, lanes);
            write(column * plan.dst_stride + uint64_t{row} * lanes * plan.width, bytes, lanes);
        }
    }
}

// In sampled runs: whether nothing that is taken out holds a value, and where it would have gone.
bool SourceEmpty(const Cells &source, const FixpipeCall &call)
{
    return sampled::active && sampled::Empty(source.space, source.address, SourceExtent(call));
}

template <typename Use> void ForEachTarget(const Plan &plan, Use use)
{
    const FixpipeCall &call = plan.call;
    for (uint32_t matrix = 0; Nd(plan) && matrix < call.matrices; ++matrix) {
        for (uint32_t row = 0; row < call.m; ++row) {
            use(matrix * plan.dst_matrix + row * plan.dst_stride, call.n);
        }
    }
    for (uint32_t column = 0; !Nd(plan) && column < TargetColumns(plan); ++column) {
        use(column * plan.dst_stride, call.m * ColumnLanes(plan, column));
    }
}

// The registers' share of DataCopy out of L0C.
bool WithRegisters(FixpipeCall &call, At at)
{
    if (call.unsupported) {
        ReportError("dtype-unsupported", at, "DataCopy from L0C has no clipReluPre and no eltWiseOp on this chip.");
    }
    const CubeState &state = TheCore().matrix;
    if (!call.registers || call.layout != CO2Layout::ROW_MAJOR) {
        return true;
    }
    if (state.matrices == 0) {
        ReportError("param-limit", at, "DataCopy from L0C to ND needs SetFixpipeNz2ndFlag before it.");
        return false;
    }
    call.matrices = state.matrices;
    call.src_matrix = state.src_matrix;
    call.dst_matrix = state.dst_matrix;
    return true;
}

Plan MakePlan(const FixpipeCall &call, DType to)
{
    Plan plan{};
    plan.call = call;
    plan.width = DTypeBytes(to);
    plan.lanes = TargetLanes(call, plan.width);
    const bool nd = call.layout == CO2Layout::ROW_MAJOR;
    plan.dst_stride = nd ? call.dst_stride * plan.width : call.dst_stride;
    plan.dst_stride += call.dst_gap ? uint64_t{call.m} * plan.lanes * plan.width : 0;
    plan.dst_matrix = call.dst_matrix * plan.width;
    return plan;
}

double Cycles(const FixpipeCall &call, uint32_t width)
{
    const Chip &chip = CurrentChip();
    const double elements = static_cast<double>(call.matrices) * call.m * CeilDiv(call.n, kLanes) * kLanes;
    return chip.fixpipe_overhead + elements / (width == 4 ? chip.fixpipe_b32 : chip.fixpipe_b16);
}

void AccountStore(const GlobalRef &dst, const Plan &plan, At at)
{
    const FixpipeCall &call = plan.call;
    const double cycles = Cycles(call, plan.width);
    if (Nd(plan)) {
        const auto stride = static_cast<uint32_t>(plan.dst_stride);
        GlobalRef matrix = dst;
        for (uint32_t i = 0; i < call.matrices; ++i, matrix.address += plan.dst_matrix) {
            AccountGlobal(Pipe::FIX, false, matrix, Burst{call.m, call.n * plan.width, stride, stride}, stride,
                          cycles / call.matrices, call.name, at);
        }
        return;
    }
    const auto stride = static_cast<uint32_t>(plan.dst_stride);
    AccountGlobal(Pipe::FIX, false, dst,
                  Burst{TargetColumns(plan), call.m * plan.lanes * plan.width, stride, stride}, stride, cycles,
                  call.name, at);
}

void ReportRow(const FixpipeCall &call, At at)
{
    ReportError("uninitialised-read", at,
                "%s takes elements out of L0C that no Mmad computed from defined values; check its sizes and what was "
                "loaded.", call.name);
}

bool Prepare(Plan &plan, const LocalRef &src, DType to, bool l1, At at, Cells *source)
{
    const FixpipeCall &call = plan.call;
    if (!CheckLayout(call, at) || !CheckConversion(call, src.dtype, to, l1, at) || !ReadParameters(plan, at) ||
        !OpenCells(src, SourceExtent(call), 64, false, call.name, "src", at, SpaceBit(Space::L0C), source)) {
        return false;
    }
    if (call.unit_flag != 0) {
        race::UnitFlagged(TheCore());
    }
    for (uint32_t matrix = 0; matrix < call.matrices; ++matrix) {
        for (uint32_t column = 0; column < CeilDiv(call.n, kLanes); ++column) {
            source->Touched(matrix * call.src_matrix + column * call.src_stride, uint64_t{call.m} * kL0cRowBytes, false);
        }
    }
    TakeUnits(call, *source, at);
    return true;
}

bool Nothing(const FixpipeCall &call) { return call.n == 0 || call.m == 0 || call.matrices == 0; }

}  // namespace

void FixpipeToGlobal(const GlobalRef &dst, const LocalRef &src, const FixpipeCall &given, At at)
{
    FixpipeCall call = given;
    if (Nothing(call) || !WithRegisters(call, at)) {
        return;
    }
    Plan plan = MakePlan(call, dst.dtype);
    AccountStore(dst, plan, at);
    Cells source;
    if (TheCore().timing || !Prepare(plan, src, dst.dtype, false, at, &source)) {
        return;
    }
    if (!Nd(plan) && reinterpret_cast<uintptr_t>(dst.address) % kC0Bytes != 0) {
        ReportError("gm-misaligned-access", at, "%s to NZ needs its GM address at a multiple of 32 bytes.", call.name);
    }
    Allocation *block = Gm().Check(dst, dst.address, TargetExtent(plan), true, call.name, at);
    if (block == nullptr || block->kind == Kind::Input) {
        return;
    }
    if (SourceEmpty(source, call)) {
        return ForEachTarget(plan, [&](uint64_t offset, uint32_t n) {
            sampled::Forget(*block, static_cast<uint64_t>(dst.address - block->base) + offset, n * plan.width);
        });
    }
    Converter converter(plan, source, src.dtype, dst.dtype);
    ForEachPiece(plan, converter, [&](uint64_t offset, const uint8_t *bytes, uint32_t n) {
        uint8_t *to = dst.address + offset;
        StoreGlobal(*block, to, bytes, n * plan.width, call.name, at);
        if (!converter.AnyUndefined()) {
            return;
        }
        if (Nd(plan) && !sampled::active) {
            return ReportRow(call, at);
        }
        if (!sampled::Keeps(*block, static_cast<uint64_t>(to - block->base), n * plan.width)) {
            return;
        }
        // Padding columns of NZ may hold nothing; what reads them later is told.
        for (uint32_t i = 0; block->written != nullptr && i < n * plan.width; ++i) {
            block->written[to + i - block->base] &= static_cast<uint8_t>(converter.Shadow()[i / plan.width] == 0);
        }
    });
}

void FixpipeToL1(const LocalRef &dst, const LocalRef &src, const FixpipeCall &given, At at)
{
    FixpipeCall call = given;
    call.layout = CO2Layout::NZ;  // the way to L1 knows no other layout on this chip
    if (Nothing(call)) {
        return;
    }
    Plan plan = MakePlan(call, dst.dtype);
    RunCube(Pipe::FIX, call.name, Cycles(call, plan.width), at);
    Cells source;
    Cells to;
    if (TheCore().timing || !Prepare(plan, src, dst.dtype, true, at, &source) ||
        !OpenCells(dst, TargetExtent(plan), kC0Bytes, true, call.name, "dst", at, SpaceBit(Space::L1), &to)) {
        return;
    }
    Converter converter(plan, source, src.dtype, dst.dtype);
    ForEachPiece(plan, converter, [&](uint64_t offset, const uint8_t *bytes, uint32_t n) {
        to.Touched(offset, n * plan.width, true);
        std::memcpy(to.data + offset, bytes, n * plan.width);
        for (uint32_t i = 0; i < n * plan.width; ++i) {
            to.undefined[offset + i] = converter.Shadow()[i / plan.width];
        }
    });
}

void SetFixpipeMatrices(uint16_t count, uint16_t src_stride, uint16_t dst_stride, At at)
{
    TheCore().time.Scalar(CurrentChip().flag);
    TheCore().last_at = at;
    if (!CheckLimit(Api::SetFixpipeNz2ndFlag, "ndNum", count, at) ||
        !CheckLimit(Api::SetFixpipeNz2ndFlag, "srcNdStride", src_stride, at)) {
        return;
    }
    if (count > 1 && !CheckLimit(Api::SetFixpipeNz2ndFlag, "dstNdStride", dst_stride, at)) {
        return;
    }
    TheCore().matrix.matrices = count;
    TheCore().matrix.src_matrix = uint64_t{src_stride} * 1024;
    TheCore().matrix.dst_matrix = dst_stride;
}

void SetFixpipeScalar(uint64_t bits, At at)
{
    TheCore().time.Scalar(CurrentChip().flag);
    TheCore().last_at = at;
    TheCore().matrix.scalar = bits;
}

void SetFixpipeVector(const LocalRef &tensor, bool clear_unit_flags, At at)
{
    CubeState &state = TheCore().matrix;
    TheCore().time.Scalar(CurrentChip().flag);
    TheCore().last_at = at;
    if (SpaceOf(tensor) == Space::FB) {
        state.vector_address = tensor.address;
        state.vector_set = true;
    } else if (!clear_unit_flags) {
        ReportError("dtype-unsupported", at, "SetFixPipeConfig takes a tensor of the Fixpipe buffer (C2PIPE2GM).");
    }
    if (clear_unit_flags) {
        UnitFlags().clear();  // they are 0 when they are asked for next
    }
}

}  // namespace evokernel::twin
