// matmul_tiling: the host classes that cut a matrix product into cores and base blocks.
#pragma once
#include <cstdint>

#include "evokernel/twin/matmul/cube_tiling.h"
#include "evokernel/twin/matmul/formats.h"
#include "tiling/platform/platform_ascendc.h"

namespace matmul_tiling {

using ::CubeFormat;
using ::ScheduleType;
using AscendC::TPosition;

// Numbered like ge::DataType, which operator projects cast to it.
enum class DataType : int32_t {
    DT_FLOAT = 0, DT_FLOAT16 = 1, DT_INT8 = 2, DT_INT32 = 3, DT_UINT8 = 4, DT_INT16 = 6, DT_UINT16 = 7, DT_UINT32 = 8,
    DT_INT64 = 9, DT_UINT64 = 10, DT_DOUBLE = 11, DT_BOOL = 12, DT_BFLOAT16 = 27, DT_BF16 = 27, DT_INT4 = 29,
    DT_UINT1 = 30, DT_INT2 = 31, DT_HIFLOAT8 = 34, DT_FLOAT8_E5M2 = 35, DT_FLOAT8_E4M3FN = 36, DT_FLOAT8_E8M0 = 37,
    DT_FLOAT4_E2M1 = 40, DT_FLOAT4_E1M2 = 41, DT_UNDEFINED = 28, DT_MAX = 64,
};
enum class MatrixTraverse : int32_t { NOSET = 0, FIRSTM = 1, FIRSTN = 2 };
enum class MatrixMadType : int32_t { NORMAL = 0, HF32 = 1, MXMODE = 2 };
enum class DequantType { SCALAR = 0, TENSOR = 1 };

struct PlatformInfo {
    platform_ascendc::SocVersion socVersion;
    uint64_t l1Size = 0;
    uint64_t l0CSize = 0;
    uint64_t ubSize = 0;
    uint64_t l0ASize = 0;
    uint64_t l0BSize = 0;
};

struct SysTilingTempBufSize {
    int32_t ubSize = 0;
    int32_t l1Size = 0;
    int32_t l0cSize = 0;
};

struct MatmulConfigParams {
    int32_t mmConfigType;
    bool enableL1CacheUB;
    ScheduleType scheduleType;
    MatrixTraverse traverse;
    bool enVecND2NZ;
    MatmulConfigParams(int32_t type = 1, bool l1_cache_ub = false, ScheduleType schedule = ScheduleType::INNER_PRODUCT,
                       MatrixTraverse order = MatrixTraverse::NOSET, bool vector_nd2nz = false)
        : mmConfigType(type), enableL1CacheUB(l1_cache_ub), scheduleType(schedule), traverse(order),
          enVecND2NZ(vector_nd2nz)
    {
    }
};

struct TilingOperand {
    TPosition position = TPosition::GM;
    CubeFormat format = CubeFormat::ND;
    DataType type = DataType::DT_FLOAT16;
    bool transposed = false;
};

struct TilingExtent {
    int32_t m = -1, n = -1, k = -1;
};

struct TilingLayout {
    int32_t b = 0, s = 0, n = 0, g = 0, d = 0;
};

// All that was set; -1 leaves a figure to the search.
struct TilingRequest {
    TilingOperand a, b, c, bias;
    int32_t org_m = 0, org_n = 0, org_ka = 0, org_kb = 0;
    TilingExtent shape, single, fixed, align;
    TilingExtent single_max, single_min, base_max, base_min;
    TilingLayout layout_a, layout_b, layout_c;
    MatmulConfigParams config{0};
    MatrixTraverse traverse = MatrixTraverse::NOSET;
    uint64_t l0a = 0, l0b = 0, l0c = 0, l1 = 0, ub = 0, bt = 0;  // bytes
    int32_t cores = 1;
    int32_t batch = 0, batch_a = 0, batch_b = 0;
    bool multi_core = false, split_k = false, has_bias = false, sparse = false;
};

// Fills `tiling`; returns 0, or -1 with the reason on the error stream.
int64_t ComputeTiling(const TilingRequest &request, AscendC::tiling::TCubeTiling *tiling);

class MatmulApiTilingBase {
public:
    MatmulApiTilingBase();
    explicit MatmulApiTilingBase(const platform_ascendc::PlatformAscendC &platform);
    explicit MatmulApiTilingBase(const PlatformInfo &platform);
    virtual ~MatmulApiTilingBase() = default;

    int32_t SetAType(TPosition position, CubeFormat format, DataType type, bool transposed = false);
    int32_t SetBType(TPosition position, CubeFormat format, DataType type, bool transposed = false);
    int32_t SetCType(TPosition position, CubeFormat format, DataType type);
    int32_t SetBiasType(TPosition position, CubeFormat format, DataType type);
    int32_t SetDequantType(DequantType) { return 0; }

    int32_t SetShape(int32_t m, int32_t n, int32_t k);
    int32_t SetOrgShape(int32_t m, int32_t n, int32_t k) { return SetOrgShape(m, n, k, k); }
    int32_t SetOrgShape(int32_t m, int32_t n, int32_t ka, int32_t kb);
    int32_t SetALayout(int32_t b, int32_t s, int32_t n, int32_t g, int32_t d);
    int32_t SetBLayout(int32_t b, int32_t s, int32_t n, int32_t g, int32_t d);
    int32_t SetCLayout(int32_t b, int32_t s, int32_t n, int32_t g, int32_t d);
    int32_t SetBatchInfoForNormal(int32_t batch_a, int32_t batch_b, int32_t m, int32_t n, int32_t k);
    int32_t SetBatchNum(int32_t batch);

    int32_t EnableBias(bool has_bias = false);
    int32_t SetBias(bool has_bias = false) { return EnableBias(has_bias); }
    int32_t SetFixSplit(int32_t base_m = -1, int32_t base_n = -1, int32_t base_k = -1);
    int32_t SetSplitRange(int32_t max_m = -1, int32_t max_n = -1, int32_t max_k = -1, int32_t min_m = -1,
                          int32_t min_n = -1, int32_t min_k = -1);
    int32_t SetBufferSpace(int32_t l1 = -1, int32_t l0c = -1, int32_t ub = -1, int32_t bt = -1);
    int32_t SetTraverse(MatrixTraverse traverse);
    int32_t SetMadType(MatrixMadType type) { return type == MatrixMadType::MXMODE ? -1 : 0; }
    int32_t SetSparse(bool sparse = false);
    int32_t SetDoubleBuffer(bool, bool, bool, bool, bool = true, bool = true) { return 0; }  // reserved by the API
    void SetMatmulConfigParams(int32_t type = 1, bool l1_cache_ub = false,
                               ScheduleType schedule = ScheduleType::INNER_PRODUCT,
                               MatrixTraverse order = MatrixTraverse::NOSET, bool vector_nd2nz = false)
    {
        SetMatmulConfigParams(MatmulConfigParams(type, l1_cache_ub, schedule, order, vector_nd2nz));
    }
    void SetMatmulConfigParams(const MatmulConfigParams &params);
    bool EnableL1BankConflictOptimise() const { return false; }  // another chip

    int32_t GetBaseM() const { return result_.baseM; }
    int32_t GetBaseN() const { return result_.baseN; }
    int32_t GetBaseK() const { return result_.baseK; }

    int64_t GetTiling(optiling::TCubeTiling &tiling) { return GetTiling(tiling.Data()); }
    int64_t GetTiling(AscendC::tiling::TCubeTiling &tiling);

protected:
    TilingRequest request_;
    AscendC::tiling::TCubeTiling result_;
};

class MatmulApiTiling : public MatmulApiTilingBase {
public:
    using MatmulApiTilingBase::MatmulApiTilingBase;
    MatmulApiTiling() = default;
};

class MultiCoreMatmulTiling : public MatmulApiTilingBase {
public:
    MultiCoreMatmulTiling() { request_.multi_core = true; }
    explicit MultiCoreMatmulTiling(const platform_ascendc::PlatformAscendC &platform) : MatmulApiTilingBase(platform)
    {
        request_.multi_core = true;
    }
    explicit MultiCoreMatmulTiling(const PlatformInfo &platform) : MatmulApiTilingBase(platform)
    {
        request_.multi_core = true;
    }

    int32_t SetDim(int32_t cores);
    int32_t SetSingleRange(int32_t max_m = -1, int32_t max_n = -1, int32_t max_k = -1, int32_t min_m = -1,
                           int32_t min_n = -1, int32_t min_k = -1);
    int32_t SetSingleShape(int32_t m = -1, int32_t n = -1, int32_t k = -1);
    int32_t SetAlignSplit(int32_t m, int32_t n, int32_t k);
    int32_t GetSingleShape(int32_t &m, int32_t &n, int32_t &k);
    int32_t GetCoreNum(int32_t &cores, int32_t &m_cores, int32_t &n_cores);
    void EnableMultiCoreSplitK(bool flag) { request_.split_k = flag; }
    void SetSplitK(bool flag) { request_.split_k = flag; }
};

class BatchMatmulTiling : public MatmulApiTilingBase {
public:
    using MatmulApiTilingBase::MatmulApiTilingBase;
    BatchMatmulTiling() = default;

    int32_t SetSingleShape(int32_t m = -1, int32_t n = -1, int32_t k = -1);
    int32_t GetCoreNum(int32_t &cores, int32_t &m_cores, int32_t &n_cores, int32_t &batch_m, int32_t &batch_n);
};

}  // namespace matmul_tiling

// How much of the unified buffer, L1 and L0C a tiling takes.
int32_t MatmulGetTmpBufSize(optiling::TCubeTiling &tiling, matmul_tiling::SysTilingTempBufSize &size);
int32_t MatmulGetTmpBufSizeV2(AscendC::tiling::TCubeTiling &tiling, matmul_tiling::SysTilingTempBufSize &size);
inline int32_t MultiCoreMatmulGetTmpBufSize(optiling::TCubeTiling &tiling, matmul_tiling::SysTilingTempBufSize &size)
{
    return MatmulGetTmpBufSize(tiling, size);
}
inline int32_t MultiCoreMatmulGetTmpBufSizeV2(AscendC::tiling::TCubeTiling &tiling,
                                              matmul_tiling::SysTilingTempBufSize &size)
{
    return MatmulGetTmpBufSizeV2(tiling, size);
}
inline int32_t BatchMatmulGetTmpBufSize(optiling::TCubeTiling &tiling, matmul_tiling::SysTilingTempBufSize &size)
{
    return MatmulGetTmpBufSize(tiling, size);
}
inline int32_t BatchMatmulGetTmpBufSizeV2(AscendC::tiling::TCubeTiling &tiling,
                                          matmul_tiling::SysTilingTempBufSize &size)
{
    return MatmulGetTmpBufSizeV2(tiling, size);
}
