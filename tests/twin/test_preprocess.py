"""Launches are rewritten where they are code, and nothing else changes."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evokernel_core.twin.compiler import detect_compiler
from evokernel_core.twin.kernels import DeclaredKernel, find_kernels
from evokernel_core.twin.lexer import CppTokenKind, tokenize
from evokernel_core.twin.preprocess import (
    LaunchSyntaxError,
    find_launches,
    has_c_linkage,
    rewrite_launches,
    without_launches,
)

CALL = '::evokernel::twin::LaunchSite<#>("{}", {{0, 1, false}}, [={}]() mutable {{ {}; }}, {});'


def plain(text: str) -> str:
    """A rewritten text with the numbers of its launches taken out."""
    return re.sub(r"LaunchSite<0x[0-9a-f]+>", "LaunchSite<#>", text).replace("evokernelArgument", "a")


@pytest.mark.parametrize(
    ("text", "name", "captures", "call", "config"),
    [
        ("k<<<8, nullptr, s>>>(x, y);", "k", ", a0 = (x), a1 = (y)", "k(a0, a1)", "(8), (nullptr), (s)"),
        ("k <<< 8 , 0 , s >>> ( );", "k", "", "k()", "(8), (0), (s)"),
        (
            "ns::k<half, 2><<<f(1, 2), nullptr, s>>>(x);",
            "ns::k<half,2>",
            ", a0 = (x)",
            "ns::k<half, 2>(a0)",
            "(f(1, 2)), (nullptr), (s)",
        ),
        (
            "k<A<B<int>>><<<1, 0, s>>>(x);",
            "k<A<B<int>>>",
            ", a0 = (x)",
            "k<A<B<int>>>(a0)",
            "(1), (0), (s)",
        ),
        ("::k<<<1, 0>>>(x[0], {a, b});", "::k", ", a0 = (x[0])", "::k(a0, {a, b})", "(1), (0)"),
        ("k<<<a >> 2, 0, s>>>(x);", "k", ", a0 = (x)", "k(a0)", "(a >> 2), (0), (s)"),
        ("k<<<1, 0, s, 4>>>(/* <<< */ x);", "k", ", a0 = (x)", "k(a0)", "(1), (0), (s), (4)"),
    ],
)
def test_launches_become_calls(text: str, name: str, captures: str, call: str, config: str) -> None:
    assert plain(rewrite_launches(text)) == CALL.format(name, captures, call, config)


def test_a_launch_in_a_macro_becomes_a_call_where_the_macro_is_used() -> None:
    text = "#define GO(T) \\\n    k<T><<<1, \\\n    0, s>>>(x)\nGO(int);\n"
    changed = rewrite_launches(text)
    assert "<<<" not in changed
    assert changed.count("\n") == text.count("\n")
    assert changed.splitlines()[-1] == "GO(int);"
    assert all(line.endswith("\\") for line in changed.splitlines()[:2])
    broken = "#define GO k<<<1\n"
    assert rewrite_launches(broken) == broken


@pytest.mark.parametrize(
    "text",
    [
        "// k<<<1, 0, s>>>(x);\n",
        "/* k<<<1, 0, s>>>(x);\n */",
        'const char *s = "k<<<1, 0, s>>>(x)";',
        'auto s = R"(k<<<1, 0, s>>>(x))";',
        'auto s = R"end(k<<<1)" , 0, s>>>(x))end";',
        "int a = b << 3 < c;",
        "std::vector<std::vector<std::array<int, 2>>> v;",
        "char c = '\"'; // <<<\n",
    ],
)
def test_what_is_no_launch_stays(text: str) -> None:
    assert rewrite_launches(text) == text


def test_lines_stay_where_they_are() -> None:
    text = "a;\nk\n <<<1,\n   nullptr,\n   s>>>\n (x,\n  y);\nlast;\n"
    rewritten = rewrite_launches(text)
    assert rewritten.count("\n") == text.count("\n")
    assert rewritten.splitlines()[7] == "last;"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a;\nk<<<1>>>(x);", "line 2 has 1 parameters"),
        ("k<<<1, 0, s>>>;", "lacks its argument list"),
        ("k<<<1, 0, s>>>(x;", "never closed"),
        ("k<<<1, 0, s(x);", "lacks its >>>"),
        ("(<<<1, 0, s>>>(x);", "names no kernel"),
        ("k<<<1, , s>>>(x);", "parameters"),
        ("; b><<<1, 0, s>>>(x);", "do not match"),
    ],
)
def test_a_launch_cut_short_is_explained(text: str, words: str) -> None:
    with pytest.raises(LaunchSyntaxError, match=words):
        rewrite_launches(text)


def test_several_launches() -> None:
    found = find_launches("k<<<1, 0, s>>>(x);\nif (a) { j<<<2, 0, s>>>(y); }\n")
    assert [(launch.name, launch.line) for launch in found] == [("k", 1), ("j", 2)]


@given(st.text(alphabet="ab(){}[]<>,;:\"'/*\\#\n R_1.", max_size=80))
def test_tokens_cover_the_text_in_order(text: str) -> None:
    position, tokens = 0, tokenize(text)
    for token in tokens:
        assert token.start >= position
        assert text[token.start : token.end] == token.text
        assert token.line == text.count("\n", 0, token.start) + 1
        position = token.end
    assert all(token.text for token in tokens)


@given(st.text(max_size=60))
def test_text_without_a_launch_is_never_touched(text: str) -> None:
    cleaned = text.replace("<<<", "")
    assert rewrite_launches(cleaned) == cleaned


def test_kinds() -> None:
    tokens = tokenize('#include <x>\nint a1 = 1\'000.5e-3f + \'c\'; // end\n"s\\"" R"(r)" ::')
    kinds = [(token.kind, token.text) for token in tokens]
    assert kinds[0] == (CppTokenKind.DIRECTIVE, "#include <x>")
    assert (CppTokenKind.NUMBER, "1'000.5e-3f") in kinds
    assert (CppTokenKind.CHARACTER, "'c'") in kinds
    assert (CppTokenKind.STRING, '"s\\""') in kinds
    assert (CppTokenKind.STRING, 'R"(r)"') in kinds
    assert kinds[-1] == (CppTokenKind.PUNCTUATION, "::")


@pytest.mark.parametrize(
    ("assigned", "cores"),
    [
        (
            "constexpr auto chosen = []() { if constexpr (true) { return one; } return two; }();",
            "{1, 0, false}",
        ),
        ("auto *chosen = fast ? one : two;", "{1, 0, false}"),
        ("void (*chosen)(int) = &one;", "{1, 0, false}"),
        ("auto chosen{third};", "{0, 1, false}"),
        ("auto chosen = unknown;", "{0, 1, false}"),
    ],
)
def test_a_variable_stands_for_its_kernels(assigned: str, cores: str) -> None:
    text = f"void run() {{ {assigned} chosen<<<8, nullptr, stream>>>(x); }}"
    assert f'("chosen", {cores},' in rewrite_launches(text, _chosen())


def test_a_variable_for_kernels_of_different_cores_is_refused() -> None:
    text = "auto chosen = big ? one : third;\nvoid run() { chosen<<<8, nullptr, stream>>>(x); }"
    with pytest.raises(LaunchSyntaxError, match=r"on line 2 .* different core types"):
        rewrite_launches(text, _chosen())


def _chosen() -> dict[str, DeclaredKernel]:
    cubes = "__global__ __cube__ void one(int); __global__ __cube__ void two(int);"
    declared = f"{cubes} __global__ __vector__ void third(int);"
    return find_kernels([tokenize(declared)])


@pytest.mark.parametrize(
    ("text", "rewritten"),
    [
        ("inline [aicore] void f();", "inline          void f();"),
        ("#define DEV inline [ aicore ]\nint x[3];", "#define DEV inline           \nint x[3];"),
        ("#define BOTH [host, aicore]\n", "#define BOTH               \n"),
        ('const char *word = "[aicore]"; // [aicore]', 'const char *word = "[aicore]"; // [aicore]'),
    ],
)
def test_the_older_mark_of_the_device_is_no_code(text: str, rewritten: str) -> None:
    assert rewrite_launches(text) == rewritten


@pytest.mark.parametrize("between", ["__aicore__", "__mix__(1, 2) __aicore__", "__vector__"])
@pytest.mark.parametrize(
    ("name", "kept"),
    [
        *[(name, False) for name in ("sqrt", "expf", "asinh", "div", "index", "select", "lgamma_r")],
        *[(name, True) for name in ("my_sqrt", "sqrt_v2", "add_custom")],
    ],
)
def test_a_kernel_with_the_name_of_a_library_function_has_no_c_linkage(
    name: str, kept: bool, between: str
) -> None:
    text = f'extern "C" __global__ {between} void {name}(GM_ADDR x) {{ sqrt(2.0); }}'
    assert ('extern "C"' in rewrite_launches(text)) is kept
    assert has_c_linkage(name) is kept


def test_no_function_of_the_mathematical_library_keeps_c_linkage(tmp_path: Path) -> None:
    """Whatever this machine's headers declare: a kernel may have any of their names."""
    (tmp_path / "all.c").write_text("#define _GNU_SOURCE\n#include <math.h>\n")
    argv = [*detect_compiler().c_argv, "-E", "-P", str(tmp_path / "all.c")]
    text = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    names = set(re.findall(r"\bextern [\w ]+?[ *](\w+) \(", text))
    assert {"asinh", "fmod", "lgamma_r"} <= names
    assert [name for name in sorted(names) if has_c_linkage(name) and not name.startswith("_")] == []


def test_a_file_without_its_launches_keeps_its_lines() -> None:
    text = "void f() {\n    k<<<1, 0,\n        s>>>(x);\n    g();\n}\n"
    assert without_launches(text) == "void f() {\n    static_cast<void>(0)\n;\n    g();\n}\n"
