// Tiling as operator libraries write it: a class with a step for each part, and one for a chip that is not here.
#include "../op_kernel/shift_rows_tiling_key.h"
#include "op_host/infershape_elewise_util.h"
#include "op_host/tiling_base_class.h"
#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"
#include "util/const_util.h"
#include "util/fp16.h"
#include "util/platform_util.h"

namespace optiling {

BEGIN_TILING_DATA_DEF(ShiftRowsTiling)
TILING_DATA_FIELD_DEF(uint32_t, repeats);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(ShiftRows, ShiftRowsTiling)

ge::graphStatus TileForAnotherChip(gert::TilingContext *context);

class TileBeyond : public Ops::Base::TilingBaseClass {  // its functions are another chip's
public:
    using TilingBaseClass::TilingBaseClass;
    bool IsCapable() override;
    ge::graphStatus GetPlatformInfo() override;
    ge::graphStatus GetShapeAttrsInfo() override;
    ge::graphStatus DoOpTiling() override;
    ge::graphStatus DoLibApiTiling() override;
    uint64_t GetTilingKey() const override;
    ge::graphStatus GetWorkspaceSize() override;
    ge::graphStatus PostTiling() override;
};

class TileRows : public Ops::Base::TilingBaseClass {
public:
    using TilingBaseClass::TilingBaseClass;

protected:
    bool IsCapable() override { return Ops::Base::GetAivCoreNum(context_) > 0; }
    ge::graphStatus GetPlatformInfo() override { return ge::GRAPH_SUCCESS; }
    ge::graphStatus GetShapeAttrsInfo() override
    {
        tiling_.SetDataPtr(context_->GetRawTilingData()->GetData());
        const auto type = context_->GetInputDesc(0)->GetDataType();
        half_ = type == ge::DT_FLOAT16;
        const auto bytes = context_->GetInputShape(0)->GetStorageShape().GetShapeSize() *
                           (half_ ? sizeof(Ops::Base::fp16_t) : sizeof(float));
        tiling_.set_repeats(static_cast<uint32_t>(Ops::Base::CeilDiv(bytes, 256UL)));
        return ge::GRAPH_SUCCESS;
    }
    ge::graphStatus DoOpTiling() override { return ge::GRAPH_SUCCESS; }
    ge::graphStatus DoLibApiTiling() override { return ge::GRAPH_SUCCESS; }
    uint64_t GetTilingKey() const override
    {
        const bool down = *context_->GetAttrs()->GetBool(0);
        return GET_TPL_TILING_KEY(half_ ? C_DT_FLOAT16 : C_DT_FLOAT, down, tiling_.get_repeats() > 2 ? 40 : 3);
    }
    ge::graphStatus GetWorkspaceSize() override { return ge::GRAPH_SUCCESS; }
    ge::graphStatus PostTiling() override
    {
        context_->GetRawTilingData()->SetDataSize(tiling_.GetDataSize());
        return context_->SetBlockDim(1);
    }

private:
    ShiftRowsTiling tiling_;
    bool half_ = false;
};

static ge::graphStatus Tile(gert::TilingContext *context)
{
    if (context->GetInputShape(0)->GetStorageShape().GetDimNum() == 3) {
        return TileBeyond(context).DoTiling();
    }
    const bool other = Ops::Base::IsRegbaseSocVersion(context) ||
                       context->GetInputShape(0)->GetStorageShape().GetDimNum() == 2;
    return other ? TileForAnotherChip(context) : TileRows(context).DoTiling();
}

IMPL_OP_OPTILING(ShiftRows).Tiling(Tile);
IMPL_OP_INFERSHAPE(ShiftRows).InferShape(Ops::Base::InferShape4Elewise);

}  // namespace optiling

namespace ops {

class ShiftRows : public OpDef {
public:
    explicit ShiftRows(const char *name) : OpDef(name)
    {
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT, ge::DT_FLOAT16}).Format({ge::FORMAT_ND, ge::FORMAT_ND});
        this->Output("y").ParamType(REQUIRED).Follow("x");
        this->Attr("down").AttrType(OPTIONAL).Bool(false);
        this->AICore().AddConfig("ascend910b");
    }
};
OP_ADD(ShiftRows);

}  // namespace ops
