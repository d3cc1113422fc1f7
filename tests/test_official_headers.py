"""The parts of benchmarks/official_headers.py that need neither asc-devkit nor a compiler."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
try:
    from vendor_headers.messages import Message, Place, first_of_each, in_kernel, normalised, parse
    from vendor_headers.patches import Patches, inserted, literals_of_call
    from vendor_headers.planted import FOLDER, Base, Planted, planted_errors
    from vendor_headers.rewriting import in_device_function, with_addresses, without_double_space
    from vendor_headers.stubs import Kind, Stubs, kind_of
    from vendor_headers.toolchain import Core, cores_of
finally:
    sys.path.remove(str(BENCHMARKS))

KIT = Path("/dev/kit")
OUTPUT = """\
In file included from /k/op_kernel.cpp:1:
/dev/kit/include/a.h:10:3: error: use of undeclared identifier 'vexp'
/k/op_kernel.cpp:7:5: note: in instantiation of function template specialization 'Exp<float>' requested here
/k/op_kernel.cpp:9:12:{9:12-9:20}{9:21-9:22}: error: no matching function for call to 'TilesOf'
/k/op_kernel.cpp:9:30: warning: unused variable 'a' [-Wunused-variable]
/k/tiling.h:3:5: note: declared here
/k/op_kernel.cpp:12:9: warning: lambda expressions are incompatible with C++98 [-Wc++98-compat]
a.h:1:2: fatal error: 'lib/matmul_intf.h' file not found
"""


def message(
    text: str, file: str = "/dev/kit/a.h", notes: tuple[Message, ...] = (), **more: object
) -> Message:
    return Message(Place(Path(file), 3, 5), text, True, notes=notes, **more)  # type: ignore[arg-type]


def test_messages_are_errors_lambdas_and_their_notes() -> None:
    found = parse(OUTPUT)
    assert [item.text.split(" ")[0] for item in found] == ["use", "no", "lambda", "'lib/matmul_intf.h'"]
    assert in_kernel(found[0], Path("/k")) == Place(Path("/k/op_kernel.cpp"), 7, 5)
    assert found[1].ranges == ((9, 12, 9, 20), (9, 21, 9, 22))
    assert found[1].notes == (), "the note belongs to the warning between them"
    assert found[3].missing_file == "lib/matmul_intf.h"
    assert found[0].missing_file == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no matching function for call to 'CeilDiv'", "no matching function for call to 'CeilDiv'"),
        ("lvalue of type 'const char[41]'", "lvalue of type 'const char[N]'"),
        ("narrowed from 'uint32_t' (aka 'unsigned int') to 'uint16_t' [-Wc++11-narrowing]",
         "narrowed from 'uint32_t' to 'uint16_t'"),
        ("use of undeclared identifier 'Ex'; did you mean 'Exp'?", "use of undeclared identifier 'Ex'"),
        ("from '__attribute__((address_space(1))) half *'", "from '__gm__ half *'"),
    ],
)  # fmt: skip
def test_normalised_leaves_out_what_differs_between_kernels(text: str, expected: str) -> None:
    assert normalised(text) == expected
    assert normalised(normalised(text)) == expected


def test_one_message_of_each_kind_in_order() -> None:
    found = [message("array 'char[3]'"), message("other"), message("array 'char[4]'")]
    assert [item.text for item in first_of_each(found)] == ["array 'char[3]'", "other"]


@pytest.mark.parametrize(
    ("name", "is_type", "kind"),
    [
        ("copy_gm_to_ubuf", False, Kind.STATEMENT),
        ("vadd", False, Kind.STATEMENT),
        ("get_block_idx", False, Kind.NUMBER),
        ("trap", False, Kind.FUNCTION),
        ("VA0", False, Kind.CONSTANT),
        ("mem_dsb_t", False, Kind.ENUMERATION),
        ("SoftMaxTiling", True, Kind.STRUCTURE),
        ("vector_bool", True, Kind.STRUCTURE),
        ("__simd_callee__", True, Kind.QUALIFIER),
        ("T", True, None),
        ("dst", False, Kind.FUNCTION),
    ],
)
def test_what_a_name_is_follows_from_its_spelling(name: str, is_type: bool, kind: Kind | None) -> None:
    assert kind_of(name, is_type) is kind


def test_stubs_grow_with_messages_until_nothing_is_new() -> None:
    stubs = Stubs()
    messages = [
        message("use of undeclared identifier 'mem_t'"),
        message("unknown type name 'TopkTiling'"),
        message("use of undeclared identifier 'pipe_wait'; did you mean 'pipe_t'?"),
        message("call to function 'vmod' that is neither visible in the template definition nor found"),
        message("cannot initialize a variable of type 'int'"),
    ]
    assert stubs.learn(messages, KIT)
    assert not stubs.learn(messages, KIT)
    assert stubs.learn(
        [message("no member named 'L1' in 'mem_t'"), message("no member named 'k' in 'TopkTiling'")], KIT
    )
    assert not stubs.learn([message("no member named 'size' in 'LocalTensor'")], KIT), (
        "a class of the headers'"
    )
    text = stubs.text()
    assert "enum mem_t { L1, mem_t_OTHER };" in text
    assert "struct TopkTiling { uint32_t k = 0; };" in text
    assert "namespace AscendC::tiling { using ::TopkTiling; }" in text
    assert "__device__ void vmod(Args...)" in text
    assert text.index("enum mem_t") < text.index("void vmod"), "types come before functions"


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("vexp", "OneOf<T, half, float> vexp(__ubuf__ T *, Args...)"),
        ("vconv_f322bf16r", "vconv_f322bf16r(__ubuf__ bfloat16_t *, __ubuf__ float *, Args...)"),
        ("vconv_deq", "void vconv_deq(Args...)"),
        ("vconv_f162s4", "void vconv_f162s4(Args...)"),
        ("mad", "mad(__cc__ int32_t *, __ca__ int8_t *, __cb__ int8_t *, Args...)"),
    ],
)
def test_stubs_of_intrinsics_take_documented_dtypes_only(name: str, parameters: str) -> None:
    stubs = Stubs()
    stubs.learn([message(f"use of undeclared identifier '{name}'")], KIT)
    assert parameters in stubs.text()


def test_insertions_count_bytes_and_leave_all_else() -> None:
    text = 'a\nf("ä", "b");\n'
    assert inserted(text, {(2, 9): "<2>", (2, 3): "<1>", (1, 1): "<0>"}) == '<0>a\nf(<1>"ä", <2>"b");\n'


def test_literals_of_a_call_are_those_between_its_parentheses() -> None:
    text = 'x("no");\ncheck<1>(value(2), "one ) \\" two"\n  "three", "four"); f("no");\n'
    assert list(literals_of_call(text, 2, 9)) == [(2, 20), (3, 12)]


def test_patches_mend_headers_and_never_what_a_kernel_does(tmp_path: Path) -> None:
    checkout, copies = tmp_path / "kit", tmp_path / "units"
    for folder in (checkout, copies):
        folder.mkdir()
    header, kernel = checkout / "a.h", copies / "op_kernel.cpp"
    header.write_text("int Size();\nint size = Size();\n")
    kernel.write_text("int k = Size();\n")
    text = "reference to __device__ function 'Size' in __host__ function"
    declared = Message(Place(header, 1, 5), "'Size' declared here", False)
    patches = Patches()
    assert not patches.learn([message(text, str(kernel), (declared,))], checkout, copies)
    assert patches.learn([message(text, str(header), (declared,))], checkout, copies)
    assert not patches.learn([message(text, str(header), (declared,))], checkout, copies)
    target = tmp_path / "patched"
    target.mkdir()
    roots = json.loads(patches.overlay(target).read_text())["roots"]
    assert [root["name"] for root in roots] == [str(header)]
    patched = Path(roots[0]["external-contents"]).read_text()
    assert patched == "int __attribute__((host)) Size();\nint size = Size();\n"
    assert header.read_text() == "int Size();\nint size = Size();\n"


@pytest.mark.parametrize(
    ("text", "cores"),
    [
        ('extern "C" __global__ __vector__ void f()', (Core.VECTOR,)),
        ("__global__ __cube__ void f()", (Core.CUBE,)),
        ("__global__ __mix__(1, 2) void f()", tuple(Core)),
        ("__global__ __vector__ void f(); __global__ __cube__ void g()", tuple(Core)),
        ("KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);", (Core.VECTOR,)),
        ("__global__ void f()", tuple(Core)),
    ],
)
def test_passes_follow_the_kernels_qualifiers(text: str, cores: tuple[Core, ...]) -> None:
    assert cores_of(text) == cores


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('extern "C" __global__ __aicore__ void f()', 'extern "C" __global__  void f()'),
        ("__aicore__ __vector__ __global__ void f()", "__global__ __vector__  void f()"),
        ("__global__ __mix__(1, 2) __aicore__ void f()", "__global__ __mix__(1, 2)  void f()"),
        (
            "__aicore__ inline void f(); __global__ void g()",
            "__aicore__ inline void f(); __global__ void g()",
        ),
        (
            "__aicore__ int f()\n{ g(); }\n__aicore__ int h()",
            "__aicore__ int f()\n{ g(); }\n__aicore__ int h()",
        ),
    ],
)
def test_a_kernel_keeps_one_execution_space(text: str, expected: str) -> None:
    assert without_double_space(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "f<<<1, nullptr, s>>>(a[0], g(b, c), {1, 2});",
            "f<<<1, nullptr, s>>>(Launched(a[0]), Launched(g(b, c)), Launched({1, 2}));",
        ),
        ("f<<<1, nullptr, s>>>();", "f<<<1, nullptr, s>>>();"),
        ("f<T><<<n, 0, s>>>(\n    a,\n    b);", "f<T><<<n, 0, s>>>(\n    Launched(a),\n    Launched(b));"),
        ("A<B<C<int>>>(x);", "A<B<C<int>>>(x);"),
    ],
)
def test_arguments_of_launches_are_marked(text: str, expected: str) -> None:
    assert with_addresses(text) == expected


def test_lambdas_of_host_functions_are_told_from_those_of_device_functions() -> None:
    text = "\n".join((
        "struct K {",
        "    __aicore__ inline void Process(uint32_t n)",
        "    {",
        "        for (uint32_t i = 0; i < n; ++i) {",
        "            auto device = [i]() { return i; };",
        "        }",
        "    }",
        "    uint32_t count = 0;",
        "};",
        "inline bool ComputeTiling(int n)",
        "{",
        "    const auto host = [n](int m) { return n + m; };",
        "}",
    ))  # fmt: skip
    device = [number for number in range(1, 14) if in_device_function(text, number, 1)]
    assert device == [4, 5, 6, 7]
    assert in_device_function("__aicore__ int F() { return [] { return 1; }(); }", 1, 29)


def test_planted_errors_are_many_and_each_is_its_own() -> None:
    errors = planted_errors()
    assert len(errors) >= 20
    assert len({error.name for error in errors}) == len(errors)
    assert {error.base.name for error in errors} == {item.name for item in FOLDER.iterdir() if item.is_dir()}


@pytest.mark.parametrize("error", planted_errors(), ids=lambda error: error.name)
def test_a_planted_error_has_its_place_and_says_what_finds_it(error: Planted) -> None:
    texts = error.texts()
    assert texts != error.base.texts()
    assert not re.search(error.says, "")
    assert not error.matches("op_kernel.cpp:1: some other message")


def test_a_place_that_a_base_lacks_is_refused() -> None:
    with pytest.raises(ValueError, match="stands 0 times"):
        Planted("lost", Base("vector"), "not there", "", "x").texts()
