// L0C to global memory, with the conversion that the types of C ask for.
#include "evokernel/twin/cube_api.h"
#include "matmul/callback.h"
#include "matmul/machine.h"

namespace evokernel::twin::matmul {

using AscendC::TPosition;

namespace {

QuantMode_t ModeOf(const Job &job)
{
    const bool vector = job.quant.kind == Quant::Kind::Vector;
    const bool integer = job.AccumulatorType() == DType::S32;
    switch (job.spec->c.dtype) {
        case DType::F16:
            return !integer ? QuantMode_t::F322F16 : vector ? QuantMode_t::VDEQF16 : QuantMode_t::DEQF16;
        case DType::BF16:
            return QuantMode_t::F322BF16;
        case DType::S8:
        case DType::U8:
            if (integer) {
                return vector ? QuantMode_t::VREQ8 : QuantMode_t::REQ8;
            }
            return vector ? QuantMode_t::VQF322B8_PRE : QuantMode_t::QF322B8_PRE;
        default:
            return QuantMode_t::NoQuant;
    }
}

bool NeedsQuant(QuantMode_t mode)
{
    return mode != QuantMode_t::NoQuant && mode != QuantMode_t::F322F16 && mode != QuantMode_t::F322BF16;
}

// Elements of a row of C in global memory.
int64_t LeadOf(const Job &job, const Target &target)
{
    const OperandSpec &c = job.spec->c;
    const int32_t unit = 32 / static_cast<int32_t>(DTypeBytes(c.dtype));
    int64_t lead = job.lead_c != 0 ? job.lead_c : job.org_kc != 0 ? job.org_kc : job.org_n;
    if (target.sequential) {
        lead = job.tiling.baseN;
    }
    return c.format == CubeFormat::ND_ALIGN ? (lead + unit - 1) / unit * unit : lead;
}

int32_t LanesOf(const Job &job)
{
    if (job.spec->config.isEnableChannelSplit) {
        return 8;
    }
    return DTypeBytes(job.spec->c.dtype) == 1 ? 32 : 16;
}

// Rows of a column of fractals of an NZ result.
int64_t NzRows(const Job &job, const Tile &tile, const Target &target)
{
    return Align(target.sequential ? tile.m : job.org_m, kRows);
}

int64_t OffsetOf(const Job &job, const Tile &tile, const Target &target)
{
    if (target.sequential) {
        return 0;
    }
    if (job.spec->c.format == CubeFormat::NZ) {
        const int64_t lanes = LanesOf(job);
        return tile.n0 / lanes * NzRows(job, tile, target) * lanes + tile.m0 * lanes;
    }
    return tile.m0 * LeadOf(job, target) + tile.n0;
}

FixpipeCall CallOf(const Job &job, const Tile &tile, const Target &target)
{
    FixpipeCall call;
    const OperandSpec &c = job.spec->c;
    const bool nz = c.format == CubeFormat::NZ;
    call.name = "Matmul";
    call.m = static_cast<uint32_t>(tile.m);
    call.n = static_cast<uint32_t>(tile.n);
    call.src_stride = static_cast<uint64_t>(Align(tile.m, kRows)) * kRows * 4;
    call.layout = nz ? AscendC::CO2Layout::NZ : AscendC::CO2Layout::ROW_MAJOR;
    call.quant = ModeOf(job);
    call.scalar = job.quant.scalar;
    call.split = job.spec->config.isEnableChannelSplit;
    if (nz) {
        call.n = static_cast<uint32_t>(Align(tile.n, call.split ? 8 : kRows));
        call.dst_stride =
            static_cast<uint64_t>(NzRows(job, tile, target)) * static_cast<uint64_t>(LanesOf(job)) * DTypeBytes(c.dtype);
    } else {
        call.dst_stride = static_cast<uint64_t>(LeadOf(job, target));
        const int32_t unit = 32 / static_cast<int32_t>(DTypeBytes(c.dtype));
        if (c.format == CubeFormat::ND_ALIGN && tile.n % unit != 0) {
            call.n = static_cast<uint32_t>(std::min(Align(tile.n, unit), Align(tile.n, kRows)));
        }
    }
    return call;
}

Atomic AtomicOf(uint8_t mode)
{
    constexpr Atomic modes[] = {Atomic::None, Atomic::Add, Atomic::Max, Atomic::Min};
    return modes[mode & 3];
}

void CallBack(const Job &job, const Tile &tile, const Target &target, const LocalRef &sum, const FixpipeCall &call)
{
    AscendC::DataCopyOutParams params;
    params.cBurstNum = static_cast<uint16_t>(Ceil(tile.n, kRows));
    params.burstLen = static_cast<uint16_t>(tile.m * kRows * 4 / 32);
    params.srcStride = static_cast<uint16_t>((Align(tile.m, kRows) - tile.m) * 2);
    params.dstStride = static_cast<uint32_t>(call.dst_stride);
    params.oriNSize = call.layout == AscendC::CO2Layout::ROW_MAJOR ? static_cast<uint16_t>(tile.n) : uint16_t{0};
    params.quantScalar = job.quant.scalar;
    GlobalRef to = target.global;
    to.address += BytesOf(OffsetOf(job, tile, target), job.spec->c.dtype);
    CallCopyOut(job.spec->copy_out, to.address, sum, params, job.user_info, job.callback_data);
}

}  // namespace

LocalRef Machine::LoadQuant(const Job &job, const Tile &tile)
{
    if (job.quant.in_l1) {
        LocalRef part = job.quant.local;
        part.address += static_cast<uint32_t>(tile.n0) * 8;
        return part;
    }
    quant_read_.Wait(job.at);
    AscendC::Nd2NzParams row;
    row.ndNum = 1;
    row.nValue = 1;
    row.dValue = static_cast<uint32_t>(tile.n) * 2;
    row.srcDValue = row.dValue;
    row.dstNzC0Stride = 1;
    row.dstNzNStride = 1;
    row.dstNzMatrixStride = 1;
    GlobalRef from = job.quant.global;
    const uint64_t skip = static_cast<uint64_t>(tile.n0) * 8;
    from.address += skip;
    from.bytes = from.bytes > skip ? from.bytes - skip : 0;
    from.dtype = DType::S32;  // two words for each parameter
    CopyNd2Nz(L1Ref(quant_address_, DType::S32), from, row, job.at);
    quant_copied_.Set(job.at);
    quant_copied_.Wait(job.at);
    return L1Ref(quant_address_, DType::U64);
}

void Machine::CopyOut(const Job &job, const Tile &tile, const Target &target, const LocalRef &sum)
{
    FixpipeCall call = CallOf(job, tile, target);
    if (job.spec->copy_out != nullptr) {
        return CallBack(job, tile, target, sum, call);
    }
    LocalRef parameters;
    const bool vector = NeedsQuant(call.quant) && job.quant.kind == Quant::Kind::Vector;
    if (vector) {
        parameters = LoadQuant(job, tile);
        call.vector = &parameters;
    }
    GlobalRef to = target.global;
    const int64_t bytes = BytesOf(OffsetOf(job, tile, target), job.spec->c.dtype);
    to.address += bytes;
    to.bytes = static_cast<int64_t>(to.bytes) > bytes ? to.bytes - static_cast<uint64_t>(bytes) : 0;
    to.dtype = job.spec->c.dtype;
    const Atomic atomic = AtomicOf(target.atomic);
    if (atomic != Atomic::None) {
        SetAtomic(atomic, to.dtype, job.at);
    }
    FixpipeToGlobal(to, sum, call, job.at);
    if (atomic != Atomic::None) {
        SetAtomic(Atomic::None, to.dtype, job.at);
    }
    if (vector && !job.quant.in_l1) {
        quant_read_.Set(job.at);
    }
}

void Machine::Store(const Job &job, const Tile &tile, const Target &target)
{
    ready_[buffer_].Wait(job.at);
    CopyOut(job, tile, target, SumAt(job, buffer_));
    taken_[buffer_].Set(job.at);
}

}  // namespace evokernel::twin::matmul
