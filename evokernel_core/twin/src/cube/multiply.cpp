#include "cube/multiply.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace evokernel::twin {

namespace {

using Four = float __attribute__((vector_size(16)));

// `Rows` rows of C, 16 columns wide, over k from `begin` to `end`: the sums stay in registers. Every sum
// takes its terms in the order of k, so that all widths give the same bits.
template <typename Wide, uint32_t Rows>
inline __attribute__((always_inline)) void SumRows(const float *left, uint64_t pitch, const float *panel, uint32_t begin,
                                                   uint32_t end, float *c)
{
    constexpr uint32_t width = sizeof(Wide) / sizeof(float);
    constexpr uint32_t count = kTile / width;
    Wide sums[Rows][count];
    std::memcpy(sums, c, sizeof(sums));
    for (uint32_t i = begin; i < end; ++i) {
        Wide columns[count];
        std::memcpy(columns, panel + uint64_t{i} * kTile, sizeof(columns));
        for (uint32_t row = 0; row < Rows; ++row) {
            const Wide factor = Wide{} + left[row * pitch + i];
            for (uint32_t j = 0; j < count; ++j) {
                sums[row][j] += factor * columns[j];
            }
        }
    }
    std::memcpy(c, sums, sizeof(sums));
}

constexpr uint32_t kRows = 4;  // a fractal has a multiple of them

void FourRows(const float *left, uint64_t pitch, const float *panel, uint32_t begin, uint32_t end, float *c)
{
    SumRows<Four, 2>(left, pitch, panel, begin, end, c);
    SumRows<Four, 2>(left + 2 * pitch, pitch, panel, begin, end, c + 2 * kTile);
}

using Multiplier = void (*)(const float *, uint64_t, const float *, uint32_t, uint32_t, float *);

#if defined(__x86_64__)
using Eight = float __attribute__((vector_size(32)));

__attribute__((target("avx2"))) void FourRowsAvx2(const float *left, uint64_t pitch, const float *panel, uint32_t begin,
                                                  uint32_t end, float *c)
{
    SumRows<Eight, kRows>(left, pitch, panel, begin, end, c);
}

using Sixteen = float __attribute__((vector_size(64)));

__attribute__((target("avx512f"))) void FourRowsAvx512(const float *left, uint64_t pitch, const float *panel,
                                                       uint32_t begin, uint32_t end, float *c)
{
    SumRows<Sixteen, kRows>(left, pitch, panel, begin, end, c);
}

Multiplier Best()
{
    if (__builtin_cpu_supports("avx512f")) {
        return FourRowsAvx512;
    }
    return __builtin_cpu_supports("avx2") ? FourRowsAvx2 : FourRows;
}
#else
Multiplier Best() { return FourRows; }
#endif

bool AllIdle(const std::vector<uint8_t> &idle, uint32_t first, uint32_t count)
{
    return !idle.empty() && std::all_of(idle.begin() + first, idle.begin() + first + count, [](uint8_t one) { return one != 0; });
}

// Calls `run(left rows, panel, target)` for each group of rows in each panel.
template <typename Run> void ForEachGroup(const Tiles &tiles, Run run)
{
    for (uint32_t column = 0; column < tiles.columns; column += kTile) {
        if (AllIdle(tiles.idle_columns, column, kTile)) {
            continue;
        }
        const float *panel = tiles.right.data() + uint64_t{column} * tiles.k;
        for (uint32_t row = 0; row < tiles.rows; row += kRows) {
            if (AllIdle(tiles.idle_rows, row, kRows)) {
                continue;
            }
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
    static const Multiplier multiply = Best();
    ForEachGroup(tiles, [&](const float *left, const float *panel, uint64_t target) {
        multiply(left, tiles.k, panel, 0, tiles.k, c + target);
    });
}

void MultiplyInteger(const Tiles &tiles, int32_t *c)
{
    constexpr uint32_t exact = 1023;  // sums of so many products of two 8-bit integers are exact in float32
    static const Multiplier multiply = Best();
    float sums[kRows * kTile];
    ForEachGroup(tiles, [&](const float *left, const float *panel, uint64_t target) {
        int64_t totals[kRows * kTile] = {};
        for (uint32_t begin = 0; begin < tiles.k; begin += exact) {
            std::fill(std::begin(sums), std::end(sums), 0.0F);
            multiply(left, tiles.k, panel, begin, std::min(tiles.k, begin + exact), sums);
            for (uint32_t i = 0; i < kRows * kTile; ++i) {
                totals[i] += static_cast<int64_t>(sums[i]);
            }
        }
        for (uint32_t i = 0; i < kRows * kTile; ++i) {
            c[target + i] = Saturate(int64_t{c[target + i]} + totals[i]);
        }
    });
}

}  // namespace evokernel::twin
