// Output of kernels and their assertions.
#include "evokernel/twin/debug.h"

#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core.h"
#include "time/schedule.h"

namespace evokernel::twin {

namespace {

constexpr size_t kMaxOutput = 30 * 1024;  // bytes of one call that the device can print; documentation of printf

// "[AIV Block 1/8] ", where a line begins.
std::string Prefix()
{
    const Core &core = TheCore();
    const int64_t cores = core.blocks * (core.kind == CoreKind::Vector ? core.subs : 1);
    return std::string(core.kind == CoreKind::Cube ? "[AIC" : "[AIV") + " Block " + std::to_string(core.Index()) + "/" +
           std::to_string(cores) + "] ";
}

std::string Formatted(const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    const int length = std::vsnprintf(nullptr, 0, format, arguments);
    std::string text(static_cast<size_t>(length > 0 ? length : 0) + 1, '\0');
    std::vsnprintf(text.data(), text.size(), format, again);
    va_end(again);
    text.pop_back();
    return text;
}

bool Fits(size_t bytes, const char *api, At at)
{
    if (bytes > kMaxOutput) {
        ReportWarning("param-limit", at, "%s prints %zu bytes at once; the device prints at most 30 KB and drops more.",
                      api, bytes);
        return false;
    }
    return true;
}

const char *TypeName(DType dtype)
{
    static const char *const names[] = {"int4",  "int8",   "uint8",   "int16", "uint16", "float16", "bfloat16",
                                        "int32", "uint32", "float32", "int64", "uint64", "float64"};
    return names[static_cast<int>(dtype)];
}

template <typename T> T ElementAt(const uint8_t *data, uint64_t index)
{
    T value;
    std::memcpy(&value, data + index * sizeof(T), sizeof(T));
    return value;
}

std::string ElementText(DType dtype, const uint8_t *data, uint64_t index)
{
    switch (dtype) {
        case DType::S4:
        case DType::S8:
            return std::to_string(ElementAt<int8_t>(data, index));
        case DType::U8:
            return std::to_string(ElementAt<uint8_t>(data, index));
        case DType::S16:
            return std::to_string(ElementAt<int16_t>(data, index));
        case DType::U16:
            return std::to_string(ElementAt<uint16_t>(data, index));
        case DType::F16:
            return std::to_string(static_cast<float>(ElementAt<half>(data, index)));
        case DType::BF16:
            return std::to_string(static_cast<float>(ElementAt<bfloat16_t>(data, index)));
        case DType::S32:
            return std::to_string(ElementAt<int32_t>(data, index));
        case DType::U32:
            return std::to_string(ElementAt<uint32_t>(data, index));
        case DType::F32:
            return std::to_string(ElementAt<float>(data, index));
        case DType::S64:
            return std::to_string(ElementAt<int64_t>(data, index));
        case DType::U64:
            return std::to_string(ElementAt<uint64_t>(data, index));
        case DType::F64:
            return std::to_string(ElementAt<double>(data, index));
    }
    return "?";
}

std::string FlatText(DType dtype, const uint8_t *data, uint32_t count)
{
    std::string text = "[";
    for (uint32_t i = 0; i < count; ++i) {
        text += i == 0 ? "" : i % 32 == 0 ? ",\n" : ", ";
        text += ElementText(dtype, data, i);
    }
    return text + "]";
}

// Nested brackets as the shape says; "-" where there are fewer elements than it has.
void AddShaped(DType dtype, const uint8_t *data, uint32_t count, const AscendC::ShapeInfo &shape, int axis,
               uint32_t &next, std::string &text)
{
    if (axis == shape.shapeDim) {
        text += next < count ? ElementText(dtype, data, next) : "-";
        ++next;
        return;
    }
    const bool innermost = axis + 1 == shape.shapeDim;
    text += "[";
    for (uint32_t i = 0; i < shape.shape[axis]; ++i) {
        text += i == 0 ? "" : innermost ? ", " : ",\n";
        AddShaped(dtype, data, count, shape, axis + 1, next, text);
    }
    text += "]";
}

void Dump(const uint8_t *data, DType dtype, unsigned long long address, const char *memory, uint32_t label,
          uint32_t count, const AscendC::ShapeInfo *shape, At at)
{
    if (!Fits(uint64_t{count} * DTypeBytes(dtype), "DumpTensor", at)) {
        return;
    }
    std::string text;
    if (shape == nullptr || shape->shapeDim == 0) {
        text = FlatText(dtype, data, count);
    } else {
        uint32_t next = 0;
        AddShaped(dtype, data, count, *shape, 0, next, text);
    }
    std::fprintf(stderr, "%sDumpTensor: desc=%u, addr=%llx, data_type=%s, position=%s, dump_size=%u, line=%d\n%s\n",
                 Prefix().c_str(), label, address, TypeName(dtype), memory, count, at.line, text.c_str());
}

const char *MemoryName(Space space)
{
    static const char *const names[] = {"UB", "L1", "L0A", "L0B", "L0C", "BT", "FB"};
    return names[static_cast<int>(space)];
}

}  // namespace

int PrintLine(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const std::string text = Formatted(format, arguments);
    va_end(arguments);
    if (!InKernel()) {
        std::fputs(text.c_str(), stdout);
    } else if (!TheCore().timing && Fits(text.size(), "printf", TheCore().last_at)) {
        std::fputs((Prefix() + text).c_str(), stderr);
    }
    return static_cast<int>(text.size());
}

void FailAssert(const char *condition, At at, const char *format, ...)
{
    std::string words;
    if (format != nullptr) {
        va_list arguments;
        va_start(arguments, format);
        words = " " + Formatted(format, arguments);
        va_end(arguments);
        while (!words.empty() && (words.back() == '\n' || words.back() == ' ')) {
            words.pop_back();
        }
    }
    std::fprintf(stderr, "[ASSERT] %s:%d: Assertion `%s'%s\n", at.file, at.line, condition,
                 words.empty() ? " failed." : words.c_str());
    if (!InKernel()) {
        std::abort();
    }
    if (TheCore().timing) {
        ReportError("data-dependent", at, "The assertion `%s' depends on data, which timing does not have; leave it "
                    "out of what is timed.", condition);
    } else {
        ReportError("assert", at, "The assertion `%s' fails on %s core %lld.%s", condition,
                    TheCore().kind == CoreKind::Cube ? Word("cube") : Word("vector"), static_cast<long long>(TheCore().Index()),
                    words.c_str());
    }
    GiveUpLaunch();
}

void TrapCore(At at)
{
    if (!InKernel()) {
        std::abort();
    }
    ReportError("assert", at, "Trap stops the kernel on core %lld.", static_cast<long long>(TheCore().Index()));
    GiveUpLaunch();
}

void DumpLocal(const LocalRef &tensor, uint32_t label, uint64_t skip, uint32_t count, const AscendC::ShapeInfo *shape,
               At at)
{
    if (TheCore().timing) {
        return;
    }
    LocalRef part = tensor;
    part.address += static_cast<uint32_t>(skip * DTypeBytes(tensor.dtype));
    const uint64_t bytes = uint64_t{count} * DTypeBytes(tensor.dtype);
    const uint8_t *data = CheckRange(part, bytes, 32, false, "DumpTensor", "the tensor", at, kAllSpaces);
    if (data != nullptr) {
        Dump(data, tensor.dtype, part.address, MemoryName(SpaceOf(tensor)), label, count, shape, at);
    }
}

void DumpGlobal(const GlobalRef &tensor, uint32_t label, uint64_t skip, uint32_t count, const AscendC::ShapeInfo *shape,
                At at)
{
    if (TheCore().timing) {
        return;
    }
    const uint8_t *data = tensor.address + skip * DTypeBytes(tensor.dtype);
    if (Gm().Check(tensor, data, uint64_t{count} * DTypeBytes(tensor.dtype), false, "DumpTensor", at) != nullptr) {
        Dump(data, tensor.dtype, reinterpret_cast<uintptr_t>(data), "GM", label, count, shape, at);
    }
}

void DumpAddress(const void *address, DType dtype, const char *memory, uint32_t label, uint32_t count, At at)
{
    const auto *data = static_cast<const uint8_t *>(address);
    const uint64_t bytes = uint64_t{count} * DTypeBytes(dtype);
    if (TheCore().timing) {
        return;
    }
    if (std::strcmp(memory, "GM") == 0) {
        GlobalRef whole;
        whole.address = const_cast<uint8_t *>(data);
        if (Gm().Check(whole, data, bytes, false, "asc_dump_gm", at) != nullptr) {
            Dump(data, dtype, reinterpret_cast<uintptr_t>(data), memory, label, count, nullptr, at);
        }
        return;
    }
    for (const LocalMemory &local : TheCore().memory) {
        if (local.data != nullptr && data >= local.data && data + bytes <= local.data + local.capacity) {
            Dump(data, dtype, static_cast<unsigned long long>(data - local.data), memory, label, count, nullptr, at);
            return;
        }
    }
    ReportError("out-of-bounds", at, "The dump of %u elements leaves the core's local memory.", count);
}

void PrintTime(uint32_t label, At at)
{
    if (!TheCore().timing) {
        std::fprintf(stderr, "%sdescId: %u, line: %d, cycle (modelled): %.0f\n", Prefix().c_str(), label, at.line,
                     TheCore().time.Now());
    }
}

}  // namespace evokernel::twin
