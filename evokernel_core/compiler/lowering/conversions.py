"""Floats to integers beyond the integers' range, as PyTorch's CPU kernels convert them on x86.

C++ leaves them undefined; what the processor does is what PyTorch's own tests and users see. int64 and int32
take their least number for all that they do not hold, NaN and infinities among them. Narrower types have the
low bits of such an int32. AscendC's Cast saturates instead.
"""

from __future__ import annotations

from evokernel_core.compiler.lowering.values import Builder, Operand

_WIDE = {"int32": 2.0**31, "int64": 2.0**63}
_NARROW = {"int16": (2.0**16, 2.0**15), "int8": (2.0**8, 2.0**7), "uint8": (2.0**8, 0.0)}
"""Of the narrower types: how many numbers they have, and how many of them are below 0."""


def to_integer(b: Builder, x: Operand, dtype: str) -> Operand:
    """``x`` without its fraction as a whole number that ``dtype`` holds."""
    whole = b.round(b.divided(x), "CAST_TRUNC")
    count, below = _NARROW.get(dtype, (0.0, _WIDE.get(dtype, 0.0)))
    least, most = _bounds(x)
    if -below - 1.0 < least and most < (count - below if count else below):
        return whole
    if not count:
        return b.select(b.compare("LT", b.abs(whole), below), whole, -below)
    wrapped = b.round(b.mul(b.add(whole, below), 1.0 / count), "CAST_FLOOR")
    low = b.sub(whole, b.mul(wrapped, count))
    return b.select(b.compare("LT", b.abs(whole), _WIDE["int32"]), low, 0.0)


def _bounds(x: Operand) -> tuple[float, float]:
    """Between which numbers an operand surely lies."""
    if isinstance(x, float):
        return x, x
    if x.op in ("round", "rounded"):
        return _bounds(x.args[0])
    if x.op == "to_number":
        return 0.0, 1.0
    if x.op not in ("min", "max"):
        return _UNBOUNDED
    choose = min if x.op == "min" else max
    (a_least, a_most), (c_least, c_most) = (_bounds(arg) for arg in x.args)
    return choose(a_least, c_least), choose(a_most, c_most)


_UNBOUNDED = (-float("inf"), float("inf"))
