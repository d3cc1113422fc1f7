// The vector instructions that kernels of older versions write by their names, with addresses for tensors. Lanes
// follow the mask register.
#pragma once
#include <cstddef>
#include <cstdint>

#include "evokernel/twin/api_vector.h"
#include "evokernel/twin/fill.h"
#include "evokernel/twin/move.h"
#include "evokernel/twin/reduce.h"
#include "evokernel/twin/vector.h"

namespace evokernel::twin {

template <typename T> LocalRef LocalOf(const __ubuf__ T *pointer, const char *api, At at)
{
    return LocalAt(pointer, kDType<T>, api, at);
}

}  // namespace evokernel::twin

// Sums of repeats under the mask register. `accumulates`: into the register that GetAccVal reads, and not `dst`.
template <typename T>
void vcadd(__ubuf__ T *dst, __ubuf__ T *src, int32_t repeats, int32_t dstRepStride, int32_t srcBlkStride,
           int32_t srcRepStride, bool accumulates = false, EVK_AT)
{
    namespace twin = evokernel::twin;
    const auto from = twin::LocalOf(src, "vcadd", at);
    const auto form = AscendC::detail::SourceMask<T>(false, 0, repeats, srcBlkStride, srcRepStride);
    if (accumulates) {
        return twin::SumIntoRegister(from, form, "vcadd", at);
    }
    twin::WholeReduce(twin::Reduce::Sum, twin::LocalOf(dst, "vcadd", at), from, form, dstRepStride,
                      AscendC::ReduceOrder::ORDER_ONLY_VALUE, at);
}
template <typename T>
void vcadd(std::nullptr_t, __ubuf__ T *src, int32_t repeats, int32_t dstRepStride, int32_t srcBlkStride,
           int32_t srcRepStride, bool accumulates, EVK_AT)
{
    vcadd(static_cast<__ubuf__ T *>(nullptr), src, repeats, dstRepStride, srcBlkStride, srcRepStride, accumulates,
          at);
}

// Under the mask register, with all strides as arguments: destination and both sources, of blocks and of repeats.
template <typename T>
void vor(__ubuf__ T *dst, __ubuf__ T *src0, __ubuf__ T *src1, uint8_t repeats, uint8_t dstBlk, uint8_t src0Blk,
         uint8_t src1Blk, uint8_t dstRep, uint8_t src0Rep, uint8_t src1Rep, EVK_AT)
{
    namespace twin = evokernel::twin;
    const AscendC::BinaryRepeatParams strides(dstBlk, src0Blk, src1Blk, dstRep, src0Rep, src1Rep);
    const auto to = twin::LocalOf(dst, "vor", at);
    const auto a = twin::LocalOf(src0, "vor", at);
    const auto b = twin::LocalOf(src1, "vor", at);
    twin::Vector(AscendC::detail::Call(twin::Api::Or, to, a, b), twin::MaskForm(false, 0, repeats).Binary(strides), at);
}

// The strides of a source that it has none of are not read.
template <typename T, typename S>
void vector_dup(__ubuf__ T *dst, S value, uint8_t repeats, uint16_t dstBlk, uint16_t /*srcBlk*/, uint8_t dstRep,
                uint8_t /*srcRep*/, EVK_AT)
{
    namespace twin = evokernel::twin;
    const T scalar = static_cast<T>(value);
    twin::Duplicate(twin::LocalOf(dst, "vector_dup", at), twin::MakeScalar(scalar), AscendC::ToBits<T>(scalar),
                    AscendC::detail::Destination(twin::MaskForm(false, 0, repeats), dstBlk, dstRep), at);
}

// Lengths and gaps are of blocks of 32 bytes. `sid` is 0.
template <typename T>
void copy_ubuf_to_ubuf(__ubuf__ T *dst, __ubuf__ T *src, uint8_t /*sid*/, uint16_t bursts, uint16_t length,
                       uint16_t srcGap, uint16_t dstGap, EVK_AT)
{
    namespace twin = evokernel::twin;
    twin::CopyLocal(twin::LocalOf(dst, "copy_ubuf_to_ubuf", at), twin::LocalOf(src, "copy_ubuf_to_ubuf", at),
                    AscendC::detail::ToBurst({bursts, length, srcGap, dstGap}), "copy_ubuf_to_ubuf", at);
}

// A square of 16 by 16 elements.
template <typename T> void vtranspose(__ubuf__ T *dst, __ubuf__ T *src, EVK_AT)
{
    namespace twin = evokernel::twin;
    twin::Transpose16(twin::LocalOf(dst, "vtranspose", at), twin::LocalOf(src, "vtranspose", at), at);
}

// Registers of eight addresses of blocks each; a transpose names the first of two.
enum ub_addr8_t { VA0, VA1, VA2, VA3, VA4, VA5, VA6, VA7 };
inline void set_va_reg_sb(ub_addr8_t reg, const uint64_t *addresses)
{
    evokernel::twin::SetBlockAddresses(reg, addresses);
}
inline void scatter_vnchwconv_b16(ub_addr8_t dst, ub_addr8_t src, uint8_t repeats, uint16_t dstStride,
                                  uint16_t srcStride, EVK_AT)
{
    evokernel::twin::TransposeRegisters(dst, src, evokernel::twin::DType::U16,
                                        {false, false, repeats, dstStride, srcStride}, "scatter_vnchwconv_b16", at);
}

namespace AscendC {

// What public kernels of older versions call by the names that the toolkit's own functions had.
template <typename T> void DuplicateImpl(__ubuf__ T *dst, T value, int32_t count, EVK_AT)
{
    twin::Duplicate(twin::LocalOf(dst, "Duplicate", at), twin::MakeScalar(value), ToBits<T>(value),
                    twin::Form::Count(count), at);
}
template <typename T>
void DataCopyUB2GMImpl(__gm__ T *dst, __ubuf__ T *src, const DataCopyParams &params, EVK_AT)
{
    GlobalTensor<T> to;
    to.SetGlobalBuffer(dst);
    twin::CopyOut(to.Ref(), twin::LocalOf(src, "DataCopy", at), detail::ToBurst(params), at);
}

}  // namespace AscendC
