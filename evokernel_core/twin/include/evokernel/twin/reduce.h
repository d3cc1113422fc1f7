// Reductions, by their old names and the new ones of 9.1.
#pragma once
#include "evokernel/twin/tensor.h"

namespace AscendC {

namespace detail {

inline twin::Form Source(twin::Form form, int32_t block, int32_t repeat)
{
    form.src0_block = static_cast<uint16_t>(block);
    form.src0_repeat = static_cast<uint16_t>(repeat);
    return form;
}
template <typename T> twin::Form SourceMask(bool set, int64_t mask, int32_t repeats, int32_t block, int32_t repeat)
{
    return Source(twin::MaskForm(set, static_cast<uint64_t>(mask), repeats), block, repeat);
}
template <typename T>
twin::Form SourceBits(bool set, const uint64_t *mask, int32_t repeats, int32_t block, int32_t repeat)
{
    return Source(twin::BitsForm(set, mask, repeats, sizeof(T) <= 2), block, repeat);
}
constexpr twin::Reduce ToReduce(ReduceType type)
{
    return type == ReduceType::SUM ? twin::Reduce::Sum : type == ReduceType::MAX ? twin::Reduce::Max
                                                                                 : twin::Reduce::Min;
}

}  // namespace detail

template <typename T, bool isSetMask = true>
void WholeReduceSum(const LocalTensor<T> &dst, const LocalTensor<T> &src, const int32_t mask, const int32_t repeatTime,
                    const int32_t dstRepStride, const int32_t srcBlkStride, const int32_t srcRepStride, EVK_AT)
{
    twin::WholeReduce(twin::Reduce::Sum, dst.Ref(), src.Ref(),
                      detail::SourceMask<T>(isSetMask, mask, repeatTime, srcBlkStride, srcRepStride), dstRepStride,
                      ReduceOrder::ORDER_ONLY_VALUE, at);
}
template <typename T, bool isSetMask = true>
void WholeReduceSum(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint64_t mask[],
                    const int32_t repeatTime, const int32_t dstRepStride, const int32_t srcBlkStride,
                    const int32_t srcRepStride, EVK_AT)
{
    twin::WholeReduce(twin::Reduce::Sum, dst.Ref(), src.Ref(),
                      detail::SourceBits<T>(isSetMask, mask, repeatTime, srcBlkStride, srcRepStride), dstRepStride,
                      ReduceOrder::ORDER_ONLY_VALUE, at);
}

#define EVK_WHOLE_REDUCE(Name, Op)                                                                                   \
    template <typename T, bool isSetMask = true>                                                                     \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const int32_t mask, const int32_t repeatTime,    \
              const int32_t dstRepStride, const int32_t srcBlkStride, const int32_t srcRepStride,                    \
              ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX, EVK_AT)                                            \
    {                                                                                                                \
        twin::WholeReduce(twin::Reduce::Op, dst.Ref(), src.Ref(),                                                    \
                          detail::SourceMask<T>(isSetMask, mask, repeatTime, srcBlkStride, srcRepStride),            \
                          dstRepStride, order, at);                                                                  \
    }                                                                                                                \
    template <typename T, bool isSetMask = true>                                                                     \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint64_t mask[], const int32_t repeatTime, \
              const int32_t dstRepStride, const int32_t srcBlkStride, const int32_t srcRepStride,                    \
              ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX, EVK_AT)                                            \
    {                                                                                                                \
        twin::WholeReduce(twin::Reduce::Op, dst.Ref(), src.Ref(),                                                    \
                          detail::SourceBits<T>(isSetMask, mask, repeatTime, srcBlkStride, srcRepStride),            \
                          dstRepStride, order, at);                                                                  \
    }
EVK_WHOLE_REDUCE(WholeReduceMax, Max)
EVK_WHOLE_REDUCE(WholeReduceMin, Min)
#undef EVK_WHOLE_REDUCE

template <ReduceType type, typename T, typename U, bool isSetMask = true>
void ReduceRepeat(const LocalTensor<T> &dst, const LocalTensor<U> &src, const int32_t mask, const int32_t repeatTime,
                  const int32_t dstRepStride, const int32_t srcBlkStride, const int32_t srcRepStride,
                  ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX, EVK_AT)
{
    twin::WholeReduce(detail::ToReduce(type), dst.Ref(), src.Ref(),
                      detail::SourceMask<U>(isSetMask, mask, repeatTime, srcBlkStride, srcRepStride), dstRepStride,
                      type == ReduceType::SUM ? ReduceOrder::ORDER_ONLY_VALUE : order, at);
}
template <ReduceType type, typename T, typename U, bool isSetMask = true>
void ReduceRepeat(const LocalTensor<T> &dst, const LocalTensor<U> &src, const uint64_t mask[],
                  const int32_t repeatTime, const int32_t dstRepStride, const int32_t srcBlkStride,
                  const int32_t srcRepStride, ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX, EVK_AT)
{
    twin::WholeReduce(detail::ToReduce(type), dst.Ref(), src.Ref(),
                      detail::SourceBits<U>(isSetMask, mask, repeatTime, srcBlkStride, srcRepStride), dstRepStride,
                      type == ReduceType::SUM ? ReduceOrder::ORDER_ONLY_VALUE : order, at);
}

// The old names take repeatTime before mask, the new ones after it.
#define EVK_PART_REDUCE(Name, Function, Op)                                                                          \
    template <typename T, bool isSetMask = true>                                                                     \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const int32_t repeatTime, const int32_t mask,    \
              const int32_t dstRepStride, const int32_t srcBlkStride, const int32_t srcRepStride, EVK_AT)            \
    {                                                                                                                \
        twin::Function(twin::Reduce::Op, dst.Ref(), src.Ref(),                                                       \
                       detail::SourceMask<T>(isSetMask, mask, repeatTime, srcBlkStride, srcRepStride),               \
                       dstRepStride, at);                                                                            \
    }                                                                                                                \
    template <typename T, bool isSetMask = true>                                                                     \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const int32_t repeatTime, const uint64_t mask[], \
              const int32_t dstRepStride, const int32_t srcBlkStride, const int32_t srcRepStride, EVK_AT)            \
    {                                                                                                                \
        twin::Function(twin::Reduce::Op, dst.Ref(), src.Ref(),                                                       \
                       detail::SourceBits<T>(isSetMask, mask, repeatTime, srcBlkStride, srcRepStride),               \
                       dstRepStride, at);                                                                            \
    }
EVK_PART_REDUCE(BlockReduceSum, BlockReduce, Sum)
EVK_PART_REDUCE(BlockReduceMax, BlockReduce, Max)
EVK_PART_REDUCE(BlockReduceMin, BlockReduce, Min)
EVK_PART_REDUCE(PairReduceSum, PairReduce, Sum)
#undef EVK_PART_REDUCE

#define EVK_NEW_PART_REDUCE(Name, Function)                                                                          \
    template <ReduceType type, typename T, typename U, bool isSetMask = true>                                        \
    void Name(const LocalTensor<T> &dst, const LocalTensor<U> &src, const int32_t mask, const int32_t repeatTime,    \
              const int32_t dstRepStride, const int32_t srcBlkStride, const int32_t srcRepStride, EVK_AT)            \
    {                                                                                                                \
        twin::Function(detail::ToReduce(type), dst.Ref(), src.Ref(),                                                 \
                       detail::SourceMask<U>(isSetMask, mask, repeatTime, srcBlkStride, srcRepStride),               \
                       dstRepStride, at);                                                                            \
    }                                                                                                                \
    template <ReduceType type, typename T, typename U, bool isSetMask = true>                                        \
    void Name(const LocalTensor<T> &dst, const LocalTensor<U> &src, const uint64_t mask[], const int32_t repeatTime, \
              const int32_t dstRepStride, const int32_t srcBlkStride, const int32_t srcRepStride, EVK_AT)            \
    {                                                                                                                \
        twin::Function(detail::ToReduce(type), dst.Ref(), src.Ref(),                                                 \
                       detail::SourceBits<U>(isSetMask, mask, repeatTime, srcBlkStride, srcRepStride),               \
                       dstRepStride, at);                                                                            \
    }
EVK_NEW_PART_REDUCE(ReduceDataBlock, BlockReduce)
EVK_NEW_PART_REDUCE(ReducePairElem, PairReduce)
#undef EVK_NEW_PART_REDUCE

template <typename T, bool isSetMask = true>
void RepeatReduceSum(const LocalTensor<T> &dst, const LocalTensor<T> &src, const int32_t repeatTime,
                     const int32_t mask, const int32_t /*dstBlkStride*/, const int32_t srcBlkStride,
                     const int32_t dstRepStride, const int32_t srcRepStride, EVK_AT)
{
    twin::WholeReduce(twin::Reduce::Sum, dst.Ref(), src.Ref(),
                      detail::SourceMask<T>(isSetMask, mask, repeatTime, srcBlkStride, srcRepStride), dstRepStride,
                      ReduceOrder::ORDER_ONLY_VALUE, at);
}

template <typename T, bool isSetMask = true>
void ReduceSum(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &tmp, const int32_t count,
               EVK_AT)
{
    twin::ReduceAll(twin::Reduce::Sum, dst.Ref(), src.Ref(), tmp.Ref(), twin::Form::Count(count), false, at);
}
template <typename T>
void ReduceSum(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &tmp, const int32_t mask,
               const int32_t repeatTime, const int32_t srcRepStride, EVK_AT)
{
    twin::ReduceAll(twin::Reduce::Sum, dst.Ref(), src.Ref(), tmp.Ref(),
                    detail::SourceMask<T>(true, mask, repeatTime, 1, srcRepStride), false, at);
}
template <typename T>
void ReduceSum(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &tmp, const uint64_t mask[],
               const int32_t repeatTime, const int32_t srcRepStride, EVK_AT)
{
    twin::ReduceAll(twin::Reduce::Sum, dst.Ref(), src.Ref(), tmp.Ref(),
                    detail::SourceBits<T>(true, mask, repeatTime, 1, srcRepStride), false, at);
}

#define EVK_REDUCE_ALL(Name, Op)                                                                                     \
    template <typename T>                                                                                            \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &tmp, const int32_t count,  \
              bool calIndex = false, EVK_AT)                                                                         \
    {                                                                                                                \
        twin::ReduceAll(twin::Reduce::Op, dst.Ref(), src.Ref(), tmp.Ref(), twin::Form::Count(count), calIndex, at);  \
    }                                                                                                                \
    template <typename T>                                                                                            \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &tmp, const int32_t mask,   \
              const int32_t repeatTime, const int32_t srcRepStride, bool calIndex = false, EVK_AT)                   \
    {                                                                                                                \
        twin::ReduceAll(twin::Reduce::Op, dst.Ref(), src.Ref(), tmp.Ref(),                                           \
                        detail::SourceMask<T>(true, mask, repeatTime, 1, srcRepStride), calIndex, at);               \
    }                                                                                                                \
    template <typename T>                                                                                            \
    void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &tmp,                       \
              const uint64_t mask[], const int32_t repeatTime, const int32_t srcRepStride, bool calIndex = false,    \
              EVK_AT)                                                                                                \
    {                                                                                                                \
        twin::ReduceAll(twin::Reduce::Op, dst.Ref(), src.Ref(), tmp.Ref(),                                           \
                        detail::SourceBits<T>(true, mask, repeatTime, 1, srcRepStride), calIndex, at);               \
    }
EVK_REDUCE_ALL(ReduceMax, Max)
EVK_REDUCE_ALL(ReduceMin, Min)
#undef EVK_REDUCE_ALL

// The same by its bits, as the register has them.
inline int64_t GetAccVal()
{
    const float sum = twin::LastSum();
    uint32_t bits = 0;
    std::memcpy(&bits, &sum, sizeof(bits));
    return bits;
}
template <typename T> T GetAccVal() { return static_cast<T>(twin::LastSum()); }
template <typename T> T GetReduceRepeatSumSpr() { return static_cast<T>(twin::LastSum()); }

template <typename T> void GetReduceRepeatMaxMinSpr(T &value, T &index)
{
    float last = 0;
    uint32_t position = 0;
    twin::LastMaxMin(&last, &position);
    value = static_cast<T>(last);
    index = FromBits<T>(position);
}
template <typename T> void GetReduceRepeatMaxMinSpr(T &value)
{
    T index;
    GetReduceRepeatMaxMinSpr(value, index);
}
template <typename T> void GetReduceMaxMinCount(T &value, T &index) { GetReduceRepeatMaxMinSpr(value, index); }
template <typename T> void GetReduceMaxMinCount(T &value) { GetReduceRepeatMaxMinSpr(value); }

}  // namespace AscendC
