"""Lowering rules of inverse, hyperbolic and other special functions, and of division with a remainder.

The sign of a zero is not looked at. Polynomials are least-squares fits of our own on Chebyshev nodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from evokernel_core.compiler.lowering import numerics, remainders
from evokernel_core.compiler.lowering.call import Call, Rule
from evokernel_core.compiler.lowering.values import Builder, Operand

_ARCTANGENT = (
    0.999999998, -0.333332823, 0.199982306, -0.142615737, 0.10940199,
    -0.0837206395, 0.0574635578, -0.0307175089, 0.0106807194, -0.00174370114,
)  # fmt: skip
"""atan(t) / t in powers of t * t for |t| <= 1, with an error of 9e-8 in float32."""
_INVERSE_ERROR_NEAR = (
    1.50140936, 0.246640289, -0.00417738976, -0.00125274842, 0.000218346915,
    -4.9597435e-06, -3.46335617e-06, 4.65428731e-07, 2.32858445e-08, -8.73983098e-09,
)  # fmt: skip
"""erfinv(x) / x in powers of w - 2.5 with w = -ln(1 - x * x) up to 5."""
_INVERSE_ERROR_FAR = (
    2.83297683, 1.00167484, 0.00944379945, -0.00763526372, 0.00569872084,
    -0.00360807273, 0.00145565137, -3.28204973e-05, -0.000286408178, 9.6569088e-05,
)  # fmt: skip
"""The same in powers of sqrt(w) - 3 for w from 5 to the last number below infinity."""
_LARGEST = 3.0e38
_TINY = 1e-37
_INVERTIBLE = 1e37
"""The inverse of this is a normal number of float32."""
_SQUARES_VANISH = 1e4
"""From here on x * x + 1 is x * x to float32."""


def _with_sign(b: Builder, magnitude: Operand, x: Operand) -> Operand:
    """``magnitude``, negative where ``x`` is."""
    return b.select(b.compare("LT", x, 0.0), b.neg(magnitude), magnitude)


def _arctangent(b: Builder, t: Operand) -> Operand:
    """atan for |t| <= 1."""
    return b.mul(numerics.polynomial(b, b.mul(t, t), _ARCTANGENT), t)


def atan(b: Builder, x: Operand) -> Operand:
    """Beyond 1 a quarter turn less atan(1 / x)."""
    clipped = b.max(b.min(x, 1.0), -1.0)
    inner = _arctangent(b, b.div(clipped, b.max(b.abs(x), 1.0)))
    outer = b.sub(b.mul(clipped, math.pi / 2), inner)
    return b.select(b.compare("GT", b.abs(x), 1.0), outer, inner)


def atan2(
    b: Builder, y: Operand, x: Operand, above: Operand | None = None, right: Operand | None = None
) -> Operand:
    """``above`` and ``right`` have the signs of y and x, where those of zeros matter."""
    wide, high = b.min(b.abs(x), _LARGEST), b.min(b.abs(y), _LARGEST)
    angle = _arctangent(b, b.div(b.min(wide, high), b.max(b.max(wide, high), _TINY)))
    angle = b.select(b.compare("GT", high, wide), b.sub(math.pi / 2, angle), angle)
    angle = b.select(b.compare("LT", x if right is None else right, 0.0), b.sub(math.pi, angle), angle)
    return _with_sign(b, angle, y if above is None else above)


def _signed(b: Builder, x: Operand) -> Operand:
    """A number that is less than zero where ``x`` is, or is a zero of that sign: the inverse."""
    return b.div(1.0, b.max(b.min(x, _INVERTIBLE), -_INVERTIBLE))


def angle(b: Builder, y: Operand, x: Operand) -> Operand:
    """atan2 that tells zeros of either sign apart, as those of products of complex numbers are."""
    return atan2(b, y, x, _signed(b, y), _signed(b, x))


def _beside(b: Builder, x: Operand) -> Operand:
    """sqrt(1 - x * x), NaN beyond 1."""
    return b.sqrt(b.mul(b.sub(1.0, x), b.add(x, 1.0)))


def asin(b: Builder, x: Operand) -> Operand:
    """The angle of a right triangle; what lies beyond 1 is NaN, which the sum brings back."""
    beside = _beside(b, x)
    return b.add(atan2(b, x, beside), b.mul(beside, 0.0))


def acos(b: Builder, x: Operand) -> Operand:
    beside = _beside(b, x)
    return b.add(atan2(b, beside, x), b.mul(beside, 0.0))


def sinh(b: Builder, x: Operand) -> Operand:
    return b.mul(b.sub(numerics.expm1(b, x), numerics.expm1(b, b.neg(x))), 0.5)


def cosh(b: Builder, x: Operand) -> Operand:
    return b.mul(b.add(b.exp(x), b.exp(b.neg(x))), 0.5)


def asinh(b: Builder, x: Operand) -> Operand:
    """ln(a + sqrt(a * a + 1)) of the magnitude a, as log1p of what it is above 1."""
    a = b.abs(x)
    small = b.min(a, _SQUARES_VANISH)
    square = b.mul(small, small)
    above = b.add(small, b.div(square, b.add(b.sqrt(b.add(square, 1.0)), 1.0)))
    large = b.add(b.ln(a), math.log(2.0))
    return _with_sign(b, b.select(b.compare("GT", a, _SQUARES_VANISH), large, numerics.log1p(b, above)), x)


def acosh(b: Builder, x: Operand) -> Operand:
    """log1p(t + sqrt(t) * sqrt(t + 2)) with t = x - 1."""
    t = b.add(x, -1.0)
    root = b.mul(b.sqrt(t), b.sqrt(b.add(t, 2.0)))
    large = b.add(b.ln(x), math.log(2.0))
    return b.select(b.compare("GT", x, _SQUARES_VANISH), large, numerics.log1p(b, b.add(t, root)))


def atanh(b: Builder, x: Operand) -> Operand:
    a = b.abs(x)
    twice = b.div(b.mul(a, 2.0), b.sub(1.0, a))
    return _with_sign(b, b.mul(numerics.log1p(b, twice), 0.5), x)


def erfinv(b: Builder, x: Operand) -> Operand:
    w = b.neg(b.ln(b.mul(b.sub(1.0, x), b.add(x, 1.0))))
    near = numerics.polynomial(b, b.add(b.min(w, 5.0), -2.5), _INVERSE_ERROR_NEAR)
    far = numerics.polynomial(b, b.add(b.sqrt(b.max(w, 5.0)), -3.0), _INVERSE_ERROR_FAR)
    inside = b.mul(b.select(b.compare("LT", w, 5.0), near, far), x)
    limit = b.select(b.compare("LT", x, 0.0), -math.inf, math.inf)
    result = b.select(b.compare("GE", b.abs(x), 1.0), limit, inside)
    return b.add(result, b.mul(b.min(w, 0.0), 0.0))  # NaN beyond 1


def _fraction(call: Call) -> Operand:
    """fmod: what truncated division leaves, with the sign of the dividend."""
    b, x = call.b, call.x(0)
    return _with_sign(b, remainders.magnitude(b, b.abs(x), call.x(1)), x)


def _remainder(call: Call) -> Operand:
    return remainders.python_remainder(call.b, call.x(0), call.x(1))


def _hypot(call: Call) -> Operand:
    b, x, y = call.b, call.b.abs(call.x(0)), call.b.abs(call.x(1))
    longer, shorter = b.max(x, y), b.min(x, y)
    ratio = b.div(b.min(shorter, _LARGEST), b.min(b.max(longer, _TINY), _LARGEST))
    return b.mul(longer, b.sqrt(b.add(b.mul(ratio, ratio), 1.0)))


def _log_add_exp(base: float) -> Rule:
    """The logarithm, to ``base``, of a sum of powers of it; infinities of one sign are equal."""

    def rule(call: Call) -> Operand:
        b, x, y = call.b, call.x(0), call.x(1)
        apart = b.neg(b.abs(b.sub(x, y)))
        more = b.mul(numerics.log1p(b, b.exp(b.mul(apart, math.log(base)))), 1.0 / math.log(base))
        result = b.add(b.max(x, y), more)
        return b.select(b.compare("EQ", x, y), b.add(x, math.log(2.0) / math.log(base)), result)

    return rule


def _either(name: str) -> Rule:
    """fmax and fmin: a NaN counts only where both are."""

    def rule(call: Call) -> Operand:
        b, x, y = call.b, call.x(0), call.x(1)
        x_or_y = b.select(b.compare("EQ", x, x), x, y)
        y_or_x = b.select(b.compare("EQ", y, y), y, x)
        operand: Operand = getattr(b, name)(x_or_y, y_or_x)
        return operand

    return rule


def _copysign(call: Call) -> Operand:
    sign = call.x(1)
    number = math.copysign(1.0, sign) if isinstance(sign, float) else _signed(call.b, sign)
    return _with_sign(call.b, call.b.abs(call.x(0)), number)


def _heaviside(call: Call) -> Operand:
    b, x = call.b, call.x(0)
    step = b.as_number(b.compare("GT", x, 0.0))
    return b.select(b.compare("EQ", x, 0.0), call.x(1), step)


def unary(*functions: Callable[[Builder, Operand], Operand]) -> dict[str, Rule]:
    """The rules of functions of one operand, which have the names of their packets."""
    return overloads("default", **{each.__name__: partial(_applied, each) for each in functions})


def _applied(function: Callable[[Builder, Operand], Operand], call: Call) -> Operand:
    return function(call.b, call.x())


def overloads(names: str, **rules: Rule) -> dict[str, Rule]:
    """The rules of packets for each of these overloads."""
    return {f"aten.{packet}.{name}": rule for packet, rule in rules.items() for name in names.split()}


SPECIAL: dict[str, Rule] = {
    **unary(acos, acosh, asin, asinh, atan, atanh, cosh, erfinv, sinh, numerics.tan),
    **overloads("Scalar Tensor", copysign=_copysign, fmod=_fraction, remainder=_remainder),
    "aten.atan2.default": lambda call: angle(call.b, call.x(0), call.x(1)),
    "aten.fmax.default": _either("max"),
    "aten.fmin.default": _either("min"),
    "aten.heaviside.default": _heaviside,
    "aten.hypot.default": _hypot,
    "aten.isinf.default": lambda call: call.b.compare("EQ", call.b.abs(call.x()), math.inf),
    "aten.logaddexp.default": _log_add_exp(math.e),
    "aten.logaddexp2.default": _log_add_exp(2.0),
    "aten.signbit.default": lambda call: call.b.compare("LT", _signed(call.b, call.x()), 0.0),
}
"""By ATen name, how an element-wise operation is computed in float32."""

SPECIAL_BOOL = frozenset({"aten.isinf.default", "aten.signbit.default"})
"""Those whose result is a truth value."""
