"""One combination of dtypes of an operator, compiled with a launch of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from evokernel_core.domain.errors import UsageError
from evokernel_core.twin.bare import Bare, LaunchFile, build_bare, find_kernel
from evokernel_core.twin.expected import Tolerance
from evokernel_core.twin.framework import Framework
from evokernel_core.twin.operators.definition import Description, Operator, Template, TemplateParameter
from evokernel_core.twin.operators.folder import OperatorFolder
from evokernel_core.twin.operators.includes import include_folders
from evokernel_core.twin.operators.kernel import (
    DTYPES,
    at,
    kernel_of,
    own_structures,
    tiling_text,
    type_macros,
    type_name,
)
from evokernel_core.twin.sources import ProgramSource, read_sources

_DTYPE, _FORMAT, _UINT, _BOOL = range(4)
"""Kinds of parameters: ASCENDC_TPL_DTYPE, ASCENDC_TPL_FORMAT, ASCENDC_TPL_UINT, ASCENDC_TPL_BOOL."""
_INPUT, _OUTPUT = 0x10000, 0x20000
"""Where the values begin that stand for the dtype of a parameter: ASCENDC_TPL_INPUT and _OUTPUT."""


def template_of(description: Description, operator: Operator) -> Template | None:
    """What is declared for the operator's kernel; None where nothing is."""
    named = {template.name.replace("_", "").lower(): template for template in description.templates}
    only = description.templates[0] if len(named) == 1 else None
    return named.get(operator.type.replace("_", "").lower(), only)


def arguments(
    template: Template, key: int, operator: Operator, combination: int
) -> tuple[str | int | bool, ...]:
    """In their order, dtypes as PyTorch spells them. Raises UsageError for a key of no choice."""
    return tuple(_arguments(template, key, operator, combination))


def _arguments(
    template: Template, key: int, operator: Operator, combination: int
) -> Iterator[str | int | bool]:
    shift = 0
    for parameter in template.parameters:
        field = key >> shift & (1 << parameter.bits) - 1
        shift += parameter.bits
        yield _argument(template, parameter, field, (operator, combination))


def _argument(
    template: Template, parameter: TemplateParameter, field: int, of: tuple[Operator, int]
) -> str | int | bool:
    if parameter.kind == _UINT:
        if field >= len(parameter.values):
            raise UsageError(f"The tiling key chooses no value that {template.name} has; check its tiling.")
        return parameter.values[field]
    if parameter.kind == _BOOL:
        return bool(field)
    if parameter.kind != _DTYPE:
        return field
    dtype = _dtype(parameter, field, *of)
    if not dtype:
        raise UsageError(f"The tiling key gives {template.name} a dtype of no tensor; check its tiling.")
    return dtype


def _dtype(parameter: TemplateParameter, field: int, operator: Operator, combination: int) -> str:
    """A dtype of its own, or that of the input or output for which the first value stands."""
    place = parameter.values[0] if parameter.values else 0
    if place < _INPUT:
        return DTYPES.get(type_name(field), "")
    side = operator.outputs if place >= _OUTPUT else operator.inputs
    index = place & 0xFFFF
    number = at(side[index].types, combination, 28) if index < len(side) else 28
    return DTYPES.get(type_name(number), "")


@frozen
class OperatorLaunch:
    """How one call starts: blocks, workspace in bytes, tiling key, and the kernel's arguments in order.

    Without a key (None) it is that of the first choice of template arguments, else 0.
    """

    block_dim: int
    workspace_bytes: int
    tiling_key: int | None
    args: tuple[Mapping[str, Any], ...]


def build_operator(
    folder: OperatorFolder,
    description: Description,
    operator: Operator,
    combination: int,
    launch: OperatorLaunch,
    work: Path,
) -> Bare:
    """Compiles the operator's kernel for one launch; ``work`` holds the launch's files.

    Raises CandidateError where it does not compile, UsageError where the folder has no such kernel.
    """
    kernel = kernel_of(folder, operator)
    includes = include_folders((kernel.path,), folder)
    program = ProgramSource((kernel.path,), includes, tuple(type_macros(operator, combination)))
    template = _template(description, operator, program, kernel.entry)
    key = launch.tiling_key
    if key is None:
        key = template.first_key if template else 0
    structure = description.tilings.get(operator.type, "")
    framework = Framework(
        tiling_key=key,
        template=arguments(template, key, operator, combination) if template else (),
        tiling_text=tiling_text(description, own_structures(read_sources(program).values())),
        tiling_struct=description.tilings.get(f"{operator.type}_{key}", structure),
    )
    file = LaunchFile(
        launch.block_dim, launch.args, {}, {}, Tolerance(0.0, 0.0), launch.workspace_bytes, framework
    )
    return build_bare(program, kernel.entry, file, work)


def _template(
    description: Description, operator: Operator, program: ProgramSource, entry: str
) -> Template | None:
    """What is declared of the kernel's template; None for a kernel that is none."""
    result = template_of(description, operator)
    declared = find_kernel(program, read_sources(program), entry).template
    if result is None or not declared:
        return None
    pairs = zip(result.parameters, declared, strict=False)
    return evolve(result, parameters=tuple(_as_declared(*pair) for pair in pairs))


def _as_declared(parameter: TemplateParameter, declared: str) -> TemplateParameter:
    """A dtype that the kernel takes as a number is the one of its key, like a format."""
    if parameter.kind != _DTYPE or declared.startswith(("typename", "class")):
        return parameter
    return evolve(parameter, kind=_FORMAT)


def launch_of_no_call(parameters: Sequence[str]) -> OperatorLaunch:
    """What a kernel with these parameters is compiled for when no call of it is known; it is not run."""
    plain = [{"in": f"{index}.bin"} for index in range(len(parameters) - 2)]
    return OperatorLaunch(1, 0, None, (*plain, {"workspace": 0}, {"in": "tiling.bin"}))
