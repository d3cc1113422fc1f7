// Synchronisation between cores: barriers, flags of the scheduling unit, flags in global memory.
#pragma once
#include "evokernel/twin/tensor.h"

namespace evokernel::twin {

void SyncAllCores(bool vector_only, At at);
void SyncAllInMemory(const GlobalRef &workspace, const LocalRef &local, int32_t used_cores, At at);
void CrossCoreSet(int mode, pipe_t pipe, uint16_t id, At at);
void CrossCoreWait(uint16_t id, At at);
void BlockSet(const GlobalRef &workspace, const LocalRef &local, int32_t block, int32_t event, bool vector_only, At at);
void BlockWait(const GlobalRef &workspace, const LocalRef &local, int32_t block, int32_t event, bool vector_only,
               At at);
void TurnsInit(const GlobalRef &workspace, const LocalRef &local, At at);
void TurnsWait(const GlobalRef &workspace, const LocalRef &local, At at);
void TurnsNotify(const GlobalRef &workspace, const LocalRef &local, At at);
void GroupCheck(const uint8_t *workspace, uint32_t arrivers, uint32_t waiters, At at);
void GroupArrive(const uint8_t *workspace, uint32_t arrivers, uint32_t index, At at);
void GroupWait(const uint8_t *workspace, uint32_t arrivers, uint32_t waiters, uint32_t index, At at);

}  // namespace evokernel::twin

namespace AscendC {

struct SyncAllConfig {
    pipe_t triggerPipe;
    pipe_t waitPipe;
};
constexpr SyncAllConfig DEFAULT_SYNC_ALL_CONFIG = {PIPE_ALL, PIPE_ALL};

template <bool isAIVOnly = true> void SyncAll(EVK_AT) { twin::SyncAllCores(isAIVOnly, at); }
template <bool isAIVOnly, const SyncAllConfig &config> void SyncAll(EVK_AT)
{
    static_assert(config.triggerPipe == PIPE_MTE2 || config.triggerPipe == PIPE_MTE3 || config.triggerPipe == PIPE_ALL,
                  "SyncAll is triggered by PIPE_MTE2, PIPE_MTE3 or PIPE_ALL.");
    static_assert(config.waitPipe == PIPE_MTE2 || config.waitPipe == PIPE_MTE3 || config.waitPipe == PIPE_ALL,
                  "SyncAll makes PIPE_MTE2, PIPE_MTE3 or PIPE_ALL wait.");
    twin::SyncAllCores(isAIVOnly, at);
}
template <bool isAIVOnly = true>
void SyncAll(const GlobalTensor<int32_t> &gmWorkspace, const LocalTensor<int32_t> &ubWorkspace,
             const int32_t usedCores = 0, EVK_AT)
{
    static_assert(isAIVOnly, "SyncAll with workspaces is for vector cores only.");
    twin::SyncAllInMemory(gmWorkspace.Ref(), ubWorkspace.Ref(), usedCores, at);
}

template <uint8_t modeId, pipe_t pipe> void CrossCoreSetFlag(uint16_t flagId, EVK_AT)
{
    static_assert(modeId <= 2, "Modes 0, 1 and 2 exist on this chip.");
    static_assert(pipe != PIPE_S && pipe != PIPE_ALL, "CrossCoreSetFlag is set by one pipe other than PIPE_S.");
    twin::CrossCoreSet(modeId, pipe, flagId, at);
}
template <uint8_t modeId = 0, pipe_t pipe = PIPE_S> void CrossCoreWaitFlag(uint16_t flagId, EVK_AT)
{
    twin::CrossCoreWait(flagId, at);
}

template <bool isAIVOnly = true>
void IBSet(const GlobalTensor<int32_t> &gmWorkspace, const LocalTensor<int32_t> &ubWorkspace, int32_t blockIdx,
           int32_t eventID, EVK_AT)
{
    twin::BlockSet(gmWorkspace.Ref(), ubWorkspace.Ref(), blockIdx, eventID, isAIVOnly, at);
}
template <bool isAIVOnly = true>
void IBWait(const GlobalTensor<int32_t> &gmWorkspace, const LocalTensor<int32_t> &ubWorkspace, int32_t blockIdx,
            int32_t eventID, EVK_AT)
{
    twin::BlockWait(gmWorkspace.Ref(), ubWorkspace.Ref(), blockIdx, eventID, isAIVOnly, at);
}

inline void InitDetermineComputeWorkspace(GlobalTensor<int32_t> &gmWorkspace, LocalTensor<int32_t> &ubWorkspace, EVK_AT)
{
    twin::TurnsInit(gmWorkspace.Ref(), ubWorkspace.Ref(), at);
}
inline void WaitPreBlock(GlobalTensor<int32_t> &gmWorkspace, LocalTensor<int32_t> &ubWorkspace, EVK_AT)
{
    twin::TurnsWait(gmWorkspace.Ref(), ubWorkspace.Ref(), at);
}
inline void NotifyNextBlock(GlobalTensor<int32_t> &gmWorkspace, LocalTensor<int32_t> &ubWorkspace, EVK_AT)
{
    twin::TurnsNotify(gmWorkspace.Ref(), ubWorkspace.Ref(), at);
}

enum class PipeMode : uint8_t { SCALAR_MODE = 0, MTE3_MODE = 1, MAX };

// Cores that wait until a group of others has arrived.
template <PipeMode pipeMode> class GroupBarrier {
public:
    GroupBarrier(GM_ADDR groupWorkspace, uint32_t arriveSizeIn, uint32_t waitSizeIn, EVK_AT)
        : workspace_(groupWorkspace), arrivers_(arriveSizeIn), waiters_(waitSizeIn)
    {
        static_assert(pipeMode == PipeMode::MTE3_MODE, "GroupBarrier sends its messages on PIPE_MTE3.");
        twin::GroupCheck(workspace_, arrivers_, waiters_, at);
    }
    void Arrive(uint32_t arriveIndex, EVK_AT) { twin::GroupArrive(workspace_, arrivers_, arriveIndex, at); }
    void Wait(uint32_t waitIndex, EVK_AT) { twin::GroupWait(workspace_, arrivers_, waiters_, waitIndex, at); }
    uint64_t GetWorkspaceLen() const { return uint64_t{waiters_} * 512; }

private:
    GM_ADDR workspace_;
    uint32_t arrivers_;
    uint32_t waiters_;
};

}  // namespace AscendC
