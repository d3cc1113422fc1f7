// What tiling, shape and type functions of an operator are given.
#pragma once
#include <cstring>
#include <string>

#include "evokernel/operator/attributes.h"
#include "evokernel/operator/node.h"
#include "tiling/platform/platform_ascendc.h"

namespace gert {

using evokernel::twin::op::Node;

// How many tensors one parameter has, and where they begin among all.
class AnchorInstanceInfo {
public:
    AnchorInstanceInfo(size_t start, size_t count) : start_(start), count_(count) {}
    size_t GetInstanceStart() const { return start_; }
    size_t GetInstanceNum() const { return count_; }

private:
    size_t start_;
    size_t count_;
};

class ComputeNodeInfo {
public:
    explicit ComputeNodeInfo(Node &node);
    const char *GetNodeType() const { return node_.type.c_str(); }
    const char *GetNodeName() const { return node_.name.c_str(); }
    size_t GetInputsNum() const { return Node::Count(node_.inputs); }
    size_t GetOutputsNum() const { return Node::Count(node_.outputs); }
    size_t GetIrInputsNum() const { return node_.inputs.size(); }
    size_t GetIrOutputsNum() const { return node_.outputs.size(); }
    const AnchorInstanceInfo *GetInputInstanceInfo(size_t index) const;
    const AnchorInstanceInfo *GetOutputInstanceInfo(size_t index) const;
    const CompileTimeTensorDesc *GetInputTdInfo(size_t index) const;
    const CompileTimeTensorDesc *GetOutputTdInfo(size_t index) const;
    const RuntimeAttrs *GetAttrs() const { return &attrs_; }

private:
    Node &node_;
    RuntimeAttrs attrs_;
    std::vector<AnchorInstanceInfo> inputs_;
    std::vector<AnchorInstanceInfo> outputs_;
};

class ExtendedKernelContext {
public:
    explicit ExtendedKernelContext(Node &node) : node_(node), info_(node) {}
    const char *GetNodeName() const { return node_.name.c_str(); }
    const char *GetNodeType() const { return node_.type.c_str(); }
    const char *GetKernelName() const { return node_.type.c_str(); }
    const ComputeNodeInfo *GetComputeNodeInfo() const { return &info_; }
    size_t GetComputeNodeInputNum() const { return info_.GetInputsNum(); }
    size_t GetComputeNodeOutputNum() const { return info_.GetOutputsNum(); }
    const RuntimeAttrs *GetAttrs() const { return info_.GetAttrs(); }
    const AnchorInstanceInfo *GetIrInputInstanceInfo(size_t index) const { return info_.GetInputInstanceInfo(index); }
    const AnchorInstanceInfo *GetIrOutputInstanceInfo(size_t index) const
    {
        return info_.GetOutputInstanceInfo(index);
    }
    const CompileTimeTensorDesc *GetInputDesc(size_t index) const { return Desc(Node::Flat(node_.inputs, index)); }
    const CompileTimeTensorDesc *GetOutputDesc(size_t index) const { return Desc(Node::Flat(node_.outputs, index)); }
    const CompileTimeTensorDesc *GetOptionalInputDesc(size_t index) const { return GetDynamicInputDesc(index, 0); }
    const CompileTimeTensorDesc *GetRequiredInputDesc(size_t index) const { return GetDynamicInputDesc(index, 0); }
    const CompileTimeTensorDesc *GetDynamicInputDesc(size_t index, size_t instance) const
    {
        return Desc(Node::At(node_.inputs, index, instance));
    }

protected:
    static const CompileTimeTensorDesc *Desc(const evokernel::twin::op::TensorOf *tensor)
    {
        return tensor == nullptr ? nullptr : &tensor->desc;
    }
    Node &node_;

private:
    ComputeNodeInfo info_;
};

class TilingData {
public:
    explicit TilingData(Node &node) : node_(node) {}
    void *GetData() { return node_.tiling.data(); }
    const void *GetData() const { return node_.tiling.data(); }
    size_t GetCapacity() const { return node_.tiling.size(); }
    size_t GetDataSize() const { return node_.tiling_bytes; }
    void SetDataSize(size_t bytes) { node_.tiling_bytes = bytes; }
    template <typename T>
    ge::graphStatus Append(const T &value)
    {
        if (node_.tiling_bytes + sizeof(T) > node_.tiling.size()) {
            return ge::GRAPH_FAILED;
        }
        std::memcpy(node_.tiling.data() + node_.tiling_bytes, &value, sizeof(T));
        node_.tiling_bytes += sizeof(T);
        return ge::GRAPH_SUCCESS;
    }

private:
    Node &node_;
};

class TilingContext : public ExtendedKernelContext {
public:
    explicit TilingContext(Node &node) : ExtendedKernelContext(node), raw_(node) {}

    const StorageShape *GetInputShape(size_t index) const { return ShapeOf(Node::Flat(node_.inputs, index)); }
    const StorageShape *GetOptionalInputShape(size_t index) const { return GetDynamicInputShape(index, 0); }
    const StorageShape *GetRequiredInputShape(size_t index) const { return GetDynamicInputShape(index, 0); }
    const StorageShape *GetDynamicInputShape(size_t index, size_t instance) const
    {
        return ShapeOf(Node::At(node_.inputs, index, instance));
    }
    const StorageShape *GetOutputShape(size_t index) const { return ShapeOf(Node::Flat(node_.outputs, index)); }
    const Tensor *GetInputTensor(size_t index) const { return TensorAt(Node::Flat(node_.inputs, index)); }
    const Tensor *GetOptionalInputTensor(size_t index) const { return GetDynamicInputTensor(index, 0); }
    const Tensor *GetRequiredInputTensor(size_t index) const { return GetDynamicInputTensor(index, 0); }
    const Tensor *GetDynamicInputTensor(size_t index, size_t instance) const
    {
        return TensorAt(Node::At(node_.inputs, index, instance));
    }

    const void *GetCompileInfo() const { return node_.compile_info.get(); }
    template <typename T>
    const T *GetCompileInfo() const
    {
        return static_cast<const T *>(node_.compile_info.get());
    }
    fe::PlatFormInfos *GetPlatformInfo() const;
    int32_t GetDeterministic() const { return node_.deterministic ? 1 : 0; }

    ge::graphStatus SetTilingKey(uint64_t key) { return node_.tiling_key = key, ge::GRAPH_SUCCESS; }
    uint64_t GetTilingKey() const { return node_.tiling_key; }
    ge::graphStatus SetBlockDim(uint32_t blocks) { return node_.block_dim = blocks, ge::GRAPH_SUCCESS; }
    uint32_t GetBlockDim() const { return node_.block_dim; }
    ge::graphStatus SetScheduleMode(uint32_t mode) { return node_.schedule_mode = mode, ge::GRAPH_SUCCESS; }
    ge::graphStatus SetNeedAtomic(bool) { return ge::GRAPH_SUCCESS; }
    ge::graphStatus SetLocalMemorySize(uint32_t) { return ge::GRAPH_SUCCESS; }
    ge::graphStatus SetAicpuBlockDim(uint32_t) { return ge::GRAPH_SUCCESS; }
    size_t *GetWorkspaceSizes(size_t count)
    {
        node_.workspaces.resize(count);
        return node_.workspaces.data();
    }
    size_t GetWorkspaceNum() const { return node_.workspaces.size(); }
    TilingData *GetRawTilingData() { return &raw_; }
    const TilingData *GetRawTilingData() const { return &raw_; }
    template <typename T>
    T *GetTilingData()
    {
        if (sizeof(T) > node_.tiling.size()) {
            return nullptr;
        }
        node_.tiling_bytes = sizeof(T);
        return new (node_.tiling.data()) T();
    }

private:
    static const StorageShape *ShapeOf(const evokernel::twin::op::TensorOf *tensor)
    {
        return tensor == nullptr ? nullptr : &tensor->shape;
    }
    static const Tensor *TensorAt(const evokernel::twin::op::TensorOf *tensor)
    {
        return tensor == nullptr ? nullptr : &tensor->tensor;
    }
    TilingData raw_;
};

// Where a tiling function reads what it wants to know of the chip once.
class TilingParseContext : public ExtendedKernelContext {
public:
    explicit TilingParseContext(Node &node) : ExtendedKernelContext(node) {}
    fe::PlatFormInfos *GetPlatformInfo() const;
    const char *GetCompiledJson() const { return "{}"; }
    template <typename T>
    T *GetCompiledInfo()
    {
        return static_cast<T *>(node_.compile_info.get());
    }
};

class InferShapeContext : public ExtendedKernelContext {
public:
    using ExtendedKernelContext::ExtendedKernelContext;
    const Shape *GetInputShape(size_t index) const { return ShapeOf(Node::Flat(node_.inputs, index)); }
    const Shape *GetOptionalInputShape(size_t index) const { return GetDynamicInputShape(index, 0); }
    const Shape *GetRequiredInputShape(size_t index) const { return GetDynamicInputShape(index, 0); }
    const Shape *GetDynamicInputShape(size_t index, size_t instance) const
    {
        return ShapeOf(Node::At(node_.inputs, index, instance));
    }
    Shape *GetOutputShape(size_t index) const { return ShapeOf(Node::Flat(node_.outputs, index)); }
    const Tensor *GetInputTensor(size_t index) const { return TensorAt(Node::Flat(node_.inputs, index)); }
    const Tensor *GetOptionalInputTensor(size_t index) const { return GetDynamicInputTensor(index, 0); }
    const Tensor *GetRequiredInputTensor(size_t index) const { return GetDynamicInputTensor(index, 0); }
    const Tensor *GetDynamicInputTensor(size_t index, size_t instance) const
    {
        return TensorAt(Node::At(node_.inputs, index, instance));
    }

private:
    static Shape *ShapeOf(evokernel::twin::op::TensorOf *tensor)
    {
        return tensor == nullptr ? nullptr : &tensor->shape.MutableOriginShape();
    }
    static const Tensor *TensorAt(const evokernel::twin::op::TensorOf *tensor)
    {
        return tensor == nullptr ? nullptr : &tensor->tensor;
    }
};

template <typename T>
class Range {
public:
    Range() = default;
    Range(T *least, T *most) : least_(least), most_(most) {}
    const T *GetMin() const { return least_; }
    const T *GetMax() const { return most_; }
    T *GetMin() { return least_; }
    T *GetMax() { return most_; }
    void SetMin(T *least) { least_ = least; }
    void SetMax(T *most) { most_ = most; }

private:
    T *least_ = nullptr;
    T *most_ = nullptr;
};

// Ranges are known to a compiler of whole graphs only; an operator that runs alone is asked for none.
class InferShapeRangeContext : public ExtendedKernelContext {
public:
    using ExtendedKernelContext::ExtendedKernelContext;
    const Range<Shape> *GetInputShapeRange(size_t) const { return nullptr; }
    const Range<Shape> *GetOptionalInputShapeRange(size_t) const { return nullptr; }
    Range<Shape> *GetOutputShapeRange(size_t) const { return nullptr; }
    const Tensor *GetInputTensor(size_t) const { return nullptr; }
};

class InferDataTypeContext : public ExtendedKernelContext {
public:
    using ExtendedKernelContext::ExtendedKernelContext;
    ge::DataType GetInputDataType(size_t index) const { return TypeOf(Node::Flat(node_.inputs, index)); }
    ge::DataType GetOptionalInputDataType(size_t index) const { return GetDynamicInputDataType(index, 0); }
    ge::DataType GetRequiredInputDataType(size_t index) const { return GetDynamicInputDataType(index, 0); }
    ge::DataType GetDynamicInputDataType(size_t index, size_t instance) const
    {
        return TypeOf(Node::At(node_.inputs, index, instance));
    }
    ge::DataType GetOutputDataType(size_t index) const { return TypeOf(Node::Flat(node_.outputs, index)); }
    ge::graphStatus SetOutputDataType(size_t index, ge::DataType type)
    {
        auto *tensor = Node::Flat(node_.outputs, index);
        if (tensor == nullptr) {
            return ge::GRAPH_FAILED;
        }
        tensor->desc = CompileTimeTensorDesc(type, tensor->desc.GetFormat());
        return ge::GRAPH_SUCCESS;
    }

private:
    static ge::DataType TypeOf(const evokernel::twin::op::TensorOf *tensor)
    {
        return tensor == nullptr ? ge::DT_UNDEFINED : tensor->desc.GetDataType();
    }
};

}  // namespace gert
