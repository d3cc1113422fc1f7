"""Cheats that reading the two files already shows, each with the code that rejects it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve

from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateStatus
from evokernel_core.targets.ascendc.audit import audit
from evokernel_core.targets.ascendc.audit.text import MAX_FILE
from evokernel_core.targets.ascendc.source import KERNEL, TILING
from evokernel_core.twin.build import prepare
from tests.chinese import left_in_english

pytestmark = pytest.mark.usefixtures("kernel_home")

Tasks = Callable[[str], KernelTask]
Sources = Callable[[str], KernelSource]

LAUNCH = (
    "add_kernel<<<tiling.blockDim, nullptr, stream>>>(tensors[0], tensors[1], tensors[2], workspace, tiling);"
)
PROCESS = "kernel.Process();"
INCLUDE = '#include "tiling.h"'
COVERED = "return true;"

# (what is cheated, the text to replace in op_kernel.cpp, what with, the code)
KERNEL_CHEATS = [
    ("host work in the launcher", LAUNCH, "tensors[2][0] = 1; " + LAUNCH, "audit-launcher"),
    ("a launch only sometimes", LAUNCH, "if (tiling.total > 9) " + LAUNCH, "audit-launcher"),
    ("a launch of something else", LAUNCH, LAUNCH + LAUNCH.replace("<<<", "Other<<<", 1), "audit-extern"),
    ("work between launches", LAUNCH, LAUNCH + "tensors[2][0] = 1;" + LAUNCH, "audit-launcher"),
    ("a computed offset", LAUNCH, LAUNCH.replace("workspace", "workspace + 4"), "audit-launcher"),
    ("another stream", LAUNCH, LAUNCH.replace("stream", "nullptr", 1), "audit-launcher"),
    ("fewer blocks than the tiling says", LAUNCH, LAUNCH.replace("tiling.blockDim", "1"), "audit-launcher"),
    ("the output never passed", LAUNCH, LAUNCH.replace("tensors[2]", "tensors[1]"), "audit-output-unused"),
    ("a tensor beyond the task's", LAUNCH, LAUNCH.replace("tensors[2]", "tensors[3]"), "audit-launcher"),
    ("a shifted address", LAUNCH, LAUNCH.replace("tensors[2]", "tensors[2] + 4"), "audit-launcher"),
    ("a file", PROCESS, 'fopen("/etc/passwd", "r");', "audit-callee"),
    ("a header of the C library", INCLUDE, INCLUDE + "\n#include <cstdio>", "audit-include"),
    ("the golden data", INCLUDE, INCLUDE + '\n#include "../golden.h"', "audit-include"),
    ("a computed include", INCLUDE, INCLUDE + "\n#define H <cstdio>\n#include H", "audit-include"),
    ("inline assembly", PROCESS, 'asm volatile("nop");', "audit-forbidden-name"),
    ("a system call", PROCESS, "syscall(60, 0);", "compile"),
    ("a compiler intrinsic", PROCESS, "__builtin_trap();", "audit-forbidden-name"),
    (
        "a constructor that runs at load",
        PROCESS,
        "} [[gnu::constructor]] void early() {",
        "audit-forbidden-name",
    ),
    ("a thread", PROCESS, "std::thread t;", "compile"),
    ("the host's mathematics", PROCESS, "float e = expf(1.0f);", "audit-callee"),
    ("standard algorithms", PROCESS, "std::sort(a, b);", "compile"),
    ("a pointer into global memory", PROCESS, "*(__gm__ half *)z = 0;", "audit-raw-pointer"),
    ("a subscript of an address", PROCESS, "z[0] = 1;", "audit-raw-pointer"),
    (
        "a subscript of an address in a namespace",
        INCLUDE,
        INCLUDE
        + "\nnamespace one {\n}\nnamespace two {\ninline __aicore__ void Use(GM_ADDR w) { w[0] = 1; }\n}",
        "audit-raw-pointer",
    ),
    (
        "a subscript of a member that is an address",
        INCLUDE,
        INCLUDE + "\nclass C {\n__aicore__ inline void Use() { w_[0] = 1; }\nGM_ADDR w_;\n};",
        "audit-raw-pointer",
    ),
    ("a dereferenced address", PROCESS, "kernel.Process(); auto v = *x;", "audit-raw-pointer"),
    ("a reinterpreted address", PROCESS, "auto p = reinterpret_cast<float *>(x);", "audit-raw-pointer"),
    ("the buffer's own address", PROCESS, "auto p = tensor.GetPhyAddr();", "compile"),
    ("a clock", PROCESS, "auto t = GetSystemCycle();", "audit-callee"),
    ("printing", PROCESS, 'printf("x");', "audit-callee"),
    ("an exit before the work", PROCESS, "exit(0);", "audit-callee"),
    ("an exception", PROCESS, "try { kernel.Process(); } catch (...) {}", "audit-forbidden-name"),
    ("heap memory", PROCESS, "auto p = new float[4];", "audit-forbidden-name"),
    ("heap memory given back", PROCESS, "delete tensors;", "audit-forbidden-name"),
    ("memory between launches", PROCESS, "static int calls = 0; calls++;", "audit-global-state"),
    ("a variable of the file", INCLUDE, INCLUDE + "\nint calls = 0;", "audit-global-state"),
    ("a variable after a class", INCLUDE, INCLUDE + "\nstruct S { int a; } shared;", "audit-global-state"),
    ("state in a namespace", INCLUDE, INCLUDE + "\nnamespace n { float cache[64]; }", "audit-global-state"),
    (
        "a table of results",
        PROCESS,
        "const float golden[] = {" + ", ".join(["1.5f"] * 65) + "};",
        "audit-constant-table",
    ),
    ("the twin's own names", PROCESS, "evokernel::twin::Launch();", "compile"),
    ("an overload in AscendC", INCLUDE, INCLUDE + "\nnamespace AscendC { void Add(); }", "audit-namespace"),
    ("an exported symbol", INCLUDE, INCLUDE + '\nextern "C" void write_result();', "audit-extern"),
    ("a renamed keyword", INCLUDE, INCLUDE + "\n#define private public", "audit-directive"),
    ("a name joined from parts", INCLUDE, INCLUDE + "\n#define J(a, b) a##b", "audit-obfuscated"),
    ("a name cut in two lines", PROCESS, "ex\\\nit(0);", "audit-obfuscated"),
    ("a directive in disguise", INCLUDE, INCLUDE + "\n%:include <cstdio>", "audit-obfuscated"),
    ("a forged line number", INCLUDE, INCLUDE + '\n#line 1 "x"', "audit-directive"),
    ("a second kernel", INCLUDE, INCLUDE + "\n__global__ __aicore__ void other() {}", "audit-extern"),
    ("a macro over the launcher", INCLUDE, INCLUDE + "\n#define LaunchOp Other", "audit-directive"),
]

TILING_CHEATS = [
    (
        "an address in the tiling",
        COVERED,
        "auto p = reinterpret_cast<float *>(sizes); return true;",
        "compile",
    ),
    ("a pointer in the structure", "uint32_t tile;", "uint32_t tile; float *cache;", "audit-tiling"),
    ("a file in the tiling", COVERED, 'fopen("x", "r"); return true;', "audit-callee"),
    ("a header for files", "#include <cstdint>", "#include <cstdint>\n#include <fstream>", "audit-include"),
    ("the environment", COVERED, 'return getenv("X") != nullptr;', "audit-callee"),
    ("state between calls", COVERED, "static int calls = 0; return calls++ == 0;", "audit-global-state"),
    ("a scalar that is not there", "(void)scalars;", "tiling.tile = scalars[0];", "audit-tiling"),
    ("a size that is not there", "(void)scalars;", "tiling.tile = sizes [ 2 ];", "audit-tiling"),
    ("an exported function", "struct OpTiling", 'extern "C" int puts2(int); struct OpTiling', "audit-tiling"),
]


ADDED = "Add(z, x, y, length);"
SET_MEMBERS = [
    ("uint64_t count;", "uint64_t count; float bias = 0.0f;", "Adds(z, z, half(bias), length);"),
    ("uint64_t count;", "uint64_t count; uint32_t seen;", "seen = length; Add(z, x, y, seen);"),
    ("uint64_t count;", "uint64_t count; uint32_t seen; void Set(uint32_t &of) { of = 4; }",
     "Set(seen); Add(z, x, y, seen);"),
    ("uint64_t count;", "uint64_t count; float spare;", ""),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line"), SET_MEMBERS)
def test_members_that_are_set_somewhere_pass(
    old: str, new: str, line: str, task_of: Tasks, source_of: Sources
) -> None:
    text = source_of("add").files[KERNEL].replace(old, new).replace(ADDED, ADDED + line)
    assert audit(task_of("add"), source_of("add").with_files({KERNEL: text})).code == ""


@pytest.mark.parametrize("given", ["float bias;", "float bias; KernelAdd() {}"])
def test_a_member_that_nothing_sets_is_named(given: str, task_of: Tasks, source_of: Sources) -> None:
    """Whatever value it has, no draw tells it from one that was set."""
    text = source_of("add").files[KERNEL].replace("public:", f"public: {given}")
    text = text.replace(ADDED, ADDED + " Adds(z, z, half(bias), length);")
    result = audit(task_of("add"), source_of("add").with_files({KERNEL: text}))
    assert result.code == "audit-unset-member" and "bias" in result.feedback


@pytest.mark.parametrize("name", ["add", "relu", "softmax"])
def test_honest_kernels_pass(name: str, task_of: Tasks, source_of: Sources) -> None:
    result = audit(task_of(name), source_of(name))
    assert (result.status, result.feedback) == (GateStatus.PASSED, "")


@pytest.mark.parametrize(
    ("old", "new", "code"), [c[1:] for c in KERNEL_CHEATS], ids=[c[0] for c in KERNEL_CHEATS]
)
def test_cheats_in_the_kernel(old: str, new: str, code: str, task_of: Tasks, source_of: Sources) -> None:
    source = source_of("add")
    assert source.files[KERNEL].count(old) == 1
    result = audit(task_of("add"), source.with_files({KERNEL: source.files[KERNEL].replace(old, new)}))
    assert (result.status, result.code) == (GateStatus.FAILED, code), result.feedback
    assert code == "compile" or not left_in_english(result.feedback), result.feedback
    assert result.feedback.startswith("op_kernel.cpp:")


@pytest.mark.parametrize(
    ("old", "new", "code"), [c[1:] for c in TILING_CHEATS], ids=[c[0] for c in TILING_CHEATS]
)
def test_cheats_in_the_tiling(old: str, new: str, code: str, task_of: Tasks, source_of: Sources) -> None:
    source = source_of("add")
    assert source.files[TILING].count(old) == 1
    result = audit(task_of("add"), source.with_files({TILING: source.files[TILING].replace(old, new)}))
    assert (result.status, result.code) == (GateStatus.FAILED, code), result.feedback
    assert code == "compile" or not left_in_english(result.feedback), result.feedback


@pytest.mark.parametrize(
    "text",
    [
        "// system(1), asm and goto in a comment\n",
        "/* fopen __builtin_trap static int x; */\n",
        "constexpr uint32_t SIZES[4] = {1, 2, 3, 4};\n",
        "constexpr float FACTOR = 0.5f;\n",
        "enum class Mode { FAST, SLOW };\n",
        "template <typename T> struct Wider { using type = float; };\n",
        "namespace helpers { __aicore__ inline uint32_t Half(uint32_t a) { return a / 2; } }\n",
        "template <typename T> __aicore__ inline bool IsHalf() { return std::is_same<T, half>::value; }\n",
        'static_assert(sizeof(half) == 2, "two bytes");\n',
        "#define TILE 128\n",
        "using Queue = AscendC::TQue<AscendC::QuePosition::VECIN, 2>;\n",
        "static constexpr int32_t WIDTH = 64;\n",
        "struct Pair { uint32_t a; uint32_t b; };\n",
        "struct Only { Only() = default; Only(const Only &) = delete; };\n",
        # an address of one kernel of a program is no address in the next
        "namespace one {\ninline __aicore__ void Take(GM_ADDR a) {}\n}\n"
        "namespace two {\ninline __aicore__ void Take(AscendC::LocalTensor<half> a) {\n"
        "    AscendC::LocalTensor<half> b = a[4];\n}\n}\n",
        # nor is one of the kernel that calls it, whatever the arguments in the user's file are called
        "namespace one {\ninline __aicore__ void Take(AscendC::LocalTensor<half> mask) {\n"
        "    AscendC::LocalTensor<half> b = mask[4];\n}\n}\n"
        "inline __aicore__ void Pass(GM_ADDR mask) {}\n",
    ],
)
def test_plain_code_raises_no_alarm(text: str, task_of: Tasks, source_of: Sources) -> None:
    source = source_of("add")
    extended = source.files[KERNEL].replace(INCLUDE, f"{INCLUDE}\n{text}")
    result = audit(task_of("add"), source.with_files({KERNEL: extended}))
    assert result.status is GateStatus.PASSED, result.feedback


@pytest.mark.parametrize(
    ("operations", "entries", "passes"), [(1, 480, True), (1, 600, False), (8, 600, True)]
)
def test_a_tiling_grows_with_the_task(
    operations: int, entries: int, passes: bool, task_of: Tasks, source_of: Sources
) -> None:
    task, source = task_of("add"), source_of("add")
    large = evolve(task, graph=evolve(task.graph, nodes=task.graph.nodes[:1] * operations))
    tiling = source.files[TILING].replace("uint32_t tile;", f"uint32_t tile; int64_t more[{entries}];")
    result = audit(large, source.with_files({TILING: tiling}))
    assert result.code == ("" if passes else "audit-tiling"), result.feedback


def test_a_huge_file_is_refused(task_of: Tasks, source_of: Sources) -> None:
    source = source_of("add")
    result = audit(task_of("add"), source.with_files({KERNEL: source.files[KERNEL] + "\n" * MAX_FILE}))
    assert result.code == "audit-size"


def test_a_cache_behind_a_link(
    task_of: Tasks, source_of: Sources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the audit knows of the interface goes by where headers lie, however that place is reached."""
    twin = prepare()
    place = tmp_path / "true"
    shutil.copytree(twin.folder, place / twin.folder.name, ignore=shutil.ignore_patterns("front-end-*"))
    (tmp_path / "link").symlink_to(place)
    monkeypatch.setenv("EVOKERNEL_TWIN_DIR", str(tmp_path / "link"))
    assert audit(task_of("add"), source_of("add")).status is GateStatus.PASSED
