"""The dtypes of a LAUNCH.json."""

from __future__ import annotations

from collections.abc import Mapping

DTYPES: Mapping[str, str] = {
    **{name: name for name in ("float16", "float32", "float64", "bool")},
    **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "bfloat16": "uint16",
}
"""Names of dtypes in a LAUNCH.json, and numpy's (bfloat16 stays as its 16 bits)."""
