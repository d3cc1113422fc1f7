// Two operators: rows times a factor, plus a bias where there is one; and sums of the tensors of two lists.
#include "own_tiling.h"
#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"
#include "log_lines.h"

namespace optiling {

struct CompileInfo {
    uint32_t cores = 0;
};

static ge::graphStatus Prepare(gert::TilingParseContext *context)
{
    auto info = context->GetCompiledInfo<CompileInfo>();
    info->cores = platform_ascendc::PlatformAscendC(context->GetPlatformInfo()).GetCoreNumAiv();
    return info->cores > 0 ? ge::GRAPH_SUCCESS : ge::GRAPH_FAILED;
}

static ge::graphStatus TileRows(gert::TilingContext *context)
{
    const gert::Shape &shape = context->GetInputShape(0)->GetStorageShape();
    if (shape.GetDimNum() != 2) {
        LOG_LINE("rows have two dimensions, not %zu", shape.GetDimNum());
        return ge::GRAPH_FAILED;
    }
    const auto *first = context->GetAttrs()->GetListInt(1);
    ScaleRowsTiling tiling;
    tiling.extent.set_rows(static_cast<uint32_t>(shape.GetDim(0)));
    tiling.extent.set_columns(static_cast<uint32_t>(shape.GetDim(1)));
    tiling.set_factor(*context->GetAttrs()->GetFloat(0));
    int32_t starts[3] = {};
    for (size_t i = 0; i < first->GetSize() && i < 3; ++i) {
        starts[i] = static_cast<int32_t>(first->GetData()[i]);
    }
    tiling.set_first(starts);
    const auto *info = static_cast<const CompileInfo *>(context->GetCompileInfo());
    context->SetBlockDim(std::min<uint32_t>(info->cores, tiling.extent.get_rows()));
    context->SetTilingKey(context->GetOptionalInputShape(1) == nullptr ? 1 : 2);
    tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
    context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
    context->GetWorkspaceSizes(1)[0] = 32;
    return ge::GRAPH_SUCCESS;
}

static ge::graphStatus TileLists(gert::TilingContext *context)
{
    AddListsTiling tiling;
    tiling.set_tensors(context->GetIrInputInstanceInfo(0)->GetInstanceNum());
    context->SetBlockDim(1);
    tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
    context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
    return ge::GRAPH_SUCCESS;
}

static ge::graphStatus ShapeRows(gert::InferShapeContext *context)
{
    if (context->GetInputShape(0)->GetDimNum() != 2) {
        return ge::GRAPH_FAILED;
    }
    *context->GetOutputShape(0) = *context->GetInputShape(0);
    return ge::GRAPH_SUCCESS;
}

IMPL_OP_INFERSHAPE(ScaleRows).InferShape(ShapeRows);
IMPL_OP_OPTILING(ScaleRows).Tiling(TileRows).TilingParse<CompileInfo>(Prepare);

}  // namespace optiling

namespace ops {

class ScaleRows : public OpDef {
public:
    explicit ScaleRows(const char *name) : OpDef(name)
    {
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT16, ge::DT_FLOAT}).Format({ge::FORMAT_ND, ge::FORMAT_ND});
        this->Input("bias").ParamType(OPTIONAL).DataType({ge::DT_FLOAT16, ge::DT_FLOAT}).Format({ge::FORMAT_ND, ge::FORMAT_ND});
        this->Output("y").ParamType(REQUIRED).Follow("x");
        this->Attr("factor").AttrType(OPTIONAL).Float(2.0);
        this->Attr("first").AttrType(OPTIONAL).ListInt({0, 0, 0});
        this->AICore().AddConfig("ascend910b");
    }
};
OP_ADD(ScaleRows);

class AddLists : public OpDef {
public:
    explicit AddLists(const char *name) : OpDef(name)
    {
        this->Input("x").ParamType(DYNAMIC).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->Input("total").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->Output("y").ParamType(DYNAMIC).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->Output("total").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->AICore().SetTiling(optiling::TileLists).AddConfig("ascend910b");
    }
};
OP_ADD(AddLists);

}  // namespace ops
