"""Division with a remainder: fmod, remainder, and quotients that are rounded down.

A remainder is a difference of numbers that are close to each other, so that no product on its way may be
rounded: divisors are taken in two parts of 12 bits, and quotients 12 bits at a time.
"""

from __future__ import annotations

import math

from evokernel_core.compiler.lowering import literals
from evokernel_core.compiler.lowering.values import Builder, Operand, Value

_BITS = 12
_STEP = 2.0**_BITS
_LEVELS = 3
"""Quotients up to 2**36 leave the exact remainder."""
_LARGEST_DIVISOR = 3.4e38 / _STEP ** (_LEVELS - 1)
"""Its largest multiple that is taken away is finite. Divisors beyond it count as this one where the dividend
is beyond it too."""


def magnitude(b: Builder, a: Operand, divisor: Operand) -> Operand:
    """What a division of ``a`` >= 0 by ``|divisor|`` leaves: in [0, |divisor|), NaN where PyTorch's fmod is
    except that quotients beyond float32 give NaN too. Quotients beyond 2**36 leave a number of that range
    or 0."""
    if isinstance(divisor, float):
        divisor = literals.in_dtype(divisor, "float32")
    size = b.min(b.abs(divisor), _LARGEST_DIVISOR)
    high, low = _parts(b, size)
    rest = a
    for level in reversed(range(_LEVELS)):
        scale = _STEP**level
        quotient = b.div(rest, b.mul(size, scale))
        whole = b.round(quotient, "CAST_RINT" if level else "CAST_FLOOR")
        rest = b.sub(rest, b.mul(whole, b.mul(high, scale)))
        rest = b.sub(rest, b.mul(whole, b.mul(low, scale)))
    rest = b.select(b.compare("LT", rest, 0.0), b.add(rest, size), rest)
    rest = b.select(b.compare("GE", rest, size), b.sub(rest, size), rest)
    is_inside = b.compare("LT", b.abs(rest), size)
    inside = b.select(is_inside, b.max(rest, 0.0), b.mul(b.div(a, size), 0.0))
    return b.select(b.compare("LT", a, b.abs(divisor)), a, inside)


def _parts(b: Builder, size: Operand) -> tuple[Operand, Operand]:
    """A number as a sum of two of 12 bits each."""
    if isinstance(size, float):
        mantissa, exponent = math.frexp(size)
        high = math.ldexp(round(math.ldexp(mantissa, _BITS)), exponent - _BITS)
        return high, size - high
    spread = b.mul(size, _STEP + 1.0)
    high_part = b.sub(spread, b.sub(spread, size))
    return high_part, b.sub(size, high_part)


def python_remainder(b: Builder, x: Operand, y: Operand) -> Operand:
    """What division rounded down leaves, with the sign of the divisor."""
    rest = magnitude(b, b.abs(x), y)
    rest = b.select(b.compare("LT", x, 0.0), b.neg(rest), rest)
    return b.select(_turns_down(b, rest, y), b.add(rest, y), rest)


def floor_quotient(b: Builder, x: Operand, y: Operand, dtype: str) -> Operand:
    """x / y rounded down, as PyTorch does: the quotient of what the remainder leaves, less 1 where the signs
    differ, and the infinite or undefined quotient of a division by 0. Steps are rounded to ``dtype``."""
    if isinstance(y, float) and math.frexp(y)[0] in (0.5, -0.5):
        # Less what is left of x, of which an infinite one leaves no number.
        return b.add(b.round(b.div(x, y), "CAST_FLOOR"), b.mul(x, 0.0))
    rest = magnitude(b, b.abs(x), y)
    rest = b.select(b.compare("LT", x, 0.0), b.neg(rest), rest)
    quotient = b.decided(b.div(b.decided(b.sub(x, rest), dtype), y), dtype)
    less = b.decided(b.add(quotient, -1.0), dtype)
    quotient = b.select(_turns_down(b, rest, y), less, quotient)
    down = b.round(quotient, "CAST_FLOOR")
    above = b.compare("GT", b.sub(quotient, down), 0.5)
    whole = b.select(above, b.decided(b.add(down, 1.0), dtype), down)
    return whole if isinstance(y, float) and y else b.select(b.compare("EQ", y, 0.0), b.div(x, y), whole)


def _turns_down(b: Builder, rest: Operand, y: Operand) -> Value:
    """Whether a remainder other than 0 has another sign than the divisor."""
    if isinstance(y, float):
        return b.compare("GT" if y < 0 else "LT", rest, 0.0)
    below = b.logical("and", b.compare("LT", rest, 0.0), b.compare("GT", y, 0.0))
    above = b.logical("and", b.compare("GT", rest, 0.0), b.compare("LT", y, 0.0))
    return b.logical("or", below, above)
