// What an operator's description declares: its parameters, attributes, chips and functions.
#pragma once
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "evokernel/operator/contexts.h"

namespace ops {

enum Option { IGNORE = 0, OPTIONAL = 1, REQUIRED = 2, DYNAMIC = 3, VIRTUAL = 4 };
enum class ItemFindStatus { ITEM_FIND = 0, ITEM_NOEXIST };
enum class DependScope { ALL = 0, TILING, INVALID_SCOPE };
enum class FollowType { ALL = 0, DTYPE, FORMAT, SHAPE, INVALID_TYPE };
enum class InitValueType { INIT_VALUE_UINT64_T = 0, INIT_VALUE_DEFAULT };
enum class ScalarType : uint32_t { UINT64 = 0, INT64, UINT32, INT32, UINT16, INT16, UINT8, INT8, FLOAT32, FLOAT16, INVALID };
struct ScalarVar {
    ScalarVar() = default;
    template <typename T>
    ScalarVar(ScalarType kind, T number) : scalar_type(kind), value(static_cast<double>(number))  // NOLINT
    {
    }
    ScalarType scalar_type = ScalarType::INVALID;
    double value = 0;
};

class OpParamDef {
public:
    explicit OpParamDef(const char *name) : name_(name) {}
    OpParamDef &ParamType(Option kind) { return kind_ = kind, *this; }
    OpParamDef &DataType(std::vector<ge::DataType> types) { return types_ = std::move(types), *this; }
    OpParamDef &DataTypeList(std::vector<ge::DataType> types) { return DataType(std::move(types)); }
    OpParamDef &DataTypeForBinQuery(std::vector<ge::DataType>) { return *this; }
    OpParamDef &Format(std::vector<ge::Format> formats) { return formats_ = std::move(formats), *this; }
    OpParamDef &FormatList(std::vector<ge::Format> formats) { return Format(std::move(formats)); }
    OpParamDef &FormatForBinQuery(std::vector<ge::Format>) { return *this; }
    OpParamDef &UnknownShapeFormat(std::vector<ge::Format>) { return *this; }
    OpParamDef &ValueDepend(Option kind) { return reads_values_ = kind != IGNORE, *this; }
    OpParamDef &ValueDepend(Option kind, DependScope) { return ValueDepend(kind); }
    OpParamDef &IgnoreContiguous() { return *this; }
    OpParamDef &AutoContiguous() { return *this; }
    OpParamDef &Scalar() { return is_scalar_ = true, *this; }
    OpParamDef &ScalarList() { return is_scalar_ = true, *this; }
    OpParamDef &To(ge::DataType) { return *this; }
    OpParamDef &To(const char *) { return *this; }
    OpParamDef &Version(uint32_t) { return *this; }
    OpParamDef &Comment(const char *) { return *this; }
    OpParamDef &InitValue(uint64_t value) { return initial_ = static_cast<double>(value), has_initial_ = true, *this; }
    OpParamDef &InitValue(const ScalarVar &value) { return initial_ = value.value, has_initial_ = true, *this; }
    OpParamDef &InitValue(const std::vector<ScalarVar> &values)
    {
        return values.empty() ? *this : InitValue(values.front());
    }
    OpParamDef &OutputShapeDependOnCompute() { return *this; }
    OpParamDef &Follow(const char *other) { return follows_ = other, *this; }
    OpParamDef &Follow(const char *other, FollowType) { return Follow(other); }

    std::string name_;
    Option kind_ = REQUIRED;
    std::vector<ge::DataType> types_;
    std::vector<ge::Format> formats_;
    std::string follows_;
    bool reads_values_ = false;
    bool is_scalar_ = false;
    bool has_initial_ = false;
    double initial_ = 0;
};

class OpAttrDef {
public:
    explicit OpAttrDef(const char *name) : name_(name) {}
    OpAttrDef &AttrType(Option kind) { return required_ = kind == REQUIRED, *this; }
    OpAttrDef &Version(uint32_t) { return *this; }
    OpAttrDef &Comment(const char *) { return *this; }
    OpAttrDef &Bool() { return Kind("bool"); }
    OpAttrDef &Bool(bool value) { return Kind("bool"), value_ = value, *this; }
    OpAttrDef &Float() { return Kind("float"); }
    OpAttrDef &Float(float value) { return Kind("float"), value_ = value, *this; }
    OpAttrDef &Int() { return Kind("int"); }
    OpAttrDef &Int(int64_t value) { return Kind("int"), value_ = value, *this; }
    OpAttrDef &String() { return Kind("string"); }
    OpAttrDef &String(const char *value) { return Kind("string"), value_ = std::string(value), *this; }
    OpAttrDef &ListInt() { return Kind("list_int"); }
    OpAttrDef &ListInt(std::vector<int64_t> values) { return Kind("list_int"), value_ = std::move(values), *this; }
    OpAttrDef &ListFloat() { return Kind("list_float"); }
    OpAttrDef &ListFloat(std::vector<float> values) { return Kind("list_float"), value_ = std::move(values), *this; }
    OpAttrDef &ListBool() { return Kind("list_bool"); }
    OpAttrDef &ListBool(const std::vector<bool> &values)
    {
        return Kind("list_bool"), value_ = std::vector<uint8_t>(values.begin(), values.end()), *this;
    }
    OpAttrDef &ListListInt() { return Kind("list_list_int"); }
    OpAttrDef &ListListInt(std::vector<std::vector<int64_t>> values)
    {
        return Kind("list_list_int"), value_ = std::move(values), *this;
    }

    std::string name_;
    std::string kind_;
    bool required_ = true;
    evokernel::twin::op::Value value_;

private:
    OpAttrDef &Kind(const char *kind) { return kind_ = kind, *this; }
};

class OpAICoreConfig {
public:
    OpAICoreConfig() = default;
    explicit OpAICoreConfig(const char *chip) : chip_(chip) {}
    OpParamDef &Input(const char *name) { return inputs_.emplace_back(name); }
    OpParamDef &Output(const char *name) { return outputs_.emplace_back(name); }
    OpAICoreConfig &DynamicCompileStaticFlag(bool) { return *this; }
    OpAICoreConfig &DynamicFormatFlag(bool) { return *this; }
    OpAICoreConfig &DynamicRankSupportFlag(bool) { return *this; }
    OpAICoreConfig &DynamicShapeSupportFlag(bool) { return *this; }
    OpAICoreConfig &NeedCheckSupportFlag(bool) { return *this; }
    OpAICoreConfig &PrecisionReduceFlag(bool) { return *this; }
    OpAICoreConfig &ExtendCfgInfo(const char *key, const char *value) { return more_[key] = value, *this; }

    std::string chip_;
    std::deque<OpParamDef> inputs_;
    std::deque<OpParamDef> outputs_;
    std::map<std::string, std::string> more_;
};

using TilingFunction = ge::graphStatus (*)(gert::TilingContext *);
using ShapeFunction = ge::graphStatus (*)(gert::InferShapeContext *);
using RangeFunction = ge::graphStatus (*)(gert::InferShapeRangeContext *);
using TypeFunction = ge::graphStatus (*)(gert::InferDataTypeContext *);

class OpAICoreDef {
public:
    OpAICoreDef &SetTiling(TilingFunction function) { return tiling_ = function, *this; }
    template <typename F>
    OpAICoreDef &SetCheckSupport(F) { return *this; }
    template <typename F>
    OpAICoreDef &SetOpSelectFormat(F) { return *this; }
    template <typename F>
    OpAICoreDef &SetOpSupportInfo(F) { return *this; }
    template <typename F>
    OpAICoreDef &SetOpSpecInfo(F) { return *this; }
    template <typename F>
    OpAICoreDef &SetParamGeneralize(F) { return *this; }
    template <typename F>
    OpAICoreDef &SetTilingParse(F) { return *this; }
    OpAICoreDef &AddConfig(const char *chip) { return configs_[chip] = OpAICoreConfig(chip), *this; }
    OpAICoreDef &AddConfig(const char *chip, OpAICoreConfig &config) { return configs_[chip] = config, *this; }
    OpAICoreDef &EnableFallBack() { return *this; }
    OpAICoreDef &LaunchWithZeroEleOutputTensors(bool) { return *this; }

    TilingFunction tiling_ = nullptr;
    std::map<std::string, OpAICoreConfig> configs_;
};

enum class HcclServerType { AICPU = 0, AICORE, CCU, MAX };
class OpMC2Def {
public:
    OpMC2Def &HcclGroup(const char *) { return *this; }
    OpMC2Def &HcclGroup(const std::vector<const char *> &) { return *this; }
    OpMC2Def &HcclServerType(enum HcclServerType, const char * = nullptr) { return *this; }
};

class OpDef {
public:
    explicit OpDef(const char *type) : type_(type) {}
    OpParamDef &Input(const char *name) { return Named(inputs_, name); }
    OpParamDef &Output(const char *name) { return Named(outputs_, name); }
    OpAttrDef &Attr(const char *name) { return Named(attributes_, name); }
    OpDef &Comment(const char *) { return *this; }
    template <typename Section>
    OpDef &Comment(Section, const char *) { return *this; }
    OpDef &SetInferShape(ShapeFunction function) { return shape_ = function, *this; }
    OpDef &SetInferShapeRange(RangeFunction) { return *this; }
    OpDef &SetInferDataType(TypeFunction function) { return types_ = function, *this; }
    OpAICoreDef &AICore() { return core_; }
    OpMC2Def &MC2() { return several_; }
    OpDef &FormatMatchMode(Option) { return *this; }
    OpDef &EnableFallBack() { return *this; }

    std::string type_;
    std::deque<OpParamDef> inputs_;
    std::deque<OpParamDef> outputs_;
    std::deque<OpAttrDef> attributes_;
    ShapeFunction shape_ = nullptr;
    TypeFunction types_ = nullptr;

private:
    template <typename Item>
    static Item &Named(std::deque<Item> &items, const char *name)
    {
        for (Item &entry : items) {
            if (entry.name_ == name) {
                return entry;
            }
        }
        return items.emplace_back(name);
    }
    OpAICoreDef core_;
    OpMC2Def several_;
};

using OpCreator = OpDef *(*)(const char *);
// Adds a description to those that the program knows.
int Register(const char *type, OpCreator create);

}  // namespace ops

#define OP_ADD(Type, ...)                                                                        \
    static ::ops::OpDef *EvokernelCreate##Type(const char *type) { return new Type(type); }     \
    [[maybe_unused]] static const int kEvokernelAdded##Type = ::ops::Register(#Type, EvokernelCreate##Type)
