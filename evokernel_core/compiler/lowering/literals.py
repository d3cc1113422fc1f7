"""Literals beside 16-bit tensors, as PyTorch's CPU kernels take them.

Most element-wise operations with a literal compute with it in float32. Those of ``ROUNDED`` first make it a
tensor of the operand's type, which rounds it: ``torch.fmod(x, 2.3)`` of bfloat16 divides by 2.296875.
"""

from __future__ import annotations

import math
import struct

ROUNDED = frozenset(["add", "sub", "rsub", "fmod", "remainder", "pow", "eq", "ne", "lt", "le", "gt", "ge"])
"""ATen packets whose literals are rounded to a 16-bit operand's type, ``alpha`` among them."""


def in_dtype(number: float, dtype: str) -> float:
    """``number`` as an element of float16, bfloat16 or float32, to the nearest even; itself for others."""
    if dtype == "bfloat16":
        return _bfloat16(number)
    code = {"float16": "e", "float32": "f"}.get(dtype)
    try:
        return float(struct.unpack(code, struct.pack(code, number))[0]) if code else number
    except OverflowError:
        return math.copysign(math.inf, number)


def _bfloat16(number: float) -> float:
    try:
        bits = int(struct.unpack("I", struct.pack("f", number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)
    if math.isnan(number):
        return number
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    return float(struct.unpack("f", struct.pack("I", rounded))[0])
