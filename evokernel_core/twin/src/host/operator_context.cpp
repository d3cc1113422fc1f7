// What operators' host code reads: data types, attributes, the node, the chip.
#include <algorithm>
#include <string>

#include "chip.h"
#include "evokernel/operator/contexts.h"
#include "evokernel/twin/data_types.h"

namespace ge {

namespace {

struct Named {
    const char *name;
    int32_t number;
};

#define EVK_NAMED(name, number) {#name, number},
constexpr Named kTypes[] = {EVOKERNEL_DATA_TYPES(EVK_NAMED)};
constexpr Named kFormats[] = {EVOKERNEL_FORMATS(EVK_NAMED)};
#undef EVK_NAMED
constexpr int kBits = 1000;  // elements of less than a byte

template <size_t count>
std::string NameOf(const Named (&names)[count], int32_t number, const char *prefix)
{
    const auto named = std::find_if(names, names + count, [number](const Named &each) { return each.number == number; });
    return named == names + count ? "UNDEFINED" : std::string(prefix) + named->name;
}

}  // namespace

int GetSizeByDataType(DataType type)
{
    switch (type) {
        case DT_INT8: case DT_UINT8: case DT_BOOL: case DT_QINT8: case DT_QUINT8: case DT_HIFLOAT8:
        case DT_FLOAT8_E5M2: case DT_FLOAT8_E4M3FN: case DT_FLOAT8_E8M0: return 1;
        case DT_FLOAT16: case DT_BF16: case DT_INT16: case DT_UINT16: case DT_QINT16: case DT_QUINT16: return 2;
        case DT_FLOAT: case DT_INT32: case DT_UINT32: case DT_QINT32: case DT_COMPLEX32: return 4;
        case DT_INT64: case DT_UINT64: case DT_DOUBLE: case DT_COMPLEX64: return 8;
        case DT_COMPLEX128: return 16;
        case DT_INT4: case DT_FLOAT4_E2M1: case DT_FLOAT4_E1M2: return kBits + 4;
        case DT_INT2: case DT_UINT2: return kBits + 2;
        case DT_UINT1: return kBits + 1;
        default: return -1;
    }
}

int64_t GetSizeInBytes(int64_t elements, DataType type)
{
    const int size = GetSizeByDataType(type);
    if (elements < 0 || size < 0) {
        return -1;
    }
    return size < kBits ? elements * size : (elements * (size - kBits) + 7) / 8;
}

std::string TypeUtils::DataTypeToSerialString(DataType type) { return NameOf(kTypes, type, "DT_"); }
std::string TypeUtils::FormatToSerialString(Format format) { return NameOf(kFormats, format, ""); }

}  // namespace ge

namespace gert {

using evokernel::twin::op::Parameter;
using evokernel::twin::op::Value;

RuntimeAttrs::RuntimeAttrs(const std::vector<Value> &values)
{
    for (const Value &value : values) {
        Slot slot;
        if (const auto *number = std::get_if<int64_t>(&value)) {
            slot.value = number;
        } else if (const auto *real = std::get_if<float>(&value)) {
            slot.value = real;
        } else if (const auto *truth = std::get_if<bool>(&value)) {
            slot.value = truth;
        } else if (const auto *text = std::get_if<std::string>(&value)) {
            slot.value = text->c_str();
        } else if (const auto *numbers = std::get_if<std::vector<int64_t>>(&value)) {
            slot.list = ContinuousVector(numbers->data(), numbers->size());
            slot.is_list = true;
        } else if (const auto *reals = std::get_if<std::vector<float>>(&value)) {
            slot.list = ContinuousVector(reals->data(), reals->size());
            slot.is_list = true;
        } else if (const auto *truths = std::get_if<std::vector<uint8_t>>(&value)) {
            slot.list = ContinuousVector(truths->data(), truths->size());
            slot.is_list = true;
        } else if (const auto *lists = std::get_if<std::vector<std::vector<int64_t>>>(&value)) {
            slot.lists = ContinuousVectorVector(*lists);
            slot.is_lists = true;
        }
        slots_.push_back(slot);
    }
}

const void *RuntimeAttrs::Address(size_t index) const
{
    if (index >= slots_.size()) {
        return nullptr;
    }
    const Slot &slot = slots_[index];
    if (slot.is_lists) {
        return &slot.lists;
    }
    return slot.is_list ? static_cast<const void *>(&slot.list) : slot.value;
}

namespace {

std::vector<AnchorInstanceInfo> Instances(const std::vector<Parameter> &parameters)
{
    std::vector<AnchorInstanceInfo> instances;
    size_t start = 0;
    for (const Parameter &parameter : parameters) {
        instances.emplace_back(start, parameter.tensors.size());
        start += parameter.tensors.size();
    }
    return instances;
}

fe::PlatFormInfos *TheChip()
{
    static fe::PlatFormInfos infos;
    return &infos;
}

template <typename T>
const T *Item(const std::vector<T> &items, size_t index)
{
    return index < items.size() ? &items[index] : nullptr;
}

}  // namespace

ComputeNodeInfo::ComputeNodeInfo(Node &node)
    : node_(node), attrs_(node.attributes), inputs_(Instances(node.inputs)), outputs_(Instances(node.outputs))
{
}

const AnchorInstanceInfo *ComputeNodeInfo::GetInputInstanceInfo(size_t index) const { return Item(inputs_, index); }
const AnchorInstanceInfo *ComputeNodeInfo::GetOutputInstanceInfo(size_t index) const { return Item(outputs_, index); }

const CompileTimeTensorDesc *ComputeNodeInfo::GetInputTdInfo(size_t index) const
{
    const auto *tensor = Node::Flat(node_.inputs, index);
    return tensor == nullptr ? nullptr : &tensor->desc;
}

const CompileTimeTensorDesc *ComputeNodeInfo::GetOutputTdInfo(size_t index) const
{
    const auto *tensor = Node::Flat(node_.outputs, index);
    return tensor == nullptr ? nullptr : &tensor->desc;
}

fe::PlatFormInfos *TilingContext::GetPlatformInfo() const { return TheChip(); }
fe::PlatFormInfos *TilingParseContext::GetPlatformInfo() const { return TheChip(); }

}  // namespace gert

namespace fe {

using evokernel::twin::CurrentChip;
using platform_ascendc::CoreMemType;

uint32_t PlatFormInfos::GetCoreNum() const { return static_cast<uint32_t>(CurrentChip().aic); }

uint32_t PlatFormInfos::GetCoreNumByType(const std::string &core_type) const
{
    return static_cast<uint32_t>(core_type == "AiCore" ? CurrentChip().aic : CurrentChip().aiv);
}

void PlatFormInfos::GetLocalMemSize(const LocalMemType &type, uint64_t &bytes) const
{
    platform_ascendc::PlatformAscendC(nullptr).GetCoreMemSize(static_cast<CoreMemType>(type), bytes);
}

void PlatFormInfos::GetLocalMemBw(const LocalMemType &type, uint64_t &bytes_per_cycle) const
{
    platform_ascendc::PlatformAscendC(nullptr).GetCoreMemBw(static_cast<CoreMemType>(type), bytes_per_cycle);
}

bool PlatFormInfos::GetPlatformRes(const std::string &section, const std::string &key, std::string &value) const
{
    const auto &chip = CurrentChip();
    const std::pair<const char *, uint64_t> sizes[] = {
        {"ub_size", chip.ub_total_bytes}, {"l2_size", chip.l2_bytes}, {"l1_size", chip.l1_bytes},
        {"l0_a_size", chip.l0a_bytes}, {"l0_b_size", chip.l0b_bytes}, {"l0_c_size", chip.l0c_bytes},
        {"ai_core_cnt", chip.aic}, {"cube_core_cnt", chip.aic}, {"vector_core_cnt", chip.aiv},
        {"memory_size", chip.hbm_bytes},
    };
    for (const auto &[name, number] : sizes) {
        if (key == name) {
            value = std::to_string(number);
            return true;
        }
    }
    if (section == "version" && (key == "Short_SoC_version" || key == "SoC_version")) {
        value = "Ascend910B";
        return true;
    }
    return false;
}

}  // namespace fe
