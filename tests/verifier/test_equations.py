"""Sizes at which equations of a kernel's text hold."""

from __future__ import annotations

import pytest

from evokernel_core.verifier.gates.equations import MOST_EACH, solutions

ONE = {
    "if (s1 * 7 == 1393) {": 199,
    "x = 7u * s1 != 1'393u;": 199,
    "bad = (tiling_.columns << 3) + 5 == 1101;": 137,
    "if ((sizes[1] ^ 0x55) == 0) {": 85,
    "if (static_cast<uint32_t>(s0) * static_cast<uint32_t>(s0) == 40401 && ready) {": 201,
    "constexpr uint32_t M = 7; constexpr uint32_t C = 1393; if (n * M == C) {": 199,
    "if (n - 100 == 3 * 33 || n == m) {": 199,
    "return 1393 == n * 7 ? 1 : 0;": 199,
    "if (n / 4 * 4 + 1000 - n == 801 + 1) {": -1,
}


@pytest.mark.parametrize("text", ONE)
def test_an_equation_is_solved_behind_its_arithmetic(text: str) -> None:
    assert list(solutions([text])) == [size for size in (ONE[text],) if size > 0]


def test_a_remainder_has_some_of_its_sizes() -> None:
    found = solutions(["if (s1 % 97 == 13) {"])
    assert MOST_EACH <= len(found) <= 2 * MOST_EACH and all(size % 97 == 13 for size in found)


@pytest.mark.parametrize(
    "text",
    [
        "if (n == m) {", "if (n % 2 == 0) {", "if (f(n) == 3) {", "if (n / 0 == 3) {", "if (== 3) {",
        "if (n * 1.5f == 3.0f) {", "x == " + "(" * 200 + "n" + ")" * 200, "if (n[m] == 3 * ", "", "a ==",
        "if (n * m == 12) {", "while (true == flag & 3 % ) {", "operator==(const A &a)", "n == 1 << 62 << n",
    ],
)  # fmt: skip
def test_what_is_no_equation_of_one_size_tells_nothing(text: str) -> None:
    assert solutions([text]) == ()


def test_long_texts_end_soon() -> None:
    assert len(solutions(["if (n * 7 == 1393) { } " * 5000])) == 1
