"""What an operator package's build gives a kernel, for kernels that are launched without one.

The keys of a LAUNCH.json for it: ``tiling_key``, ``template``, ``kernel_type``, ``tiling_struct``,
``tiling_header``, ``dtypes`` and ``formats``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import Factory, frozen

from evokernel_core.domain.errors import UsageError
from evokernel_core.twin.kernels import KERNEL_TYPES, kernel_type

DTYPE_MACROS: Mapping[str, tuple[str, str]] = {
    "float32": ("float", "DT_FLOAT"),
    "float": ("float", "DT_FLOAT"),
    "float16": ("half", "DT_FLOAT16"),
    "half": ("half", "DT_FLOAT16"),
    "bfloat16": ("bfloat16_t", "DT_BF16"),
    "float64": ("double", "DT_DOUBLE"),
    "double": ("double", "DT_DOUBLE"),
    "bool": ("bool", "DT_BOOL"),
    "int4": ("int4b_t", "DT_INT4"),
    **{
        f"{sign}int{bits}": (f"{sign}int{bits}_t", f"DT_{sign.upper()}INT{bits}")
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    },
}
"""A dtype's name, its C++ type (DTYPE_X) and its number's name (ORIG_DTYPE_X)."""

DATA_TYPES: Mapping[str, int] = {
    **{"FLOAT": 0, "FLOAT16": 1, "INT8": 2, "INT32": 3, "UINT8": 4, "INT16": 6, "UINT16": 7, "UINT32": 8},
    **{"INT64": 9, "UINT64": 10, "DOUBLE": 11, "BOOL": 12, "STRING": 13, "COMPLEX64": 16, "COMPLEX128": 17},
    **{"BF16": 27, "UNDEFINED": 28, "INT4": 29, "UINT1": 30, "INT2": 31, "UINT2": 32, "COMPLEX32": 33},
    **{"HIFLOAT8": 34, "FLOAT8_E5M2": 35, "FLOAT8_E4M3FN": 36, "FLOAT8_E8M0": 37, "FLOAT4_E2M1": 40},
    **{"FLOAT4_E1M2": 41},
}
"""DT_ macros, by which kernels choose with ``#if ORIG_DTYPE_X == DT_FLOAT``."""

FORMATS: Mapping[str, int] = {
    **{"NCHW": 0, "NHWC": 1, "ND": 2, "NC1HWC0": 3, "FRACTAL_Z": 4, "NC1C0HWPAD": 5, "NHWC1C0": 6},
    **{"C1HWNC0": 9, "NC1HWC0_C04": 12, "FRACTAL_Z_C04": 13, "CHWN": 14, "HWCN": 16, "NDHWC": 27},
    **{"FRACTAL_ZZ": 28, "FRACTAL_NZ": 29, "NCDHW": 30, "DHWCN": 31, "NDC1HWC0": 32, "FRACTAL_Z_3D": 33},
    **{"CN": 34, "NC": 35, "DHWNC": 36, "FRACTAL_Z_3D_TRANSPOSE": 37, "NCL": 47},
}
"""FORMAT_ macros."""


@frozen
class Framework:
    """Key, template arguments, tiling structure, dtypes and formats of one launch.

    ``kernel_type`` is one of the KERNEL_TYPE names, "" for what the kernel says itself.
    ``tiling_header`` is included before the kernel, or ``tiling_text`` stands there.
    ``dtypes`` and ``formats`` are by upper-case name, for DTYPE_X and FORMAT_X.
    """

    tiling_key: int | None = None
    template: tuple[str | int | bool, ...] = ()
    kernel_type: str = ""
    tiling_struct: str = ""
    tiling_header: str = ""
    tiling_text: str = ""
    dtypes: Mapping[str, str] = Factory(dict)
    formats: Mapping[str, str] = Factory(dict)

    def template_text(self) -> str:
        """Template arguments as C++: dtypes by their types, numbers and truth values as they are."""
        written = [_template_argument(argument) for argument in self.template]
        return f"<{', '.join(written)}>" if written else ""


def _template_argument(argument: str | int | bool) -> str:
    match argument:
        case bool():
            return str(argument).lower()
        case str():
            return DTYPE_MACROS[argument][0] if argument in DTYPE_MACROS else argument
        case _:
            return str(argument)


def read_framework(data: Mapping[str, Any], path: Path) -> Framework:
    """The framework's part of a LAUNCH.json. Raises UsageError that names what is wrong in it."""
    key, kind = data.get("tiling_key"), str(data.get("kernel_type", ""))
    if key is not None and (not isinstance(key, int) or not 0 <= key < 2**64):
        raise UsageError(f'"tiling_key" of {path} is {key!r}; write a number from 0 to 2**64 - 1.')
    if kind and kernel_type(kind) is None:
        raise UsageError(f'"kernel_type" of {path} is {kind!r}; write one of {", ".join(KERNEL_TYPES)}.')
    dtypes = {str(name).upper(): str(value) for name, value in dict(data.get("dtypes", {})).items()}
    for name, value in dtypes.items():
        if value not in DTYPE_MACROS:
            known = ", ".join(DTYPE_MACROS)
            raise UsageError(f'"dtypes" of {path} gives {name} {value!r}; write one of {known}.')
    return Framework(
        tiling_key=key,
        template=tuple(data.get("template", ())),
        kernel_type=kind,
        tiling_struct=str(data.get("tiling_struct", "")),
        tiling_header=str(data.get("tiling_header", "")),
        dtypes=dtypes,
        formats={str(name).upper(): str(value) for name, value in dict(data.get("formats", {})).items()},
    )


def framework_macros(
    framework: Framework, dtypes: Mapping[str, str], text: str, given: Sequence[str]
) -> tuple[str, ...]:
    """The macros that ``text`` asks for as NAME=VALUE, without those that are ``given`` already."""
    taken = {define.partition("=")[0] for define in given}
    wanted = (macro for macro in _macros(framework, dtypes, text) if macro.partition("=")[0] not in taken)
    return tuple(wanted)


def _macros(framework: Framework, dtypes: Mapping[str, str], text: str) -> Iterator[str]:
    for name, dtype in sorted({**dtypes, **framework.dtypes}.items()):
        kind, number = DTYPE_MACROS[dtype]
        if re.search(rf"\bDTYPE_{name}\b", text):
            yield f"DTYPE_{name}={kind}"
        if re.search(rf"\bORIG_DTYPE_{name}\b", text):
            yield f"ORIG_DTYPE_{name}={number}"
    for name, layout in sorted(framework.formats.items()):
        yield f"FORMAT_{name}=FORMAT_{layout.removeprefix('FORMAT_')}"
    if framework.tiling_struct and "REGISTER_TILING_DEFAULT" not in text:
        yield f"TypeOfREGISTER_TILING_DEFAULT={framework.tiling_struct}"


def number_definitions(text: str) -> str:
    """The DT_ and FORMAT_ names that ``text`` has without a namespace: ``#define`` lines of those that
    conditions of the preprocessor compare with, else names of the enumerators.

    They come after the interface, where the same names are enumerators.
    """
    directives = "\n".join(re.findall(r"^[ \t]*#[^\n]*(?:\\\n[^\n]*)*", text, re.MULTILINE))
    lines: list[str] = []
    for prefix, numbers in (("DT_", DATA_TYPES), ("FORMAT_", FORMATS)):
        if re.search(rf"\b{prefix}", directives):
            lines += [f"#define {prefix}{name} {number}\n" for name, number in numbers.items()]
        elif re.search(rf"(?<!::)\b{prefix}", text):
            lines += [f"using ge::{prefix}{name};\n" for name in numbers]
    return "".join(lines)
