#include "cube_multiply.h"

#include <algorithm>
#include <limits>

namespace evokernel::twin {

namespace {

// Two rows of C, 16 columns wide, over all of k: the sums stay in registers.
template <typename T, typename Sum>
void TwoRows(const T *left, uint32_t k, const T *panel, Sum *__restrict first, Sum *__restrict second)
{
    Sum a[kTile];
    Sum b[kTile];
    std::copy(first, first + kTile, a);
    std::copy(second, second + kTile, b);
    const T *other = left + k;
    for (uint32_t i = 0; i < k; ++i) {
        const Sum x = static_cast<Sum>(left[i]);
        const Sum y = static_cast<Sum>(other[i]);
        const T *row = panel + i * kTile;
        for (uint32_t j = 0; j < kTile; ++j) {
            a[j] += x * static_cast<Sum>(row[j]);
            b[j] += y * static_cast<Sum>(row[j]);
        }
    }
    std::copy(a, a + kTile, first);
    std::copy(b, b + kTile, second);
}

int32_t Saturate(int64_t value)
{
    return static_cast<int32_t>(std::clamp<int64_t>(value, std::numeric_limits<int32_t>::min(),
                                                    std::numeric_limits<int32_t>::max()));
}

}  // namespace

void MultiplyFloat(const Tiles<float> &tiles, float *c)
{
    for (uint32_t column = 0; column < tiles.columns; column += kTile) {
        const float *panel = tiles.right.data() + uint64_t{column} * tiles.k;
        float *target = c + uint64_t{column} * tiles.rows;
        for (uint32_t row = 0; row < tiles.rows; row += 2) {
            TwoRows(tiles.left.data() + uint64_t{row} * tiles.k, tiles.k, panel, target + row * kTile,
                    target + (row + 1) * kTile);
        }
    }
}

void MultiplyInteger(const Tiles<int16_t> &tiles, int32_t *c)
{
    int32_t sums[2][kTile];
    for (uint32_t column = 0; column < tiles.columns; column += kTile) {
        const int16_t *panel = tiles.right.data() + uint64_t{column} * tiles.k;
        int32_t *target = c + uint64_t{column} * tiles.rows;
        for (uint32_t row = 0; row < tiles.rows; row += 2) {
            std::fill(&sums[0][0], &sums[0][0] + 2 * kTile, 0);
            TwoRows(tiles.left.data() + uint64_t{row} * tiles.k, tiles.k, panel, sums[0], sums[1]);
            for (uint32_t i = 0; i < 2 * kTile; ++i) {
                int32_t &cell = target[row * kTile + i];
                cell = Saturate(int64_t{cell} + (&sums[0][0])[i]);
            }
        }
    }
}

}  // namespace evokernel::twin
