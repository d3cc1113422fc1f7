#pragma once
#include "ascendc/host_api/tiling/template_argument.h"

ASCENDC_TPL_ARGS_DECL(ShiftRows, ASCENDC_TPL_DATATYPE_DECL(T, C_DT_FLOAT, C_DT_FLOAT16),
                      ASCENDC_TPL_BOOL_DECL(down, 0, 1),
                      ASCENDC_TPL_UINT_DECL(amount, ASCENDC_TPL_8_BW, ASCENDC_TPL_UI_LIST, 3, 40));
ASCENDC_TPL_SEL(ASCENDC_TPL_ARGS_SEL(ASCENDC_TPL_DATATYPE_SEL(T, C_DT_FLOAT, C_DT_FLOAT16),
                                     ASCENDC_TPL_BOOL_SEL(down, 0, 1),
                                     ASCENDC_TPL_UINT_SEL(amount, ASCENDC_TPL_UI_LIST, 3, 40)));
