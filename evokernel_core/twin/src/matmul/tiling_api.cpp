// Setters and getters of the host tiling classes; the search itself is in tiling.cpp.
#include <algorithm>

#include "evokernel/twin/matmul/host_tiling.h"

namespace matmul_tiling {

namespace {

constexpr int32_t kOk = 0;
constexpr int32_t kFailed = -1;

// The 2201's buffers, for programs that name no platform; architecture page 2201.
void DefaultBuffers(TilingRequest *request)
{
    request->l0a = 64 * 1024;
    request->l0b = 64 * 1024;
    request->l0c = 128 * 1024;
    request->l1 = 512 * 1024;
    request->ub = 184 * 1024;  // 192 KB less the 8 KB that some APIs reserve
    request->bt = 1024;
}

int32_t SetOperand(TilingOperand *operand, TPosition position, CubeFormat format, DataType type, bool transposed)
{
    *operand = TilingOperand{position, format, type, transposed};
    return kOk;
}

int32_t SetLayout(TilingLayout *layout, int32_t b, int32_t s, int32_t n, int32_t g, int32_t d)
{
    if (std::min({b, s, n, g, d}) <= 0) {
        return kFailed;
    }
    *layout = TilingLayout{b, s, n, g, d};
    return kOk;
}

int32_t SetBytes(uint64_t *bytes, int32_t value)
{
    if (value < -1) {
        return kFailed;
    }
    if (value >= 0) {
        *bytes = std::min<uint64_t>(*bytes, static_cast<uint64_t>(value));
    }
    return kOk;
}

}  // namespace

MatmulApiTilingBase::MatmulApiTilingBase() { DefaultBuffers(&request_); }

MatmulApiTilingBase::MatmulApiTilingBase(const platform_ascendc::PlatformAscendC &platform)
{
    DefaultBuffers(&request_);
    uint64_t ub = 0;
    platform.GetCoreMemSize(platform_ascendc::CoreMemType::UB, ub);
    request_.ub = std::min(request_.ub, ub);
    request_.cores = static_cast<int32_t>(platform.GetCoreNumAic());
}

MatmulApiTilingBase::MatmulApiTilingBase(const PlatformInfo &platform)
{
    DefaultBuffers(&request_);
    request_.l1 = platform.l1Size != 0 ? platform.l1Size : request_.l1;
    request_.l0c = platform.l0CSize != 0 ? platform.l0CSize : request_.l0c;
    request_.l0a = platform.l0ASize != 0 ? platform.l0ASize : request_.l0a;
    request_.l0b = platform.l0BSize != 0 ? platform.l0BSize : request_.l0b;
    request_.ub = platform.ubSize != 0 ? std::min(platform.ubSize, request_.ub) : request_.ub;
}

int32_t MatmulApiTilingBase::SetAType(TPosition position, CubeFormat format, DataType type, bool transposed)
{
    return SetOperand(&request_.a, position, format, type, transposed);
}

int32_t MatmulApiTilingBase::SetBType(TPosition position, CubeFormat format, DataType type, bool transposed)
{
    return SetOperand(&request_.b, position, format, type, transposed);
}

int32_t MatmulApiTilingBase::SetCType(TPosition position, CubeFormat format, DataType type)
{
    return SetOperand(&request_.c, position, format, type, false);
}

int32_t MatmulApiTilingBase::SetBiasType(TPosition position, CubeFormat format, DataType type)
{
    return SetOperand(&request_.bias, position, format, type, false);
}

int32_t MatmulApiTilingBase::SetShape(int32_t m, int32_t n, int32_t k)
{
    request_.shape = TilingExtent{m, n, k};
    return kOk;
}

int32_t MatmulApiTilingBase::SetOrgShape(int32_t m, int32_t n, int32_t ka, int32_t kb)
{
    if (std::min({m, n, ka, kb}) <= 0) {
        return kFailed;
    }
    request_.org_m = m;
    request_.org_n = n;
    request_.org_ka = ka;
    request_.org_kb = kb;
    return kOk;
}

int32_t MatmulApiTilingBase::SetALayout(int32_t b, int32_t s, int32_t n, int32_t g, int32_t d)
{
    return SetLayout(&request_.layout_a, b, s, n, g, d);
}

int32_t MatmulApiTilingBase::SetBLayout(int32_t b, int32_t s, int32_t n, int32_t g, int32_t d)
{
    return SetLayout(&request_.layout_b, b, s, n, g, d);
}

int32_t MatmulApiTilingBase::SetCLayout(int32_t b, int32_t s, int32_t n, int32_t g, int32_t d)
{
    return SetLayout(&request_.layout_c, b, s, n, g, d);
}

int32_t MatmulApiTilingBase::SetBatchInfoForNormal(int32_t batch_a, int32_t batch_b, int32_t m, int32_t n, int32_t k)
{
    if (std::min({batch_a, batch_b, m, n, k}) <= 0) {
        return kFailed;
    }
    request_.batch_a = batch_a;
    request_.batch_b = batch_b;
    request_.layout_a = TilingLayout{batch_a, m, 1, 1, k};
    request_.layout_b = TilingLayout{batch_b, n, 1, 1, k};
    request_.layout_c = TilingLayout{std::max(batch_a, batch_b), m, 1, 1, n};
    return kOk;
}

int32_t MatmulApiTilingBase::SetBatchNum(int32_t batch)
{
    request_.batch = batch;
    return batch > 0 ? kOk : kFailed;
}

int32_t MatmulApiTilingBase::EnableBias(bool has_bias)
{
    request_.has_bias = has_bias;
    return kOk;
}

int32_t MatmulApiTilingBase::SetFixSplit(int32_t base_m, int32_t base_n, int32_t base_k)
{
    request_.fixed = TilingExtent{base_m, base_n, base_k};
    return kOk;
}

int32_t MatmulApiTilingBase::SetSplitRange(int32_t max_m, int32_t max_n, int32_t max_k, int32_t min_m, int32_t min_n,
                                           int32_t min_k)
{
    request_.base_max = TilingExtent{max_m, max_n, max_k};
    request_.base_min = TilingExtent{min_m, min_n, min_k};
    return kOk;
}

int32_t MatmulApiTilingBase::SetBufferSpace(int32_t l1, int32_t l0c, int32_t ub, int32_t bt)
{
    const int32_t failed = SetBytes(&request_.l1, l1) | SetBytes(&request_.l0c, l0c) | SetBytes(&request_.ub, ub) |
                           SetBytes(&request_.bt, bt);
    return failed != 0 ? kFailed : kOk;
}

int32_t MatmulApiTilingBase::SetTraverse(MatrixTraverse traverse)
{
    request_.traverse = traverse;
    return kOk;
}

int32_t MatmulApiTilingBase::SetSparse(bool sparse)
{
    request_.sparse = sparse;
    return kOk;
}

void MatmulApiTilingBase::SetMatmulConfigParams(const MatmulConfigParams &params)
{
    request_.config = params;
    if (params.traverse != MatrixTraverse::NOSET) {
        request_.traverse = params.traverse;
    }
}

int64_t MatmulApiTilingBase::GetTiling(AscendC::tiling::TCubeTiling &tiling)
{
    if (ComputeTiling(request_, &result_) != 0) {
        return kFailed;
    }
    tiling = result_;
    return kOk;
}

int32_t MultiCoreMatmulTiling::SetDim(int32_t cores)
{
    request_.cores = cores;
    return cores > 0 ? kOk : kFailed;
}

int32_t MultiCoreMatmulTiling::SetSingleRange(int32_t max_m, int32_t max_n, int32_t max_k, int32_t min_m,
                                              int32_t min_n, int32_t min_k)
{
    request_.single_max = TilingExtent{max_m, max_n, max_k};
    request_.single_min = TilingExtent{min_m, min_n, min_k};
    return kOk;
}

int32_t MultiCoreMatmulTiling::SetSingleShape(int32_t m, int32_t n, int32_t k)
{
    request_.single = TilingExtent{m, n, k};
    return kOk;
}

int32_t MultiCoreMatmulTiling::SetAlignSplit(int32_t m, int32_t n, int32_t k)
{
    request_.align = TilingExtent{m, n, k};
    return kOk;
}

int32_t MultiCoreMatmulTiling::GetSingleShape(int32_t &m, int32_t &n, int32_t &k)
{
    m = result_.singleCoreM;
    n = result_.singleCoreN;
    k = result_.singleCoreK;
    return result_.usedCoreNum > 0 ? kOk : kFailed;
}

int32_t MultiCoreMatmulTiling::GetCoreNum(int32_t &cores, int32_t &m_cores, int32_t &n_cores)
{
    if (result_.usedCoreNum == 0) {
        return kFailed;
    }
    m_cores = (result_.M + result_.singleCoreM - 1) / result_.singleCoreM;
    n_cores = (result_.N + result_.singleCoreN - 1) / result_.singleCoreN;
    cores = result_.usedCoreNum;
    return kOk;
}

int32_t BatchMatmulTiling::SetSingleShape(int32_t m, int32_t n, int32_t k)
{
    request_.single = TilingExtent{m, n, k};
    return kOk;
}

int32_t BatchMatmulTiling::GetCoreNum(int32_t &cores, int32_t &m_cores, int32_t &n_cores, int32_t &batch_m,
                                      int32_t &batch_n)
{
    if (result_.usedCoreNum == 0) {
        return kFailed;
    }
    cores = result_.usedCoreNum;
    m_cores = 1;
    n_cores = 1;
    batch_m = result_.usedCoreNum;
    batch_n = 1;
    return kOk;
}

}  // namespace matmul_tiling

int32_t MatmulGetTmpBufSizeV2(AscendC::tiling::TCubeTiling &tiling, matmul_tiling::SysTilingTempBufSize &size)
{
    size.ubSize = tiling.shareUbSize;
    size.l1Size = tiling.shareL1Size;
    size.l0cSize = tiling.shareL0CSize;
    return 0;
}

int32_t MatmulGetTmpBufSize(optiling::TCubeTiling &tiling, matmul_tiling::SysTilingTempBufSize &size)
{
    return MatmulGetTmpBufSizeV2(tiling.Data(), size);
}
