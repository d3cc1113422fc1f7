// A node of a graph, as far as host code of an operator names it: its tensors' descriptions and its attributes.
#pragma once
#include <any>
#include <map>
#include <string>
#include <vector>

#include "evokernel/twin/host_types.h"
#include "graph/ascend_string.h"
#include "graph/types.h"

namespace ge {

class TensorDesc {
public:
    TensorDesc() = default;
    explicit TensorDesc(Shape shape, Format format = FORMAT_ND, DataType type = DT_FLOAT)
        : shape_(shape), origin_shape_(std::move(shape)), format_(format), origin_format_(format), type_(type)
    {
    }

    Shape GetShape() const { return shape_; }
    graphStatus SetShape(const Shape &shape) { return shape_ = shape, GRAPH_SUCCESS; }
    Shape GetOriginShape() const { return origin_shape_; }
    graphStatus SetOriginShape(const Shape &shape) { return origin_shape_ = shape, GRAPH_SUCCESS; }
    Format GetFormat() const { return format_; }
    void SetFormat(Format format) { format_ = format; }
    Format GetOriginFormat() const { return origin_format_; }
    void SetOriginFormat(Format format) { origin_format_ = format; }
    DataType GetDataType() const { return type_; }
    void SetDataType(DataType type) { type_ = type; }
    graphStatus GetName(AscendString &name) const { return name = name_, GRAPH_SUCCESS; }
    void SetName(const char *name) { name_ = name; }

private:
    Shape shape_, origin_shape_;
    Format format_ = FORMAT_ND, origin_format_ = FORMAT_ND;
    DataType type_ = DT_FLOAT;
    AscendString name_;
};

class Operator {
public:
    Operator() = default;
    explicit Operator(const char *name) : name_(name) {}
    explicit Operator(const AscendString &name) : name_(name) {}
    Operator(const AscendString &name, const AscendString &type) : name_(name), type_(type) {}

    graphStatus GetName(AscendString &name) const { return name = name_, GRAPH_SUCCESS; }
    graphStatus GetOpType(AscendString &type) const { return type = type_, GRAPH_SUCCESS; }

    // Descriptions by name and by number; one that nobody set is that of an unknown float tensor.
    TensorDesc GetInputDescByName(const char *name) const { return Found(inputs_, name); }
    TensorDesc GetOutputDescByName(const char *name) const { return Found(outputs_, name); }
    TensorDesc GetInputDesc(const char *name) const { return Found(inputs_, name); }
    TensorDesc GetOutputDesc(const char *name) const { return Found(outputs_, name); }
    TensorDesc GetInputDesc(uint32_t index) const { return Found(inputs_, std::to_string(index)); }
    TensorDesc GetOutputDesc(uint32_t index) const { return Found(outputs_, std::to_string(index)); }
    graphStatus UpdateInputDesc(const char *name, const TensorDesc &desc) { return Set(inputs_, name, desc); }
    graphStatus UpdateOutputDesc(const char *name, const TensorDesc &desc) { return Set(outputs_, name, desc); }
    graphStatus UpdateInputDesc(uint32_t index, const TensorDesc &desc)
    {
        return Set(inputs_, std::to_string(index), desc);
    }
    graphStatus UpdateOutputDesc(uint32_t index, const TensorDesc &desc)
    {
        return Set(outputs_, std::to_string(index), desc);
    }
    size_t GetInputsSize() const { return inputs_.size(); }
    size_t GetOutputsSize() const { return outputs_.size(); }

    template <typename T> graphStatus GetAttr(const char *name, T &value) const
    {
        const auto entry = attributes_.find(name);
        const T *held = entry == attributes_.end() ? nullptr : std::any_cast<T>(&entry->second);
        if (held == nullptr) {
            return GRAPH_FAILED;
        }
        value = *held;
        return GRAPH_SUCCESS;
    }
    template <typename T> Operator &SetAttr(const char *name, const T &value)
    {
        attributes_[name] = value;
        return *this;
    }

private:
    using Descriptions = std::map<std::string, TensorDesc>;
    static TensorDesc Found(const Descriptions &all, const std::string &name)
    {
        const auto entry = all.find(name);
        return entry == all.end() ? TensorDesc() : entry->second;
    }
    static graphStatus Set(Descriptions &all, const std::string &name, const TensorDesc &desc)
    {
        all[name] = desc;
        return GRAPH_SUCCESS;
    }

    AscendString name_, type_;
    Descriptions inputs_, outputs_;
    std::map<std::string, std::any> attributes_;
};

}  // namespace ge
