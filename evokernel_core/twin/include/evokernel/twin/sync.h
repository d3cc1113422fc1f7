// Flags, barriers, mask registers and what a core knows about itself.
#pragma once
#include "evokernel/twin/pipe.h"

namespace evokernel::twin {

// The event between two pipes, MAX where there is none.
constexpr AscendC::HardEvent EventOf(pipe_t from, pipe_t to)
{
    using E = AscendC::HardEvent;
    struct Pair {
        pipe_t from, to;
        E event;
    };
    constexpr Pair pairs[] = {
        {PIPE_MTE2, PIPE_MTE1, E::MTE2_MTE1}, {PIPE_MTE1, PIPE_MTE2, E::MTE1_MTE2}, {PIPE_MTE1, PIPE_M, E::MTE1_M},
        {PIPE_M, PIPE_MTE1, E::M_MTE1},       {PIPE_MTE2, PIPE_V, E::MTE2_V},       {PIPE_V, PIPE_MTE2, E::V_MTE2},
        {PIPE_MTE3, PIPE_V, E::MTE3_V},       {PIPE_V, PIPE_MTE3, E::V_MTE3},       {PIPE_MTE3, PIPE_MTE2, E::MTE3_MTE2},
        {PIPE_MTE2, PIPE_MTE3, E::MTE2_MTE3}, {PIPE_S, PIPE_V, E::S_V},             {PIPE_V, PIPE_S, E::V_S},
        {PIPE_S, PIPE_MTE2, E::S_MTE2},       {PIPE_MTE2, PIPE_S, E::MTE2_S},       {PIPE_S, PIPE_MTE3, E::S_MTE3},
        {PIPE_MTE3, PIPE_S, E::MTE3_S},       {PIPE_M, PIPE_FIX, E::M_FIX},         {PIPE_FIX, PIPE_M, E::FIX_M},
        {PIPE_M, PIPE_V, E::M_V},             {PIPE_V, PIPE_M, E::V_M},             {PIPE_MTE2, PIPE_FIX, E::MTE2_FIX},
        {PIPE_FIX, PIPE_MTE2, E::FIX_MTE2},   {PIPE_FIX, PIPE_S, E::FIX_S},         {PIPE_M, PIPE_S, E::M_S},
        {PIPE_FIX, PIPE_MTE3, E::FIX_MTE3},   {PIPE_MTE1, PIPE_FIX, E::MTE1_FIX},   {PIPE_FIX, PIPE_MTE1, E::FIX_MTE1},
        {PIPE_MTE3, PIPE_MTE1, E::MTE3_MTE1}, {PIPE_MTE1, PIPE_MTE3, E::MTE1_MTE3}, {PIPE_MTE2, PIPE_M, E::MTE2_M},
        {PIPE_M, PIPE_MTE2, E::M_MTE2},       {PIPE_MTE1, PIPE_V, E::MTE1_V},       {PIPE_V, PIPE_MTE1, E::V_MTE1},
        {PIPE_FIX, PIPE_V, E::FIX_V},         {PIPE_V, PIPE_FIX, E::V_FIX},
    };
    for (const Pair &pair : pairs) {
        if (pair.from == from && pair.to == to) {
            return pair.event;
        }
    }
    return E::MAX;
}

}  // namespace evokernel::twin

namespace AscendC {

template <HardEvent event> void SetFlag(int32_t eventID, EVK_AT) { twin::SetFlag(event, eventID, at); }
template <HardEvent event> void WaitFlag(int32_t eventID, EVK_AT) { twin::WaitFlag(event, eventID, at); }
template <pipe_t pipe> void PipeBarrier(EVK_AT) { twin::Barrier(pipe, at); }
template <MemDsbT kind> void DataSyncBarrier(EVK_AT) { twin::Barrier(PIPE_ALL, at); }

// The same flags under the name that all chips share.
template <pipe_t src, pipe_t dst> class TQueSync {
public:
    void SetFlag(TEventID id, EVK_AT) { twin::SetFlag(kEvent, id, at); }
    void WaitFlag(TEventID id, EVK_AT) { twin::WaitFlag(kEvent, id, at); }

private:
    static constexpr HardEvent kEvent = twin::EventOf(src, dst);
    static_assert(kEvent != HardEvent::MAX, "There is no flag between these pipes.");
};

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
inline void SetSysWorkspace(GM_ADDR workspace) { twin::SetSystemWorkspace(workspace); }
inline void GetArchVersion(uint32_t &coreVersion) { coreVersion = 0x2201; }
inline int64_t GetProgramCounter(EVK_AT) { return at.line; }

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
