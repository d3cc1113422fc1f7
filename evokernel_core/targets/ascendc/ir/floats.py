"""Floating-point numbers of the scalar unit: literals, fields of the tiling, and what is computed of them.

Estimates do not know their values. A number that is read is a variable of type ``float`` (Let, Get).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping

from attrs import field, frozen

from evokernel_core.domain.errors import PlanError
from evokernel_core.targets.ascendc.ir.expr import Expr, Side, TilingField, Var

FLOAT = "float"
HALF = "half"
INFINITE = "INFINITE"
"""The name of the constant that is infinite."""


class Float(Expr):
    """A floating-point number."""

    def evaluate(self, values: Mapping[str, int]) -> int:
        """Estimates do not know it."""
        return 0


@frozen
class Literal(Float):
    """A number of type float; beyond its range it is infinite. Raises PlanError where it is no number."""

    value: float = field()

    @value.validator
    def _is_a_number(self, _: object, value: float) -> None:
        if math.isnan(value):
            raise PlanError("The region computes with a literal NaN, which is not covered.")

    @property
    def rounded(self) -> float:
        """As float32."""
        try:
            return float(struct.unpack("f", struct.pack("f", self.value))[0])
        except OverflowError:
            return math.copysign(math.inf, self.value)

    @property
    def is_infinite(self) -> bool:
        return math.isinf(self.rounded)

    def cpp(self, side: Side = Side.DEVICE, tightness: int = 0) -> str:
        number = self.rounded
        if self.is_infinite:
            return INFINITE if number > 0 else f"-{INFINITE}"
        text = f"{number:.9g}"
        return (text if any(mark in text for mark in ".e") else f"{text}.0") + "f"


@frozen
class Arithmetic(Float):
    """``left op right``, ``op`` being one of ``+ - * /``."""

    op: str
    left: Expr
    right: Expr

    def cpp(self, side: Side = Side.DEVICE, tightness: int = 0) -> str:
        return f"({self.left.cpp(side, 3)} {self.op} {self.right.cpp(side, 3)})"


@frozen
class Inverse(Float):
    """One over a number."""

    of: Expr

    def cpp(self, side: Side = Side.DEVICE, tightness: int = 0) -> str:
        text = f"1.0f / {self.of.cpp(side, 3)}"
        return f"({text})" if tightness else text


@frozen
class Negative(Float):
    """A number with the other sign."""

    of: Expr

    def cpp(self, side: Side = Side.DEVICE, tightness: int = 0) -> str:
        return f"-{self.of.cpp(side, 3)}"


@frozen
class AsFloat(Float):
    """An integer as a float."""

    of: Expr

    def cpp(self, side: Side = Side.DEVICE, tightness: int = 0) -> str:
        return f"static_cast<float>({self.of.cpp(side)})"


@frozen
class Least(Float):
    """A number, or a bound where it is less than that."""

    of: Expr
    bound: Expr

    def cpp(self, side: Side = Side.DEVICE, tightness: int = 0) -> str:
        number, bound = self.of.cpp(side, 3), self.bound.cpp(side, 3)
        text = f"{number} < {bound} ? {bound} : {number}"
        return f"({text})" if tightness else text


@frozen
class CallScalar(Float):
    """A number that a call passes, by its place among them; only the host is told."""

    position: int

    def cpp(self, side: Side = Side.DEVICE, tightness: int = 0) -> str:
        if side is Side.DEVICE:
            raise TypeError("Only ComputeTiling is given the numbers of a call.")
        return f"scalars[{self.position}]"


def negated(number: Expr) -> Expr:
    """A number with the other sign."""
    if isinstance(number, Negative):
        return number.of
    return Literal(-number.value) if isinstance(number, Literal) else Negative(number)


def float_var(name: str) -> Var:
    """A number that is read."""
    return Var(name, FLOAT)


def float_field(name: str) -> TilingField:
    """A number that the tiling has."""
    return TilingField(name, FLOAT)
