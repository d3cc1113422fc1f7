"""The images of a program: one for the vector cores and the host, at times a second one for the cube cores.

Most programs tell the core types apart while they run (``ASCEND_IS_AIC``) and need one image. One that
does so while it is compiled (``#ifdef __DAV_C220_CUBE__``, ``if constexpr (g_coreType == AIC)``) is
compiled once more for the cube cores.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from evokernel_core.twin.conditions import DEVICE_COMPILER
from evokernel_core.twin.kernels import DeclaredKernel, find_kernels
from evokernel_core.twin.lexer import CppTokenKind, Token, closing_index, tokenize
from evokernel_core.twin.preprocess import has_c_linkage
from evokernel_core.twin.sources import ProgramSource, Unit, active_files, active_units

VECTOR_MACROS: Mapping[str, str] = {"__DAV_C220_VEC__": "1", "__DAV_VEC__": "1"}
CUBE_MACROS: Mapping[str, str] = {"__DAV_C220_CUBE__": "1", "__DAV_CUBE__": "1"}
_CORE_MACRO = re.compile("|".join(rf"\b{name}\b" for name in (*VECTOR_MACROS, *CUBE_MACROS)))
_CORE_TYPE = "g_coreType"


def kernels_of(source: ProgramSource, texts: Mapping[Path, str]) -> dict[str, DeclaredKernel]:
    """The kernels of a program, seen with the eyes of both core types."""
    files = active_files(source, texts, VECTOR_MACROS)
    if any(_CORE_MACRO.search(text) for text in texts.values()):
        files += active_files(source, texts, CUBE_MACROS)
    return find_kernels(files)


def needs_cube_image(texts: Iterable[str], kernels: Mapping[str, DeclaredKernel]) -> bool:
    """Whether a program that uses cube cores distinguishes them while it is compiled."""
    ratios = [ratio for kernel in kernels.values() for ratio in (kernel.ratio, *kernel.by_key.values())]
    return any(ratio.cube for ratio in ratios) and any(distinguishes(text) for text in texts)


def distinguishes(text: str) -> bool:
    """Whether a file tells the core types apart while it is compiled."""
    if not (_CORE_MACRO.search(text) or _CORE_TYPE in text):
        return False
    tokens = tokenize(text)
    directives = (token.text for token in tokens if token.kind is CppTokenKind.DIRECTIVE)
    return any(_CORE_MACRO.search(line) for line in directives) or _constant_core_type(tokens)


def _constant_core_type(tokens: Sequence[Token]) -> bool:
    """``g_coreType`` in the condition of ``if constexpr``, in template arguments or a static assertion."""
    for index, token in enumerate(tokens):
        if token.text in ("constexpr", "static_assert", "conditional_t", "enable_if_t"):
            end = _statement(tokens, index)
            if any(part.text == _CORE_TYPE for part in tokens[index:end]):
                return True
    return False


def _statement(tokens: Sequence[Token], index: int) -> int:
    """The end of what follows: a condition in brackets, or up to the next semicolon or brace."""
    if index + 1 < len(tokens) and tokens[index + 1].text == "(":
        return closing_index(tokens, index + 1)
    while index < len(tokens) and tokens[index].text not in (";", "{", "}"):
        index += 1
    return index


def image_flags(cube: bool) -> tuple[str, ...]:
    """What one of two images is compiled with."""
    if cube:
        return ("-DEVOKERNEL_CORE_TYPE=1", "-DEVOKERNEL_CUBE_IMAGE", "-fvisibility=hidden")
    return ("-DEVOKERNEL_CORE_TYPE=2",)


def device_units(source: ProgramSource, texts: Mapping[Path, str]) -> list[Unit]:
    """The translation units as the device compiler reads them for a vector core."""
    return active_units(source, texts, {**VECTOR_MACROS, **DEVICE_COMPILER})


def launch_headers(texts: Iterable[str], kernels: Mapping[str, DeclaredKernel]) -> dict[str, str]:
    """``aclrtlaunch_<kernel>.h`` for each one that the program includes: the kernel's declaration."""
    wanted = {name for text in texts for name in re.findall(r'#\s*include\s*"aclrtlaunch_(\w+)\.h"', text)}
    head = '#pragma once\n#include "evokernel/twin/language.h"\n#include "evokernel/twin/launch_site.h"\n'
    return {
        f"aclrtlaunch_{name}.h": f"{head}{_declared(name, kernels[name].parameters)}"
        for name in sorted(wanted & kernels.keys())
    }


def _declared(name: str, parameters: Sequence[str]) -> str:
    linkage = 'extern "C" ' if has_c_linkage(name) else ""
    return f"{linkage}void {name}({', '.join(parameters)});\n"
