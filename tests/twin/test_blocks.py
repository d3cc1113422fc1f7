"""Marks at basic blocks: where they stand, and that they change nothing else."""

from __future__ import annotations

import re

import pytest

from evokernel_core.twin.blocks import HiddenLoopError, with_marks

_MARK = "::evokernel::twin::EnterBlock();"


def _short(text: str) -> str:
    """The marked text with ``@`` for a mark in braces and ``%`` for one before a statement."""
    marked = with_marks(text)
    assert marked.count("\n") == text.count("\n")
    return marked.replace(f" if ({_MARK} false) {{}} else ", "%").replace(f" {_MARK}", "@")


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("void f() { g(); }", "void f() {@ g(); }"),
        ("int f() const noexcept { return 1; }", "int f() const noexcept {@ return 1; }"),
        ("auto f(int x) -> int { return x; }", "auto f(int x) -> int {@ return x; }"),
        ("bool operator==(A a) { return true; }", "bool operator==(A a) {@ return true; }"),
        ("bool operator()(A a) { return true; }", "bool operator()(A a) {@ return true; }"),
        ("A(int x) : x_(x) { }", "A(int x) : x_(x) {@ }"),
        ("A(int x) : x_{x} { }", "A(int x) : x_{x} {@ }"),
        ("A(int x) : x_(x), y_{x, {}} { }", "A(int x) : x_(x), y_{x, {}} {@ }"),
        ("auto f(int x) -> decltype(x) { return x; }", "auto f(int x) -> decltype(x) {@ return x; }"),
        ("decltype(x) y{1}; A a = A{x}; f(A{x}, B{x});", "decltype(x) y{1}; A a = A{x}; f(A{x}, B{x});"),
        ("struct A { int x{0}; };", "struct A { int x{0}; };"),
        ("struct __attribute__((packed)) A { int x; };", "struct __attribute__((packed)) A { int x; };"),
        ("int a[2] = {1, 2}; int b = int{3};", "int a[2] = {1, 2}; int b = int{3};"),
        ("enum class E { A, B }; namespace n { }", "enum class E { A, B }; namespace n { }"),
        ("for (;;) { }", "for (;;) {@ }"),
        ("for (int i : a) f(i);", "for (int i : a) %f(i);"),
        ("for (;;) for (;;) f();", "for (;;) %for (;;) %f();"),
        ("while (x) ;", "while (x) %;"),
        ("do { f(); } while (x); while (y) g();", "do {@ f(); } while (x); while (y) %g();"),
        ("do f(); while (x);", "do %f(); while (x);"),
        ("if (a) b(); else c();", "if (a) %b(); else %c();"),
        ("if (a) { b(); } else if (c) { d(); }", "if (a) {@ b(); } else if (c) {@ d(); }"),
        ("if constexpr (a) { b(); } else { c(); }", "if constexpr (a) { b(); } else {@ c(); }"),
        ("if (int n = f(); n > 0) g(n);", "if (int n = f(); n > 0) %g(n);"),
        ("switch (x) { case 1: f(); }", "switch (x) { case 1: f(); }"),
        ('g("for (;;) {"); // while (x) {', 'g("for (;;) {"); // while (x) {'),
        (
            "#define F(n) for (int i = 0; i < n; ++i) \\\n  g(i)",
            "#define F(n) for (int i = 0; i < n; ++i) \\\n  %g(i)",
        ),
        ("#define F(n) do { g(n); } while (0)", "#define F(n) do {@ g(n); } while (0)"),
        ("#if defined(X) && (Y)\n#endif", "#if defined(X) && (Y)\n#endif"),
    ],
)
def test_a_mark_stands_at_the_head_of_each_block(text: str, marked: str) -> None:
    assert _short(text) == marked


_TERM = "h = h * 3 + 1; "


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        ("void f() { " + _TERM * 8 + "}", [1]),
        ("void f() { " + _TERM * 40 + "}", [17]),
        ("void f() { for (;;) { " + _TERM * 40 + "} }", [1, 17]),
        ("void f() { if (x) { } " + _TERM * 40 + "}", [17, 1]),
        ("void f() { if (x) g(); " + _TERM * 40 + "}", [17, 1]),
        ("void f() { for (;;) h = " + "h * 3 + " * 40 + "1; }", [1, 17]),
        ("void f() { " + "h ^= h >> 7 << 3 & h; " * 20 + "}", [17]),
        ("void f() { " + "h = h < 9000u ? 9001u : h; " * 80 + "}", [17]),
        ("#define STEP(h) (h * 3 + 1)\nvoid f() { " + "h = STEP(h); " * 40 + "}", [17]),
        ("#define ALL h = h * 3 + 1;\\\n" + "h = h * 3 + 1;" * 39 + "\nvoid f() { ALL }", [17]),
        (
            "#define A(h) ((h) * 3 + 1)\n#define B(h) A(A(A(A(h))))\n#define C(h) B(B(h))\n"
            "void f() { h = C(C(C(C(C(h))))); }",
            [17],
        ),
        ("#define D(h) ((h) + (h))\nvoid f() { h = D(D(D(D(D(h * 1 + 1))))); }", [20]),
        ("#define F F + 1\nvoid f() { F; }", [1]),
        ("#define TILE 64\nvoid f() { " + "a = TILE; " * 40 + "}", [1]),
        ("void f(A &a, B *b) { " + "LocalTensor<A<int>> x = a.b<c>(&d); " * 40 + "}", [1]),
    ],
)
def test_a_long_block_counts_as_several(text: str, weights: list[int]) -> None:
    found = re.findall(r"EnterBlock\((\d*)\)", with_marks(text))
    assert [int(weight or 1) for weight in found] == weights


@pytest.mark.parametrize("macro", ["for", "for (;;)", "F(n) while (n)", "do"])
def test_a_macro_that_is_a_part_of_a_loop_is_refused(macro: str) -> None:
    with pytest.raises(HiddenLoopError, match="line 2"):
        with_marks(f"\n#define F {macro}\n" if "(n)" not in macro else f"\n#define {macro}\n")


def test_a_macro_may_stand_in_another_file() -> None:
    text = "void f() { " + "h = STEP(h); " * 40 + "}"
    assert "EnterBlock(17)" in with_marks(text, ["#define STEP(h) (h * 3 + 1)"])


def test_macros_that_double_are_counted_in_no_time() -> None:
    rows = ["#define A0(h) (h * 3)", *(f"#define A{n}(h) A{n - 1}(h) + A{n - 1}(h)" for n in range(1, 60))]
    assert "EnterBlock(2" in with_marks("\n".join([*rows, "void f() { h = A59(h); }"]))
