"""The dtypes of a LAUNCH.json, and how elements lie in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

DTYPES: Mapping[str, str] = {
    **{name: name for name in ("float16", "float32", "float64", "bool")},
    **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "bfloat16": "uint16",
    "int4": "int8",
}
"""Names of dtypes in a LAUNCH.json, and numpy's in files: bfloat16 stays as its 16 bits, an element of int4
has a byte of its own."""
PACKED = "int4"
"""Two of its elements share a byte in memory, the first one in the lower half."""


def nbytes_of(dtype: str, count: int) -> int:
    """Bytes in memory of so many elements."""
    return (count + 1) // 2 if dtype == PACKED else count * np.dtype(DTYPES[dtype]).itemsize


def to_memory(values: Any, dtype: str) -> bytes:
    """The bytes of an array's elements."""
    if dtype != PACKED:
        return np.ascontiguousarray(values).tobytes()
    halves = np.asarray(values).ravel().astype(np.uint8) & 0x0F
    pairs = np.append(halves, np.zeros(halves.size % 2, np.uint8)).reshape(-1, 2)
    return bytes(pairs[:, 0] | pairs[:, 1] << 4)


def from_memory(data: bytes, dtype: str, count: int) -> Any:
    """A flat array of so many elements."""
    if dtype != PACKED:
        return np.frombuffer(data, DTYPES[dtype])
    pairs = np.frombuffer(data, np.uint8)
    halves = np.stack([pairs & 0x0F, pairs >> 4], -1).ravel()[:count].astype(np.int8)
    return np.where(halves > 7, halves - 16, halves).astype(np.int8)
