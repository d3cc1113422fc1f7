"""`evokernel twin run-op`: operators with op_kernel and op_host, tiled by their own host code."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from click.testing import CliRunner

from evokernel_core.cli.twin import command
from evokernel_core.domain.errors import UsageError
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.twin.build import INCLUDE, INTERFACE, PART_HEADERS, prepare
from evokernel_core.twin.operators.definition import Description
from evokernel_core.twin.operators.folder import read_folder
from evokernel_core.twin.operators.host import build_host
from evokernel_core.twin.operators.includes import include_folders
from evokernel_core.twin.operators.kernel import own_structures, snake, tiling_text, type_macros
from evokernel_core.twin.operators.missing import definitions
from evokernel_core.twin.operators.report import operator_rows
from evokernel_core.twin.operators.run import operator_of

OPERATORS = Path(__file__).parent / "data" / "operators"
OWN = OPERATORS / "own"
KEYS = {"compiled", "missing", "ran", "right", "hazards", "latency_us"}


@pytest.fixture(scope="module")
def described() -> Description:
    return build_host(read_folder(OWN)).describe(load_chip("ascend910b1"))


def told(folder: Path, *options: object) -> dict[str, Any]:
    done = CliRunner().invoke(command, ["run-op", str(folder), "--json", *map(str, options)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.output
    found: dict[str, Any] = json.loads(done.stdout)
    assert found.keys() >= KEYS
    return found


def case(work: Path, **known: Any) -> Path:
    """CASE.json beside the arrays of its inputs and expectations."""
    path = work / "CASE.json"
    path.write_text(json.dumps(known))
    return path


def saved(work: Path, **arrays: Any) -> None:
    for name, array in arrays.items():
        np.save(work / f"{name}.npy", array)


def test_what_the_host_code_defines(described: Description) -> None:
    rows, lists = operator_of(described, "ScaleRows"), operator_of(described, "AddLists")
    assert [item.kind for item in rows.inputs] == ["required", "optional"]
    assert rows.outputs[0].types == rows.inputs[0].types == (1, 0)
    assert [(item.name, item.kind, item.value) for item in rows.attributes] == [
        ("factor", "float", 2), ("first", "list_int", [0, 0, 0]),
    ]  # fmt: skip
    assert (rows.combinations, rows.is_for_chip, lists.inputs[0].kind) == (2, True, "dynamic")
    assert described.tilings["ScaleRows"] == "ScaleRowsTiling"
    assert "DTYPE_X=half" in type_macros(rows, 0)
    assert "ORIG_DTYPE_X=DT_FLOAT" in type_macros(rows, 1)
    text = tiling_text(described)
    assert text.index("struct Extent {") < text.index("    Extent extent;")
    assert "    int32_t first[3];" in text
    with pytest.raises(UsageError, match="AddLists, ScaleRows"):
        operator_of(described, "")


def test_an_output_with_the_name_of_an_input_has_macros_of_its_own(described: Description) -> None:
    """A build calls the second one x_ref."""
    lists = operator_of(described, "AddLists")
    (total,) = (item for item in lists.outputs if item.name == "total")
    macros = list(type_macros(evolve(lists, outputs=(evolve(total, types=(1,)),)), 0))
    assert {"DTYPE_TOTAL=float", "DTYPE_TOTAL_REF=half", "ORIG_DTYPE_TOTAL_REF=DT_FLOAT16"} <= set(macros)
    assert len({macro.partition("=")[0] for macro in macros}) == len(macros)


@pytest.mark.parametrize(("name", "is_macro"), [("x", True), ("end", False), ("nd", False)])
def test_a_tensor_named_like_a_format_has_no_macro_of_it(
    described: Description, name: str, is_macro: bool
) -> None:
    rows = operator_of(described, "ScaleRows")
    macros = type_macros(evolve(rows, inputs=(evolve(rows.inputs[0], name=name),)), 0)
    assert (f"FORMAT_{name.upper()}=FORMAT_ND" in macros) == is_macro


@pytest.mark.parametrize(
    ("name", "spelled"),
    [
        ("AddRmsNorm", "add_rms_norm"),
        ("FFN", "ffn"),
        ("Conv3dBackprop", "conv3d_backprop"),
        ("IOUv2", "io_uv2"),
    ],
)
def test_a_kernel_has_the_operators_name(name: str, spelled: str) -> None:
    assert snake(name) == spelled


@pytest.mark.parametrize(
    ("dtype", "bias", "attributes"),
    [("float32", True, {}), ("float16", False, {"factor": 0.5}), ("float32", False, {"first": [3, 0, 0]})],
)
def test_a_call_with_the_vendors_tiling(
    tmp_path: Path, dtype: str, bias: bool, attributes: dict[str, Any]
) -> None:
    rng = np.random.default_rng(3)
    x, b = rng.normal(size=(45, 37)).astype(dtype), rng.normal(size=37).astype(dtype)
    y = x * attributes.get("factor", 2.0) + attributes.get("first", [0])[0] + (b if bias else 0)
    saved(tmp_path, x=x, b=b, golden=y.astype(dtype))
    path = case(
        tmp_path, operator="ScaleRows", inputs={"x": "x.npy", "bias": "b.npy" if bias else None},
        outputs={"y": {"shape": [45, 37], "dtype": dtype}}, attributes=attributes,
        expect={"y": "golden.npy"}, rtol=2e-3, atol=2e-3,
    )  # fmt: skip
    found = told(OWN, "--case", path)
    assert (found["compiled"], found["ran"], found["right"], found["hazards"]) == (True, True, True, [])
    assert found["latency_us"] > 0
    timed = told(OWN, "--case", path, "--mode", "time")
    assert timed["ran"], timed
    assert timed["latency_us"] == pytest.approx(found["latency_us"])
    assert not timed["right"]  # nothing moved that could be compared
    np.save(tmp_path / "golden.npy", y.astype(dtype) + 1)
    assert "differs from golden.npy" in told(OWN, "--case", path)["error"]


def test_lists_and_tensors_that_change_in_place(tmp_path: Path) -> None:
    saved(tmp_path, a=np.ones((2, 3), np.float32), b=np.zeros(5, np.float32), total=np.float32([100]))
    saved(tmp_path, ya=np.full((2, 3), 2, np.float32), yb=np.ones(5, np.float32), after=np.float32([111]))
    shapes = [{"shape": [2, 3], "dtype": "float32"}, {"shape": [5], "dtype": "float32"}]
    path = case(
        tmp_path, operator="AddLists", inputs={"x": ["a.npy", "b.npy"], "total": "total.npy"},
        outputs={"y": shapes, "total": {"shape": [1], "dtype": "float32"}},
        expect={"y": ["ya.npy", "yb.npy"], "total": "after.npy"},
    )  # fmt: skip
    found = told(OWN, "--case", path)
    assert (found["right"], found["hazards"], found["error"]) == (True, [], "")


def test_an_output_that_the_case_leaves_out_has_the_shape_that_the_operator_says(tmp_path: Path) -> None:
    saved(tmp_path, x=np.ones((4, 9), np.float32), y=np.full((4, 9), 2, np.float32))
    path = case(tmp_path, operator="ScaleRows", inputs={"x": "x.npy"}, outputs={}, expect={"y": "y.npy"})
    found = told(OWN, "--case", path)
    assert (found["right"], found["hazards"], found["error"]) == (True, [], "")
    unseen = told(OWN, "--case", case(tmp_path, operator="ScaleRows", inputs={"x": "x.npy"}, outputs={}))
    assert (unseen["ran"], unseen["hazards"], unseen["compared"]) == (True, [], False)
    case(tmp_path, operator="ScaleRows", inputs={"x": "x.npy"}, outputs={}, expect={"y": "y.npy"})
    source = tmp_path / "without"
    copytree(OWN.parent, source)
    host = source / "own/op_host/own.cpp"
    host.write_text(host.read_text().replace("IMPL_OP_INFERSHAPE(ScaleRows).InferShape(ShapeRows);", ""))
    unknown = told(source / "own", "--case", path)
    assert (unknown["ran"], "no output" in unknown["error"]) == (False, True)


def test_an_output_given_as_a_file_holds_it_before_the_call(tmp_path: Path) -> None:
    """The kernel writes as many rows as its input has: the last one stays as it was."""
    saved(tmp_path, x=np.ones((4, 8), np.float32), before=np.full((5, 8), 7, np.float32))
    saved(tmp_path, after=np.repeat(np.float32([2, 2, 2, 2, 7]), 8).reshape(5, 8))
    call = {"operator": "ScaleRows", "inputs": {"x": "x.npy"}, "expect": {"y": "after.npy"}}
    held = told(OWN, "--case", case(tmp_path, **call, outputs={"y": "before.npy"}))
    assert (held["right"], held["hazards"], held["error"]) == (True, [], "")
    shape = {"shape": [5, 8], "dtype": "float32"}
    empty = told(OWN, "--case", case(tmp_path, **call, outputs={"y": shape}))
    assert [hazard["code"] for hazard in empty["hazards"]] == ["output-not-written"]


def test_lists_of_tensors_without_dimensions(tmp_path: Path) -> None:
    saved(tmp_path, a=np.float32(1), b=np.float32(4), total=np.float32([100]))
    saved(tmp_path, ya=np.float32(2), yb=np.float32(5))
    path = case(
        tmp_path, operator="AddLists", inputs={"x": ["a.npy", "b.npy"], "total": "total.npy"},
        outputs={"y": [{"shape": [], "dtype": "float32"}] * 2, "total": {"shape": [1], "dtype": "float32"}},
        expect={"y": ["ya.npy", "yb.npy"]},
    )  # fmt: skip
    found = told(OWN, "--case", path)
    assert (found["ran"], found["error"]) == (True, "")


def test_a_case_without_expectations_shows_nothing(tmp_path: Path) -> None:
    saved(tmp_path, x=np.ones((4, 8), np.float32))
    path = case(
        tmp_path,
        operator="ScaleRows",
        inputs={"x": "x.npy"},
        outputs={"y": {"shape": [4, 8], "dtype": "float32"}},
    )
    found = told(OWN, "--case", path)
    assert (found["ran"], found["compared"], found["right"]) == (True, False, False)
    done = CliRunner().invoke(command, ["run-op", str(OWN), "--case", str(path)])
    assert (done.exit_code, "right: nothing was compared" in done.output) == (0, True)


def test_an_input_of_the_expectations_is_one_that_the_kernel_may_change(tmp_path: Path) -> None:
    """It is compared like an output, and holds its elements before the launch."""
    saved(tmp_path, x=np.ones((4, 8), np.float32), y=np.full((4, 8), 2, np.float32))
    path = case(
        tmp_path, operator="ScaleRows", inputs={"x": "x.npy"},
        outputs={"y": {"shape": [4, 8], "dtype": "float32"}}, expect={"y": "y.npy", "x": "x.npy"},
    )  # fmt: skip
    found = told(OWN, "--case", path)
    assert (found["right"], found["hazards"], found["error"]) == (True, [], "")
    case(tmp_path, **{**json.loads(path.read_text()), "expect": {"x": "y.npy"}})
    assert "x.0.out.npy differs" in told(OWN, "--case", path)["error"]


def test_an_operator_for_other_chips_is_said(tmp_path: Path) -> None:
    copytree(OPERATORS, tmp_path / "project")
    host = tmp_path / "project" / "own" / "op_host" / "own.cpp"
    host.write_text(host.read_text().replace('"ascend910b"', '"ascend310p"'))
    found = told(tmp_path / "project" / "own")
    assert (found["compiled"], found["stage"]) == (False, "chip")
    assert "other chips than ascend910b" in found["error"]


def test_what_the_host_code_refuses_is_said(tmp_path: Path) -> None:
    saved(tmp_path, x=np.ones(8, np.float32), i=np.ones((2, 2), np.int32))
    outputs = {"y": {"shape": [8], "dtype": "float32"}}
    path = case(tmp_path, operator="ScaleRows", inputs={"x": "x.npy"}, outputs=outputs)
    found = told(OWN, "--case", path)
    assert (found["ran"], found["stage"]) == (False, "call")
    assert "tiling function of ScaleRows refused" in found["error"]
    path = case(tmp_path, operator="ScaleRows", inputs={"x": "i.npy"}, outputs=outputs)
    assert "not defined for x int32" in told(OWN, "--case", path)["error"]
    path = case(tmp_path, operator="ScaleRows", inputs={"x": "x.npy"}, outputs=outputs, attributes={"fac": 1})
    assert "no attribute fac" in told(OWN, "--case", path)["error"]


@pytest.mark.parametrize(
    ("file", "old", "new", "missing"),
    [
        ("op_kernel/scale_rows.cpp", "PipeBarrier<PIPE_V>();", "NoSuchCall(row);", "NoSuchCall"),
        ("op_host/own.cpp", "context->SetBlockDim(1);", "context->SetNoSuch(1);", "SetNoSuch"),
        ("op_host/own.cpp", '"log_lines.h"', '"no_such_lines.h"', "no_such_lines.h"),
    ],
)
def test_what_is_missing_is_named(tmp_path: Path, file: str, old: str, new: str, missing: str) -> None:
    copytree(OPERATORS, tmp_path / "project")
    changed = tmp_path / "project" / "own" / file
    changed.write_text(changed.read_text().replace(old, new))
    found = told(tmp_path / "project" / "own")
    assert (found["compiled"], missing in found["missing"]) == (False, True), found


@pytest.mark.parametrize("known_by", ["the build", "its header", "neither"])
def test_host_code_that_operators_share(tmp_path: Path, known_by: str) -> None:
    """A source elsewhere that the build names, or beside a header that the operator includes."""
    project = tmp_path / "project"
    copytree(OPERATORS, project)
    own = project / "own"
    (own / "op_host" / "own.cpp").rename(project / "shared" / "inc" / "common_part.cpp")
    (project / "shared" / "inc" / "common_part.h").write_text("#pragma once\n")
    (project / "other" / "op_host").mkdir(parents=True)
    (project / "other" / "op_host" / "broken.cpp").write_text("no C++\n")
    (own / "op_host" / "own_def.cc").write_text(
        '#include "common_part.h"\n' if known_by == "its header" else "\n"
    )
    if known_by == "the build":
        (own / "CMakeLists.txt").write_text(
            "target_sources(op_host_aclnn PRIVATE ../other/op_host/broken.cpp)\n"
            "target_sources(optiling PRIVATE\n    ${COMMON_DIR}/inc/common_part.cpp  # own.cpp\n)\n"
        )
    found = told(own)
    assert found["compiled"] == (known_by != "neither"), found


LIBRARY = """
#include "op_common/log/log.h"
#include "op_common/op_host/util/math_util.h"
#include "util/platform_util.h"
#include "graph/operator.h"
#include "platform/soc_spec.h"

static bool Agree(gert::TilingContext *context)
{
    const gert::Shape any{-2}, open{4, -1}, none{};
    const bool shapes = Ops::Base::IsUnknownRank(any) && Ops::Base::IsUnknownShape(open) &&
        Ops::Base::ToString(Ops::Base::EnsureNotScalar(none)) == "[1]";
    const bool units = Ops::Base::CeilDiv(7, 2) == 4 && Ops::Base::FloorAlign(7U, 4UL) == 4 &&
        Ops::Base::CeilAlign(7, 4) == 8 && Ops::Base::GetUbBlockSize(context) == 32;
    OP_LOGD(context, "%s", Ops::Base::ToString(ge::DT_BF16).c_str());
    return likely(shapes && units);
}
static ge::graphStatus Asked(gert::TilingContext *context)
{
    OP_CHECK_NULL_WITH_CONTEXT(context, context);
    OP_CHECK_IF(!Agree(context), OP_LOGE(context, "no %d", 1), return ge::GRAPH_FAILED);
    OP_CHECK_IF(context->GetInputShape(0)->GetStorageShape().GetDim(0) == 3,
        OP_LOGE_FOR_INVALID_SHAPE_WITH_REASON(context, "x", string("[3]"), "three rows are wrong"),
        return ge::GRAPH_FAILED);
    return ge::GRAPH_SUCCESS;
}
"""


@pytest.mark.parametrize("rows", [2, 3])
def test_host_code_may_use_the_operator_libraries_headers(tmp_path: Path, rows: int) -> None:
    """Log, checks, numbers and shapes; what it says of a refusal is told."""
    copytree(OPERATORS, tmp_path / "project")
    host = tmp_path / "project" / "own" / "op_host" / "own.cpp"
    old = "context->SetBlockDim(std::min"
    text = host.read_text()
    assert old in text
    asked = f"if (Asked(context) != ge::GRAPH_SUCCESS) {{ return ge::GRAPH_FAILED; }}\n    {old}"
    first = text.index("namespace")
    host.write_text(f"{text[:first]}{LIBRARY}{text[first:].replace(old, asked)}")
    saved(tmp_path, x=np.ones((rows, 8), np.float32))
    outputs = {"y": {"shape": [rows, 8], "dtype": "float32"}}
    found = told(
        tmp_path / "project" / "own",
        "--case",
        case(tmp_path, operator="ScaleRows", inputs={"x": "x.npy"}, outputs=outputs),
    )
    assert found["ran"] == (rows == 2), found
    assert ("three rows are wrong" in found["error"]) == (rows == 3)


def test_headers_that_a_build_copies_and_files_of_other_chips(tmp_path: Path) -> None:
    """``../other/x.h`` beside kernels is ``other/op_kernel/x.h`` of the sources; arch35 is another chip."""
    copytree(OPERATORS, tmp_path / "project")
    own, other = tmp_path / "project" / "own", tmp_path / "project" / "other" / "op_kernel"
    other.mkdir(parents=True)
    (other / "more.h").write_text('#include "inner.h"\n')
    (other / "inner.h").write_text("constexpr int kKind = ORIG_DTYPE_X == DT_FLOAT ? 1 : 2;\n")
    kernel = own / "op_kernel" / "scale_rows.cpp"
    kernel.write_text(f'#include "kernel_operator.h"\n#include "../other/more.h"\n{kernel.read_text()}')
    for side in ("op_kernel", "op_host"):
        (own / side / "arch35").mkdir()
        (own / side / "arch35" / "scale_rows.cpp").write_text(
            '#include "no_such.h"\nextern "C" __global__ __aicore__ void scale_rows(GM_ADDR x) {}\n'
        )
    found = told(own)
    assert found["compiled"], found


NAMES = """
#include "adv_api/math/sin.h"
#include "basic_api/kernel_vec_intf.h"
#include "kernel_tpipe_impl.h"
#include "lib/math/cos.h"
using namespace AscendC;
__aicore__ inline DataCopyExtParams Rows(uint32_t columns) { return {1, columns * sizeof(float), 0, 0, 0}; }
static_assert(B16_BYTE_SIZE == 2 && B16_DATA_NUM_PER_BLOCK == 16 && B16_DATA_NUM_PER_REPEAT == 128);
static_assert(B32_BYTE_SIZE == 4 && B32_DATA_NUM_PER_BLOCK == 8 && B32_DATA_NUM_PER_REPEAT == 64);
static_assert(ONE_REPEAT_FLOAT_SIZE == 64 && ONE_REPEAT_HALF_SIZE == 128 && PI == 3.14159265F);
static_assert(AscendCUtils::GetBitSize(4) == 32 && sbitset0(7, 1) == 5 && sbitset1(5, 33) == 0x200000005);
"""


def test_names_that_public_kernels_count_on(tmp_path: Path) -> None:
    copytree(OPERATORS, tmp_path / "project")
    kernel = tmp_path / "project" / "own" / "op_kernel" / "scale_rows.cpp"
    kernel.write_text(f"{NAMES}{kernel.read_text()}")
    assert told(tmp_path / "project" / "own")["compiled"]


def test_each_header_of_a_part_brings_the_interface() -> None:
    assert len(set(PART_HEADERS)) == len(PART_HEADERS)
    for name in PART_HEADERS:
        assert not (INCLUDE / name).exists()
        assert INTERFACE in (prepare().include / name).read_text()


@pytest.mark.parametrize("side", ["op_host", "op_kernel"])
def test_a_header_of_both_sides_is_that_of_the_file_s_own(tmp_path: Path, side: str) -> None:
    copytree(OPERATORS, tmp_path / "project")
    for each in ("op_host", "op_kernel"):
        common = tmp_path / "project" / "shared" / each / "common.h"
        common.parent.mkdir()
        common.write_text("#pragma once\n")
    folder = read_folder(tmp_path / "project" / "own")
    file = folder.root / side / "user.h"
    file.write_text('#include "common.h"\n')
    assert include_folders((file,), folder) == (folder.project / "shared" / side,)


def test_a_project_s_header_of_an_operator_library_s_path_is_its_own(tmp_path: Path) -> None:
    copytree(OPERATORS, tmp_path / "project")
    own = tmp_path / "project" / "shared" / "inc" / "log" / "log.h"
    own.parent.mkdir()
    own.write_text("#define PROJECT_LOG(...)\n")
    host = tmp_path / "project" / "own" / "op_host" / "own.cpp"
    said = "PROJECT_LOG(one);\n    context->SetBlockDim"
    text = host.read_text().replace("context->SetBlockDim", said)
    host.write_text(f'#include "log/log.h"\n{text}')
    assert told(tmp_path / "project" / "own")["compiled"]


def test_a_tiling_structure_that_the_kernel_defines_is_its_own(described: Description) -> None:
    defined, registered = "struct ScaleRowsTiling {", "REGISTER_TILING_DEFAULT(mine::ScaleRowsTiling);"
    for texts, own in (((defined, registered), True), ((defined,), False), ((registered,), False)):
        text = tiling_text(described, own_structures(texts))
        assert ("struct ScaleRowsTiling {" not in text, "struct Extent {" in text) == (own, True)


@pytest.mark.parametrize("tiles", [False, True])
def test_an_operator_without_tiling_has_that_of_the_kernel_that_it_includes(
    tmp_path: Path, tiles: bool
) -> None:
    copytree(OPERATORS, tmp_path / "project")
    other = tmp_path / "project" / "other"
    for side in ("op_host", "op_kernel"):
        (other / side).mkdir(parents=True)
    (other / "op_kernel" / "other.cpp").write_text(
        '#include "../chosen/shift_rows_tiling_key.h"\n'
        'extern "C" __global__ __aicore__ void other(GM_ADDR x, GM_ADDR workspace, GM_ADDR tiling) {}\n'
    )
    (other / "op_host" / "other_def.cpp").write_text(
        "IMPL_OP_OPTILING(Other).Tiling(Tile);\n" if tiles else ""
    )
    names = [path.name for path in read_folder(other).host]
    assert names == ["other_def.cpp", *(() if tiles else ("shift_rows.cpp",))]


def test_host_functions_beside_a_kernel_are_not_built(tmp_path: Path) -> None:
    copytree(OPERATORS, tmp_path / "project")
    kernel = tmp_path / "project" / "own" / "op_kernel" / "scale_rows.cpp"
    kernel.write_text(
        kernel.read_text()
        + "\nvoid start(aclrtStream s, uint8_t *x)\n{\n    no_kernel<<<1, nullptr, s>>>(x);\n"
        "    if (aclrtSynchronizeStream(s) != ACL_SUCCESS) {\n        return;\n    }\n}\n"
    )
    assert told(tmp_path / "project" / "own")["compiled"]


def test_a_folder_that_is_no_operator(tmp_path: Path) -> None:
    (tmp_path / "op_kernel").mkdir()
    with pytest.raises(UsageError, match="no folder op_host"):
        read_folder(tmp_path)


@pytest.mark.parametrize(
    ("dtype", "down", "repeats", "by_number"),
    [("float32", False, 2, False), ("float16", True, 3, False), ("float16", False, 2, True)],
)
def test_the_tiling_key_chooses_template_arguments(
    tmp_path: Path, dtype: str, down: bool, repeats: int, by_number: bool
) -> None:
    """A dtype (a type or its number), a truth value and one of a list of numbers; the tiling is a class of an
    operator library."""
    copytree(OPERATORS, tmp_path / "project")
    folder = tmp_path / "project" / "chosen"
    if by_number:
        kernel = folder / "op_kernel" / "shift_rows.cpp"
        text = kernel.read_text().replace("template <typename T, bool", "template <uint64_t number, bool")
        chosen = "using T = std::conditional_t<number == C_DT_FLOAT, float, half>;"
        kernel.write_text(text.replace("GET_TILING_DATA(", f"{chosen}\n    GET_TILING_DATA("))
    x = np.random.default_rng(1).normal(size=repeats * 256 // np.dtype(dtype).itemsize).astype(dtype)
    amount = (-1 if down else 1) * (40 if repeats > 2 else 3)
    saved(tmp_path, x=x, golden=np.where(x > 0, x + np.dtype(dtype).type(amount), x))
    known = {"operator": "ShiftRows", "inputs": {"x": "x.npy"}, "attributes": {"down": down}}
    outputs = {"y": {"shape": list(x.shape), "dtype": dtype}}
    path = case(tmp_path, **known, outputs=outputs, expect={"y": "golden.npy"}, rtol=1e-3, atol=1e-3)
    found = told(folder, "--case", path)
    assert (found["right"], found["hazards"]) == (True, []), found


@pytest.mark.parametrize("sizes", [(8, 8), (2, 2, 2)])
def test_what_only_another_chip_has_ends_a_call_of_it_alone(tmp_path: Path, sizes: tuple[int, ...]) -> None:
    """A function, and a class of which no source is there."""
    assert told(OPERATORS / "chosen")["compiled"]
    saved(tmp_path, x=np.ones(sizes, np.float32))
    outputs = {"y": {"shape": list(sizes), "dtype": "float32"}}
    path = case(tmp_path, operator="ShiftRows", inputs={"x": "x.npy"}, outputs=outputs)
    found = told(OPERATORS / "chosen", "--case", path)
    assert "which no source for this chip defines" in found["error"], found


def test_operators_that_another_one_depends_on(tmp_path: Path) -> None:
    """Their host code is part of it, and their kernels are not asked for."""
    copytree(OPERATORS, tmp_path / "project")
    own = tmp_path / "project" / "own" / "op_host"
    own.rename(tmp_path / "project" / "chosen" / "moved")
    (tmp_path / "project" / "base").mkdir()
    (tmp_path / "project" / "chosen" / "moved").rename(tmp_path / "project" / "base" / "op_host")
    chosen = tmp_path / "project" / "chosen"
    (chosen / "CMakeLists.txt").write_text("add_sources(DIR op_host DEPENDENCIES base)\n")
    folder = read_folder(chosen)
    assert [path.name for path in folder.host] == ["shift_rows.cpp", "own.cpp"]
    assert [row["operator"] for row in operator_rows(chosen, None, load_chip("ascend910b1"))] == ["ShiftRows"]


@pytest.mark.parametrize("symbol", ["a b", "", "x;system", "operator+"])
def test_a_stand_in_has_the_name_of_a_symbol(symbol: str) -> None:
    with pytest.raises(ValueError, match="no symbol"):
        definitions([symbol])
