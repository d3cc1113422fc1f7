// MatmulType and its relatives: what a Matmul object's operands are.
#pragma once
#include <type_traits>

#include "evokernel/twin/matmul/config.h"
#include "evokernel/twin/tensor.h"

namespace AscendC {

constexpr int32_t DEFAULT_C0_SIZE = 32;  // bytes

template <typename T, typename U, std::enable_if_t<std::is_integral_v<T> && std::is_integral_v<U>, int> = 0>
constexpr auto Ceil(T value, U unit)
{
    return (value + unit - 1) / unit;
}

template <TPosition POSITION, CubeFormat FORMAT, typename TYPE, bool ISTRANS = false,
          LayoutMode LAYOUT = LayoutMode::NONE, bool IBSHARE = false, TPosition SRCPOS = TPosition::GM>
struct MatmulType {
    constexpr static TPosition pos = POSITION;
    constexpr static CubeFormat format = FORMAT;
    using T = TYPE;
    constexpr static bool isTrans = ISTRANS;
    constexpr static LayoutMode layout = LAYOUT;
    constexpr static bool ibShare = IBSHARE;
    constexpr static TPosition srcPos = SRCPOS;
    constexpr static bool sparse = false;
};

// A B matrix of which two of every four elements along K are kept, with an index that says which.
template <TPosition POSITION, TPosition INDEXPOS, CubeFormat FORMAT, typename TYPE, bool ISTRANS = false,
          LayoutMode LAYOUT = LayoutMode::NONE, bool IBSHARE = false>
struct SparseMatmulType : MatmulType<POSITION, FORMAT, TYPE, ISTRANS, LAYOUT, IBSHARE> {
    constexpr static TPosition indexPosition = INDEXPOS;
    constexpr static bool sparse = true;
};

// The type that the matrix unit accumulates in.
template <typename T> struct GetMmDstType {
    using Type = std::conditional_t<std::is_same_v<T, int8_t> || std::is_same_v<T, int4b_t>, int32_t, float>;
};

struct MatrixOffset {
    int32_t offset;
    int32_t row, col;
    int32_t height, width;
};

// How the result of one base block leaves L0C, for callbacks that do it themselves.
struct DataCopyOutParams {
    uint16_t cBurstNum = 0;
    uint16_t burstLen = 0;
    uint16_t srcStride = 0;
    uint32_t dstStride = 0;
    uint16_t oriNSize = 0;
    bool enUnitFlag = false;
    uint64_t quantScalar = 0;
    uint64_t cbufWorkspaceAddr = 0;
};

using CopyOutCallback = void (*)(const __gm__ void *gm, const LocalTensor<int8_t> &co1Local,
                                 const void *dataCopyOutParams, const uint64_t tilingPtr, const uint64_t dataPtr);
using CopyInCallback = void (*)(const LocalTensor<int8_t> &l1, const __gm__ void *gm, int row, int col, int useRows,
                                int useColumns, const uint64_t tilingPtr, const uint64_t dataPtr);

template <CopyOutCallback copyOut = nullptr, CopyInCallback copyA1 = nullptr, CopyInCallback copyB1 = nullptr>
struct MatmulCallBackFunc {
    constexpr static CopyOutCallback DataCopyOut = copyOut;
    constexpr static CopyInCallback CopyA1 = copyA1;
    constexpr static CopyInCallback CopyB1 = copyB1;
};

namespace Impl::Detail {

enum class PolicyKind : uint8_t { Default, UpperTriangle, LowerTriangle, NBuffer33, Unsupported };

template <const auto &MM_CFG, typename...> struct MatmulPolicy {
    constexpr static PolicyKind kind = PolicyKind::Default;
};
template <const auto &MM_CFG, typename...> struct TrianUpperMatmulPolicy {
    constexpr static PolicyKind kind = PolicyKind::UpperTriangle;
};
template <const auto &MM_CFG, typename...> struct TrianLowerMatmulPolicy {
    constexpr static PolicyKind kind = PolicyKind::LowerTriangle;
};
template <const auto &MM_CFG, typename...> struct NBuffer33MatmulPolicy {
    constexpr static PolicyKind kind = PolicyKind::NBuffer33;
};
template <const auto &MM_CFG, typename...> struct MatmulWithScalePolicy {
    constexpr static PolicyKind kind = PolicyKind::Unsupported;
};
template <const auto &MM_CFG, typename...> struct SplitMMatmulPolicy {
    constexpr static PolicyKind kind = PolicyKind::Unsupported;
};
template <const auto &MM_CFG, typename...> struct SplitNMatmulPolicy {
    constexpr static PolicyKind kind = PolicyKind::Unsupported;
};

}  // namespace Impl::Detail
}  // namespace AscendC
