#pragma once
#include "register/tilingdata_base.h"

namespace optiling {

BEGIN_TILING_DATA_DEF(Extent)
    TILING_DATA_FIELD_DEF(uint32_t, rows);
    TILING_DATA_FIELD_DEF(uint32_t, columns);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(ExtentOp, Extent)

BEGIN_TILING_DATA_DEF(ScaleRowsTiling)
    TILING_DATA_FIELD_DEF_STRUCT(Extent, extent);
    TILING_DATA_FIELD_DEF(float, factor);
    TILING_DATA_FIELD_DEF_ARR(int32_t, 3, first);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(ScaleRows, ScaleRowsTiling)

BEGIN_TILING_DATA_DEF(AddListsTiling)
    TILING_DATA_FIELD_DEF(uint32_t, tensors);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(AddLists, AddListsTiling)

}  // namespace optiling
