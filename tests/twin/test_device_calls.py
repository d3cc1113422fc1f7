"""Device code that calls functions of the host: each fault is named at its line, its neighbour is not."""

# ruff: noqa: E501 - a case stays one line

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from evokernel_core.domain.kernel import Strategy
from evokernel_core.targets.ascendc.source import ascendc_source
from evokernel_core.twin.build import CandidateError, build_kernel
from evokernel_core.twin.conditions import BUILT_IN, DEVICE_COMPILER, active_tokens
from evokernel_core.twin.device_calls import HostCall, host_calls
from evokernel_core.twin.functions import read_declarations
from evokernel_core.twin.images import device_units
from evokernel_core.twin.program import build_program
from evokernel_core.twin.sources import ProgramSource, read_sources

DOCS = Path(__file__).parent.parent.parent / "docs" / "kernels"
ENTRY = 'extern "C" __global__ __vector__ void entry(GM_ADDR y)\n{{\n{body}\n}}\n'


def found(text: str, tiling: str = "") -> Sequence[HostCall]:
    """The calls in op_kernel.cpp that includes tiling.h."""
    macros = {**BUILT_IN, **DEVICE_COMPILER}
    files = {"tiling.h": tiling, "op_kernel.cpp": text}
    return host_calls({name: tuple(active_tokens(content, macros)) for name, content in files.items()})


HELPER = "inline uint32_t Up(uint32_t a, uint32_t b) { return (a + b - 1) / b; }\n"
DEVICE = f"__aicore__ {HELPER}"

# declarations, what the kernel's body says, and its neighbour that is right
PAIRS = {
    "a plain function": (HELPER, "Up(3, 2);", DEVICE, "Up(3, 2);"),
    "constexpr is no mark": (f"constexpr {HELPER}", "uint32_t a = Up(n, 2);", f"constexpr {DEVICE}", "uint32_t a = Up(n, 2);"),
    "in an expression": (HELPER, "if (a > Up(3, 2)) { }", DEVICE, "if (a > Up(3, 2)) { }"),
    "as an index": (HELPER, "x = values[Up(3, 2)];", HELPER, "uint32_t Up = 2; x = values[Up];"),
    "as a condition of a loop": (
        HELPER, "for (uint32_t i = 0; i < Up(n, 2); ++i) { }",
        DEVICE, "for (uint32_t i = 0; i < Up(n, 2); ++i) { }",
    ),
    "a template": (
        "template <typename T> inline T Twice(T a) { return a + a; }\n", "Twice<float>(2);",
        "template <typename T> __aicore__ inline T Twice(T a) { return a + a; }\n", "Twice<float>(2);",
    ),
    "a namespace": (
        f"namespace a {{ {HELPER} }}\nnamespace b {{ {DEVICE} }}\n", "a::Up(3, 2);",
        f"namespace a {{ {HELPER} }}\nnamespace b {{ {DEVICE} }}\n", "b::Up(3, 2);",
    ),
    "a namespace that is used": (
        f"namespace a {{ {HELPER} }}\nusing namespace a;\n", "Up(3, 2);",
        f"namespace a {{ {DEVICE} }}\nusing namespace a;\n", "Up(3, 2);",
    ),
    "a static member": (
        "struct Math { static int Half(int a) { return a / 2; } };\n", "Math::Half(4);",
        "struct Math { __aicore__ static int Half(int a) { return a / 2; } };\n", "Math::Half(4);",
    ),
    "a member of a variable": (
        "struct Box { int Size() const { return 1; } };\n", "Box box; box.Size();",
        "struct Box { __aicore__ int Size() const { return 1; } };\n", "Box box; box.Size();",
    ),
    "a constructor": (
        "class Op { public: Op() {} };\n", "Op op;",
        "class Op { public: __aicore__ inline Op() {} };\n", "Op op;",
    ),
    "a constructor with arguments": (
        "struct P { P() = default; P(int a) : a_(a) {} int a_; };\n", "P p(3);",
        "struct P { P() = default; P(int a) : a_(a) {} int a_; };\n", "P p;",
    ),
    "an overload of another length": (
        f"{DEVICE}inline uint32_t Up(uint32_t a) {{ return a; }}\n", "Up(3);",
        f"{DEVICE}inline uint32_t Up(uint32_t a) {{ return a; }}\n", "Up(3, 2);",
    ),
    "a macro that is no mark": (
        f"#define INLINE inline\nINLINE {HELPER}", "Up(3, 2);",
        f"#define INLINE __aicore__ inline\nINLINE {HELPER}", "Up(3, 2);",
    ),
    "the older mark": (HELPER, "Up(3, 2);", f"[aicore] {HELPER}", "Up(3, 2);"),
    "a mark that other compilers than the device's do not see": (
        f"#ifdef __CCE__\n#define BOTH inline\n#else\n#define BOTH [host, aicore]\n#endif\nBOTH {HELPER}", "Up(3, 2);",
        f"#ifdef __CCE__\n#define BOTH __attribute__((always_inline)) [host, aicore]\n#else\n#define BOTH\n#endif\nBOTH {HELPER}", "Up(3, 2);",
    ),
    "one behind a condition of several macros": (
        f"#if defined(__CCE__) && __NPU_ARCH__ == 1\n#define BOTH [host, aicore]\n#else\n#define BOTH\n#endif\nBOTH {HELPER}", "Up(3, 2);",
        f"#if defined(__CCE__) && __NPU_ARCH__ == 2201\n#define BOTH [host, aicore]\n#else\n#define BOTH\n#endif\nBOTH {HELPER}", "Up(3, 2);",
    ),
    "what a condition leaves out": (
        f"#if __NPU_ARCH__ == 2201\n{HELPER}#else\n{DEVICE}#endif\n", "Up(3, 2);",
        f"#if __NPU_ARCH__ != 2201\n{HELPER}#else\n{DEVICE}#endif\n", "Up(3, 2);",
    ),
    "a constant": (f"constexpr {HELPER}", "const uint32_t a = Up(3, 2);", f"constexpr {HELPER}", "constexpr uint32_t a = Up(3, 2);"),
    "an argument of a template": (
        f"constexpr {HELPER}", "buffer.Take(Up(3, 2));", f"constexpr {HELPER}", "buffer.Take<Up(3, 2)>();",
    ),
    "a name that a variable hides": (
        HELPER, "Up(3, 2);", HELPER, "auto Up = [](int a, int b) { return a; }; Up(3, 2);",
    ),
    "a declared variable": (
        "struct S { int a; };\nint Make(int a) { return a; }\n", "Make(1);",
        "struct S { int a; };\nint Make(int a) { return a; }\n", "S Make(1);",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", PAIRS)
def test_a_call_of_the_host_is_found_and_its_neighbour_is_not(case: str) -> None:
    wrong, call, right, neighbour = PAIRS[case]
    (one,) = found(ENTRY.format(body=call), wrong)
    assert (one.file, one.line) == ("op_kernel.cpp", 3)
    assert one.callee.file == "tiling.h"
    assert found(ENTRY.format(body=neighbour), right) == ()


def test_the_message_names_both_places() -> None:
    (one,) = found(ENTRY.format(body="\nUp(3, 2);"), f"\n\n{HELPER}")
    assert one.message.startswith(
        "op_kernel.cpp:4: device code calls Up, which tiling.h:3 declares for the host"
    )


@pytest.mark.parametrize(
    "text",
    [
        f"{HELPER}inline uint32_t Host() {{ return Up(3, 2); }}\n",
        f"{HELPER}int main() {{ return Up(3, 2); }}\n",
        f"__host__ {HELPER}void Tile() {{ Up(3, 2); }}\n",
    ],
)
def test_the_host_may_call_its_own(text: str) -> None:
    assert found(text) == ()


def test_public_programs_may_call_what_is_constexpr() -> None:
    for helper, calls in ((HELPER, 1), (f"constexpr {HELPER}", 0)):
        macros = dict(BUILT_IN)
        files = {"k.cpp": tuple(active_tokens(helper + ENTRY.format(body="Up(n, 2);"), macros))}
        assert len(host_calls(files)) == 1
        assert len(host_calls(files, constexpr_on_device=True)) == calls


def test_helpers_of_helpers_are_followed() -> None:
    text = f"{HELPER}__aicore__ inline uint32_t Middle(uint32_t a) {{ return Up(a, 2); }}\n"
    (one,) = found(text + ENTRY.format(body="Middle(3);"))
    assert one.line == 2


def test_members_are_found_in_their_class_and_its_bases() -> None:
    base = "struct Base {{ {mark} int Size() {{ return 1; }} }};\n"
    text = (
        "class Op : public Base {{ public: __aicore__ inline void Process() {{ Size(); this->Size(); }} }};\n"
    )
    assert len(found(text.format(), base.format(mark=""))) == 1  # both on one line
    assert found(text.format(), base.format(mark="__aicore__")) == ()


def test_a_function_outside_of_its_class_belongs_to_it() -> None:
    text = (
        "template <typename T> class Op { public: __aicore__ inline void Process(); int Half(int a); };\n"
        "template <typename T>\n__aicore__ inline void Op<T>::Process()\n{\n    Half(2);\n}\n"
    )
    (one,) = found(text)
    assert one.line == 5


def test_what_the_interface_has_too_is_left_to_overloads() -> None:
    """Argument types decide between AscendC's Max of tensors and the host's, which tokens do not show."""
    host = "inline int Max(int a, int b) { return a > b ? a : b; }\n"
    assert found(ENTRY.format(body="Max(dst, left, right, 64);"), host) == ()
    assert len(found(ENTRY.format(body="Max(3, 4);"), host)) == 1


KERNEL = """\
#include "kernel_operator.h"
#include "tiling.h"
using namespace AscendC;
__aicore__ inline uint32_t Whole(uint32_t a, uint32_t b) { return (a + b - 1) / b; }
extern "C" __global__ __vector__ void entry(GM_ADDR y, OpTiling tiling)
{
    const uint32_t rows = Up(tiling.size, 2);
}
extern "C" void LaunchOp(void *stream, uint8_t *const *tensors, uint8_t *workspace, const OpTiling &tiling)
{
    entry<<<tiling.blockDim, nullptr, stream>>>(tensors[0], tiling);
}
"""
TILING = """\
#pragma once
#include <cstdint>
struct OpTiling { uint32_t blockDim; uint64_t workspaceBytes; uint32_t size; };
inline uint32_t Up(uint32_t a, uint32_t b) { return (a + b - 1) / b; }
inline bool ComputeTiling(const int64_t *, const float *, uint32_t, uint64_t, OpTiling &tiling)
{
    tiling.blockDim = Up(1, 1);
    return true;
}
"""


@pytest.mark.usefixtures("kernel_home")
def test_a_candidate_does_not_compile() -> None:
    with pytest.raises(CandidateError) as error:
        build_kernel(ascendc_source(TILING, KERNEL, Strategy("hand")))
    assert error.value.code == "compile"
    assert error.value.feedback.startswith("op_kernel.cpp:7: device code calls Up, which tiling.h:4")
    build_kernel(ascendc_source(TILING, KERNEL.replace("= Up(", "= Whole("), Strategy("hand")))


@pytest.mark.usefixtures("kernel_home")
def test_a_program_does_not_compile(tmp_path: Path) -> None:
    main = tmp_path / "main.cpp"
    (tmp_path / "helper.h").write_text(HELPER)
    kernel = ENTRY.format(body="Up(3, 2);")
    main.write_text(
        f'#include "kernel_operator.h"\n#include "helper.h"\n{kernel}int main() {{ return 0; }}\n'
    )
    with pytest.raises(CandidateError, match=r"main.cpp:5: device code calls Up, which helper.h:1"):
        build_program(ProgramSource((main,)))
    (tmp_path / "helper.h").write_text(DEVICE)
    build_program(ProgramSource((main,)))


@pytest.mark.parametrize("kernel", sorted(path.parent.name for path in DOCS.glob("*/op_kernel.cpp")))
def test_without_its_mark_every_helper_of_an_emitted_kernel_is_found(kernel: str) -> None:
    """Removes the mark of one function after the other: each that device code calls is missed."""
    text = (DOCS / kernel / "op_kernel.cpp").read_text()
    tiling = (DOCS / kernel / "tiling.h").read_text()
    assert found(text, tiling) == ()
    removed = 0
    for mark in re.finditer(r"__aicore__ inline ", text):
        planted = text[: mark.start()] + "inline " + text[mark.end() :]
        name = re.search(r"(\w+)\(", text[mark.start() :])
        assert name
        callers = found(planted, tiling)
        assert name[1] in {call.callee.name for call in callers}, name[1]
        removed += 1
    assert removed > 5


def test_every_marked_function_of_an_emitted_kernel_is_read() -> None:
    for kernel in DOCS.glob("*/op_kernel.cpp"):
        text = kernel.read_text()
        tokens = tuple(active_tokens(text, dict(BUILT_IN)))
        declared = read_declarations({"op_kernel.cpp": tokens}).everything()
        marked = len(re.findall(r"__aicore__|__global__", text))
        assert sum(function.device for function in declared) == marked


def test_programs_and_public_kernels_are_read_as_the_device_compiler_reads_them(tmp_path: Path) -> None:
    """A project's macro for functions of both sides, empty for other compilers, is no false alarm."""
    file = tmp_path / "k.cpp"
    both = "#ifdef __CCE__\n#define BOTH [host, aicore]\n#else\n#define BOTH\n#endif\n"
    for mark, calls in (("BOTH", 0), ("static", 1)):
        file.write_text(f"{both}{mark} {HELPER}{ENTRY.format(body='Up(3, 2);')}")
        source = ProgramSource((file,))
        (unit,) = device_units(source, read_sources(source))
        assert len(host_calls({path.name: tokens for path, tokens in unit.items()})) == calls
