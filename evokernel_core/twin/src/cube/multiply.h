// Tiles of the matrix unit as plain arrays, and their product.
#pragma once
#include <cstdint>
#include <vector>

namespace evokernel::twin {

constexpr uint32_t kTile = 16;  // rows and columns that the matrix unit handles together

// A left matrix of `rows` (a multiple of 16) by k, row after row; a right one in panels of 16 columns, each k rows
// of 16 elements. Integers of 4 and 8 bits are floats here, too.
struct Tiles {
    uint32_t rows = 0;
    uint32_t columns = 0;  // a multiple of 16
    uint32_t k = 0;
    std::vector<float> left;
    std::vector<float> right;
    // Of each row and column whether its results are undefined anyway; such groups of rows and panels are left out.
    std::vector<uint8_t> idle_rows;
    std::vector<uint8_t> idle_columns;
};

// Adds left x right to `c`, in L0C's layout: for each 16 columns, for each 16 rows, 16 x 16. Every element is summed
// in the order of k, each product and each sum rounded to float32; integers are exact and saturate at the end.
void MultiplyFloat(const Tiles &tiles, float *c);
void MultiplyInteger(const Tiles &tiles, int32_t *c);

}  // namespace evokernel::twin
