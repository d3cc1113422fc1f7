// Fill of global memory: a stretch of the unified buffer, on a cube core of L1, is filled once and copied out as
// often as needed.
#include <algorithm>

#include "core.h"
#include "evokernel/twin/api.h"
#include "evokernel/twin/api_vector.h"
#include "evokernel/twin/cube_api.h"

namespace evokernel::twin {

namespace {

constexpr uint64_t kMostStaged = 32 * 1024;  // bytes; longer copies gain nothing

using AscendC::HardEvent;

bool OnCube() { return TheCore().kind == CoreKind::Cube; }

// Free bytes behind what TPipe gave out.
LocalRef Staging(DType dtype, uint64_t wanted)
{
    Core &core = TheCore();
    const Space space = OnCube() ? Space::L1 : Space::UB;
    const uint64_t end = core.In(space).capacity;
    const uint64_t used = core.used[static_cast<int>(space)];
    const uint64_t bytes = std::min({wanted, kMostStaged, end > used ? end - used : 0}) / 32 * 32;
    LocalRef ref;
    ref.dtype = dtype;
    ref.position = static_cast<uint8_t>(OnCube() ? AscendC::TPosition::A1 : AscendC::TPosition::VECCALC);
    ref.address = static_cast<uint32_t>(end - bytes);
    ref.limit = static_cast<uint32_t>(end);
    ref.bytes = static_cast<uint32_t>(bytes);
    return ref;
}

void FillStage(const LocalRef &stage, uint64_t pattern, At at)
{
    if (OnCube()) {
        FillMatrix(stage, FillCall{1, stage.bytes / 32, 0, pattern}, at);
    } else {
        Duplicate(stage, {}, pattern, Form::Count(stage.bytes / DTypeBytes(stage.dtype)), at);
    }
}

void CopyStage(const GlobalRef &part, const LocalRef &stage, uint32_t bytes, At at)
{
    if (OnCube()) {
        CopyOut(part, stage, Burst{1, bytes, bytes, bytes}, at);
    } else {
        CopyPadOut(part, stage, AscendC::DataCopyExtParams(1, bytes, 0, 0, 0), at);
    }
}

void Order(HardEvent event, At at)
{
    const int8_t id = AllocEvent(event, at);
    SetFlag(event, id, at);
    WaitFlag(event, id, at);
    ReleaseEvent(event, id, at);
}

}  // namespace

void FillGlobal(const GlobalRef &dst, uint64_t count, uint64_t pattern, const char *name, At at)
{
    const uint32_t width = DTypeBytes(dst.dtype);
    if ((width != 2 && width != 4) || dst.dtype == DType::BF16) {
        ReportError("dtype-unsupported", at, "%s does not support %s on this chip.", name, DTypeName(dst.dtype));
        return;
    }
    if (count == 0) {
        return;
    }
    const LocalRef stage = Staging(dst.dtype, (count * width + 31) / 32 * 32);
    if (stage.bytes == 0) {
        ReportError(OnCube() ? "l1-capacity" : "ub-capacity", at, "%s finds no free %s; call it before InitBuffer.",
                    name, OnCube() ? "L1" : Word("unified buffer"));
        return;
    }
    FillStage(stage, pattern, at);
    Order(OnCube() ? HardEvent::MTE2_MTE3 : HardEvent::V_MTE3, at);
    for (uint64_t done = 0; done < count * width; done += stage.bytes) {
        GlobalRef part = dst;
        part.address += done;
        part.bytes = dst.bytes > done ? dst.bytes - done : 0;
        const auto bytes = static_cast<uint32_t>(std::min<uint64_t>(stage.bytes, count * width - done));
        CopyStage(part, stage, bytes, at);
    }
    if (OnCube()) {
        Order(HardEvent::MTE3_MTE2, at);  // what is copied to L1 next may take the same bytes
    }
}

}  // namespace evokernel::twin
