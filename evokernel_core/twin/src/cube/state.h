// Registers of the matrix side of a core.
#pragma once
#include <cstdint>
#include <vector>

#include "evokernel/twin/at.h"

namespace evokernel::twin {

constexpr uint32_t kFractalBytes = 512;
constexpr uint32_t kC0Bytes = 32;
constexpr uint32_t kL0cRowBytes = 16 * 4;             // one row of a fractal of L0C
constexpr uint32_t kUnitBytes = 512;                  // of L0C under one unit flag

struct CubeState {
    // Image to column.
    uint16_t height = 0;
    uint16_t width = 0;
    uint8_t pad[4] = {};
    uint64_t padding = 0;
    uint32_t boundary = 0;
    uint16_t repeat_stride = 0;
    uint8_t repeat_time = 1;
    uint8_t repeat_mode = 0;

    // Matrix unit.
    bool half_float = false;
    bool half_float_to_zero = false;
    bool row_major = false;

    // Fixpipe.
    uint64_t scalar = 0;
    uint32_t vector_address = 0;
    bool vector_set = false;
    uint32_t matrices = 0;  // 0: SetFixpipeNz2ndFlag was not called
    uint64_t src_matrix = 0;
    uint64_t dst_matrix = 0;

    std::vector<uint8_t> unit;  // as many as L0C has; 1: holds a result that Fixpipe has not taken out yet
    At unit_at{"", 0};

    uint8_t index[16 * 1024] = {};  // what LoadDataWithSparse keeps for MmadWithSparse: a quarter of L0B
};

// The unit flags of the core that runs.
std::vector<uint8_t> &UnitFlags();

}  // namespace evokernel::twin
