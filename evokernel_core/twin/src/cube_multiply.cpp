#include "cube_multiply.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace evokernel::twin {

namespace {

// Four floats in a register on every machine that compiles this.
using Four = float __attribute__((vector_size(16)));
constexpr uint32_t kFours = kTile / 4;

Four LoadFour(const float *from)
{
    Four four;
    std::memcpy(&four, from, sizeof(four));
    return four;
}

// Two rows of C, 16 columns wide, over k from `begin` to `end`: the sums stay in registers.
void TwoRows(const float *first, const float *second, const float *panel, uint32_t begin, uint32_t end, float *c)
{
    Four a[kFours];
    Four b[kFours];
    std::memcpy(a, c, sizeof(a));
    std::memcpy(b, c + kTile, sizeof(b));
    for (uint32_t i = begin; i < end; ++i) {
        const Four x{first[i], first[i], first[i], first[i]};
        const Four y{second[i], second[i], second[i], second[i]};
        for (uint32_t j = 0; j < kFours; ++j) {
            const Four column = LoadFour(panel + i * kTile + j * 4);
            a[j] += x * column;
            b[j] += y * column;
        }
    }
    std::memcpy(c, a, sizeof(a));
    std::memcpy(c + kTile, b, sizeof(b));
}

// Calls `run(left row, panel, target)` for each pair of rows in each panel.
template <typename Run> void ForEachPair(const Tiles &tiles, Run run)
{
    for (uint32_t column = 0; column < tiles.columns; column += kTile) {
        const float *panel = tiles.right.data() + uint64_t{column} * tiles.k;
        for (uint32_t row = 0; row < tiles.rows; row += 2) {
            run(tiles.left.data() + uint64_t{row} * tiles.k, panel, uint64_t{column} * tiles.rows + row * kTile);
        }
    }
}

int32_t Saturate(int64_t value)
{
    return static_cast<int32_t>(std::clamp<int64_t>(value, std::numeric_limits<int32_t>::min(),
                                                    std::numeric_limits<int32_t>::max()));
}

}  // namespace

void MultiplyFloat(const Tiles &tiles, float *c)
{
    ForEachPair(tiles, [&](const float *left, const float *panel, uint64_t target) {
        TwoRows(left, left + tiles.k, panel, 0, tiles.k, c + target);
    });
}

void MultiplyInteger(const Tiles &tiles, int32_t *c)
{
    constexpr uint32_t exact = 1023;  // sums of so many products of two 8-bit integers are exact in float32
    float sums[2 * kTile];
    ForEachPair(tiles, [&](const float *left, const float *panel, uint64_t target) {
        int64_t totals[2 * kTile] = {};
        for (uint32_t begin = 0; begin < tiles.k; begin += exact) {
            std::fill(std::begin(sums), std::end(sums), 0.0F);
            TwoRows(left, left + tiles.k, panel, begin, std::min(tiles.k, begin + exact), sums);
            for (uint32_t i = 0; i < 2 * kTile; ++i) {
                totals[i] += static_cast<int64_t>(sums[i]);
            }
        }
        for (uint32_t i = 0; i < 2 * kTile; ++i) {
            c[target + i] = Saturate(int64_t{c[target + i]} + totals[i]);
        }
    });
}

}  // namespace evokernel::twin
