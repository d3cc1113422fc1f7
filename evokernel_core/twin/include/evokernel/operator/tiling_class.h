// The base of operator libraries' tiling classes: what each step of a tiling decides is a method of its own.
#pragma once
#include <memory>
#include <string>

#include "evokernel/operator/numbers.h"
#include "log/log.h"
#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"

#ifndef ASCENDC_EXTERN_C
#define ASCENDC_EXTERN_C
#endif

namespace Ops::Base {

// Bytes of each memory of a core, and how many cores a kernel has.
struct AiCoreParams {
    uint64_t ubSize = 0;
    uint64_t numBlocks = 0;
    uint64_t aicNum = 0;
    uint64_t l1Size = 0;
    uint64_t l0aSize = 0;
    uint64_t l0bSize = 0;
    uint64_t l0cSize = 0;
};

// What a tiling function keeps of the chip between calls.
struct CompileInfoCommon {
    uint32_t aivNum;
    uint32_t aicNum;
    uint64_t ubSize;
    uint64_t l1Size;
    uint64_t l0aSize;
    uint64_t l0bSize;
    uint64_t l0cSize;
    uint64_t l2CacheSize;
    int64_t coreNum;
    int32_t socVersion;
    uint32_t rsvd;
};

class TilingBaseClass {
public:
    explicit TilingBaseClass(gert::TilingContext *context) : context_(context) {}
    virtual ~TilingBaseClass() = default;
    virtual void Reset(gert::TilingContext *context) { context_ = context; }

    // GRAPH_PARAM_INVALID: this class does not take such a call, another one may.
    ge::graphStatus DoTiling()
    {
        using Step = ge::graphStatus (TilingBaseClass::*)();
        if (context_ == nullptr) {
            return ge::GRAPH_FAILED;
        }
        const Step steps[] = {&TilingBaseClass::GetShapeAttrsInfo, &TilingBaseClass::GetPlatformInfo,
                              &TilingBaseClass::Accepts,           &TilingBaseClass::DoOpTiling,
                              &TilingBaseClass::DoLibApiTiling,    &TilingBaseClass::GetWorkspaceSize,
                              &TilingBaseClass::PostTiling};
        for (Step step : steps) {
            if (const ge::graphStatus status = (this->*step)(); status != ge::GRAPH_SUCCESS) {
                return status;
            }
        }
        context_->SetTilingKey(GetTilingKey());
        DumpTilingInfo();
        return ge::GRAPH_SUCCESS;
    }

protected:
    virtual bool IsCapable() = 0;
    virtual ge::graphStatus GetPlatformInfo() = 0;
    virtual ge::graphStatus GetShapeAttrsInfo() = 0;
    virtual ge::graphStatus DoOpTiling() = 0;
    virtual ge::graphStatus DoLibApiTiling() = 0;
    [[nodiscard]] virtual uint64_t GetTilingKey() const = 0;
    virtual ge::graphStatus GetWorkspaceSize() = 0;
    virtual ge::graphStatus PostTiling() = 0;
    virtual void DumpTilingInfo() {}

    // Blocks of a mixed kernel that has so many slices of work for vector cores.
    static uint32_t CalcTschBlockDim(uint32_t slices, uint32_t aic, uint32_t aiv)
    {
        return aic == 0 || aiv < aic ? slices : CeilDiv(slices, aiv / aic);
    }
    template <typename T> [[nodiscard]] std::string GetShapeDebugStr(const T &shape) const { return ToString(shape); }
    [[nodiscard]] std::string GetTilingContextDebugStr() { return context_->GetNodeName(); }
    [[nodiscard]] std::string GetTilingDataDebugStr() const
    {
        return std::to_string(context_->GetRawTilingData()->GetDataSize()) + " bytes";
    }

    gert::TilingContext *context_ = nullptr;
    std::unique_ptr<platform_ascendc::PlatformAscendC> ascendcPlatform_{nullptr};
    uint32_t blockDim_{0};
    uint64_t workspaceSize_{0};
    uint64_t tilingKey_{0};
    AiCoreParams aicoreParams_;

private:
    ge::graphStatus Accepts() { return IsCapable() ? ge::GRAPH_SUCCESS : ge::GRAPH_PARAM_INVALID; }
};

// Whether the chip has the later vector unit with registers. The twin's chips have not.
template <typename Context> constexpr bool IsRegbaseSocVersion(const Context *) { return false; }

}  // namespace Ops::Base
