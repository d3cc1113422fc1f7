// Enumerations and parameter structures of the API.
#pragma once
#include <cstdint>

#include "evokernel/twin/half.h"

namespace AscendC {

using ::bfloat16_t;
using ::half;
using ::int4b_t;

using TEventID = int8_t;

enum class TPosition : uint8_t {
    GM, A1, A2, B1, B2, C1, C2, CO1, CO2, VECIN, VECOUT, VECCALC, LCM = VECCALC, SPM, SHM, TSCM, C2PIPE2GM,
    C2PIPE2LOCAL, MAX,
};
using QuePosition = TPosition;

enum class Hardware : uint8_t { GM, UB, L1, L0A, L0B, L0C, BIAS, FIXBUF, MAX };

enum class RoundMode : uint8_t {
    CAST_NONE = 0, CAST_RINT, CAST_FLOOR, CAST_CEIL, CAST_ROUND, CAST_TRUNC, CAST_ODD,
};

enum class CMPMODE : uint8_t { LT = 0, GT, EQ, LE, GE, NE };
enum class SELMODE : uint8_t { VSEL_CMPMASK_SPR = 0, VSEL_TENSOR_SCALAR_MODE, VSEL_TENSOR_TENSOR_MODE };
enum class MaskMode : uint8_t { NORMAL = 0, COUNTER };
enum class ReduceType : uint8_t { SUM = 0, MAX, MIN };
enum class ReduceOrder : uint8_t {
    ORDER_VALUE_INDEX = 0, ORDER_INDEX_VALUE, ORDER_ONLY_VALUE, ORDER_ONLY_INDEX,
};
enum class CacheMode : uint8_t { CACHE_MODE_DISABLE = 0, CACHE_MODE_NORMAL, CACHE_MODE_LAST, CACHE_MODE_PERSISTENT };
enum class CacheRwMode : uint8_t { READ = 1, WRITE = 2, RW = 3 };
enum class CacheLine : uint8_t { SINGLE_CACHE_LINE = 0, ENTIRE_DATA_CACHE };
enum class DcciDst : uint8_t { CACHELINE_ALL = 0, CACHELINE_UB, CACHELINE_OUT, CACHELINE_ATOMIC };
enum class MemDsbT : uint8_t { ALL = 0, DDR, UB, SEQ };

enum class HardEvent : uint8_t {
    MTE2_MTE1, MTE1_MTE2, MTE1_M, M_MTE1, MTE2_V, V_MTE2, MTE3_V, V_MTE3, M_V, V_M, V_V, MTE3_MTE1, MTE1_MTE3,
    MTE1_V, MTE2_M, M_MTE2, V_MTE1, M_FIX, FIX_M, MTE3_MTE2, MTE2_MTE3, S_V, V_S, S_MTE2, MTE2_S, S_MTE3, MTE3_S,
    MTE2_FIX, FIX_MTE2, FIX_S, M_S, FIX_MTE3, MTE1_FIX, FIX_MTE1, FIX_FIX, FIX_V, V_FIX, MAX,
};

constexpr int32_t DEFAULT_BLK_NUM = 8;
constexpr int32_t DEFAULT_BLK_STRIDE = 1;
constexpr uint8_t DEFAULT_REPEAT_STRIDE = 8;
constexpr int32_t DEFAULT_BLOCK_SIZE = 256;
constexpr int32_t ONE_BLK_SIZE = 32;
constexpr int32_t ONE_BLK_FLOAT_NUM = ONE_BLK_SIZE / 4;
constexpr int32_t ONE_BLK_HALF_NUM = ONE_BLK_SIZE / 2;
constexpr int32_t ONE_REPEAT_BYTE_SIZE = 256;
constexpr int32_t ONE_REPEAT_FLOAT_SIZE = ONE_REPEAT_BYTE_SIZE / 4;
constexpr int32_t ONE_REPEAT_HALF_SIZE = ONE_REPEAT_BYTE_SIZE / 2;
constexpr int32_t B16_BYTE_SIZE = 2;
constexpr int32_t B32_BYTE_SIZE = 4;
constexpr int32_t B16_DATA_NUM_PER_BLOCK = ONE_BLK_SIZE / B16_BYTE_SIZE;
constexpr int32_t B32_DATA_NUM_PER_BLOCK = ONE_BLK_SIZE / B32_BYTE_SIZE;
constexpr int32_t B16_DATA_NUM_PER_REPEAT = ONE_REPEAT_BYTE_SIZE / B16_BYTE_SIZE;
constexpr int32_t B32_DATA_NUM_PER_REPEAT = ONE_REPEAT_BYTE_SIZE / B32_BYTE_SIZE;
constexpr float PI = 3.14159265358979323846F;
constexpr int32_t MAX_REPEAT_TIMES = 255;
constexpr int32_t BLOCK_CUBE = 16;
constexpr int32_t BRCB_BROADCAST_NUMBER = 8;
constexpr int32_t TOTAL_UB_SIZE = 192 * 1024;
constexpr int32_t TOTAL_L1_SIZE = 512 * 1024;
constexpr uint64_t MASK_PLACEHOLDER = 0;
constexpr uint64_t FULL_MASK = 0xFFFFFFFFFFFFFFFFULL;
inline uint64_t MASK_PLACEHOLDER_LIST[2] = {0, 0};

struct UnaryRepeatParams {
    uint16_t dstBlkStride = 1;
    uint16_t srcBlkStride = 1;
    uint8_t dstRepStride = 8;
    uint8_t srcRepStride = 8;
    bool halfBlock = false;

    UnaryRepeatParams() = default;
    UnaryRepeatParams(uint16_t dst_block, uint16_t src_block, uint8_t dst_repeat, uint8_t src_repeat)
        : dstBlkStride(dst_block), srcBlkStride(src_block), dstRepStride(dst_repeat), srcRepStride(src_repeat)
    {
    }
    UnaryRepeatParams(uint16_t dst_block, uint16_t src_block, uint8_t dst_repeat, uint8_t src_repeat, bool half_block)
        : dstBlkStride(dst_block), srcBlkStride(src_block), dstRepStride(dst_repeat), srcRepStride(src_repeat),
          halfBlock(half_block)
    {
    }
};

struct BinaryRepeatParams {
    uint8_t dstBlkStride = 1;
    uint8_t src0BlkStride = 1;
    uint8_t src1BlkStride = 1;
    uint8_t dstRepStride = 8;
    uint8_t src0RepStride = 8;
    uint8_t src1RepStride = 8;

    BinaryRepeatParams() = default;
    BinaryRepeatParams(uint8_t dst_block, uint8_t src0_block, uint8_t src1_block, uint8_t dst_repeat,
                       uint8_t src0_repeat, uint8_t src1_repeat)
        : dstBlkStride(dst_block), src0BlkStride(src0_block), src1BlkStride(src1_block), dstRepStride(dst_repeat),
          src0RepStride(src0_repeat), src1RepStride(src1_repeat)
    {
    }
};

struct CopyRepeatParams {
    uint16_t dstStride = 1;
    uint16_t srcStride = 1;
    uint16_t dstRepeatSize = 8;
    uint16_t srcRepeatSize = 8;

    CopyRepeatParams() = default;
    CopyRepeatParams(uint16_t dst_stride, uint16_t src_stride, uint16_t dst_repeat, uint16_t src_repeat)
        : dstStride(dst_stride), srcStride(src_stride), dstRepeatSize(dst_repeat), srcRepeatSize(src_repeat)
    {
    }
};

struct BrcbRepeatParams {
    uint16_t dstBlkStride = 1;
    uint16_t dstRepStride = 8;

    BrcbRepeatParams() = default;
    BrcbRepeatParams(uint16_t dst_block, uint16_t dst_repeat) : dstBlkStride(dst_block), dstRepStride(dst_repeat) {}
};

struct GatherMaskParams {
    uint8_t src0BlockStride = 1;
    uint16_t repeatTimes = 1;
    uint16_t src0RepeatStride = 8;
    uint8_t src1RepeatStride = 8;

    GatherMaskParams() = default;
    GatherMaskParams(uint8_t block, uint16_t repeats, uint16_t repeat_stride, uint8_t pattern_stride)
        : src0BlockStride(block), repeatTimes(repeats), src0RepeatStride(repeat_stride),
          src1RepeatStride(pattern_stride)
    {
    }
};

struct DataCopyParams {
    uint16_t blockCount = 1;
    uint16_t blockLen = 0;
    union {
        uint16_t srcGap = 0;
        uint16_t srcStride;
    };
    union {
        uint16_t dstGap = 0;
        uint16_t dstStride;
    };

    DataCopyParams() = default;
    DataCopyParams(uint16_t count, uint16_t length, uint16_t src_gap, uint16_t dst_gap)
        : blockCount(count), blockLen(length), srcGap(src_gap), dstGap(dst_gap)
    {
    }
};

struct DataCopyExtParams {
    uint16_t blockCount = 1;
    uint32_t blockLen = 0;
    uint32_t srcStride = 0;
    uint32_t dstStride = 0;
    uint32_t rsv = 0;

    DataCopyExtParams() = default;
    DataCopyExtParams(uint16_t count, uint32_t length, uint32_t src_stride, uint32_t dst_stride, uint32_t reserved)
        : blockCount(count), blockLen(length), srcStride(src_stride), dstStride(dst_stride), rsv(reserved)
    {
    }
};

struct DataCopyPadParams {
    bool isPad = false;
    uint8_t leftPadding = 0;
    uint8_t rightPadding = 0;
    uint64_t paddingValue = 0;

    DataCopyPadParams() = default;
    DataCopyPadParams(bool is_pad, uint8_t left, uint8_t right, uint64_t value)
        : isPad(is_pad), leftPadding(left), rightPadding(right), paddingValue(value)
    {
    }
};

template <typename T> struct DataCopyPadExtParams {
    bool isPad = false;
    uint8_t leftPadding = 0;
    uint8_t rightPadding = 0;
    T paddingValue = T(0);

    DataCopyPadExtParams() = default;
    DataCopyPadExtParams(bool is_pad, uint8_t left, uint8_t right, T value)
        : isPad(is_pad), leftPadding(left), rightPadding(right), paddingValue(value)
    {
    }
};

}  // namespace AscendC
