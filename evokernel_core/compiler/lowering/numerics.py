"""Numerics: functions that the vector unit lacks, in terms of those it has.

Every function is finite where the true result is, and its error is far inside 1e-6 of
max(1, |result|). Rsqrt and Reciprocal of the hardware are avoided: they are low precision.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from attrs import frozen

from evokernel_core.compiler.lowering.values import Builder, Operand, Value
from evokernel_core.domain.errors import PlanError

_EXP_CAP = 80.0
"""exp(80) is about 5e34: still finite in float32, and x / exp(80) is zero for every use below."""

LARGEST = 3.4028234663852886e38
"""The largest finite float32."""

NORMAL_LOGIT = (
    1.59576853700137,
    0.072668297673969,
    -6.605298228526963e-05,
    -1.1054689896774803e-04,
    7.948158642046203e-06,
    -2.6756745445118923e-07,
    3.6278781963109452e-09,
)
"""ln(P / (1 - P)) / x in powers of x * x for the normal distribution function P(x): a least-squares fit
that leaves an error of 7e-8 in x * P(x) and 2.3e-7 in erf, and grows without bound in both tails."""

SHORT_NORMAL_LOGIT = (
    1.59480203291991,
    0.07404130028923378,
    -6.172277668251816e-04,
    -1.782097084238564e-05,
    6.142597376856962e-07,
)
"""The same to half a step of float16 where x is above -3, and to 5 % of x * P(x) down to -5: what is behind
it may scale the tail up to where float16 has its digits."""

_SIN_COEFFICIENTS = (-0.16666665, 0.00833274, -0.00019587)
"""(sin(r) / r - 1) / r**2 in powers of r * r for |r| <= pi / 4, a least-squares fit to 2e-8."""

_COS_COEFFICIENTS = (-0.5, 4.16666646e-02, -1.38882987e-03, 2.45469815e-05)
"""(cos(r) - 1) / r**2 in powers of r * r for |r| <= pi / 4, a least-squares fit to 2e-9."""

_EXPM1_COEFFICIENTS = (1.0, 5.00000043e-01, 1.66666684e-01, 4.16653039e-02, 8.33305214e-03, 1.39977830e-03)
"""(exp(r) - 1) / r in powers of r for |r| <= 1 / 2."""

_SHORT_EXPM1_COEFFICIENTS = (1.0, 1 / 2, 1 / 6, 1 / 24)
"""The same to 1.3e-7 for |r| <= 1 / 16."""

_TURNS = 710.0
"""Near 113 turns. It has 9 bits, so that k * 710 is exact for k up to 2**15."""
_TURNS_EXCESS = 6.02887067281e-05
"""710 less 113 turns."""
_QUARTER_PARTS = (1.57080078125, -4.454455103380769e-06)
"""pi / 2 in two parts, the first with 16 bits, so that k * part is exact for the quarters of 113 turns."""
_EIGHTH = 0.7854
"""Just above pi / 4, the largest remainder of a reduction by quarter turns."""


def reciprocal(b: Builder, x: Operand) -> Operand:
    return b.div(1.0, x)


def rsqrt(b: Builder, x: Operand) -> Operand:
    return b.div(1.0, b.sqrt(x))


def polynomial(b: Builder, x: Operand, coefficients: Sequence[float]) -> Operand:
    """Horner's scheme, ``coefficients`` from the constant term up."""
    *lower, top = coefficients
    result: Operand = top
    for coefficient in reversed(lower):
        result = b.add(b.mul(result, x), coefficient)
    return result


def logistic_quotient(b: Builder, numerator: Operand, x: Operand) -> Operand:
    """numerator / (1 + exp(-x)). The exponential may become infinite, as PyTorch's does: what is divided by
    it is a zero, which a scale of the row's own does not make large, and no number where x is infinite."""
    return b.div(numerator, b.add(b.exp(b.neg(x)), 1.0))


def sigmoid(b: Builder, x: Operand) -> Operand:
    return logistic_quotient(b, 1.0, x)


def silu(b: Builder, x: Operand) -> Operand:
    return logistic_quotient(b, x, x)


def tanh(b: Builder, x: Operand, half: bool = False) -> Operand:
    """n / (n + 2) with n = exp(2 x) - 1; beyond 15 the result is 1 in float32. ``half`` results are float16,
    which has no more digits below 1 / 2 than 1 - 2 / (1 + exp(2 x)) leaves."""
    doubled = b.mul(b.min(x, 15.0), 2.0)
    return _tanh_of_half(b, doubled, half=half)


def _tanh_of_half(b: Builder, x: Operand, *, half: bool) -> Operand:
    """tanh(x / 2)"""
    if half:
        return b.add(b.div(-2.0, b.add(b.exp(x), 1.0)), 1.0)
    n = short_expm1(b, x)
    return b.div(n, b.add(n, 2.0))


def erf(b: Builder, x: Operand, half: bool = False) -> Operand:
    """tanh(l / 2), with l the logit of the normal distribution at sqrt(2) * x; ``half`` as in tanh."""
    scaled = [c * 2.0 ** (power + 0.5) for power, c in enumerate(NORMAL_LOGIT)]
    logit = b.mul(polynomial(b, b.mul(x, x), scaled), x)
    return _tanh_of_half(b, b.min(logit, _EXP_CAP), half=half)


def gelu(b: Builder, x: Operand, half: bool = False) -> Operand:
    """x / (1 + exp(-l)), with l the logit of the normal distribution at x; ``half`` results are
    rounded to 16 bits."""
    coefficients = SHORT_NORMAL_LOGIT if half else NORMAL_LOGIT
    logit = b.mul(polynomial(b, b.mul(x, x), [-c for c in coefficients]), x)
    return b.div(x, b.add(b.exp(logit), 1.0))


def gelu_tanh(b: Builder, x: Operand) -> Operand:
    """x * sigmoid(2 u) with u = sqrt(2 / pi) * (x + 0.044715 x**3), equal to the tanh form."""
    scale = 2.0 * math.sqrt(2.0 / math.pi)
    u = b.mul(b.add(b.mul(b.mul(x, x), scale * 0.044715), scale), x)
    return logistic_quotient(b, x, u)


def expm1(b: Builder, x: Operand) -> Operand:
    """exp(x) - 1 to the last digits."""
    return _expm1(b, x, 0.5, _EXPM1_COEFFICIENTS)


def short_expm1(b: Builder, x: Operand) -> Operand:
    """The same to 1e-6 of it, in fewer instructions."""
    return _expm1(b, x, 1 / 16, _SHORT_EXPM1_COEFFICIENTS)


def _expm1(b: Builder, x: Operand, reach: float, coefficients: Sequence[float]) -> Operand:
    """exp(x - r) * (exp(r) - 1) + (exp(x - r) - 1) with r the part of x in [-reach, reach]."""
    small = b.max(b.min(x, reach), -reach)
    series = b.mul(polynomial(b, small, coefficients), small)
    rest = b.exp(b.sub(x, small))
    return b.add(b.mul(rest, series), b.add(rest, -1.0))


def log1p(b: Builder, x: Operand) -> Operand:
    """ln(1 + x) less what the rounding of 1 + x added, which matters for small x only.

    ln(1 + exp(z)) becomes max(z, 0) + ln(1 + exp(-|z|)), whose exponential cannot overflow.
    """
    if isinstance(x, Value) and x.op == "exp":
        z = x.args[0]
        return b.add(b.relu(z), _log1p_small(b, b.exp(b.neg(b.abs(z)))))
    return _log1p_small(b, x)


def _log1p_small(b: Builder, x: Operand) -> Operand:
    small = b.min(x, 1.0)
    lost = b.sub(b.add(b.add(small, 1.0), -1.0), small)
    return b.sub(b.ln(b.add(x, 1.0)), lost)


def softplus(b: Builder, x: Operand, beta: float, threshold: float) -> Operand:
    """(max(z, 0) + log1p(exp(-|z|))) / beta with z = beta * x; x itself where z > threshold."""
    if not beta:
        raise PlanError("softplus with a beta of 0 is not covered: it divides by beta.")
    z = b.mul(x, beta)
    smooth = log1p(b, b.exp(z))
    result = b.mul(smooth, 1.0 / beta)
    if threshold >= 20.0:  # there exp(-z) is below float32's resolution of z
        return result
    return b.select(b.compare("GT", z, threshold), x, result)


def mish(b: Builder, x: Operand) -> Operand:
    """x * tanh(ln(1 + e)) with e = exp(x), which is x * n / (n + 2) with n = e * (e + 2): no digits cancel
    where e is small. Beyond 20 the quotient is 1 in float32."""
    exponential = b.exp(b.min(x, 20.0))
    n = b.mul(b.add(exponential, 2.0), exponential)
    return b.mul(b.div(n, b.add(n, 2.0)), x)


def elu(
    b: Builder, x: Operand, alpha: float, scale: float, input_scale: float, half: bool = False
) -> Operand:
    """scale * (max(x, 0) + alpha * (exp(input_scale * min(x, 0)) - 1)); ``half`` as in tanh."""
    below = b.mul(b.min(x, 0.0), input_scale)
    exponential = b.add(b.exp(below), -1.0) if half else short_expm1(b, below)
    return b.add(b.mul(b.relu(x), scale), b.mul(exponential, scale * alpha))


def sign(b: Builder, x: Operand) -> Operand:
    positive = b.as_number(b.compare("GT", x, 0.0))
    negative = b.as_number(b.compare("LT", x, 0.0))
    return b.sub(positive, negative)


@frozen
class _Quarters:
    """An angle as a number of quarter turns and a rest of at most pi / 4, with what depends on the rest
    alone: its sine and cosine."""

    count: Operand
    sine: Operand
    cosine: Operand


def _quarters(b: Builder, x: Operand) -> _Quarters:
    """Exact up to |x| = 2.3e7. Beyond it the rest is a number of its range, and not the angle's."""
    turns = b.round(b.mul(x, 1.0 / _TURNS), "CAST_RINT")
    near = b.sub(x, b.mul(turns, _TURNS))
    excess = b.mul(turns, _TURNS_EXCESS)
    count = b.round(b.mul(b.add(near, excess), 2.0 / math.pi), "CAST_RINT")
    high, low = _QUARTER_PARTS
    rest = b.sub(b.add(b.sub(near, b.mul(count, high)), excess), b.mul(count, low))
    rest = b.max(b.min(rest, _EIGHTH), -_EIGHTH)
    square = b.mul(rest, rest)
    sine = b.add(rest, b.mul(b.mul(polynomial(b, square, _SIN_COEFFICIENTS), square), rest))
    cosine = b.add(b.mul(polynomial(b, square, _COS_COEFFICIENTS), square), 1.0)
    return _Quarters(count, sine, cosine)


def _halves(b: Builder, whole: Operand) -> tuple[Operand, Value]:
    """Half of a whole number, rounded down, and whether the number is odd."""
    half = b.mul(whole, 0.5)
    down = b.round(half, "CAST_FLOOR")
    return down, b.compare("NE", down, half)


def _of_quarters(b: Builder, quarters: _Quarters, ahead: float) -> Operand:
    """The sine of an angle that is ``ahead`` quarter turns ahead of ``quarters``. It is a rest's sine or
    cosine, so that it is 1 where the exact sine is nearer to 1 than to the next number."""
    halves, is_odd = _halves(b, b.add(quarters.count, ahead))
    magnitude = b.select(is_odd, quarters.cosine, quarters.sine)
    _, is_behind = _halves(b, halves)
    return b.select(is_behind, b.neg(magnitude), magnitude)


def sin(b: Builder, x: Operand) -> Operand:
    return _of_quarters(b, _quarters(b, x), 0.0)


def cos(b: Builder, x: Operand) -> Operand:
    return _of_quarters(b, _quarters(b, x), 1.0)


def tan(b: Builder, x: Operand) -> Operand:
    quarters = _quarters(b, x)
    _, is_odd = _halves(b, quarters.count)
    above = b.select(is_odd, quarters.cosine, quarters.sine)
    return b.div(above, b.select(is_odd, b.neg(quarters.sine), quarters.cosine))


def power(b: Builder, x: Operand, exponent: float, dtype: str = "float32") -> Operand:
    """x ** exponent of ``dtype``: products for whole exponents, roots for halves, else exp(exponent * ln x),
    NaN for x < 0. Of float16 PyTorch takes no root but a power, to which -inf is inf and -0 is 0."""
    if not math.isfinite(exponent):
        raise PlanError(
            "pow with exponent {exponent} is not covered: give a finite one.", exponent=f"{exponent:g}"
        )
    if exponent == int(exponent) and abs(exponent) <= 64:
        whole = _whole_power(b, x, abs(int(exponent)))
        return whole if exponent >= 0 else reciprocal(b, whole)
    if abs(exponent) == 0.5:
        if dtype != "float16":
            return b.sqrt(x) if exponent > 0 else rsqrt(b, x)
        root = b.abs(b.sqrt(b.select(_is_lowest_infinity(b, x), math.inf, x)))
        return root if exponent > 0 else b.div(1.0, root)
    if exponent == int(exponent):
        raise PlanError(
            "pow with exponent {exponent} is not covered: whole exponents end at 64.",
            exponent=f"{exponent:g}",
        )
    return b.exp(b.mul(b.ln(b.select(_is_lowest_infinity(b, x), math.inf, x)), exponent))


def _is_lowest_infinity(b: Builder, x: Operand) -> Value:
    """Whether x is -inf, of which every power that is not whole is one of inf."""
    return b.compare("LT", x, -LARGEST)


def power_of(b: Builder, x: Operand, exponent: Operand) -> Operand:
    """x ** exponent of two tensors: exp(exponent * ln |x|), negative for negative x and odd exponents.

    Beside whole exponents ln x itself gives the NaN of negative finite x; 0 * infinity never decides, since
    1 ** y and x ** 0 are 1. The zero of negative sign is told by its reciprocal, since -0 ** -3 is -inf.
    """
    whole = b.compare("EQ", b.round(exponent, "CAST_FLOOR"), exponent)
    base = b.select(b.logical("or", whole, _is_lowest_infinity(b, x)), b.abs(x), x)
    magnitude = b.exp(b.mul(b.ln(base), exponent))
    one = b.logical("or", b.compare("EQ", base, 1.0), b.compare("EQ", exponent, 0.0))
    magnitude = b.select(one, 1.0, magnitude)
    half = b.mul(exponent, 0.5)
    odd = b.logical("and", whole, b.compare("NE", b.round(half, "CAST_FLOOR"), half))
    below = b.compare("LT", b.min(x, reciprocal(b, x)), 0.0)
    negative = b.logical("and", odd, below)
    return b.select(negative, b.neg(magnitude), magnitude)


def _whole_power(b: Builder, x: Operand, exponent: int) -> Operand:
    result: Operand | None = None
    square = x
    while exponent:
        if exponent & 1:
            result = square if result is None else b.mul(result, square)
        exponent >>= 1
        if exponent:
            square = b.mul(square, square)
    return 1.0 if result is None else result
