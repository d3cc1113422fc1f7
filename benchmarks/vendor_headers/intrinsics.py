"""Dtypes of the vector and matrix units' intrinsics on Atlas A2, so that their stubs refuse any other.

The documentation gives them by API: docs/zh/api/SIMD-API, memory-based vector computation, the paragraph on
dtypes of each page. For exponents, logarithms, roots, leaky ReLU, Axpy and the block reductions no such
paragraph was found; half and float are what public samples use. The intrinsic behind an API is the name that
the compiler does not know when it is called.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_REAL = ("half", "float")
_WORDS = ("int16_t", "uint16_t")
_SIGNED = ("int16_t", "half", "int32_t", "float")
_SHIFTED = ("int16_t", "uint16_t", "int32_t", "uint32_t")
_MOVED = ("int16_t", "uint16_t", "half", "bfloat16_t", "int32_t", "uint32_t", "float")

DTYPES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("vadd", "vsub", "vmul", "vmax", "vmin"), _SIGNED),  # Add, Sub, Mul, Max, Min
    **dict.fromkeys(("vadds", "vmuls", "vmaxs", "vmins"), _SIGNED),  # Adds, Muls, Maxs, Mins
    **dict.fromkeys(("vdiv", "vexp", "vln", "vabs", "vrec", "vsqrt", "vrsqrt"), _REAL),
    **dict.fromkeys(("vlrelu", "vaxpy", "vcadd", "vcgadd", "vcpadd"), _REAL),
    **dict.fromkeys(("vcmax", "vcmin", "vcgmax", "vcgmin"), _REAL),  # WholeReduceMax, BlockReduceMax ...
    **dict.fromkeys(("vnot", "vand", "vor"), _WORDS),
    **dict.fromkeys(("vshl", "vshr"), _SHIFTED),
    "vrelu": ("half", "int32_t", "float"),
    "vector_dup": _MOVED,  # Duplicate
}
"""The dtypes of an intrinsic's result, by name."""

PRODUCTS: tuple[tuple[str, str, str], ...] = (
    ("int32_t", "int8_t", "int8_t"), ("float", "half", "half"), ("float", "bfloat16_t", "bfloat16_t"),
    ("float", "float", "float"),
)  # fmt: skip
"""Dtypes of result, left and right operand of the matrix unit's ``mad`` (the page of Mmad)."""

_CONVERSION = re.compile(r"^vconv_(bf16|[fsu]\d+)2(bf16|[fsu]\d+)[acforz]?$")
_SPELLED = {
    "f16": "half", "f32": "float", "bf16": "bfloat16_t",
    "s8": "int8_t", "u8": "uint8_t", "s16": "int16_t", "s32": "int32_t", "s64": "int64_t",
}  # fmt: skip


def conversion(name: str) -> tuple[str, ...]:
    """The dtypes of result and operand of a conversion, which its name spells; none for any other name and
    for dtypes that C++ does not have."""
    found = _CONVERSION.match(name)
    if found is None or not {found[1], found[2]} <= set(_SPELLED):
        return ()
    return _SPELLED[found[2]], _SPELLED[found[1]]
