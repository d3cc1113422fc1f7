"""Which powers are other functions, and which stay powers."""

from __future__ import annotations

import pytest

from evokernel_core.vendor.algebra import Algebra
from evokernel_core.vendor.terms import Term

ALGEBRA = Algebra(1)
X = ALGEBRA.variable("x", ((4.0,),))
ONE_AND_EXP = ALGEBRA.add(ALGEBRA.number(1.0), ALGEBRA.function("exp", X))
TWO_AND_EXP = ALGEBRA.add(ALGEBRA.number(2.0), ALGEBRA.function("exp", X))


@pytest.mark.parametrize(
    ("base", "exponent", "op"),
    [
        (ONE_AND_EXP, -1.0, "sigmoid"),
        (ONE_AND_EXP, -2.0, "power"),
        (ONE_AND_EXP, -0.5, "power"),
        (ONE_AND_EXP, 2.0, "power"),
        (ONE_AND_EXP, 1.0, "sum"),
        (TWO_AND_EXP, -1.0, "power"),
        (X, -1.0, "power"),
    ],
)
def test_only_the_inverse_of_one_and_an_exponential_is_a_sigmoid(
    base: Term, exponent: float, op: str
) -> None:
    assert ALGEBRA.power(base, exponent).op == op
