"""The kernel of an operator as its package's build compiles it: one library for a combination of dtypes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from attrs import frozen

from evokernel_core.domain.errors import UsageError
from evokernel_core.twin.framework import DATA_TYPES, DTYPE_MACROS, FORMATS
from evokernel_core.twin.operators.definition import Description, Operator, OperatorParameter, Structure
from evokernel_core.twin.operators.folder import OperatorFolder, entries

_REGISTERED = re.compile(r"\bREGISTER_TILING_DEFAULT\s*\(\s*(?:\w+\s*::\s*)*(\w+)\s*\)")
_DEFINED = re.compile(r"\bstruct\s+(\w+)\s*\{")
_TYPE_NAMES = {number: name for name, number in DATA_TYPES.items()}
_FORMATS_TAKEN = frozenset({*FORMATS, "ALL", "END", "MAX", "NULL", "RESERVED"})
"""Enumerators of ge::Format, which are no macros even where a tensor has such a name."""
_FORMAT_NAMES = {number: name for name, number in FORMATS.items()}
_C_TYPES = {macro.removeprefix("DT_"): (kind, macro) for kind, macro in DTYPE_MACROS.values()}
DTYPES = {
    "FLOAT": "float32",
    "FLOAT16": "float16",
    "BF16": "bfloat16",
    "DOUBLE": "float64",
    "BOOL": "bool",
    "INT4": "int4",
} | {
    name: name.lower() for name in ("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64")
}
"""Names of ge::DataType as PyTorch spells them."""


@frozen
class KernelFile:
    """The file and the name of an operator's entry function."""

    path: Path
    entry: str


def kernel_of(folder: OperatorFolder, operator: Operator) -> KernelFile:
    """The kernel that has the operator's name. Raises UsageError where there is none."""
    name = snake(operator.type)
    kernel_files = [KernelFile(path, entry) for path in folder.kernels for entry in entries(path)]
    exact = [kernel_file for kernel_file in kernel_files if kernel_file.entry == name]
    fitting = exact or [
        kernel_file
        for kernel_file in kernel_files
        if kernel_file.entry.replace("_", "") == name.replace("_", "")
    ]
    if not fitting:
        names = ", ".join(kernel_file.entry for kernel_file in kernel_files)
        raise UsageError(f"{folder.root} has no kernel {name} for {operator.type}; it has {names}.")
    return next(
        (kernel_file for kernel_file in fitting if kernel_file.path.stem == kernel_file.entry), fitting[0]
    )


def of_folder(folder: OperatorFolder, operators: Sequence[Operator]) -> tuple[Operator, ...]:
    """Those of which the folder has the kernel; all of them where it has none. The others came with host code
    on which the folder's own depends."""
    names = {entry.replace("_", "") for path in folder.kernels for entry in entries(path)}
    own = tuple(operator for operator in operators if snake(operator.type).replace("_", "") in names)
    return own or tuple(operators)


def snake(name: str) -> str:
    """``AddRmsNorm`` is ``add_rms_norm``; a digit after a capital stays with it."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return spaced.lower()


def tiling_text(description: Description, own: Collection[str] = ()) -> str:
    """The kernel's copy of the tiling structures, without its ``own``."""
    structures = (each for each in description.structures if each.name not in own)
    text = ['#include "kernel_tiling/kernel_tiling.h"', *_structures(structures)]
    return "\n".join(text) + "\n"


def own_structures(texts: Iterable[str]) -> frozenset[str]:
    """The tiling structures that a kernel's files define and register themselves."""
    text = "\n".join(texts)
    return frozenset(_REGISTERED.findall(text)) & frozenset(_DEFINED.findall(text))


def _structures(structures: Iterable[Structure]) -> Iterator[str]:
    for structure in structures:
        yield f"struct {structure.name} {{"
        for kind, name, count in structure.fields:
            yield f"    {kind} {name}{f'[{count}]' if count else ''};"
        yield "};"


def type_name(number: int) -> str:
    """A number of ge::DataType by its name without DT_."""
    return _TYPE_NAMES.get(number, "UNDEFINED")


def type_macros(operator: Operator, combination: int) -> Iterator[str]:
    """``DTYPE_X=half`` and the like for each parameter, in one combination; an output with the name of an
    input is the one with _REF behind it."""
    inputs = {parameter.name for parameter in operator.inputs}
    named = [(parameter.name.upper(), parameter) for parameter in operator.inputs]
    named += [
        (parameter.name.upper() + ("_REF" if parameter.name in inputs else ""), parameter)
        for parameter in operator.outputs
    ]
    for name, parameter in named:
        dtype = type_name(at(parameter.types, combination, 28))
        if dtype in _C_TYPES:  # a kernel that names another type does not compile
            yield f"DTYPE_{name}={_C_TYPES[dtype][0]}"
        yield f"ORIG_DTYPE_{name}=DT_{dtype}"
        layout = _FORMAT_NAMES.get(at(parameter.formats, combination, 2), "ND")
        if name not in _FORMATS_TAKEN:
            yield f"FORMAT_{name}=FORMAT_{layout}"


def at(numbers: tuple[int, ...], combination: int, default: int) -> int:
    """The number of one combination; a parameter with a single one has it in all."""
    if not numbers:
        return default
    return numbers[combination] if combination < len(numbers) else numbers[0]


def dtype_of(parameter: OperatorParameter, combination: int) -> str:
    """The dtype as PyTorch spells it, "" for one that it lacks."""
    return DTYPES.get(_TYPE_NAMES.get(at(parameter.types, combination, 28), ""), "")
