// L1 to L0A (rows of fractals, Zz) and L0B (rows of fractals turned, Zn).
#include "evokernel/twin/cube_api.h"
#include "matmul/panel.h"

namespace evokernel::twin::matmul {

using AscendC::LoadData2DParams;
using AscendC::LoadData2dTransposeParams;
using AscendC::TPosition;

namespace {

constexpr int32_t kMaxRepeats = 255;

// A run of fractals: from `source` on in steps of `stride`, to `target` on in steps of `step`.
struct Run {
    int32_t source, stride, count;
    int32_t target, step;
    bool turned;  // each fractal transposed (16-bit types)
};

void LoadRun(const Job &job, const LocalRef &to, const LocalRef &from, Run run)
{
    while (run.count > 0) {
        const int32_t count = std::min(run.count, kMaxRepeats);
        LoadData2DParams params;
        params.repeatTimes = static_cast<uint32_t>(count);
        params.srcStride = static_cast<uint16_t>(run.stride);
        params.dstGap = static_cast<uint16_t>(run.step - 1);
        params.ifTranspose = run.turned;
        LocalRef source = from;
        source.address += static_cast<uint32_t>(run.source) * kFractal;
        LocalRef target = to;
        target.address += static_cast<uint32_t>(run.target) * kFractal;
        Load2D(target, source, params, job.at);
        run.source += count * run.stride;
        run.target += count * run.step;
        run.count -= count;
    }
}

// Square blocks, each turned: the fractals of one result lie `inner` apart.
struct Squares {
    int32_t source, stride, count;  // in squares
    int32_t target, step, inner;    // in fractals
};

void LoadSquares(const Job &job, const LocalRef &to, const LocalRef &from, Squares run)
{
    const int32_t fractals = from.dtype == DType::S4 ? 4 : 2;
    while (run.count > 0) {
        const int32_t count = std::min(run.count, kMaxRepeats);
        LoadData2dTransposeParams params;
        params.repeatTimes = static_cast<uint32_t>(count);
        params.srcStride = static_cast<uint16_t>(run.stride);
        params.dstGap = static_cast<uint16_t>(run.step - 1);
        params.dstFracGap = static_cast<uint16_t>(run.inner - 1);
        LocalRef source = from;
        source.address += static_cast<uint32_t>(run.source * fractals) * kFractal;
        LocalRef target = to;
        target.address += static_cast<uint32_t>(run.target) * kFractal;
        LoadTransposed(target, source, params, job.at);
        run.source += count * run.stride;
        run.target += count * run.step;
        run.count -= count;
    }
}

// Stored rows are rows of A: one image-to-column instruction takes them all.
void LoadStraightLeft(const Job &job, const Operand &operand, const Panel &panel, const LocalRef &to, int32_t m,
                      int32_t k)
{
    const int32_t c0 = C0OfDType(operand.dtype());
    const int32_t k_fractals = Ceil(k, c0);
    const int32_t m_fractals = Ceil(m, kRows);
    LocalRef from = L1Ref(panel.address, operand.dtype());
    from.address += static_cast<uint32_t>(panel.column / c0 * panel.fractal_rows) * kFractal;
    const bool one_instruction = m_fractals > 1 && operand.dtype() != DType::S4;
    for (int32_t i = 0; i < m_fractals && !one_instruction; ++i) {
        LoadRun(job, to, from,
                Run{panel.row / kRows + i, panel.fractal_rows, k_fractals, i * k_fractals, 1, false});
    }
    if (one_instruction) {
        Load3D load;
        load.height = 1;
        load.width = static_cast<uint16_t>(panel.fractal_rows * kRows);
        load.channels = static_cast<uint16_t>(k_fractals * c0);
        load.k = load.channels;
        load.m = static_cast<uint16_t>(m_fractals * kRows);
        load.m_start = static_cast<uint16_t>(panel.row);
        LoadImageToColumn(to, from, load, job.at);
    }
}

// Stored columns are rows of A.
void LoadCrossingLeft(const Job &job, const Operand &operand, const Panel &panel, const LocalRef &to, int32_t m,
                      int32_t k)
{
    const LocalRef from = L1Ref(panel.address, operand.dtype());
    const int32_t bits = BitsOfDType(operand.dtype());
    if (bits == 16) {
        const int32_t depth = Ceil(k, kRows);
        for (int32_t i = 0; i < Ceil(m, kRows); ++i) {
            const int32_t first = (panel.column / kRows + i) * panel.fractal_rows + panel.row / kRows;
            LoadRun(job, to, from, Run{first, 1, depth, i * depth, 1, true});
        }
        return;
    }
    if (panel.layout == PanelLayout::Strips) {
        const int32_t depth = Ceil(k, kRows) * 2;
        for (int32_t i = 0; i < Ceil(m, kRows); ++i) {
            const int32_t first = panel.row / kRows * (panel.fractal_rows / 2) + panel.column / kRows + i;
            LoadSquares(job, to, from, Squares{first, panel.fractal_rows / 2, depth / 2, i * depth, 2, 1});
        }
        return;
    }
    const int32_t side = C0OfDType(operand.dtype());  // 32 for bytes, 64 for half bytes
    const int32_t depth = Ceil(k, side);
    const int32_t fractals = side / kRows;
    for (int32_t i = 0; i < Ceil(m, side); ++i) {
        const int32_t first = (panel.column / side + i) * (panel.fractal_rows / fractals) + panel.row / side;
        LoadSquares(job, to, from, Squares{first, 1, depth, i * fractals * depth, 1, depth});
    }
}

// Stored rows are columns of B: already turned, column after column of fractals.
void LoadStraightRight(const Job &job, const Operand &operand, const Panel &panel, const LocalRef &to, int32_t k,
                       int32_t n)
{
    const int32_t c0 = C0OfDType(operand.dtype());
    const int32_t k_fractals = Ceil(k, c0);
    const int32_t n_fractals = Ceil(n, kRows);
    const LocalRef from = L1Ref(panel.address, operand.dtype());
    const int32_t first = panel.column / c0 * panel.fractal_rows + panel.row / kRows;
    if (n_fractals == panel.fractal_rows) {
        return LoadRun(job, to, from, Run{first, 1, k_fractals * n_fractals, 0, 1, false});
    }
    for (int32_t i = 0; i < k_fractals && k_fractals <= n_fractals; ++i) {
        LoadRun(job, to, from, Run{first + i * panel.fractal_rows, 1, n_fractals, i * n_fractals, 1, false});
    }
    for (int32_t i = 0; i < n_fractals && n_fractals < k_fractals; ++i) {
        LoadRun(job, to, from, Run{first + i, panel.fractal_rows, k_fractals, i, n_fractals, false});
    }
}

// Stored rows are rows of B.
void LoadCrossingRight(const Job &job, const Operand &operand, const Panel &panel, const LocalRef &to, int32_t k,
                       int32_t n)
{
    const LocalRef from = L1Ref(panel.address, operand.dtype());
    const int32_t bits = BitsOfDType(operand.dtype());
    const int32_t n_fractals = Ceil(n, kRows);
    if (bits == 16) {
        const int32_t depth = Ceil(k, kRows);
        const int32_t first = panel.column / kRows * panel.fractal_rows + panel.row / kRows;
        for (int32_t i = 0; i < depth && depth <= n_fractals; ++i) {
            LoadRun(job, to, from, Run{first + i, panel.fractal_rows, n_fractals, i * n_fractals, 1, true});
        }
        for (int32_t i = 0; i < n_fractals && n_fractals < depth; ++i) {
            LoadRun(job, to, from, Run{first + i * panel.fractal_rows, 1, depth, i, n_fractals, true});
        }
        return;
    }
    if (panel.layout == PanelLayout::Strips) {
        for (int32_t i = 0; i < Ceil(k, kRows); ++i) {
            const int32_t first = (panel.row / kRows + i) * (panel.fractal_rows / 2) + panel.column / kRows;
            LoadSquares(job, to, from, Squares{first, 1, n_fractals, 2 * i * n_fractals, 1, n_fractals});
        }
        return;
    }
    const int32_t side = C0OfDType(operand.dtype());
    const int32_t depth = Ceil(k, side);
    const int32_t fractals = side / kRows;
    for (int32_t i = 0; i < Ceil(n, side); ++i) {
        const int32_t first = (panel.column / side + i) * (panel.fractal_rows / fractals) + panel.row / side;
        LoadSquares(job, to, from, Squares{first, 1, depth, i * fractals, Align(n_fractals, fractals), 1});
    }
}

}  // namespace

void LoadLeft(const Job &job, const Operand &operand, const Panel &panel, uint32_t target, int32_t m, int32_t k)
{
    const LocalRef to = CubeRef(TPosition::A2, target, operand.dtype());
    if (panel.layout == PanelLayout::Row) {
        LocalRef from = L1Ref(panel.address, operand.dtype());
        from.address += static_cast<uint32_t>(BytesOf(panel.column, operand.dtype()));
        const int32_t fractals = Ceil(static_cast<int32_t>(BytesOf(k, operand.dtype())), kFractal);
        return LoadRun(job, to, from, Run{0, 1, fractals, 0, 1, false});
    }
    if (operand.crossing) {
        return LoadCrossingLeft(job, operand, panel, to, m, k);
    }
    LoadStraightLeft(job, operand, panel, to, m, k);
}

void LoadRight(const Job &job, const Operand &operand, const Panel &panel, uint32_t target, int32_t k, int32_t n)
{
    const LocalRef to = CubeRef(TPosition::B2, target, operand.dtype());
    if (operand.crossing) {
        return LoadCrossingRight(job, operand, panel, to, k, n);
    }
    LoadStraightRight(job, operand, panel, to, k, n);
}

}  // namespace evokernel::twin::matmul
