// One product as the cube core sees it: a snapshot of everything that was set when it was asked for.
#pragma once
#include <algorithm>

#include "core.h"
#include "evokernel/twin/matmul/object.h"

namespace evokernel::twin::matmul {

constexpr int32_t kRows = 16;          // of a fractal, and of the accumulator's tiles
constexpr uint32_t kFractal = 512;     // bytes
constexpr uint32_t kRowBytes = 32;     // of a fractal's row

inline int32_t Ceil(int32_t value, int32_t unit) { return (value + unit - 1) / unit; }
inline int32_t Align(int32_t value, int32_t unit) { return Ceil(value, unit) * unit; }

inline int32_t BitsOfDType(DType dtype) { return dtype == DType::S4 ? 4 : static_cast<int32_t>(DTypeBytes(dtype)) * 8; }
inline int64_t BytesOf(int64_t elements, DType dtype) { return elements * BitsOfDType(dtype) / 8; }
inline int32_t C0OfDType(DType dtype) { return static_cast<int32_t>(kRowBytes) * 8 / BitsOfDType(dtype); }

struct Quant {
    enum class Kind : uint8_t { None, Scalar, Vector };
    Kind kind = Kind::None;
    uint64_t scalar = 0;
    GlobalRef global;
    LocalRef local;
    bool in_l1 = false;
};

struct Job {
    const Spec *spec = nullptr;
    TCubeTiling tiling;
    int32_t m = 0, n = 0, k = 0;                            // of one core
    int32_t org_m = 0, org_n = 0, org_ka = 0, org_kb = 0, org_kc = 0;
    int64_t lead_a = 0, lead_b = 0, lead_c = 0;             // elements of a stored row; 0: from the org shape
    Source a, b, bias;
    GlobalRef index;
    bool has_bias = false;
    Quant quant;
    uint64_t user_info = 0;
    uint64_t callback_data = 0;
    bool half_float = false;
    bool half_float_to_zero = false;
    uint64_t serial = 0;                                    // another one for other operands
    uint32_t l1_begin = 0, l1_end = 0;                      // what of L1 the job may use
    At at{"", 0};

    int32_t RowBlocks() const { return Ceil(m, tiling.baseM); }
    int32_t ColumnBlocks() const { return Ceil(n, tiling.baseN); }
    int32_t DepthBlocks() const { return Ceil(k, tiling.baseK); }
    bool Partial() const { return spec->config.isPartialOutput; }
    int32_t Tiles() const { return RowBlocks() * ColumnBlocks() * (Partial() ? DepthBlocks() : 1); }
    DType AccumulatorType() const
    {
        return spec->a.dtype == DType::S8 || spec->a.dtype == DType::S4 ? DType::S32 : DType::F32;
    }
};

// One base block of C.
struct Tile {
    int32_t row, column;      // in base blocks
    int32_t m0, n0, m, n;     // in elements
    int32_t depth_begin, depth_end;
    bool skipped;             // the triangle that is not computed
};

inline Tile TileAt(const Job &job, int32_t index)
{
    Tile tile{};
    const int32_t depth = job.Partial() ? job.DepthBlocks() : 1;
    const int32_t block = index / depth;
    if (job.tiling.iterateOrder == 1) {
        tile.row = block / job.ColumnBlocks();
        tile.column = block % job.ColumnBlocks();
    } else {
        tile.row = block % job.RowBlocks();
        tile.column = block / job.RowBlocks();
    }
    tile.m0 = tile.row * job.tiling.baseM;
    tile.n0 = tile.column * job.tiling.baseN;
    tile.m = std::min(job.tiling.baseM, job.m - tile.m0);
    tile.n = std::min(job.tiling.baseN, job.n - tile.n0);
    tile.depth_begin = job.Partial() ? index % depth : 0;
    tile.depth_end = job.Partial() ? tile.depth_begin + 1 : job.DepthBlocks();
    using AscendC::Impl::Detail::PolicyKind;
    tile.skipped = (job.spec->policy == PolicyKind::UpperTriangle && tile.row > tile.column) ||
                   (job.spec->policy == PolicyKind::LowerTriangle && tile.row < tile.column);
    return tile;
}

// False, with a hazard, where the tiling cannot work.
bool CheckTiling(const Spec &spec, const TCubeTiling &tiling, At at);
bool CheckJob(const Job &job);

}  // namespace evokernel::twin::matmul
