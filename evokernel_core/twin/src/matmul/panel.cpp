// Global memory to L1: ND matrices become NZ, NZ ones are copied, scalars fill.
#include "matmul/panel.h"

#include "evokernel/twin/cube_api.h"
#include "matmul/callback.h"

namespace evokernel::twin::matmul {

using AscendC::TPosition;

LocalRef CubeRef(TPosition position, uint32_t address, DType dtype)
{
    LocalRef ref;
    ref.address = address;
    ref.position = static_cast<uint8_t>(position);
    ref.limit = TheCore().In(SpaceOf(position)).capacity;
    ref.bytes = ref.limit - address;
    ref.dtype = dtype;
    return ref;
}

LocalRef L1Ref(uint32_t address, DType dtype) { return CubeRef(TPosition::A1, address, dtype); }

Operand OperandOf(const Job &job, bool left)
{
    Operand operand;
    operand.spec = left ? &job.spec->a : &job.spec->b;
    operand.source = left ? &job.a : &job.b;
    operand.left = left;
    operand.crossing = operand.source->transposed == left;
    const CubeFormat format = operand.spec->format;
    const bool scalar = operand.source->kind == Source::Kind::Scalar;
    operand.vector = left && (format == CubeFormat::VECTOR || format == CubeFormat::SCALAR || scalar);
    if (operand.vector) {
        operand.crossing = false;
    }
    const int64_t rows = left ? (operand.source->transposed ? job.org_ka : job.org_m)
                              : (operand.source->transposed ? job.org_n : job.org_kb);
    const int64_t columns = left ? (operand.source->transposed ? job.org_m : job.org_ka)
                                 : (operand.source->transposed ? job.org_kb : job.org_n);
    operand.sparsity = operand.spec->sparse ? 2 : 1;
    const int64_t given = left ? job.lead_a : job.lead_b;
    operand.lead = format == CubeFormat::NZ ? Align(static_cast<int32_t>(rows), kRows) : given != 0 ? given : columns / operand.sparsity;
    const int32_t bits = BitsOfDType(operand.spec->dtype);
    operand.fractal_row_unit = operand.crossing && bits < 16 ? 16 / bits : 1;
    return operand;
}

int32_t PanelFractalRows(const Operand &operand, int32_t rows, int32_t columns)
{
    if (operand.Layout() == PanelLayout::Strips) {
        return Ceil(columns, kRows) * 2;
    }
    return Align(Ceil(rows, kRows), operand.fractal_row_unit);
}

uint32_t PanelBytes(const Operand &operand, int32_t rows, int32_t columns)
{
    const int32_t c0 = C0OfDType(operand.dtype());
    const int32_t fractals = PanelFractalRows(operand, rows, columns);
    switch (operand.Layout()) {
        case PanelLayout::Row:
            return static_cast<uint32_t>(Ceil(columns, c0 * kRows)) * kFractal;
        case PanelLayout::Strips:
            return static_cast<uint32_t>(Ceil(rows, kRows) * fractals) * kFractal;
        default:
            return static_cast<uint32_t>(Ceil(columns, c0) * fractals) * kFractal;
    }
}

namespace {

// Four-bit elements travel as bytes: two in one.
DType CarrierOf(DType dtype) { return dtype == DType::S4 ? DType::S8 : dtype; }
int32_t Carried(int32_t elements, DType dtype) { return dtype == DType::S4 ? elements / 2 : elements; }

GlobalRef Part(const GlobalRef &whole, int64_t elements)
{
    GlobalRef part = whole;
    const int64_t bytes = BytesOf(elements, whole.dtype);
    part.address += bytes;
    part.bytes = static_cast<int64_t>(whole.bytes) > bytes ? whole.bytes - static_cast<uint64_t>(bytes) : 0;
    part.dtype = CarrierOf(whole.dtype);
    return part;
}

constexpr int64_t kMaxLead = 65535;  // of one ND2NZ instruction

AscendC::Nd2NzParams Matrix(int32_t rows, int32_t columns, int64_t lead, int32_t column_stride)
{
    AscendC::Nd2NzParams params;
    params.ndNum = 1;
    params.nValue = static_cast<uint32_t>(rows);
    params.dValue = static_cast<uint32_t>(columns);
    params.srcDValue = static_cast<uint32_t>(lead);
    params.dstNzC0Stride = static_cast<uint32_t>(column_stride);
    params.dstNzNStride = 1;
    params.dstNzMatrixStride = 1;
    return params;
}

// Rows of more than 65535 elements are copied one by one where the configuration says so.
void CopyMatrix(const Job &job, const Operand &operand, uint32_t address, const GlobalRef &from, int32_t rows,
                int32_t columns, int32_t column_stride)
{
    const DType carrier = CarrierOf(operand.dtype());
    const int32_t width = Carried(columns, operand.dtype());
    const int64_t lead = operand.dtype() == DType::S4 ? operand.lead / 2 : operand.lead;
    if (lead <= kMaxLead || !job.spec->config.intrinsicsCheck) {
        return CopyNd2Nz(L1Ref(address, carrier), from, Matrix(rows, width, lead, column_stride), job.at);
    }
    GlobalRef row = from;
    for (int32_t i = 0; i < rows; ++i) {
        CopyNd2Nz(L1Ref(address + static_cast<uint32_t>(i) * kRowBytes, carrier), row,
                  Matrix(1, width, width, column_stride), job.at);
        row = Part(row, lead);
        row.dtype = carrier;
    }
}

void CopyStrips(const Job &job, const Operand &operand, uint32_t address, const GlobalRef &from, int32_t rows,
                int32_t columns)
{
    const int32_t fractals = PanelFractalRows(operand, rows, columns);
    GlobalRef strip = from;
    for (int32_t done = 0; done < rows; done += kRows) {
        CopyMatrix(job, operand, address, strip, std::min(kRows, rows - done), columns, kRows);
        strip = Part(strip, kRows * operand.lead);
        address += static_cast<uint32_t>(fractals) * kFractal;
    }
}

// NZ in global memory: columns of fractals, each `lead` rows high.
void CopyNz(const Job &job, const Operand &operand, uint32_t address, int32_t row, int32_t column, int32_t rows,
            int32_t columns)
{
    const int32_t c0 = C0OfDType(operand.dtype());
    const int32_t fractals = PanelFractalRows(operand, rows, columns);
    Burst burst;
    burst.count = static_cast<uint32_t>(Ceil(columns, c0));
    burst.src_stride = static_cast<uint32_t>(operand.lead) * kRowBytes;
    const int64_t first = (int64_t{column / c0} * operand.lead + row) * c0;
    GlobalRef from = Part(operand.source->global, first);
    const DType carrier = CarrierOf(operand.dtype());
    if (operand.Layout() != PanelLayout::Strips) {
        burst.length = static_cast<uint32_t>(std::min<int64_t>(Align(rows, kRows), operand.lead - row)) * kRowBytes;
        burst.dst_stride = static_cast<uint32_t>(fractals) * kFractal;
        return CopyIn(L1Ref(address, carrier), from, burst, job.at);
    }
    burst.length = kFractal;
    burst.dst_stride = kFractal;
    for (int32_t done = 0; done < rows; done += kRows) {
        CopyIn(L1Ref(address, carrier), from, burst, job.at);
        from = Part(from, int64_t{kRows} * c0);
        address += static_cast<uint32_t>(fractals) * kFractal;
    }
}

void FillWithScalar(const Job &job, const Operand &operand, uint32_t address, int32_t rows, int32_t columns)
{
    FillCall fill;
    fill.repeats = 1;
    fill.blocks = PanelBytes(operand, rows, columns) / kRowBytes;
    fill.bits = operand.source->bits;
    FillMatrix(L1Ref(address, operand.dtype()), fill, job.at);
}

void CallBack(const Job &job, const Operand &operand, uint32_t address, int32_t row, int32_t column, int32_t rows,
              int32_t columns, int32_t row_unit, int32_t column_unit)
{
    const AscendC::CopyInCallback copy = operand.left ? job.spec->copy_a : job.spec->copy_b;
    LocalRef ref = L1Ref(address, operand.dtype());
    ref.bytes = PanelBytes(operand, rows, columns);
    ref.limit = address + ref.bytes;
    const int place[] = {row / row_unit, column / column_unit, rows, columns};
    CallCopyIn(copy, ref, operand.source->global.address, place, job.user_info, job.callback_data);
}

}  // namespace

void LoadPanel(const Job &job, const Operand &operand, uint32_t address, int32_t row, int32_t column, int32_t rows,
               int32_t columns)
{
    if (operand.source->kind == Source::Kind::Scalar) {
        return FillWithScalar(job, operand, address, rows, columns);
    }
    if ((operand.left ? job.spec->copy_a : job.spec->copy_b) != nullptr) {
        const bool k_first = operand.left == operand.source->transposed;
        const int32_t outer = operand.left ? job.tiling.baseM : job.tiling.baseN;
        const bool large = job.spec->config.doMultiDataLoad;
        const int32_t step = large ? (operand.left ? job.tiling.stepM : job.tiling.stepN) : 1;
        const int32_t step_k = large ? (operand.left ? job.tiling.stepKa : job.tiling.stepKb) : 1;
        const int32_t unit = outer * step;
        const int32_t unit_k = job.tiling.baseK * step_k;
        return CallBack(job, operand, address, row, column, rows, columns, k_first ? unit_k : unit,
                        k_first ? unit : unit_k);
    }
    if (operand.spec->format == CubeFormat::NZ) {
        return CopyNz(job, operand, address, row, column, rows, columns);
    }
    const GlobalRef from = Part(operand.source->global, row * operand.lead + column);
    if (operand.Layout() == PanelLayout::Strips) {
        return CopyStrips(job, operand, address, from, rows, columns);
    }
    const int32_t stride = operand.vector ? 1 : PanelFractalRows(operand, rows, columns) * kRows;
    CopyMatrix(job, operand, address, from, operand.vector ? 1 : rows, columns, stride);
}

}  // namespace evokernel::twin::matmul
