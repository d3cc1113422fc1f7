// Sort32, MrgSort and the high-level Concat, Sort, MrgSort and Extract. Results are pairs of 8 bytes.
#pragma once
#include "evokernel/twin/select.h"
#include "evokernel/twin/api_vector.h"

namespace AscendC {

enum class SortType { RADIX_SORT, MERGE_SORT };

struct SortConfig {
    SortType type = SortType::RADIX_SORT;
    bool isDescend = false;
    bool hasSrcIndex = false;
    bool hasDstIndex = false;
};

template <typename T> struct MrgSortSrcList {
    MrgSortSrcList() = default;
    MrgSortSrcList(const LocalTensor<T> &first, const LocalTensor<T> &second, const LocalTensor<T> &third,
                   const LocalTensor<T> &fourth)
        : src1(first), src2(second), src3(third), src4(fourth)
    {
    }

    LocalTensor<T> src1;
    LocalTensor<T> src2;
    LocalTensor<T> src3;
    LocalTensor<T> src4;
};

struct MrgSort4Info {
    MrgSort4Info() = default;
    MrgSort4Info(const uint16_t lengths[4], const bool suspend, const uint16_t valid, const uint16_t repeats)
        : ifExhaustedSuspension(suspend), validBit(valid), repeatTimes(repeats)
    {
        for (int i = 0; i < 4; ++i) {
            elementLengths[i] = lengths[i];
        }
    }

    uint16_t elementLengths[4] = {};
    bool ifExhaustedSuspension = false;
    uint16_t validBit = 0;
    uint8_t repeatTimes = 1;
};

template <typename T>
void Sort32(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<uint32_t> &src1,
            const int32_t repeatTime, EVK_AT)
{
    twin::Sort32(dst.Ref(), src0.Ref(), src1.Ref(), repeatTime, at);
}

template <typename T>
void MrgSort(const LocalTensor<T> &dst, const MrgSortSrcList<T> &src, const MrgSort4Info &params, EVK_AT)
{
    twin::MergePlan plan{{src.src1.Ref(), src.src2.Ref(), src.src3.Ref(), src.src4.Ref()}};
    for (int i = 0; i < 4; ++i) {
        plan.lengths[i] = params.elementLengths[i];
    }
    plan.valid = params.validBit;
    plan.repeats = params.repeatTimes;
    plan.suspend = params.ifExhaustedSuspension;
    twin::MergeSorted(dst.Ref(), plan, at);
}

inline void GetMrgSortResult(uint16_t &list1, uint16_t &list2, uint16_t &list3, uint16_t &list4, EVK_AT)
{
    uint16_t taken[4];
    twin::MergeResult(taken, at);
    list1 = taken[0];
    list2 = taken[1];
    list3 = taken[2];
    list4 = taken[3];
}

// The high-level form: also tells how many elements of each run were taken.
template <typename T, bool isExhaustedSuspension = false>
void MrgSort(const LocalTensor<T> &dst, const MrgSortSrcList<T> &sortList, const uint16_t elementCountList[4],
             uint32_t sortedNum[4], uint16_t validBit, const int32_t repeatTime, EVK_AT)
{
    MrgSort(dst, sortList,
            MrgSort4Info(elementCountList, isExhaustedSuspension, validBit, static_cast<uint16_t>(repeatTime)), at);
    if constexpr (isExhaustedSuspension) {
        uint16_t taken[4];
        twin::MergeResult(taken, at);
        for (int i = 0; i < 4; ++i) {
            sortedNum[i] = taken[i];
        }
    }
}

// Scores are sorted where they lie: the result is the source.
template <typename T>
void Concat(LocalTensor<T> &concat, const LocalTensor<T> &src, const LocalTensor<T> &, const int32_t)
{
    concat = src;
}

template <typename T, bool isFullSort>
void Sort(const LocalTensor<T> &dst, const LocalTensor<T> &concat, const LocalTensor<uint32_t> &index,
          LocalTensor<T> &tmp, const int32_t repeatTime, EVK_AT)
{
    twin::SortAll(dst.Ref(), concat.Ref(), index.Ref(), tmp.Ref(), repeatTime, isFullSort, at);
}

// 32 pairs a repeat: scores are the first or every fourth element, indices the odd words.
template <typename T>
void Extract(const LocalTensor<T> &dstValue, const LocalTensor<uint32_t> &dstIndex, const LocalTensor<T> &sorted,
             const int32_t repeatTime, EVK_AT)
{
    constexpr uint8_t scores = sizeof(T) == 2 ? 3 : 1;
    constexpr uint8_t indices = 2;
    const GatherMaskParams params(1, static_cast<uint16_t>(repeatTime), 8, 0);
    uint64_t kept = 0;
    GatherMask(dstValue, sorted, scores, false, 0, params, kept, at);
    GatherMask(dstIndex, sorted.template ReinterpretCast<uint32_t>(), indices, false, 0, params, kept, at);
}

// Elements of the sorted tensor that so many pairs fill.
template <typename T> uint32_t GetSortLen(const uint32_t elemCount) { return elemCount * (8 / sizeof(T)); }
template <typename T> uint32_t GetSortOffset(const uint32_t elemOffset) { return elemOffset * (8 / sizeof(T)); }

}  // namespace AscendC
