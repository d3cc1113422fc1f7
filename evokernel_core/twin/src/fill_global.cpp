// Fill of global memory: a stretch of the unified buffer is filled once and copied out as often as needed.
#include <algorithm>

#include "core.h"
#include "evokernel/twin/api_vector.h"

namespace evokernel::twin {

namespace {

constexpr uint64_t kMostStaged = 32 * 1024;  // bytes; longer copies gain nothing

// Free bytes behind what TPipe gave out.
LocalRef Staging(DType dtype, uint64_t wanted)
{
    const Core &core = TheCore();
    const uint64_t end = CurrentChip().ub_bytes;
    const uint64_t used = core.used[static_cast<int>(Space::UB)];
    const uint64_t bytes = std::min({wanted, kMostStaged, end > used ? end - used : 0}) / 32 * 32;
    LocalRef ref;
    ref.dtype = dtype;
    ref.position = static_cast<uint8_t>(AscendC::TPosition::VECCALC);
    ref.address = static_cast<uint32_t>(end - bytes);
    ref.limit = static_cast<uint32_t>(end);
    ref.bytes = static_cast<uint32_t>(bytes);
    return ref;
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
        ReportError("ub-capacity", at, "%s finds no free unified buffer; call it before InitBuffer.", name);
        return;
    }
    Duplicate(stage, {}, pattern, Form::Count(stage.bytes / width), at);
    const int8_t id = AllocEvent(AscendC::HardEvent::V_MTE3, at);
    SetFlag(AscendC::HardEvent::V_MTE3, id, at);
    WaitFlag(AscendC::HardEvent::V_MTE3, id, at);
    ReleaseEvent(AscendC::HardEvent::V_MTE3, id, at);
    for (uint64_t done = 0; done < count * width; done += stage.bytes) {
        GlobalRef part = dst;
        part.address += done;
        part.bytes = dst.bytes > done ? dst.bytes - done : 0;
        const auto bytes = static_cast<uint32_t>(std::min<uint64_t>(stage.bytes, count * width - done));
        CopyPadOut(part, stage, AscendC::DataCopyExtParams(1, bytes, 0, 0, 0), at);
    }
}

}  // namespace evokernel::twin
