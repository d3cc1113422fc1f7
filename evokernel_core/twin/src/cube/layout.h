// Where an element of a matrix lies in the fractal layouts of the matrix unit.
#pragma once
#include <cstdint>
#include <cstring>

#include "cube/state.h"
#include "evokernel/twin/refs.h"

namespace evokernel::twin {

constexpr uint32_t CeilDiv(uint32_t value, uint32_t unit) { return (value + unit - 1) / unit; }

// Bits of one element: the one type narrower than a byte is why these are not bytes.
constexpr uint32_t BitsOf(DType dtype)
{
    switch (dtype) {
        case DType::S4:
            return 4;
        case DType::S8:
        case DType::U8:
            return 8;
        case DType::S16:
        case DType::U16:
        case DType::F16:
        case DType::BF16:
            return 16;
        case DType::S32:
        case DType::U32:
        case DType::F32:
            return 32;
        default:
            return 64;
    }
}

// Elements of one 32-byte row of a fractal.
constexpr uint32_t C0Of(DType dtype) { return kC0Bytes * 8 / BitsOf(dtype); }

// Fractals that a transposing load joins to a square block.
constexpr uint32_t SquareFractals(DType dtype)
{
    const uint32_t bits = BitsOf(dtype);
    return bits == 4 ? 4 : bits == 16 ? 1 : 2;
}

// Transposes one square block. `from` is dense; fractal f of the result goes to `to + f * step`.
template <typename T> void TransposeSquare(const uint8_t *from, uint8_t *to, uint64_t step)
{
    constexpr uint32_t row = kC0Bytes / sizeof(T);   // elements of a fractal's row
    constexpr uint32_t side = sizeof(T) == 1 ? 32 : 16;
    for (uint32_t r = 0; r < side; ++r) {
        for (uint32_t c = 0; c < side; ++c) {
            // Narrow types stack their fractals, wide ones put them side by side.
            const uint32_t source = row >= side ? r * row + c : (c / row) * 16 * row + r * row + c % row;
            const uint32_t fractal = row >= side ? c / 16 : r / row;
            const uint32_t inside = row >= side ? (c % 16) * row + r : c * row + r % row;
            std::memcpy(to + fractal * step + inside * sizeof(T), from + source * sizeof(T), sizeof(T));
        }
    }
}

inline uint8_t Nibble(const uint8_t *row, uint32_t i) { return static_cast<uint8_t>((row[i / 2] >> (i % 2 * 4)) & 15); }

// 64 x 64 four-bit elements, the low half of a byte first.
inline void TransposeNibbles(const uint8_t *from, uint8_t *to, uint64_t step)
{
    for (uint32_t c = 0; c < 64; ++c) {
        uint8_t *row = to + (c / 16) * step + (c % 16) * kC0Bytes;
        for (uint32_t r = 0; r < 64; r += 2) {
            const uint8_t low = Nibble(from + r * kC0Bytes, c);
            const uint8_t high = Nibble(from + (r + 1) * kC0Bytes, c);
            row[r / 2] = static_cast<uint8_t>(low | (high << 4));
        }
    }
}

// The same for the shadow, one byte for two elements: undefined where either source was.
inline void TransposeNibbleShadow(const uint8_t *from, uint8_t *to, uint64_t step)
{
    for (uint32_t c = 0; c < 64; ++c) {
        uint8_t *row = to + (c / 16) * step + (c % 16) * kC0Bytes;
        for (uint32_t r = 0; r < 64; r += 2) {
            row[r / 2] = from[r * kC0Bytes + c / 2] | from[(r + 1) * kC0Bytes + c / 2];
        }
    }
}

}  // namespace evokernel::twin
