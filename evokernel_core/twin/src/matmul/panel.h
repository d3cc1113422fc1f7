// Pieces of A and B in L1, and how base blocks go from there to L0A and L0B.
#pragma once
#include "matmul/job.h"

namespace evokernel::twin::matmul {

// How a piece lies in L1. Nz: columns of 16-row fractals. Strips: 16 rows after another, the fractals of each
// side by side, as the transposing load of 32-bit types wants them. Row: one dense row.
enum class PanelLayout : uint8_t { Nz, Strips, Row };

struct Panel {
    uint32_t address = 0;
    PanelLayout layout = PanelLayout::Nz;
    int32_t fractal_rows = 0;     // Nz: fractals in a column; Strips: fractals in a strip
    int32_t row = 0, column = 0;  // of the base block in the piece, as it is stored
};

// A or B as the loads see it: `crossing` where K runs along the stored rows and must be turned.
struct Operand {
    const OperandSpec *spec = nullptr;
    const Source *source = nullptr;
    bool left = true;
    bool crossing = false;
    bool vector = false;          // A is one row
    int64_t lead = 0;             // elements of a stored row (NZ: rows of a column of fractals)
    int32_t fractal_row_unit = 1; // fractals along stored rows that a load takes together
    int32_t sparsity = 1;         // elements of K for each one that is stored

    DType dtype() const { return spec->dtype; }
    PanelLayout Layout() const
    {
        return vector ? PanelLayout::Row
                      : crossing && BitsOfDType(spec->dtype) == 32 ? PanelLayout::Strips : PanelLayout::Nz;
    }
};

Operand OperandOf(const Job &job, bool left);

// L1 bytes of a piece of `rows` x `columns` stored elements, and the fractals of its columns or strips.
uint32_t PanelBytes(const Operand &operand, int32_t rows, int32_t columns);
int32_t PanelFractalRows(const Operand &operand, int32_t rows, int32_t columns);

// Copies the stored elements [row, row + rows) x [column, column + columns) from global memory to L1.
void LoadPanel(const Job &job, const Operand &operand, uint32_t address, int32_t row, int32_t column, int32_t rows,
               int32_t columns);

// The base block at `panel` to L0A (m x k) or L0B (k x n).
void LoadLeft(const Job &job, const Operand &operand, const Panel &panel, uint32_t target, int32_t m, int32_t k);
void LoadRight(const Job &job, const Operand &operand, const Panel &panel, uint32_t target, int32_t k, int32_t n);

LocalRef L1Ref(uint32_t address, DType dtype);
LocalRef CubeRef(AscendC::TPosition position, uint32_t address, DType dtype);

}  // namespace evokernel::twin::matmul
