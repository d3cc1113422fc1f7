"""What operators' host code counts on from the toolkit's headers: by inclusion, by name, by value."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from evokernel_core.twin.build import INCLUDE, OPERATOR_FLAGS
from evokernel_core.twin.compiler import detect_compiler

ENTRANCES = (
    "register/op_def_registry.h",
    "register/op_impl_registry.h",
    "exe_graph/runtime/tiling_context.h",
)
"""Each of them alone brings what host code uses without including it."""
USES = """
namespace mine {
enum class Kind { OP, TUNE };  // names of a project hide the toolkit's
constexpr int MSG_LENGTH = 3;
int All()
{
    char text[8] = "a";
    int room[4];
    std::unordered_set<int> set{std::numeric_limits<int>::max()};
    std::unordered_map<int, std::string> map;
    std::ostringstream stream;
    if (memset_s(room, sizeof(room), 0, sizeof(room)) != EOK || strcat_s(text, sizeof(text), "b") != EOK) {
        const int level = CheckLogLevel(::OP, DLOG_INFO);
        AlogRecord(static_cast<int>(::OP), DLOG_TYPE_DEBUG, DLOG_ERROR, "[%s] %d", "host", level);
    }
    static_assert(ge::DT_DUAL_SUB_INT8 == 14 && ge::DT_DUAL_SUB_UINT8 == 15 && ge::DT_MAX == 43);
    static_assert(ge::FORMAT_NULL == 42 && ge::FORMAT_NYUV == 45 && ge::FORMAT_FRACTAL_NZ_C0_16 == 50);
    const ge::Format format = gert::Tensor().GetFormat().GetStorageFormat();
    static_assert(ge::FORMAT_END == 55 && ge::FORMAT_MAX == 255);
    return std::min(MSG_LENGTH, format + static_cast<int>(set.size() + map.size()));
}
}  // namespace mine
"""
PROTOTYPE = """
#include "graph/operator_reg.h"
#include "error_manager/error_manager.h"
#include "log/log.h"
namespace ge {
REG_OP(ScaleRows)
    .INPUT(x, TensorType({DT_FLOAT, DT_FLOAT16}))
    .OPTIONAL_INPUT(bias, "T")
    .OUTPUT(y, "T")
    .ATTR(factor, Float, 2.0)
    .REQUIRED_ATTR(axes, ListInt)
    .DATATYPE(T, TensorType({DT_FLOAT, DT_FLOAT16}))
    .OP_END_FACTORY_REG(ScaleRows)

IMPLEMT_COMMON_INFERFUNC(ShapeRows)
{
    TensorDesc y = op.GetInputDescByName("x");
    int64_t axis = 0;
    if (op.GetAttr("axis", axis) != GRAPH_SUCCESS) {
        OPS_REPORT_VECTOR_INNER_ERR("ScaleRows", "no axis %d", 1);
        OpLogSub(OP, DLOG_ERROR, "ScaleRows", "no axis %d", 1);
        return GRAPH_FAILED;
    }
    y.SetShape(Shape({y.GetShape().GetDim(0), axis}));
    return op.UpdateOutputDesc("y", y);
}
COMMON_INFER_FUNC_REG(ScaleRows, ShapeRows);
}  // namespace ge
ge::op::ScaleRows node("rows");
"""
# statement, what it returns, what the text is after it
BOUNDED = (
    ('strcpy_s(text, 8, "abc")', "EOK", "abc"),
    ('strcpy_s(text, 3, "abc")', "ERANGE", ""),
    ('strcpy_s(nullptr, 3, "abc")', "EINVAL", "xy"),
    ('strncpy_s(text, 8, "abcdef", 2)', "EOK", "ab"),
    ('strncpy_s(text, 2, "abcdef", 2)', "ERANGE", ""),
    ('strcat_s(text, 5, "ab")', "EOK", "xyab"),
    ('strcat_s(text, 4, "ab")', "ERANGE", ""),
    ('strncat_s(text, 8, "abc", 1)', "EOK", "xya"),
    ('memcpy_s(text, 8, "abc", 4)', "EOK", "abc"),
    ('memcpy_s(text, 3, "abc", 4)', "ERANGE", "xy"),
    ("memmove_s(text, 8, text + 1, 2)", "EOK", "y"),
    ("memset_s(text, 8, 0, 1)", "EOK", ""),
    ("memset_s(text, 8, 0, 9)", "ERANGE", "xy"),
    ('sprintf_s(text, 8, "%d", 12)', "2", "12"),
    ('snprintf_s(text, 8, 2, "%d", 123)', "-1", "12"),
    ('snprintf_s(text, 8, 7, "%d", 123)', "3", "123"),
)


def compiled(text: str, work: Path, *more: str) -> subprocess.CompletedProcess[str]:
    (work / "host.cpp").write_text(text)
    argv = [*detect_compiler().argv, *OPERATOR_FLAGS, f"-I{INCLUDE}", *more, "host.cpp"]
    return subprocess.run(argv, cwd=work, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("entrance", ENTRANCES)
def test_each_entrance_brings_what_host_code_counts_on(tmp_path: Path, entrance: str) -> None:
    done = compiled(f'#include "{entrance}"\n{USES}', tmp_path, "-fsyntax-only")
    assert done.returncode == 0, done.stderr


def test_prototypes_of_graphs_compile(tmp_path: Path) -> None:
    done = compiled(PROTOTYPE, tmp_path, "-fsyntax-only")
    assert done.returncode == 0, done.stderr


def test_functions_that_know_the_size_of_their_destination(tmp_path: Path) -> None:
    said = 'std::printf("%d %s\\n", got'
    rows = "".join(
        f'    {{ char text[8] = "xy"; const int got = {call}; {said} == {wanted}, text); }}\n'
        for call, wanted, _ in BOUNDED
    )
    head = '#include "securec.h"\n#include <cstdio>\n'
    done = compiled(f"{head}int main()\n{{\n{rows}}}\n", tmp_path, "-o", "host")
    assert done.returncode == 0, done.stderr
    told = subprocess.run([tmp_path / "host"], capture_output=True, text=True, check=True).stdout
    assert told.splitlines() == [f"1 {after}".rstrip() if after else "1 " for _, _, after in BOUNDED]
