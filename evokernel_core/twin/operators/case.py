"""A call of an operator on files: CASE.json."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

from evokernel_core.domain.errors import UsageError
from evokernel_core.twin.dtypes import DTYPES
from evokernel_core.twin.framework import DATA_TYPES, DTYPE_MACROS
from evokernel_core.twin.operators.definition import Attribute, Operator, OperatorParameter
from evokernel_core.twin.operators.kernel import at

_NUMBERS = {name: DATA_TYPES[macro.removeprefix("DT_")] for name, (_, macro) in DTYPE_MACROS.items()}
_ND = 2


@frozen
class Tensor:
    """A tensor of a call. ``file`` is its .npy, "" for an output; a bfloat16 has its 16 bits there."""

    shape: tuple[int, ...]
    dtype: str
    file: str = ""

    @property
    def number(self) -> int:
        """The number of ge::DataType."""
        return _NUMBERS[self.dtype]


Given = tuple[Tensor, ...] | Tensor | None
"""What a parameter gets: a tensor, the tensors of a list, or nothing."""


@frozen
class Case:
    """Parameters by name, attributes that are not the default's, expected outputs by name."""

    operator: str
    inputs: Mapping[str, Given]
    outputs: Mapping[str, Given]
    attributes: Mapping[str, Any]
    expect: Mapping[str, Sequence[str]]
    rtol: float
    atol: float


def read_case(path: Path) -> Case:
    """Reads a CASE.json. Raises UsageError that names what is wrong in it."""
    try:
        data = json.loads(path.read_text())
        inputs = {name: _given(value, path) for name, value in data["inputs"].items()}
        outputs = {name: _given(value, path) for name, value in data["outputs"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path} is no case ({error}); see `evokernel twin run-op --help`.") from error
    expect = {
        name: [value] if isinstance(value, str) else value for name, value in data.get("expect", {}).items()
    }
    return Case(
        str(data.get("operator", "")), inputs, outputs, dict(data.get("attributes", {})), expect,
        float(data.get("rtol", 1e-3)), float(data.get("atol", 1e-3)),
    )  # fmt: skip


def _given(entry: Any, path: Path) -> Given:
    match entry:
        case None:
            return None
        case list():
            return tuple(_tensor(each, path) for each in entry)
        case _:
            return _tensor(entry, path)


def _tensor(entry: Any, path: Path) -> Tensor:
    """``"x.npy"``, ``{"file": "x.npy", "dtype": "bfloat16"}`` or ``{"shape": [8], "dtype": "float16"}``."""
    given = {"file": entry} if isinstance(entry, str) else dict(entry)
    file = str(given.get("file", ""))
    array = np.load(path.parent / file, mmap_mode="r") if file else None
    dtype = str(given.get("dtype") or (array.dtype if array is not None else ""))
    shape = given["shape"] if array is None else array.shape
    if dtype not in DTYPES:
        raise UsageError(f"{path} gives a tensor the dtype {dtype!r}; write one of {', '.join(DTYPES)}.")
    return Tensor(tuple(int(size) for size in shape), dtype, file)


def tensors(given: Given) -> tuple[Tensor, ...]:
    """The tensors that a parameter gets."""
    if given is None:
        return ()
    return given if isinstance(given, tuple) else (given,)


def combination_of(operator: Operator, case: Case) -> int:
    """Which combination of dtypes a case is. Raises UsageError where the operator has no such one."""
    given = {**case.inputs, **case.outputs}
    return combination_in(
        operator, {name: [each.dtype for each in tensors(value)] for name, value in given.items()}
    )


def combination_in(operator: Operator, dtypes: Mapping[str, Sequence[str]]) -> int:
    """The first combination in which the parameters have these dtypes. Raises UsageError."""
    unknown = {dtype for kind in dtypes.values() for dtype in kind} - _NUMBERS.keys()
    if unknown:
        raise UsageError(f"The twin has no tensors of {', '.join(sorted(unknown))}.")
    for combination in range(operator.combinations):
        if all(
            at(parameter.types, combination, _NUMBERS[dtype]) == _NUMBERS[dtype]
            for parameter in (*operator.inputs, *operator.outputs)
            for dtype in dtypes.get(parameter.name, ())
        ):
            return combination
    words = ", ".join(f"{name} {'/'.join(dict.fromkeys(value))}" for name, value in dtypes.items() if value)
    raise UsageError(f"{operator.type} is not defined for {words}.")


def request_text(
    operator: Operator, case: Case, combination: int, values: Mapping[str, Sequence[Path]]
) -> str:
    """What the host program reads; ``values`` are files with the elements of inputs whose values count."""
    lines = [f"type {operator.type}"]
    for word, parameters, given in (
        ("input", operator.inputs, case.inputs), ("output", operator.outputs, case.outputs),
    ):  # fmt: skip
        for parameter in parameters:
            lines.append(word)
            lines += _tensor_lines(
                parameter, tensors(given.get(parameter.name)), combination, values if word == "input" else {}
            )
    unknown = set(case.attributes) - {attribute.name for attribute in operator.attributes}
    if unknown:
        raise UsageError(f"{operator.type} has no attribute {', '.join(sorted(unknown))}.")
    lines += [
        f"attribute {_attribute(attribute, case.attributes.get(attribute.name, attribute.value))}"
        for attribute in operator.attributes
    ]
    return "\n".join(lines) + "\n"


def _tensor_lines(
    parameter: OperatorParameter,
    tensors: Sequence[Tensor],
    combination: int,
    values: Mapping[str, Sequence[Path]],
) -> Iterator[str]:
    files = values.get(parameter.name, ())
    layout = at(parameter.formats, combination, _ND)
    for index, tensor in enumerate(tensors):
        sizes = " ".join(map(str, (len(tensor.shape), *tensor.shape)))
        yield f"tensor {tensor.number} {layout} {sizes} {files[index] if index < len(files) else '-'}"


def _attribute(attribute: Attribute, value: Any) -> str:
    if value is None:
        return "none"
    match attribute.kind:
        case "string":
            return f"string {str(value).encode().hex()}"
        case "bool":
            return f"bool {int(bool(value))}"
        case "list_list_int":
            return " ".join(["list_list_int", str(len(value)), *(_numbers(each) for each in value)])
        case "list_int" | "list_float" | "list_bool":
            return f"{attribute.kind} {_numbers(value)}"
        case _:
            return f"{attribute.kind} {value}"


def _numbers(values: Sequence[Any]) -> str:
    return " ".join(
        [str(len(values)), *(str(int(each) if isinstance(each, bool) else each) for each in values)]
    )
