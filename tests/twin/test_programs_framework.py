"""Kernels of operator packages: tiling data and keys, templates, dtypes, types, and the host's structures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from evokernel_core.cli.twin import run
from evokernel_core.domain.errors import UsageError
from evokernel_core.twin.bare import read_launch
from evokernel_core.twin.framework import DATA_TYPES, FORMATS, Framework, framework_macros, number_definitions

pytestmark = pytest.mark.usefixtures("kernel_home")

HOST_HEADER = """\
#pragma once
#include "register/tilingdata_base.h"
namespace optiling {
BEGIN_TILING_DATA_DEF(Part)
TILING_DATA_FIELD_DEF(int32_t, shift);
TILING_DATA_FIELD_DEF_ARR(int32_t, 2, steps);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(PartOp, Part)
BEGIN_TILING_DATA_DEF(OpTiling)
TILING_DATA_FIELD_DEF(uint64_t, count);
TILING_DATA_FIELD_DEF_STRUCT(Part, part);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(Op, OpTiling)
}
"""

KERNEL = """\
#include "kernel_operator.h"
#if ORIG_DTYPE_X == DT_INT32 && FORMAT_X == FORMAT_NZ
constexpr int kBonus = 1000;
#elif ORIG_DTYPE_X == DT_INT32
constexpr int kBonus = 0;
#else
#error "no such dtype"
#endif

template <typename T, int Times, bool Negate>
__global__ __aicore__ void op(GM_ADDR x, GM_ADDR z, GM_ADDR workspace, GM_ADDR tiling)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    KERNEL_TASK_TYPE(5, KERNEL_TYPE_MIX_AIC_1_1);
    static_assert(sizeof(DTYPE_X) == sizeof(T));
    GET_TILING_DATA(data, tiling);
    GET_TILING_DATA_MEMBER(optiling::OpTiling, part, member, tiling);
    GET_TILING_DATA_PTR_WITH_STRUCT(optiling::OpTiling, pointer, tiling);
    COPY_TILING_WITH_STRUCT(optiling::Part, pointer->part, copied);
    COPY_TILING_WITH_ARRAY(int32_t, 2, pointer->part.steps, steps);
    AscendC::GlobalTensor<T> from, to;
    from.SetGlobalBuffer((__gm__ T *)x);
    to.SetGlobalBuffer((__gm__ T *)z);
    if ASCEND_IS_AIC {
        return;
    }
    for (uint64_t i = 0; i < data.count; ++i) {
        T value = from.GetValue(i) * Times + member.shift + copied->shift + (*steps)[1] + kBonus;
        if (TILING_KEY_IS(3) || TILING_KEY_LIST(4, 5)) {
            value += 10000;
        }
        to.SetValue(i, Negate ? -value : value);
    }
}
"""


class Package:
    """The files of an operator and its launch."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "op.cpp").write_text(KERNEL)
        (folder / "op_tiling.h").write_text(HOST_HEADER)
        tiling = np.zeros(1, [("count", "<u8"), ("shift", "<i4"), ("steps", "<i4", 2), ("pad", "<i4")])
        tiling["count"], tiling["shift"], tiling["steps"] = 8, 7, (1, 2)
        tiling.tofile(folder / "tiling.bin")
        np.save(folder / "x.npy", np.arange(8, dtype=np.int32))
        self.launch: dict[str, Any] = {
            "block_dim": 1,
            "args": [
                {"in": "x.npy"},
                {"out": "z.npy", "shape": [8], "dtype": "int32"},
                {"workspace": 0},
                {"bytes": "tiling.bin"},
            ],
            "tiling_key": 3,
            "template": ["int32", 2, False],
            "tiling_header": "op_tiling.h",
            "tiling_struct": "optiling::OpTiling",
            "formats": {"x": "ND"},
        }

    def run(self, **changes: Any) -> tuple[dict[str, Any], np.ndarray[Any, np.dtype[np.int32]]]:
        (self.folder / "launch.json").write_text(json.dumps({**self.launch, **changes}))
        command = [str(self.folder / "op.cpp"), "--entry", "op", "--launch", str(self.folder / "launch.json")]
        result = CliRunner().invoke(run, [*command, "--json"], catch_exceptions=False)
        path = self.folder / "z.npy"
        return json.loads(result.stdout), np.load(path) if path.exists() else np.zeros(0, np.int32)


@pytest.fixture
def package(tmp_path: Path) -> Package:
    return Package(tmp_path)


def test_tiling_data_key_template_and_dtypes(package: Package) -> None:
    data, z = package.run()
    assert data["ok"], data
    np.testing.assert_array_equal(z, np.arange(8) * 2 + 7 + 7 + 2 + 10000)
    data, z = package.run(tiling_key=5, template=["int32", 3, True])
    assert data["ok"], data
    np.testing.assert_array_equal(z, -(np.arange(8) * 3 + 16 + 10000))


def test_a_key_or_tiling_that_the_launch_lacks(package: Package) -> None:
    data, _ = package.run(tiling_key=None)
    assert [hazard["code"] for hazard in data["hazards"]] == ["tiling-misuse"]
    assert "asks for its tiling key" in data["hazards"][0]["message"]
    (package.folder / "tiling.bin").write_bytes(bytes(16))
    data, _ = package.run()
    assert data["hazards"][0]["code"] == "tiling-misuse"
    assert "has 24 bytes, but the launch gives 16 bytes" in data["hazards"][0]["message"]


def test_a_kernel_that_is_not_there_is_answered_with_those_that_are(package: Package) -> None:
    package.launch["args"].pop()
    with pytest.raises(UsageError, match="has 4 parameters, but the launch file 3 args"):
        package.run()
    text = KERNEL.replace("void op(", "void other(")
    (package.folder / "op.cpp").write_text(text)
    with pytest.raises(UsageError, match="it has other"):
        package.run()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tiling_key": -1}, "is -1; write a number"),
        ({"kernel_type": "AIV"}, "'AIV'; write one of AIV_ONLY"),
        ({"dtypes": {"x": "f16"}}, "gives X 'f16'; write one of float32"),
    ],
)
def test_a_launch_file_with_a_wrong_key(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    path = tmp_path / "launch.json"
    path.write_text(json.dumps({"args": [], **change}))
    with pytest.raises(UsageError, match=words):
        read_launch(path)


def test_macros_are_given_where_they_are_asked_for() -> None:
    framework = Framework(dtypes={"Y": "bfloat16"}, formats={"X": "NCHW"})
    text = "DTYPE_X ORIG_DTYPE_Y DTYPE_Y"
    macros = framework_macros(framework, {"X": "float16", "Z": "int8"}, text, ["DTYPE_X=float"])
    assert macros == ("DTYPE_Y=bfloat16_t", "ORIG_DTYPE_Y=DT_BF16", "FORMAT_X=FORMAT_NCHW")
    assert f"#define DT_BF16 {DATA_TYPES['BF16']}\n" in number_definitions("#if ORIG_DTYPE_X == DT_FLOAT")
    assert f"#define FORMAT_ND {FORMATS['ND']}\n" in number_definitions("#if FORMAT_X == FORMAT_ND")
    assert "using ge::DT_FLOAT;\n" in number_definitions("int x = DT_FLOAT;")
    assert number_definitions("int x = ge::DT_FLOAT;") == ""


HOST = """\
#include <cstdio>
#include "acl/acl.h"
#include "ascendc/host_api/tiling/template_argument.h"
#include "graph/types.h"
#include "kernel_operator.h"
#include "op_tiling.h"

ASCENDC_TPL_ARGS_DECL(Op, ASCENDC_TPL_DATATYPE_DECL(T, C_DT_FLOAT, C_DT_FLOAT16),
                      ASCENDC_TPL_UINT_DECL(N, ASCENDC_TPL_4_BW, ASCENDC_TPL_UI_MIX, 2, 0, 2, 5, 6, 9),
                      ASCENDC_TPL_BOOL_DECL(B, 0, 1));
ASCENDC_TPL_SEL(ASCENDC_TPL_ARGS_SEL(ASCENDC_TPL_KERNEL_TYPE_SEL(ASCENDC_TPL_AIV_ONLY),
                                     ASCENDC_TPL_DATATYPE_SEL(T, C_DT_FLOAT16),
                                     ASCENDC_TPL_UINT_SEL(N, ASCENDC_TPL_UI_LIST, 5, 9),
                                     ASCENDC_TPL_BOOL_SEL(B, 0, 1),
                                     ASCENDC_TPL_TILING_STRUCT_SEL(optiling::OpTiling)), );

struct Context {
    uint64_t key;
    void SetTilingKey(uint64_t value) { key = value; }
};

__global__ __aicore__ void nothing() {}

int main()
{
    optiling::OpTiling tiling;
    int32_t steps[] = {4, 5, 6};
    tiling.set_count(9);
    tiling.part.set_steps(steps);
    uint8_t buffer[64] = {};
    tiling.SaveToBuffer(buffer, sizeof(buffer));
    Context context;
    ASCENDC_TPL_SEL_PARAM(&context, C_DT_FLOAT16, 9, true);
    const bool refused = GET_TPL_TILING_KEY(C_DT_FLOAT, 9, true) == AscendC::INVALID_TILING_KEY;
    std::printf("size %zu count %d step %d ", tiling.GetDataSize(), buffer[0], buffer[16]);
    std::printf("key %llx refused %d dtype %d\\n", static_cast<unsigned long long>(context.key), refused,
                static_cast<int>(ge::DT_BF16));
    nothing<<<1, nullptr, nullptr>>>();
    return 0;
}
"""


def test_tiling_structures_and_keys_on_the_host(tmp_path: Path) -> None:
    (tmp_path / "op_tiling.h").write_text(HOST_HEADER)
    (tmp_path / "host.asc").write_text(HOST)
    result = CliRunner().invoke(run, [str(tmp_path / "host.asc")], catch_exceptions=False)
    # Bits from the lowest: FLOAT16 = 1 in eight, 9 is the sixth allowed number in four, true in one.
    key = 1 | 5 << 8 | 1 << 12
    assert f"size 24 count 9 step 5 key {key:x} refused 1 dtype 27" in result.output
