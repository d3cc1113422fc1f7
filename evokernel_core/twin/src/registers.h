// Registers of a core that some instructions read: control, padding value, dequantization, merge counts.
#pragma once
#include <cstdint>

#include "evokernel/twin/refs.h"

namespace evokernel::twin {

constexpr int kSaturationBit = 48;  // of the control register; 0: half and bfloat16_t results saturate
constexpr int kDequantLanes = 16;   // of a data block of int16_t

struct DequantLane {
    float scale = 1.0F;
    int32_t offset = 0;
    bool is_signed = true;
};

struct Registers {
    uint64_t control = uint64_t{1} << kSaturationBit;
    bool cast_wraps = false;  // Cast keeps the low bits where a value does not fit
    uint64_t pad_pattern = 0;
    bool has_pad_pattern = false;
    DequantLane dequant;
    LocalRef dequant_table;
    bool has_table = false;
    uint32_t merges = 0;  // that ended with a run, where time is all that counts
    uint16_t merged[4] = {};

    bool Saturates() const { return (control >> kSaturationBit & 1) == 0; }
};

// Results of 16-bit floating types under saturation: infinity becomes the largest value, NaN zero.
void SaturateFloats(DType type, uint16_t *values, uint64_t n);

}  // namespace evokernel::twin
