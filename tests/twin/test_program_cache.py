"""Programs and host code of operators are compiled once, and anew where anything of theirs is another."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from evokernel_core.twin import kernel_cache
from evokernel_core.twin.build import prepare
from evokernel_core.twin.depfiles import read_known_files
from evokernel_core.twin.operators.folder import read_folder
from evokernel_core.twin.operators.host import build_host
from evokernel_core.twin.program import build_program
from evokernel_core.twin.sources import ProgramSource


@pytest.fixture(autouse=True)
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("EVOKERNEL_KERNELS_DIR", str(tmp_path / "kernels"))
    return tmp_path / "kernels"


def written(folder: Path, main: str, value: int, *defines: str) -> ProgramSource:
    """A program in a folder whose header, beside it in ``inc``, has the value that it ends with."""
    (folder / "inc").mkdir(parents=True, exist_ok=True)
    (folder / "inc" / "value.h").write_text(f"constexpr int kValue = {value};\n")
    (folder / "main.cpp").write_text(f"{main}\nint main() {{ return kValue; }}\n")
    return ProgramSource((folder / "main.cpp",), (folder / "inc",), defines)


def ended(source: ProgramSource) -> tuple[int, bool]:
    """The exit status of the program, and whether it was compiled for this."""
    built = build_program(source)
    return subprocess.run([built.executable], check=False).returncode, built.compile_s > 0


def test_a_program_is_compiled_once_wherever_it_lies_and_anew_when_it_changes(
    tmp_path: Path, kernels: Path
) -> None:
    plain = '#include "value.h"'
    assert ended(written(tmp_path / "a", plain, 3)) == (3, True)
    assert ended(written(tmp_path / "a", plain, 3)) == (3, False)
    assert ended(written(tmp_path / "b", plain, 3)) == (3, False)
    assert ended(written(tmp_path / "b", plain, 4)) == (4, True)
    assert not list(kernels.glob("*/building-*"))


def test_a_macro_is_part_of_a_program(tmp_path: Path) -> None:
    given = "#ifdef SEVEN\nconstexpr int kValue = 7;\n#else\n#include <value.h>\n#endif"
    assert ended(written(tmp_path, given, 3)) == (3, True)
    assert ended(written(tmp_path, given, 3, "SEVEN")) == (7, True)
    assert ended(written(tmp_path, given, 3)) == (3, False)


@pytest.mark.parametrize("way", ["a computed include", "the environment"])
def test_a_program_that_reads_what_is_not_seen_of_it_is_compiled_each_time(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = '#define NAME "value.h"\n#include NAME' if way == "a computed include" else "#include <value.h>"
    source = written(tmp_path, text, 3)
    if way == "the environment":
        monkeypatch.setenv("CPLUS_INCLUDE_PATH", str(tmp_path / "inc"))
        source = ProgramSource(source.files)
    assert ended(source) == (3, True)
    written(tmp_path, text, 4)
    assert ended(source) == (4, True)


def operator(root: Path, text: str) -> Path:
    """The host program of an operator in a folder, whose header has this text."""
    for side in ("op_kernel", "op_host"):
        (root / side).mkdir(parents=True, exist_ok=True)
    (root / "op_kernel" / "tiny.cpp").write_text('extern "C" __global__ void tiny(GM_ADDR x) {}\n')
    (root / "op_host" / "tiny.cpp").write_text('#include "inc/tiny.h"\n')
    (root / "op_host" / "inc").mkdir(exist_ok=True)
    (root / "op_host" / "inc" / "tiny.h").write_text(f"{text}\n")
    (root / "op_host" / "inc" / "more.inc").write_text("constexpr int kMore = 1;\n")
    return build_host(read_folder(root)).executable


def test_host_code_is_compiled_once_wherever_it_lies_and_anew_when_a_header_changes(tmp_path: Path) -> None:
    first = operator(tmp_path / "a", "constexpr int kTiny = 1;")
    assert operator(tmp_path / "b", "constexpr int kTiny = 1;") == first
    second = operator(tmp_path / "b", "constexpr int kTiny = 2;")
    assert second != first
    assert first.is_file()
    assert second.is_file()


def test_host_code_that_includes_what_is_not_seen_is_compiled_each_time(tmp_path: Path) -> None:
    hidden = '#define MORE "more.inc"\n#include MORE'
    assert operator(tmp_path, hidden) != operator(tmp_path, hidden)


def test_a_file_of_an_operator_is_named_without_its_place(tmp_path: Path) -> None:
    """Its program serves each copy of the operator."""
    named = operator(tmp_path, "const char *tiny_file = __FILE__;").read_bytes()
    assert b"\0inc/tiny.h\0" in named
    assert str(tmp_path).encode() not in named


def known(tmp_path: Path, rule: str | None, *files: str) -> bool:
    """Whether an object with this rule comes from these files, and others in ``tmp_path / "ours"``."""
    if rule is not None:
        (tmp_path / "x.o.d").write_text(rule)
    texts = [tmp_path / name for name in files]
    return read_known_files([tmp_path / "x.o"], prepare().compiler, texts, [tmp_path / "ours"])


@pytest.mark.parametrize(
    ("rule", "is_known"),
    [
        ("x.o: a.cpp", True),
        ("x.o: a.cpp /usr/include/c++/vector \\\n ours/deep/b.h", True),
        ("x.o: a.cpp ours/../c.h", False),
        ("x.o: a.cpp oursnot/c.h", False),
        ("x.o: a.cpp \\\n  c.h", False),
        ("x.o: a.cpp with\\ a\\ blank$$.h", True),
        ("x.o: a.cpp with a blank$.h", False),
        (None, False),
    ],
)
def test_what_a_compiler_read_is_known_from_its_rule(
    tmp_path: Path, rule: str | None, is_known: bool
) -> None:
    assert known(tmp_path, rule, "a.cpp", "with a blank$.h") == is_known


@pytest.mark.parametrize("word", ["CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH"])
def test_folders_of_the_environment_are_nobodys_own(
    tmp_path: Path, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert known(tmp_path, "x.o: a.cpp", "a.cpp")
    monkeypatch.setenv(word, str(tmp_path))
    assert not known(tmp_path, "x.o: a.cpp", "a.cpp")


def test_what_is_found_counts_as_used(kernels: Path) -> None:
    folder = kernel_cache.folder_of(kernels / "twin", "content")
    assert folder.parent == kernels / "twin"
    assert folder != kernel_cache.folder_of(kernels / "twin", "another")
    assert not kernel_cache.has(folder, "program")
    folder.mkdir(parents=True)
    assert not kernel_cache.has(folder, "program")
    (folder / "program").touch()
    os.utime(folder, (1, 1))
    assert kernel_cache.has(folder, "program")
    assert folder.stat().st_mtime > 1
    assert kernel_cache.folder_of_one_build(kernels) != kernel_cache.folder_of_one_build(kernels)
