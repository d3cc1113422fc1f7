// The control register, saturation, atomic types, caches and what follows a task.
#pragma once
#include "evokernel/twin/api_vector.h"
#include "evokernel/twin/tensor.h"

namespace AscendC {

enum class SaturationMode : uint8_t { FLOAT, CAST };

// Of the register's bits, A2 lets a kernel use bit 48 (0: half and bfloat16_t results saturate).
template <int8_t startBit, int8_t endBit> inline void SetCtrlSpr(int64_t value, EVK_AT)
{
    static_assert(0 <= startBit && startBit <= endBit && endBit <= 63, "SetCtrlSpr takes bits 0 to 63, lowest first.");
    twin::SetControl(startBit, endBit, value, at);
}
template <int8_t startBit, int8_t endBit> inline int64_t GetCtrlSpr()
{
    static_assert(0 <= startBit && startBit <= endBit && endBit <= 63, "GetCtrlSpr takes bits 0 to 63, lowest first.");
    return twin::GetControl(startBit, endBit);
}

template <SaturationMode mode> void SetSaturationFlag(bool enable)
{
    twin::SetSaturation(mode == SaturationMode::FLOAT, enable);
}
template <SaturationMode mode> bool GetSaturationFlag() { return twin::GetSaturation(mode == SaturationMode::FLOAT); }

enum class AtomicDtype { ATOMIC_NONE = 0, ATOMIC_F32, ATOMIC_F16, ATOMIC_S16, ATOMIC_S32, ATOMIC_S8, ATOMIC_BF16 };
enum class AtomicOp { ATOMIC_SUM = 0 };

namespace detail {

constexpr twin::DType kAtomicTypes[] = {twin::DType::F32, twin::DType::F32, twin::DType::F16, twin::DType::S16,
                                        twin::DType::S32, twin::DType::S8,  twin::DType::BF16};

}  // namespace detail

template <typename T> void SetAtomicType(EVK_AT) { twin::SetAtomicDType(twin::kDType<T>, at); }
template <AtomicDtype type, AtomicOp op> void SetStoreAtomicConfig(EVK_AT)
{
    twin::SetAtomic(type == AtomicDtype::ATOMIC_NONE ? twin::Atomic::None : twin::Atomic::Add,
                    detail::kAtomicTypes[static_cast<int>(type)], at);
}
inline void GetStoreAtomicConfig(uint16_t &atomicType, uint16_t &atomicOp)
{
    twin::Atomic op;
    twin::DType dtype;
    twin::GetAtomic(&op, &dtype);
    atomicType = 0;
    atomicOp = 0;
    for (uint16_t i = 1; i < 7 && op != twin::Atomic::None; ++i) {
        atomicType = detail::kAtomicTypes[i] == dtype ? i : atomicType;
    }
}

// What DataCopyPad fills in where its own parameters give no value.
template <typename T, TPosition position = TPosition::MAX> void SetPadValue(T paddingValue)
{
    static_assert(position == TPosition::MAX || position == TPosition::VECIN || position == TPosition::VECOUT,
                  "SetPadValue takes VECIN, VECOUT or MAX.");
    twin::SetPadPattern(ToBits<T>(paddingValue));
}

// The instruction cache is not modelled: a preload takes its scalar cycle and is done.
inline void ICachePreLoad(const int64_t) { twin::ScalarCycles(1); }
inline int64_t GetICachePreloadStatus() { return 0; }
template <typename T> void DataCachePreload(const GlobalTensor<uint64_t> &src, const T cacheOffset, EVK_AT)
{
    twin::PreloadLine(src.Ref(), static_cast<int64_t>(cacheOffset), at);
}

// Registers an address for the device's own range check. The twin knows every allocation and checks each
// access against it, so that there is nothing to register.
template <typename T> void OOMCheckAddrRange(__gm__ T *, const uint64_t) {}

// Launches run one after another: a kernel starts after the one before it ended.
template <pipe_t aiv = PIPE_MTE3, pipe_t aic = PIPE_FIX, bool force = false> void SetNextTaskStart()
{
    twin::ScalarCycles(1);
}
inline void WaitPreTaskEnd() { twin::ScalarCycles(1); }

}  // namespace AscendC
