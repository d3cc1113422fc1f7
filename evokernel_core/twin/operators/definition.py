"""What an operator's host code says of it: parameters, attributes, tiling structures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

CHIP = "ascend910b"
"""The name of the chips of architecture 2201 in an operator's AddConfig."""


@frozen
class OperatorParameter:
    """``types`` and ``formats`` are numbers of ge::DataType and ge::Format, one for each combination."""

    name: str
    kind: str
    types: tuple[int, ...]
    formats: tuple[int, ...]
    reads_values: bool
    initial: float | None


@frozen
class Attribute:
    """``value`` is the one that a call leaves out."""

    name: str
    kind: str
    required: bool
    value: Any


@frozen
class Structure:
    """A tiling structure: type, name and count (0: no array) of its fields."""

    name: str
    fields: tuple[tuple[str, str, int], ...]


@frozen
class TemplateParameter:
    """One parameter of a kernel's template: its kind (ASCENDC_TPL_x), its bits of the tiling key, and its
    values in the order in which the key counts those of UINT parameters."""

    kind: int
    bits: int
    values: tuple[int, ...]


@frozen
class Template:
    """What ASCENDC_TPL_ARGS_DECL declares of a kernel; ``first_key`` is the key of its first selection."""

    name: str
    first_key: int
    parameters: tuple[TemplateParameter, ...]


@frozen
class Operator:
    """One operator of the host code, as the chips of architecture 2201 have it."""

    type: str
    inputs: tuple[OperatorParameter, ...]
    outputs: tuple[OperatorParameter, ...]
    attributes: tuple[Attribute, ...]
    chips: tuple[str, ...]

    @property
    def combinations(self) -> int:
        """In how many combinations of dtypes it is built."""
        return max((len(part.types) for part in (*self.inputs, *self.outputs)), default=0)

    @property
    def is_for_chip(self) -> bool:
        return CHIP in self.chips


@frozen
class Description:
    """``tilings`` is the name of the structure by operator, or by OPERATOR_KEY; ``reads_values`` the
    inputs by place whose elements a tiling function reads, beside those that the definition names."""

    operators: tuple[Operator, ...]
    structures: tuple[Structure, ...]
    tilings: Mapping[str, str]
    reads_values: Mapping[str, tuple[int, ...]]
    templates: tuple[Template, ...] = ()


def read_description(data: Mapping[str, Any]) -> Description:
    """The answer of the host program to ``describe``."""
    return Description(
        tuple(map(_operator, data["operators"])),
        tuple(
            Structure(structure["name"], tuple(map(tuple, structure["fields"])))
            for structure in data["structures"]
        ),
        dict(data["tilings"]),
        {name: tuple(places) for name, places in data["reads_values"]},
        tuple(map(_template, data["templates"])),
    )


def _template(data: Mapping[str, Any]) -> Template:
    parameters = (TemplateParameter(kind, bits, tuple(values)) for kind, bits, values in data["parameters"])
    return Template(data["name"], data["first_key"], tuple(parameters))


def _operator(data: Mapping[str, Any]) -> Operator:
    """A chip's own parameters, where it has some, stand for those of all."""
    chips = {chip["name"]: chip for chip in data["chips"]}
    own = chips.get(CHIP, {})
    inputs, outputs = (own.get(side) or data[side] for side in ("inputs", "outputs"))
    known = {part["name"]: part for part in (*outputs, *inputs)}
    return Operator(
        data["type"],
        tuple(_parameter(operand, known) for operand in inputs),
        tuple(_parameter(output, known) for output in outputs),
        tuple(Attribute(**attribute) for attribute in data["attributes"]),
        tuple(chips),
    )


def _parameter(declaration: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]]) -> OperatorParameter:
    """One that follows another has its dtypes and formats."""
    like = known.get(declaration["follows"], declaration)
    kinds = {key: tuple(declaration[key] or like[key]) for key in ("types", "formats")}
    return OperatorParameter(
        declaration["name"],
        declaration["kind"],
        **kinds,
        reads_values=declaration["reads_values"],
        initial=declaration["initial"],
    )
