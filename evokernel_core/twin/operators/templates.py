"""The template arguments of a kernel that a tiling key stands for."""

from __future__ import annotations

from collections.abc import Iterator

from evokernel_core.domain.errors import UsageError
from evokernel_core.twin.operators.definition import Description, Operator, Template, TemplateParameter
from evokernel_core.twin.operators.kernel import DTYPES, at, type_name

_DTYPE, _UINT, _BOOL = 0, 2, 3
"""Kinds of parameters: ASCENDC_TPL_DTYPE, ASCENDC_TPL_UINT, ASCENDC_TPL_BOOL."""
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
