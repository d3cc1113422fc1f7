"""Numbers as a GPU has them, in numpy: bfloat16, TF32, saturating conversions, minima that pass NaN by.

A bfloat16 value is kept as the float32 of the same value; memory has its 16 bits.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = Any


def to_bfloat16(values: Array) -> Array:
    """float32 rounded to the nearest bfloat16, ties to even, as float32."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)
    is_nan = (bits & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)
    return np.where(is_nan, bits | np.uint32(0x00400000), rounded).view(np.float32)


def bfloat16_bits(values: Array) -> Array:
    """The 16 bits of values that are bfloat16."""
    return (to_bfloat16(values).view(np.uint32) >> np.uint32(16)).astype(np.uint16)


def from_bfloat16_bits(bits: Array) -> Array:
    """The float32 of 16 bits of bfloat16."""
    return (np.ascontiguousarray(bits, np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)


def to_tf32(values: Array) -> Array:
    """float32 without the 13 bits that matrix units leave out of it."""
    return (np.ascontiguousarray(values, np.float32).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def saturated(values: Array, dtype: Any) -> Array:
    """Floats as whole numbers: what is out of range becomes the nearest, NaN 0."""
    limits = np.iinfo(dtype)
    wide = np.trunc(np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf))
    low, high = wide <= float(limits.min), wide >= float(limits.max)
    inner = np.where(low | high, 0.0, wide).astype(dtype)
    return np.where(low, limits.min, np.where(high, limits.max, inner)).astype(dtype)


def multiplied(a: Array, b: Array, precision: str, dtype: Any) -> Array:
    """The products of matrices with sums of ``dtype``. ``precision`` of float32: ``ieee``, ``tf32``, or
    ``tf32x3`` for three products of halves, with NaN of the small ones left out."""
    if np.issubdtype(dtype, np.integer):
        return np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(dtype)
    if dtype == np.float64:
        return np.matmul(a, b)
    a, b = a.astype(np.float32, copy=False), b.astype(np.float32, copy=False)
    if precision == "ieee":
        return np.matmul(a, b)
    large_a, large_b = to_tf32(a), to_tf32(b)
    product = np.matmul(large_a, large_b)
    if precision != "tf32x3":
        return product
    small_a, small_b = to_tf32(a - large_a), to_tf32(b - large_b)
    small = np.matmul(small_a, large_b) + np.matmul(large_a, small_b)
    return product + np.where(np.isnan(small), np.float32(0), small)


_erf = np.frompyfunc(math.erf, 1, 1)


def erf(values: Array) -> Array:
    """The error function."""
    return _erf(values.astype(np.float64)).astype(values.dtype)
