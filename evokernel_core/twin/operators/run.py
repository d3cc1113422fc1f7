"""Runs a call of an operator: the vendor's own tiling, then its kernel on the twin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from attrs import evolve, frozen

from evokernel_core.domain.errors import UsageError
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.twin.bare import Bare, run_bare
from evokernel_core.twin.dtypes import DTYPES, to_memory
from evokernel_core.twin.expected import Tolerance
from evokernel_core.twin.operators.build import OperatorLaunch, build_operator
from evokernel_core.twin.operators.case import Case, Given, Tensor, combination_of, request_text, tensors
from evokernel_core.twin.operators.definition import Description, Operator
from evokernel_core.twin.operators.folder import OperatorFolder
from evokernel_core.twin.operators.host import HostProgram, TilingError
from evokernel_core.twin.operators.kernel import dtype_of
from evokernel_core.twin.run import Limits, Mode, RunResult

_LEAST_TILING = 32
_OPEN = (-1,)
"""The shape of an output before the operator's shape function: of one dimension that nobody knows."""


@frozen
class BuiltCall:
    """A case with its kernel compiled for it."""

    case: Case
    bare: Bare
    work: Path


def operator_of(description: Description, name: str) -> Operator:
    """The operator that a case names, or the only one. Raises UsageError."""
    operators = [operator for operator in description.operators if operator.type == name or not name]
    if len(operators) != 1:
        names = ", ".join(operator.type for operator in description.operators) or "none"
        raise UsageError(f'The host code defines {names}; give "operator" in the case.')
    return operators[0]


def build_call(
    folder: OperatorFolder, host: HostProgram, description: Description, case: Case, chip: Chip, work: Path
) -> BuiltCall:
    """Tiles and compiles; ``work`` holds the case's files and gets those of the launch.

    Raises UsageError, TilingError where the host code refuses the call, CandidateError.
    """
    operator = operator_of(description, case.operator)
    combination = combination_of(operator, case)
    inferred = _inferred(host, operator, combination, case, chip)
    unseen = {
        name: _cleared(name, tensor, work) for name, tensor in inferred.items() if name not in case.expect
    }
    case = evolve(case, outputs={**case.outputs, **inferred, **unseen})
    values = dict(_values(description, operator, case, work))
    tiled = host.tile(request_text(operator, case, combination, values), chip)
    tiling = bytes.fromhex(tiled["tiling"])
    (work / "tiling.bin").write_bytes(tiling.ljust(_LEAST_TILING, b"\0"))
    launch = OperatorLaunch(
        tiled["block_dim"], sum(tiled["workspaces"]), tiled["tiling_key"], tuple(_arguments(operator, case))
    )
    bare = build_operator(folder, description, operator, combination, launch, work)
    files = {
        f"{name}.{index}.out.npy": file
        for name, each in case.expect.items()
        for index, file in enumerate(each)
    }
    file = evolve(bare.launch, expect=files, tolerance=Tolerance(case.rtol, case.atol))
    return BuiltCall(case, evolve(bare, launch=file), work)


def run_call(
    call: BuiltCall,
    how: tuple[Mode, Chip, Path | None],
    limits: Limits | None = None,
    *,
    auto_sync: bool = True,
) -> tuple[RunResult, tuple[str, ...]]:
    """The result, and a sentence for each output that is not as expected."""
    return run_bare(call.bare, call.work, how, limits, auto_sync=auto_sync)


def _inferred(
    host: HostProgram, operator: Operator, combination: int, case: Case, chip: Chip
) -> dict[str, Tensor]:
    """The outputs that a call must have and the case does not name, in the shapes of the operator's own shape
    function; none where there is no such function or it leaves them open."""
    absent = [
        parameter
        for parameter in operator.outputs
        if parameter.kind == "required"
        and case.outputs.get(parameter.name) is None
        and parameter.name not in case.inputs
        and dtype_of(parameter, combination) in DTYPES
    ]
    if not absent:
        return {}
    open_shapes = {parameter.name: Tensor(_OPEN, dtype_of(parameter, combination)) for parameter in absent}
    asked = evolve(case, outputs={**case.outputs, **open_shapes})
    try:
        shapes = host.shapes(request_text(operator, asked, combination, {}), chip)
    except TilingError:
        return {}
    result = {output.name: sizes[0] for output, sizes in zip(operator.outputs, shapes, strict=True) if sizes}
    return {
        name: evolve(tensor, shape=tuple(result[name]))
        for name, tensor in open_shapes.items()
        if min(result[name], default=0) >= 0
    }


def _cleared(name: str, tensor: Tensor, work: Path) -> Tensor:
    """Memory for an output that nobody asks for: the kernel may write it, or leave it as it is."""
    file = f"{name}.left_out.npy"
    np.save(work / file, np.zeros(tensor.shape, DTYPES[tensor.dtype]))
    return evolve(tensor, file=file)


def _values(
    description: Description, operator: Operator, case: Case, work: Path
) -> Iterator[tuple[str, list[Path]]]:
    """Raw files of the inputs whose elements the tiling function reads."""
    places = description.reads_values.get(operator.type, ())
    for place, parameter in enumerate(operator.inputs):
        if not parameter.reads_values and place not in places:
            continue
        files = []
        for index, tensor in enumerate(tensors(case.inputs.get(parameter.name))):
            target = work / f"{parameter.name}.{index}.values.bin"
            target.write_bytes(to_memory(np.load(work / tensor.file), tensor.dtype))
            files.append(target)
        yield parameter.name, files


def _arguments(operator: Operator, case: Case) -> Iterator[Mapping[str, Any]]:
    """The kernel's arguments. An output with the name of an input is the same tensor, changed in place, as is
    an input of which the case says what it is expected to hold. An output with a file holds it before."""
    places = {parameter.name: place for place, parameter in enumerate(operator.inputs)}
    changed = places.keys() & {*(parameter.name for parameter in operator.outputs), *case.expect}
    for parameter in operator.inputs:
        yield _argument(
            parameter.name, parameter.kind, case.inputs.get(parameter.name), parameter.name in changed
        )
    for parameter in operator.outputs:
        if parameter.name in places:
            yield {"same": places[parameter.name]}
        else:
            yield _argument(parameter.name, parameter.kind, case.outputs.get(parameter.name), True)
    yield {"workspace": 0}
    yield {"bytes": "tiling.bin"}


def _argument(name: str, kind: str, given: Given, changed: bool) -> Mapping[str, Any]:
    if given is None and kind != "dynamic":
        return {"null": True}
    items = [_tensor(name, index, tensor, changed) for index, tensor in enumerate(tensors(given))]
    return {"list": items} if kind == "dynamic" else items[0]


def _tensor(name: str, index: int, tensor: Tensor, changed: bool) -> Mapping[str, Any]:
    shape = {"shape": list(tensor.shape), "dtype": tensor.dtype}
    if tensor.file and not changed:
        return {"in": tensor.file, **shape}
    return {"out": f"{name}.{index}.out.npy", **shape, **({"from": tensor.file} if tensor.file else {})}
