#include "matmul/machine.h"

#include <map>

#include "evokernel/twin/cube_api.h"

namespace evokernel::twin::matmul {

using AscendC::HardEvent;
using AscendC::TPosition;

namespace {

constexpr uint32_t kUnit = 512;  // L1 pieces start on whole fractals

// Which machine's pieces a cube core's L1 and L0 hold.
std::map<const Core *, Machine *> &Owners()
{
    static std::map<const Core *, Machine *> owners;
    return owners;
}

uint32_t AlignUp(uint32_t value, uint32_t unit) { return (value + unit - 1) / unit * unit; }

uint32_t BiasBytes(const Job &job)
{
    return job.has_bias ? AlignUp(static_cast<uint32_t>(Align(job.tiling.baseN, 64)) * 4, kUnit) : 0;
}

uint32_t QuantBytes(const Job &job)
{
    const bool copied = job.quant.kind == Quant::Kind::Vector && !job.quant.in_l1;
    return copied ? AlignUp(static_cast<uint32_t>(job.tiling.baseN) * 8, kUnit) : 0;
}

uint32_t IndexBytes(const Job &job)
{
    const int64_t elements = int64_t{Align(job.tiling.baseN, kRows)} * Align(job.tiling.baseK, 128);
    return job.spec->b.sparse ? AlignUp(static_cast<uint32_t>(elements / 8), kUnit) : 0;
}

bool FitsL1(const Job &job, uint32_t bytes)
{
    if (job.l1_begin + bytes <= job.l1_end) {
        return true;
    }
    ReportError("l1-capacity", job.at,
                "The Matmul object needs %u bytes of L1 for depthA1 = %d and depthB1 = %d, but only %d are "
                "free; lower these.",
                bytes, job.tiling.depthA1, job.tiling.depthB1,
                static_cast<int>(job.l1_end) - static_cast<int>(job.l1_begin));
    return false;
}

// Rows and columns that the unit multiplies: whole squares where 8-bit types were turned.
int32_t Columns(const Operand &b, int32_t n)
{
    const int32_t bits = BitsOfDType(b.dtype());
    return b.crossing && bits < 16 ? Align(n, C0OfDType(b.dtype())) : n;
}

int32_t RowsOfUnit(const Operand &a, int32_t m) { return m == 1 && !a.vector ? kRows : m; }

}  // namespace

Machine::~Machine()
{
    for (auto it = Owners().begin(); it != Owners().end();) {
        it = it->second == this ? Owners().erase(it) : std::next(it);
    }
}

bool Machine::Begin(const Job &job)
{
    const auto entry = Owners().find(&TheCore());
    Machine *owner = entry == Owners().end() ? nullptr : entry->second;
    if (owner == this && core_ == &TheCore() && serial_ == job.serial) {
        return true;
    }
    if (owner != nullptr) {
        owner->End(job.at);
    }
    const uint32_t extra = BiasBytes(job) + QuantBytes(job) + IndexBytes(job);
    if (!FitsL1(job, PanelCache::Bytes(job, true) + PanelCache::Bytes(job, false) + extra)) {
        return false;
    }
    Owners()[&TheCore()] = this;
    core_ = &TheCore();
    serial_ = job.serial;
    at_ = job.at;
    const uint32_t after_a = a_.Open(job, true, AlignUp(job.l1_begin, kUnit));
    bias_address_ = b_.Open(job, false, after_a);
    quant_address_ = bias_address_ + BiasBytes(job);
    index_address_ = quant_address_ + QuantBytes(job);
    bias_column_ = -1;
    stage_ = 0;
    buffer_ = 0;
    sum_base_ = AlignUp(TheCore().used[static_cast<int>(Space::L0C)], 1024);
    for (int i = 0; i < 2; ++i) {
        multiplied_[i].Open(HardEvent::M_MTE1, at_);
        ready_[i].Open(HardEvent::M_FIX, at_);
        taken_[i].Open(HardEvent::FIX_M, at_);
    }
    loaded_.Open(HardEvent::MTE1_M, at_);
    bias_copied_.Open(HardEvent::MTE2_MTE1, at_);
    bias_read_.Open(HardEvent::MTE1_MTE2, at_);
    table_read_.Open(HardEvent::M_MTE1, at_);
    quant_copied_.Open(HardEvent::MTE2_FIX, at_);
    quant_read_.Open(HardEvent::FIX_MTE2, at_);
    if (job.spec->a.dtype == DType::F32) {
        SetHalfFloat32(job.half_float, at_);
        SetHalfFloat32Rounding(job.half_float_to_zero, at_);
    }
    return true;
}

void Machine::End(At at)
{
    if (core_ != &TheCore()) {
        return;
    }
    a_.Close(at);
    b_.Close(at);
    for (int i = 0; i < 2; ++i) {
        multiplied_[i].Close(at);
        ready_[i].Close(at);
        taken_[i].Close(at);
    }
    for (Flag *flag : {&loaded_, &bias_copied_, &bias_read_, &table_read_, &quant_copied_, &quant_read_}) {
        flag->Close(at);
    }
    core_ = nullptr;
    Owners().erase(&TheCore());
}

LocalRef Machine::SumAt(const Job &job, int buffer) const
{
    const uint32_t bytes = TheCore().In(Space::L0C).capacity - sum_base_;
    const uint32_t address = sum_base_ + static_cast<uint32_t>(buffer) * (bytes / 2 / 1024 * 1024);
    return CubeRef(TPosition::CO1, address, job.AccumulatorType());
}

void Machine::TakeBuffer(const Job &job, bool accumulate)
{
    if (!accumulate) {
        buffer_ = job.tiling.dbL0C == 2 ? 1 - buffer_ : 0;
    }
    ready_[buffer_].Wait(job.at);  // a block that nobody took out is overwritten
    taken_[buffer_].Wait(job.at);
}

void Machine::LoadBias(const Job &job, const Tile &tile)
{
    if (bias_column_ != tile.column) {
        bias_read_.Wait(job.at);
        AscendC::Nd2NzParams row;
        row.ndNum = 1;
        row.nValue = 1;
        row.dValue = static_cast<uint32_t>(tile.n);
        row.srcDValue = static_cast<uint32_t>(tile.n);
        row.dstNzC0Stride = 1;
        row.dstNzNStride = 1;
        row.dstNzMatrixStride = 1;
        GlobalRef from = job.bias.global;
        const uint64_t skip = static_cast<uint64_t>(BytesOf(tile.n0, from.dtype));
        from.address += skip;
        from.bytes = from.bytes > skip ? from.bytes - skip : 0;
        CopyNd2Nz(L1Ref(bias_address_, from.dtype), from, row, job.at);
        bias_copied_.Set(job.at);
        bias_copied_.Wait(job.at);
        bias_column_ = tile.column;
    }
    table_read_.Wait(job.at);
    AscendC::DataCopyParams params;
    params.blockCount = 1;
    params.blockLen = static_cast<uint16_t>(Ceil(tile.n * 4, 64));
    const LocalRef table = CubeRef(TPosition::C2, 0, job.AccumulatorType());
    CopyLocalParams(table, CubeRef(TPosition::C1, bias_address_, job.bias.global.dtype), params, job.at);
    bias_read_.Set(job.at);
}

void Machine::Multiply(const Job &job, const Tile &tile, int32_t depth, const LocalRef &sum, bool first)
{
    const int32_t k = std::min(job.tiling.baseK, job.k - depth * job.tiling.baseK);
    const Panel a = a_.Get(job, tile.row, depth);
    const Panel b = b_.Get(job, tile.column, depth);
    const bool double_buffer = job.tiling.dbL0A == 2 && job.tiling.dbL0B == 2;
    stage_ = double_buffer ? 1 - stage_ : 0;
    const uint32_t half = static_cast<uint32_t>(stage_) * TheCore().In(Space::L0A).capacity / 2;
    const bool with_bias = first && job.has_bias && depth == 0;
    multiplied_[stage_].Wait(job.at);
    LoadLeft(job, a_.Stored(), a, half, tile.m, k);
    if (job.spec->b.sparse) {
        LoadSparseRight(job, tile, depth, b, half);
    } else {
        LoadRight(job, b_.Stored(), b, half, k, tile.n);
    }
    if (with_bias) {
        LoadBias(job, tile);
    }
    loaded_.Set(job.at);
    loaded_.Wait(job.at);
    AscendC::MmadParams params;
    params.m = static_cast<uint32_t>(RowsOfUnit(a_.Stored(), tile.m));
    params.n = static_cast<uint32_t>(Columns(b_.Stored(), tile.n));
    params.k = static_cast<uint32_t>(k);
    params.cmatrixInitVal = first && !with_bias;
    params.cmatrixSource = with_bias;
    params.kDirectionAlign = a_.Stored().Layout() == PanelLayout::Strips;
    if (!first && Ceil(tile.m, kRows) * Ceil(tile.n, kRows) < 10) {
        Barrier(PIPE_M, job.at);
    }
    MatrixMultiply(sum, CubeRef(TPosition::A2, half, job.spec->a.dtype), CubeRef(TPosition::B2, half, job.spec->b.dtype),
                   nullptr, params, job.spec->b.sparse, job.at);
    multiplied_[stage_].Set(job.at);
    if (with_bias) {
        table_read_.Set(job.at);
    }
}

// B keeps two of each four elements along K; the index, a quarter of its size, comes in the same order. The whole
// base block and its index are one run of fractals.
void Machine::LoadSparseRight(const Job &job, const Tile &tile, int32_t depth, const Panel &panel, uint32_t target)
{
    constexpr int32_t index_row = 8;  // bytes of index for a fractal's row of 32 kept elements
    const int32_t kept = std::min(job.tiling.baseK, job.k - depth * job.tiling.baseK) / 2;
    const int32_t columns = Ceil(kept, 32);
    const int32_t rows = Align(tile.n, kRows);
    Burst burst;
    burst.count = static_cast<uint32_t>(columns);
    burst.length = static_cast<uint32_t>(rows * index_row);
    burst.src_stride = static_cast<uint32_t>(Align(job.org_n, kRows) * index_row);
    burst.dst_stride = burst.length;
    GlobalRef from = job.index;
    const int64_t column = int64_t{depth} * job.tiling.baseK / 2 / 32;
    const int64_t skip = column * burst.src_stride + int64_t{tile.n0} * index_row;
    from.address += skip;
    from.bytes = static_cast<int64_t>(from.bytes) > skip ? from.bytes - static_cast<uint64_t>(skip) : 0;
    bias_read_.Wait(job.at);
    CopyIn(L1Ref(index_address_, DType::U8), from, burst, job.at);
    bias_copied_.Set(job.at);
    bias_copied_.Wait(job.at);
    LoadData2D(job, panel, target, columns * rows / kRows);
    bias_read_.Set(job.at);
}

void Machine::LoadData2D(const Job &job, const Panel &panel, uint32_t target, int32_t fractals)
{
    AscendC::LoadData2DParams params;
    params.repeatTimes = static_cast<uint32_t>(fractals);
    LoadSparse(CubeRef(TPosition::B2, target, DType::S8), L1Ref(panel.address, DType::S8),
               L1Ref(index_address_, DType::U8), params, job.at);
}

// The copies of the next piece start while this one is multiplied.
void Machine::Prefetch(const Job &job, const Tile &tile, int32_t depth, int32_t index)
{
    Tile next = tile;
    int32_t next_depth = depth + 1;
    if (next_depth >= tile.depth_end) {
        if (index + 1 >= job.Tiles()) {
            return;
        }
        next = TileAt(job, index + 1);
        next_depth = next.depth_begin;
        if (next.skipped) {
            return;
        }
    }
    a_.Prefetch(job, next.row, next_depth);
    b_.Prefetch(job, next.column, next_depth);
}

void Machine::Compute(const Job &job, const Tile &tile, int32_t index, bool accumulate, const LocalRef *co1)
{
    LocalRef sum;
    if (co1 != nullptr) {
        sum = *co1;
        sum.dtype = job.AccumulatorType();
    } else {
        TakeBuffer(job, accumulate);
        sum = SumAt(job, buffer_);
    }
    // Cores that read the same rows of B begin at different depths, so that they do not meet at one address.
    const int32_t count = tile.depth_end - tile.depth_begin;
    const int32_t shift = job.spec->config.enableKdimReorderLoad && !job.has_bias
                              ? static_cast<int32_t>(TheCore().block % count)
                              : 0;
    for (int32_t i = 0; i < count; ++i) {
        const int32_t depth = tile.depth_begin + (i + shift) % count;
        Multiply(job, tile, depth, sum, i == 0 && !accumulate);
        if (shift == 0) {
            Prefetch(job, tile, depth, index);
        }
    }
    if (co1 == nullptr) {
        ready_[buffer_].Set(job.at);
    }
}

}  // namespace evokernel::twin::matmul
