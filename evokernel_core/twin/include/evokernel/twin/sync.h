// Flags, barriers, mask registers and what a core knows about itself.
#pragma once
#include "evokernel/twin/pipe.h"

namespace AscendC {

template <HardEvent event> void SetFlag(int32_t eventID, EVK_AT) { twin::SetFlag(event, eventID, at); }
template <HardEvent event> void WaitFlag(int32_t eventID, EVK_AT) { twin::WaitFlag(event, eventID, at); }
template <pipe_t pipe> void PipeBarrier(EVK_AT) { twin::Barrier(pipe, at); }
template <MemDsbT kind> void DataSyncBarrier(EVK_AT) { twin::Barrier(PIPE_ALL, at); }

template <bool isAIVOnly = true> void SyncAll(EVK_AT) { twin::SyncAllCores(at); }
template <bool isAIVOnly = true>
void SyncAll(const GlobalTensor<int32_t> &, const LocalTensor<int32_t> &, const int32_t = 0, EVK_AT)
{
    twin::SyncAllCores(at);
}

inline void SetMaskCount() { twin::SetMaskMode(true); }
inline void SetMaskNorm() { twin::SetMaskMode(false); }
template <typename T, MaskMode mode = MaskMode::NORMAL>
void SetVectorMask(const uint64_t maskHigh, const uint64_t maskLow)
{
    twin::SetMaskRegister(maskHigh, maskLow);
}
template <typename T, MaskMode mode = MaskMode::NORMAL> void SetVectorMask(int32_t length)
{
    twin::SetMaskLength(length, twin::kDType<T>, mode == MaskMode::COUNTER);
}
inline void ResetMask() { twin::SetMaskRegister(FULL_MASK, FULL_MASK); }

inline int64_t GetBlockIdx() { return twin::BlockIdx(); }
inline int64_t GetBlockNum() { return twin::BlockNum(); }
inline int64_t GetSubBlockIdx() { return twin::SubBlockIdx(); }
inline int64_t GetSubBlockNum() { return twin::SubBlockNum(); }
inline int64_t GetTaskRatio() { return twin::TaskRatio(); }
inline int64_t GetTaskRation() { return twin::TaskRatio(); }
inline int64_t GetSystemCycle() { return twin::SystemCycle(); }
inline void InitSocState() { twin::InitSocState(); }
inline constexpr uint32_t GetDataBlockSizeInBytes() { return 32; }
inline uint32_t GetUBSizeInBytes() { return static_cast<uint32_t>(TOTAL_UB_SIZE); }
inline uint32_t GetRuntimeUBSize() { return static_cast<uint32_t>(twin::UsableUbBytes()); }
inline constexpr uint32_t GetVecLen() { return 256; }
inline GM_ADDR GetSysWorkSpacePtr() { return twin::SystemWorkspace(); }
inline GM_ADDR GetUserWorkspace(GM_ADDR workspace) { return workspace; }
inline void SetSysWorkspace(GM_ADDR) {}

}  // namespace AscendC

// The language's own forms of the same.
inline void pipe_barrier(pipe_t pipe, EVK_AT) { ::evokernel::twin::Barrier(pipe, at); }
inline int64_t get_block_idx() { return ::evokernel::twin::BlockIdx(); }
inline int64_t get_block_num() { return ::evokernel::twin::BlockNum(); }

namespace evokernel::twin {

struct BlockIndexVariable {
    operator int64_t() const { return BlockIdx(); }
};
struct BlockCountVariable {
    operator int64_t() const { return BlockNum(); }
};

}  // namespace evokernel::twin

inline constexpr ::evokernel::twin::BlockIndexVariable block_idx{};
inline constexpr ::evokernel::twin::BlockCountVariable block_num{};
