"""Guards of traced graphs: what is proved from least sizes on does hold, and nothing else is believed."""

from __future__ import annotations

from typing import Any

import pytest
import sympy
from torch.utils._sympy.functions import FloorDiv, Max, Min, Mod

from evokernel_core.capture.agent.tracing.size_guards import holds, settle

a, b = (sympy.Symbol(name, integer=True, positive=True) for name in "ab")
SIZES = {a: 64, b: 100}


def least_of(guard: Any) -> dict[Any, int] | None:
    """The least sizes that settle a guard, None where it stays open."""
    settled = settle([guard], {a: 2, b: 2}, SIZES)
    return None if settled.open else dict(settled.least)


@pytest.mark.parametrize(
    ("guard", "least"),
    [
        (a + 2 >= 3, 2),
        (FloorDiv(a - 11, 4) + 1 > 0, 11),
        (sympy.Ne(FloorDiv(a - 3, 2) + 2, 1), 3),
        (sympy.Ne(1, a - 5), 7),
        (sympy.Eq(sympy.Max(1, a - 2), a - 2), 3),
        (sympy.Eq(sympy.Min(b, sympy.Mul(a, b)), b), 2),
        (sympy.Eq(sympy.Min(3, a), 3), 3),
        (sympy.Eq(Min(b, a * b), b), 2),
        (sympy.Eq(Max(b, a * b), a * b), 2),
        (sympy.Or(a > 5, a > 9), 6),
        (sympy.And(a > 5, a > 9), 10),
        (sympy.Ne(Mod(a, a * b), 0), 2),
        (sympy.Eq(Mod(3, a), 3), 4),
    ],
)
def test_a_guard_on_one_size_gives_its_least(guard: Any, least: int) -> None:
    assert least_of(guard) == {a: least, b: 2}


def test_guards_on_two_sizes_hold_from_the_least_of_each_on() -> None:
    guards = [a - 2 > 0, b - 4 > 0, sympy.expand((a - 2) * (b - 4)) >= 1,
              sympy.Eq(sympy.Max(1, a - 2) * (b - 4), sympy.expand((a - 2) * (b - 4)))]  # fmt: skip
    settled = settle(guards, {a: 2, b: 2}, SIZES)
    assert settled.least == {a: 3, b: 5}
    assert not settled.open


@pytest.mark.parametrize(
    ("guard", "least"),
    [
        (sympy.Ne(FloorDiv(a, 2) * FloorDiv(b, 2), 1), {a: 4, b: 2}),
        (a * b > 20, {a: 11, b: 2}),
        (a + b > 90, {a: 2, b: 89}),
    ],
)
def test_a_guard_on_several_sizes_raises_one(guard: Any, least: dict[Any, int]) -> None:
    assert least_of(guard) == least


@pytest.mark.parametrize(
    "guard",
    [
        a < 70,
        sympy.Eq(a, 64),
        sympy.Eq(a, b),
        a < b,
        a - b > 0,
        sympy.Eq(sympy.Mod(a, 2), 0),
        sympy.Ne(a, 30) & (a < 64),
        FloorDiv(a, b) > 0,
        sympy.Eq(sympy.Max(a, b), b),
        sympy.Eq(sympy.Min(a, b), b),
        sympy.Eq(sympy.Min(a, 70), a),
        sympy.Eq(Mod(a, 2), 0),
        sympy.Ne(Mod(a, b), 0),
    ],
)
def test_other_guards_stay_open(guard: Any) -> None:
    assert least_of(guard) is None


def test_what_is_proved_holds_for_larger_sizes() -> None:
    guards = [FloorDiv(a * 3 - b, 2) > 4, a * b - 3 * a > 5, sympy.Ne(FloorDiv(a + b, 3), 7), a * a - 9 >= 0]
    for guard in guards:
        for low_a in range(1, 12):
            for low_b in range(1, 12):
                if holds(guard, {a: low_a, b: low_b}):
                    assert all(
                        guard.subs({a: low_a + i, b: low_b + j}) == sympy.true
                        for i in range(6)
                        for j in range(6)
                    )
