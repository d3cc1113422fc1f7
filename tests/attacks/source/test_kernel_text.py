"""Kernels whose text wants more than to compute on the device. Each is one change of an honest kernel."""

from __future__ import annotations

import time

import pytest
from attrs import evolve

from evokernel_core.domain.verdict import GateStatus
from evokernel_core.targets.ascendc.audit import audit, front_end
from evokernel_core.targets.ascendc.audit.rules.callees import TILING_FUNCTIONS
from evokernel_core.targets.ascendc.source import KERNEL, TILING
from tests.chinese import left_in_english
from tests.tables import few
from tests.verifier.conftest import make_task, read_source

BODY = "kernel.Process();"
TOP = '#include "tiling.h"'
LAUNCH = "add_kernel<<<tiling.blockDim, nullptr, stream>>>("
COVERED = "return true;"
RETURN = "\r"


def body(text: str) -> tuple[str, str]:
    return BODY, f"{BODY} {text}"


def top(text: str) -> tuple[str, str]:
    return TOP, f"{TOP}\n{text}\n"


# (what the attacker does, the change of op_kernel.cpp, the codes that may reject it)
HIDING = [
    ("a comment inside macros", top('#define S "/*"\nint hidden = 0;\n#define T "*/"'), "global-state"),
    ("a directive behind a lone return", top(f"// a{RETURN}#include <fstream>"), "obfuscated"),
    ("an access inside a macro", ("kernel.Process();", "PUT(z)"), "compile"),
    (
        "a used macro with an access",
        (TOP, f"{TOP}\n#define PUT(a) a[0] = 1\nvoid F(GM_ADDR z) {{ PUT(z); }}"),
        "raw-pointer",
    ),
    ("a raw string", top('constexpr auto A = R"(")"; int x; //)";'), "obfuscated"),
    ("a trigraph", top("// ??/\nint x;"), "obfuscated"),
    ("a digraph", top("%:include <fstream>"), "obfuscated"),
    ("a universal name", body(r"\u0061sm(0);"), "obfuscated"),
    ("a line cut by a backslash and a blank", top("// a \\ \nint x = 0;"), "obfuscated"),
    ("a null character", top("// \x00\n"), "obfuscated"),
    ("a line separator", top("// \u2028int x;"), "obfuscated"),
    ("a vertical tab", top("// \x0b#include <fstream>"), "obfuscated"),
    ("a joined name", top("#define J(a, b) a##b"), "obfuscated"),
    (
        "another file's line numbers",
        top('#line 1 "/usr/include/x.h"\nint hidden;\n#line 3 "op_kernel.cpp"'),
        "directive",
    ),
    ("line numbers without a word", top('# 1 "/usr/include/x.h" 3 4\nint hidden;'), "directive"),
    ("a pragma operator", body('_Pragma("GCC optimize(3)");'), "forbidden-name directive"),
    ("a pragma operator in a macro", top('#define P _Pragma("GCC poison Add")'), "forbidden-name"),
    ("a pragma of the compiler", top("#pragma GCC system_header"), "directive"),
    ("a text that differs by compiler", top("#ifdef __clang__\n#else\nint x;\n#endif"), "directive"),
    ("a number of what headers count", body("if (__COUNTER__ % 2) { return; }"), "forbidden-name"),
    ("a number of the compiler's version", body("uint32_t n = __GNUC__ > 4 ? 1 : 0;"), "forbidden-name"),
    ("a number of the file's lines", body("uint32_t n = __LINE__;"), "forbidden-name"),
    ("a number of the compiler in a macro", top("#define TURN __COUNTER__"), "forbidden-name"),
    ("a text that differs by the clock", top("#if __TIME__[0] == '1'\nint x;\n#endif"), "directive"),
    (
        "a text that differs by the file that includes it",
        top("#if __INCLUDE_LEVEL__\nint x;\n#endif"),
        "directive",
    ),
    (
        "a text that differs by what the disk holds",
        top('#if __has_include("/etc/passwd")\nint x;\n#endif'),
        "directive",
    ),
    ("a condition behind a literal", top("#if '//' == __clang__\nint x;\n#endif"), "directive"),
    ("a condition behind a quote", top("#if '\"' == __clang__ //\"\nint x;\n#endif"), "directive"),
    ("an import", top("#import <fstream>"), "directive"),
    ("the next header of a name", top("#include_next <fstream>"), "directive"),
    ("a file as numbers", top("constexpr char A[] = {\n#embed </etc/passwd>\n};"), "directive"),
    ("a header by a macro", top("#define H <fstream>\n#include H"), "include"),
    ("a header by its path", top('#include "/usr/include/stdio.h"'), "include"),
    ("the twin's own header", top('#include "evokernel/twin/api.h"'), "include"),
    ("a keyword with another meaning", top("#define private public"), "directive"),
    (
        "a macro taken back, so that the audit alone drops what stands in its brackets",
        (TOP, f"#undef ASSERT\n{TOP}\nusing ASSERT = int;\nvoid F() {{ ASSERT(system(0)); }}"),
        "callee",
    ),
    (
        "a macro that stands for itself, over one of a header",
        (
            TOP,
            f"#define TRACE_START TRACE_START\n{TOP}\nusing TRACE_START = int;\n"
            "void F() { TRACE_START(*(int *)0x1000); }",
        ),
        "raw-pointer",
    ),
    ("a macro over the twin's names", top("#define evokernel other"), "directive"),
]
REACHING = [
    ("memory by way of void *", body("void *p = z; *static_cast<float *>(p) = 1;"), "raw-pointer"),
    ("memory by a C cast", body("*(float *)z = 1;"), "raw-pointer"),
    ("memory by a functional cast", body("using P = float *; *P(z) = 1;"), "raw-pointer"),
    ("memory by a cast of a number", body("*(float *)0x1000 = 1;"), "raw-pointer"),
    ("memory by a cast of a reference", body("float f = 0; reinterpret_cast<int &>(f) = 1;"), "raw-pointer"),
    ("an address as a number", body("uint64_t n = (uint64_t)z;"), "raw-pointer"),
    ("an address as a number, written as a call", body("using N = uint64_t; N n = N(z);"), "raw-pointer"),
    ("memory of half by a subscript", top("void F(__gm__ half *z) { z[0] = 1; }"), "raw-pointer"),
    (
        "the stack's address as half's",
        body("half f = 0; GlobalTensor<half> g; g.SetGlobalBuffer(&f);"),
        "raw-pointer",
    ),
    ("the stack's address", body("float f = 0; float *p = &f; p[-64] = 1;"), "raw-pointer"),
    (
        "an array as global memory",
        body("half h[4]; GlobalTensor<half> g; g.SetGlobalBuffer(h);"),
        "raw-pointer",
    ),
    (
        "a member's address",
        body("GlobalTensor<half> g; uint32_t n = 0; g.SetGlobalBuffer((half *)&n);"),
        "raw-pointer",
    ),
    (
        "a subscript in a template",
        top("template <typename T> void F(T p) { p[0] = 1; }\nvoid G(GM_ADDR z) { F(z); }"),
        "raw-pointer",
    ),
    (
        "a dereference in a template",
        top("template <typename T> void F(T p) { *p = 1; }\nvoid G(GM_ADDR z) { F(z); }"),
        "raw-pointer",
    ),
    ("an address given back", top("GM_ADDR F(GM_ADDR z) { return z; }"), "raw-pointer"),
    ("the address of a tensor", body("LocalTensor<half> t; auto p = t.GetPhyAddr();"), "callee"),
    (
        "the address of a tensor in a template",
        top("template <typename T> void F(T t) { auto p = t.GetPhyAddr(); }"),
        "callee",
    ),
    (
        "the twin's names by AscendC's",
        body("auto p = AscendC::twin::LocalAddress({});"),
        "forbidden-name callee",
    ),
    ("the twin's names by an alias", top("namespace a = evokernel::twin;"), "forbidden-name namespace"),
    ("the twin's names by using", top("using evokernel::twin::LocalRef;"), "forbidden-name"),
    ("what a tensor is made of", body("LocalTensor<half> t; auto r = t.Ref();"), "callee"),
    (
        "a tensor made of nothing",
        body("LocalTensor<half> t(AscendC::twin::LocalRef{});"),
        "forbidden-name callee",
    ),
    (
        "the twin's function by its mangled name",
        top('extern "C" void _ZN9evokernel4twin12ClearHazardsEv();'),
        "extern forbidden-name",
    ),
    (
        "the twin's function by its declaration",
        top("namespace evokernel { namespace twin { void ClearHazards(); } }"),
        "namespace",
    ),
    (
        "global memory read as a tiling",
        body("GET_TILING_DATA_WITH_STRUCT(OpTiling, other, x);"),
        "forbidden-name callee raw-pointer",
    ),
    ("private members by inheritance", top("struct R : public AscendC::LocalTensor<half> {};"), "namespace"),
    (
        "private members by an instantiation",
        top("template <auto M> struct Rob {};\ntemplate struct Rob<&AscendC::LocalTensor<half>::ref_>;"),
        "construct compile parse type",
    ),
    ("a pointer to a member", body("auto m = &OpTiling::total;"), "type raw-pointer"),
    ("the order of tensors in memory", body("if (x < y) { kernel.Process(); }"), "raw-pointer"),
    ("the distance of tensors in memory", body("if ((y - x) % 7) { kernel.Process(); }"), "raw-pointer"),
    (
        "a count of what lies between tensors",
        body("int n = 0; for (GM_ADDR p = x; p != y && n < 9; ++p) { ++n; }"),
        "raw-pointer",
    ),
    ("bytes of one type as another", top("union U { float f; uint32_t n; };"), "forbidden-name"),
    ("memory that others change", body("volatile int n = 0;"), "forbidden-name"),
    ("a constant changed", body("const int n = 0; const_cast<int &>(n) = 1;"), "forbidden-name"),
]
HOSTING = [
    ("the C library", body("std::memcpy(z, x, 4);"), "callee"),
    ("the C library, without a namespace", body("memcpy(z, x, 4);"), "callee"),
    ("the C library by a pointer", body("auto f = &std::memcpy; f(z, x, 4);"), "callee type"),
    ("the C library by a reference", body("auto &f = std::memcpy; f(z, x, 4);"), "callee type"),
    (
        "the C library as an argument",
        top("template <typename F> void Call(F f) { f(0); }\nvoid G() { Call(std::exit); }"),
        "callee",
    ),
    (
        "the C library as a template's argument",
        top("template <auto F> void Call() { F(0); }\nvoid G() { Call<std::exit>(); }"),
        "callee",
    ),
    (
        "a function of its own by a pointer",
        top("void A() {}\nvoid B() { void (*f)() = A; f(); }"),
        "type callee",
    ),
    ("a builtin", body("__builtin_memcpy(z, x, 4);"), "forbidden-name"),
    ("a builtin in a macro", top("#define C __builtin_memcpy"), "forbidden-name"),
    ("the heap", body("auto p = new float[4];"), "forbidden-name"),
    ("the heap of C", body("auto p = std::malloc(4);"), "callee"),
    ("a string", body("std::string s;"), "compile"),  # no header of the interface declares it
    ("a string with its header", (TOP, f"#include <string>\n{TOP}"), "include"),
    ("a vector", body("std::vector<int64_t> s(4);"), "forbidden-name type callee"),
    ("assembly", body('asm("nop");'), "forbidden-name"),
    ("assembly outside of functions", top('asm(".incbin \\"/etc/passwd\\"");'), "forbidden-name"),
    ("a constructor at load time", top("__attribute__((constructor)) void F() {}"), "forbidden-name"),
    ("a section of its own", top('__attribute__((section(".init_array"))) void F() {}'), "forbidden-name"),
    ("an alias", top('extern "C" void F() __attribute__((alias("add_kernel")));'), "forbidden-name"),
    ("a function chosen at load time", top('__attribute__((ifunc("G"))) void F();'), "forbidden-name"),
    ("a weak function", top("__attribute__((weak)) void F() {}"), "forbidden-name"),
    ("an attribute in brackets", top("[[gnu::constructor]] void F() {}"), "forbidden-name"),
    ("an attribute in split brackets", top("[ [gnu::constructor] ] void F() {}"), "forbidden-name"),
    ("an attribute by using", top("[[using gnu: constructor]] void F() {}"), "forbidden-name"),
    ("a call at the end of a block", body("__attribute__((cleanup(F))) int n = 0;"), "forbidden-name"),
    ("an object made before main", top("struct S { S() {} };\nS s;"), "global-state"),
    (
        "a number computed before main",
        top("inline int F() { return 1; }\nconst int n = F();"),
        "global-state",
    ),
    ("a static member", top("struct S { static inline int n = 0; };"), "global-state"),
    ("a variable template", top("template <typename T> T kept = T();"), "construct global-state"),
    ("a static variable of a function", body("static int n = 0; n++;"), "global-state"),
    ("a variable of a thread", body("thread_local int n = 0;"), "forbidden-name"),
    ("an exception", body("throw 1;"), "forbidden-name"),
    ("a jump", body("again: goto again;"), "forbidden-name"),
    ("a statement as an expression", body("int n = ({ 1; });"), "construct"),
    ("a lambda", body("auto f = [] { return 1; }; f();"), "construct"),
    ("a virtual function", top("struct S { virtual void F() {} };"), "forbidden-name"),
    ("AscendC extended", top("namespace AscendC { void Add(int) {} }"), "namespace"),
    (
        "a template of AscendC's specialised",
        top("struct M {};\ntemplate <> class AscendC::LocalTensor<M> {};"),
        "namespace",
    ),
    (
        "a template of std specialised",
        top("struct M {};\ntemplate <> struct std::is_same<M, int> {};"),
        "namespace",
    ),
    ("std extended", top("namespace std { void F() {} }"), "namespace"),
    ("clocks", body("auto t = GetSystemCycle();"), "callee"),
    ("output", body('PRINTF("x");'), "callee constant-table"),
    ("a file of a tensor", body('LocalTensor<half> t; t.ToFile("x");'), "callee"),
    ("a trap", body("Trap();"), "callee"),
]
LAUNCHING = [
    ("work in the launcher", (LAUNCH, "tensors[2][0] = 1; " + LAUNCH), "launcher"),
    (
        "a launch by the twin's own call",
        (LAUNCH, "::evokernel::twin::LaunchConfig(1); " + LAUNCH),
        "launcher",
    ),
    ("a launch of fewer blocks", (LAUNCH, LAUNCH.replace("tiling.blockDim", "1")), "launcher"),
    (
        "a launcher in a namespace",
        ('extern "C" void LaunchOp', "namespace n { void F() {} }\nvoid LaunchOp"),
        "launcher compile",
    ),
    ("a second function with C linkage", top('extern "C" void write_result() {}'), "extern"),
    ("a block of C linkage", top('extern "C" { int shared; }'), "extern global-state"),
]
TABLES = [
    ("a table of results", top("constexpr float T[] = {" + "1.5f, " * 65 + "};"), "constant-table"),
    (
        "a table of tables",
        top("constexpr float T[9][9] = {" + ("{" + "1.5f, " * 9 + "}, ") * 9 + "};"),
        "constant-table",
    ),
    (
        "a table in many scalars",
        top("\n".join(f"constexpr float A{i} = {i}.12345{i}f;" for i in range(600))),
        "constant-table",
    ),
    (
        "a table in wide integers",
        top("\n".join(f"constexpr uint64_t A{i} = 0x{i:016x}u;" for i in range(1 << 9, 1 << 10))),
        "constant-table",
    ),
    (
        "a table in an enumeration",
        top("enum E { " + ", ".join(f"A{i} = {i * 7919 + 100003}" for i in range(900)) + " };"),
        "constant-table",
    ),
    (
        "a table in the names of an enumeration",
        top(
            "enum E { "
            + ", ".join(f"V{i}" for i in range(900))
            + " };\nint F(int i) {\nswitch (i) {\n"
            + "".join(f"case V{i}: return V{i * 37 % 900};\n" for i in range(900))
            + "}\nreturn 0;\n}"
        ),
        "constant-table",
    ),
    (
        "a table in cases that repeat a few digits",
        top(
            "float F(int i) {\nfloat v = 0;\nswitch (i) {\n"
            + "".join(f"case {i}: v = {i % 10}; v = v * 10 + {i * 7 % 10}; break;\n" for i in range(400))
            + "}\nreturn v;\n}"
        ),
        "constant-table",
    ),
    ("a table in a string", top('constexpr char T[] = "' + "x" * 300 + '";'), "constant-table type"),
    ("a table of characters", top("constexpr char T[] = {" + "'a', " * 70 + "};"), "constant-table type"),
    (
        "a table that the compiler computes",
        top(
            "struct S { float v[999]; };\n"
            "constexpr S Make() { S s{}; for (int i = 0; i < 999; ++i) s.v[i] = i * 0.5f; return s; }\n"
            "constexpr S T = Make();"
        ),
        "constant-table",
    ),
    (
        "a table in a switch",
        top(
            "float F(int i) {\nswitch (i) {\n"
            + "".join(f"case {i}: return {i}.54321{i}f;\n" for i in range(500))
            + "}\nreturn 0;\n}"
        ),
        "constant-table",
    ),
]
# the same for tiling.h
TILINGS = [
    ("results in the tiling", ("uint32_t tile;", "uint32_t tile; float results[15000];"), "tiling"),
    ("a few results in the tiling", ("uint32_t tile;", "uint32_t tile; float results[100];"), "tiling"),
    ("results as whole numbers", ("uint32_t tile;", "uint32_t tile; uint32_t results[1100];"), "tiling"),
    ("an address in the structure", ("uint32_t tile;", "uint32_t tile; const float *cache;"), "tiling"),
    (
        "a function in the structure",
        ("uint32_t tile;", "uint32_t tile; operator int() const { return 1; }"),
        "tiling",
    ),
    (
        "an address changed",
        (COVERED, "const float *p = (const float *)sizes; return p[0] > 0;"),
        "raw-pointer",
    ),
    ("files", (COVERED, 'return std::fopen("x", "r") != nullptr;'), "compile callee"),
    ("the environment", (COVERED, 'return getenv("X") != nullptr;'), "compile callee"),
    ("state between calls", (COVERED, "static int calls = 0; return calls++ == 0;"), "global-state"),
    (
        "one face for the kernel, one for the host",
        (COVERED, "\n#ifdef GM_ADDR\n#else\nexit(0);\n#endif\nreturn true;"),
        "directive",
    ),
    ("a macro that only the kernel's file knows", (COVERED, "FACE return true;"), "compile callee"),
    ("a sign that x86-64 has and AArch64 has not", (COVERED, "const char c = -1; return c < 0;"), "type"),
    ("the same of a wide one", (COVERED, "return static_cast<wchar_t>(-1) < 0;"), "type"),
    ("the same of a literal", (COVERED, r"return '\xff' < 0;"), "type"),
    ("the same by another name", (COVERED, "using C = char; const C c = -1; return c < 0;"), "type"),
    ("digits that only one host has", (COVERED, "long double d = 1; return d + 1e-25L > d;"), "type"),
    ("sorting on the host", (COVERED, "int n[2] = {2, 1}; std::sort(n, n + 2); return true;"), "callee"),
]
KERNELS = [*HIDING, *REACHING, *HOSTING, *LAUNCHING, *TABLES]


def check(op_kernel: tuple[str, str] | None, tiling: tuple[str, str] | None, codes: str) -> None:
    source = read_source("add")
    if op_kernel is not None:
        assert source.files[KERNEL].count(op_kernel[0]) == 1
        source = source.with_files({KERNEL: source.files[KERNEL].replace(*op_kernel)})
    if tiling is not None:
        assert source.files[TILING].count(tiling[0]) == 1
        source = source.with_files({TILING: source.files[TILING].replace(*tiling)})
    result = audit(make_task("add"), source)
    assert result.status is GateStatus.FAILED
    assert result.code.removeprefix("audit-") in codes.split(), result.feedback
    assert result.code == "compile" or not left_in_english(result.feedback), result.feedback


@pytest.mark.parametrize(("change", "codes"), [a[1:] for a in KERNELS], ids=[a[0] for a in KERNELS])
def test_a_kernel_that_wants_more(change: tuple[str, str], codes: str) -> None:
    check(change, None, codes)


@pytest.mark.parametrize(("change", "codes"), [a[1:] for a in TILINGS], ids=[a[0] for a in TILINGS])
def test_a_tiling_that_wants_more(change: tuple[str, str], codes: str) -> None:
    check(None, change, codes)


@pytest.mark.parametrize("call", ["sqrtf(2.0f)", "std::fmax(1.0, 2.0)", "std::exp(1.0)"])
def test_what_a_tiling_may_not_call_is_told_with_what_it_may(call: str) -> None:
    source = read_source("add")
    text = source.files[TILING].replace(COVERED, f"auto value = {call}; (void)value; {COVERED}", 1)
    text = text.replace("#include <cstdint>", "#include <cstdint>\n#include <cmath>\n#include <algorithm>")
    result = audit(make_task("add"), source.with_files({TILING: text}))
    known = ", ".join(f"{name}()" for name in sorted(TILING_FUNCTIONS))
    assert f"may call: {known};" in str(result.feedback)


def test_a_tiling_with_a_face_for_each_file() -> None:
    """What op_kernel.cpp defines makes tiling.h harmless there; the host's file compiles the other face."""
    face = (COVERED, "\n#ifndef SHOWN\nexit(0);\n#endif\nreturn true;")
    check((TOP, f"#define SHOWN\n{TOP}"), face, "callee compile")


@pytest.mark.parametrize(
    "before",
    [
        "inline float exp(short) { return 1; }",
        "namespace own { inline float exp(short) { return 1; } }\nusing namespace own;",
    ],
)
def test_a_tiling_whose_names_the_kernels_file_gives_another_meaning(before: str) -> None:
    """Wants the C library on the host: beside op_kernel.cpp its calls look like the kernel's own."""
    change = (COVERED, "tiling.tile = exp(static_cast<short>(7)); return true;")
    check((TOP, f"{before}\n{TOP}"), change, "callee compile")


SLOW = [
    ("brackets in brackets", body("{" * 8000 + "}" * 8000)),
    ("brackets that never close", body("(" * 16000)),
    ("one long sum", body("int n = " + "+".join(["1"] * 20000) + ";")),
    (
        "macros that double",
        top(
            "#define A0 1,1\n"
            + "\n".join(f"#define A{i} A{i - 1}, A{i - 1}" for i in range(1, 40))
            + "\nconstexpr int T[] = {A39};"
        ),
    ),
    (
        "templates that double",
        top(
            "template <int N, int M> struct F {\n"
            "static constexpr int v = F<N - 1, M * 2>::v + F<N - 1, M * 2 + 1>::v; };\n"
            "template <int M> struct F<0, M> { static constexpr int v = M; };\nconstexpr int X = F<22, 1>::v;"
        ),
    ),
    (
        "a constant that takes for ever",
        top(
            "constexpr int Spin() { int n = 0; for (uint64_t i = 0; i < (1ull << 60); ++i) n++; return n; }\n"
            "constexpr int X = Spin();"
        ),
    ),
    ("many unclosed comments in directives", top("#define A /" + "*" * 50000)),
    ("many quotes", top("// x\n" + '"' * 50000)),
]


LIKE_OTHERS = ("macros that double", "a constant that takes for ever")
"""The first one below has smaller limits as well; the second takes the way of templates that double."""


@pytest.mark.timeout(200)
@few(
    ("name", "change"),
    SLOW,
    keep=tuple(place for place, attack in enumerate(SLOW) if attack[0] not in LIKE_OTHERS),
    ids=[attack[0] for attack in SLOW],
)
def test_a_text_that_wants_the_auditor_to_work_for_ever(name: str, change: tuple[str, str]) -> None:
    source = read_source("add")
    started = time.process_time(), time.monotonic()
    result = audit(make_task("add"), source.with_files({KERNEL: source.files[KERNEL].replace(*change)}))
    assert result.status is GateStatus.FAILED, name
    assert time.process_time() - started[0] < 5
    assert time.monotonic() - started[1] < 100


def test_macros_that_double_end_at_the_preprocessors_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sixteenth of the memory, to be there sooner."""
    limits = front_end.PREPROCESSOR_LIMITS
    assert (limits.address_space, limits.file_size, limits.cpu_s) == (4 << 30, 8 << 20, 10)
    small = evolve(limits, address_space=limits.address_space // 16, cpu_s=2)
    monkeypatch.setattr(front_end, "PREPROCESSOR_LIMITS", small)
    source = read_source("add")
    text = source.files[KERNEL].replace(*dict(SLOW)["macros that double"])
    started = time.monotonic()
    result = audit(make_task("add"), source.with_files({KERNEL: text}))
    assert (result.status, result.code) == (GateStatus.FAILED, "compile")
    assert "needs more time, memory or disk" in result.feedback
    assert time.monotonic() - started < 100
