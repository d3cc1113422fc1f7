"""What the compiler says of a project: at the project's own lines, the cause before what follows from it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from evokernel_core.twin.compiler import Diagnostic, detect_compiler, feedback, project_diagnostics
from evokernel_core.twin.operators.report import causes_first

# where the fault is written, seen from the folder of the file that is compiled
PLACES = ("k.cpp", "near.h", "arch32/inner.h", "../shared/far.h", "../other/k.h")
WRONG = "int Bad()\n{\n    return missing_name;\n}\n"


def said(project: Path, files: dict[str, str]) -> tuple[Diagnostic, ...]:
    """What is told of op/k.cpp, compiled beside a toolkit with a header of its own."""
    home = project / "op"
    for name, text in {"k.cpp": "", **files}.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    toolkit = project / "toolkit"
    toolkit.mkdir(exist_ok=True)
    (toolkit / "tool.h").write_text("template <typename T> T Twice(T a) { return a.doubled(); }\n")
    (toolkit / "broken.h").write_text('#include "never_there.h"\n')
    (toolkit / "inner.h").write_text("#error in the toolkit\n")
    argv = [*detect_compiler().argv, "-std=c++17", "-w", "-fsyntax-only", f"-I{toolkit}", "k.cpp"]
    done = subprocess.run(argv, cwd=home, capture_output=True, text=True, check=False)
    assert done.returncode
    return project_diagnostics(done.stderr, [Path(name).name for name in files], toolkit)


@pytest.mark.parametrize("place", PLACES)
def test_an_error_is_told_at_its_line_wherever_the_file_lies(tmp_path: Path, place: str) -> None:
    files = {"k.cpp": f'\n#include "{place}"\n', place: WRONG}
    (one,) = said(tmp_path, files)
    assert (one.file, one.line) == (Path(place).name, 3)
    assert "missing_name" in one.message


@pytest.mark.parametrize("place", PLACES)
def test_a_toolkit_header_that_fails_is_told_where_the_project_includes_it(
    tmp_path: Path, place: str
) -> None:
    """The nearest of the project's files, and not one of the toolkit's that has the same name."""
    for header, word in (("broken.h", "never_there.h"), ("inner.h", "in the toolkit")):
        files = {"k.cpp": f'#include "{place}"\n', place: f"\n\n#include <{header}>\n"}
        (one,) = said(tmp_path / header, files)
        assert (one.file, one.line) == (Path(place).name, 3)
        assert word in one.message


@pytest.mark.parametrize("place", PLACES)
def test_an_error_of_a_template_is_told_where_the_project_uses_it(tmp_path: Path, place: str) -> None:
    files = {"k.cpp": f'#include "{place}"\n', place: '#include "tool.h"\n\nint four = Twice(2);\n'}
    first, *_ = said(tmp_path, files)
    assert (first.file, first.line) == (Path(place).name, 3)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("void Init(Absent *x, int y);\n", "Absent"),
        ("template <typename T> struct S {};\nS<Absent> s;\n", "Absent"),
        ("int a = absent::Value<int>(3) + 1;\n", "absent"),
        ("static Absent Make(int a) { return Absent(a); }\nint b = Make(3);\n", "Absent"),
    ],
)
def test_what_is_absent_comes_first(tmp_path: Path, text: str, cause: str) -> None:
    first, *_ = said(tmp_path, {"k.cpp": text})
    assert cause in first.message, first


def test_a_fault_is_told_once_and_leaves_room_for_others(tmp_path: Path) -> None:
    lines = "".join(f"int a{i}() {{ return missing_name; }}\n" for i in range(9))
    found = said(tmp_path, {"k.cpp": f"{lines}int last() {{ return another_name; }}\n"})
    assert [item.line for item in found] == [1, 10]


def test_a_file_that_is_not_the_authors_has_no_line() -> None:
    assert feedback((Diagnostic("vector", 0, "no"),), "") == "vector: no"


def test_host_code_that_has_what_a_kernel_misses_is_the_cause(tmp_path: Path) -> None:
    """A tiling structure is made of host code: where that does not compile, the kernel lacks it."""
    tiling, shapes = tmp_path / "rows_tiling.cpp", tmp_path / "rows_shape.cpp"
    tiling.write_text("BEGIN_TILING_DATA_DEF(RowsTiling)\n")
    shapes.write_text("// shapes\n")
    left_out = (("rows_shape.cpp", "no shape"), ("rows_tiling.cpp", "no header"))
    error = "k.cpp:3: 'RowsTiling' was not declared in this scope"
    assert causes_first(error, left_out, (shapes, tiling)) == ("no header", error, "no shape")
    other = "k.cpp:3: 'elsewhere' was not declared in this scope"
    assert causes_first(other, left_out, (shapes, tiling))[0] == other
