"""A call of a kernel at given sizes, as cubins and numbers: what crosses from the compiler to the judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.gpu.gpu import Gpu
from evokernel_core.targets.triton.expressions import evaluate
from evokernel_core.targets.triton.launch import Launch, LaunchRecord, LibraryCall, View
from evokernel_core.twin.build import CandidateError


@frozen
class CompiledLaunch:
    """A jit function for one architecture. ``registers``, ``local_bytes`` are of a thread, the second what is
    spilled; ``scratch_bytes`` of memory and ``profile_bytes`` are those that the compiler wants for each
    program. ``types``: Triton's types of the arguments that are left after specialisation, whose places among
    the function's parameters are ``kept``."""

    cubin: Path
    function: str
    shared_bytes: int
    registers: int
    local_bytes: int
    warps: int
    clusters: int
    cooperative: bool
    scratch_bytes: int
    scratch_align: int
    profile_bytes: int
    types: tuple[str, ...]
    kept: tuple[int, ...]


_TOLD = ("function", "shared_bytes", "warps", "clusters", "cooperative", "scratch_bytes", "profile_bytes")
"""What the judging child is told of a compiled launch as it is."""


@frozen
class CompiledCall:
    """All launches of a record's jit functions at sizes, in its order, by which version of Triton."""

    triton: str
    launches: tuple[CompiledLaunch, ...]


@frozen
class Operands:
    """A record's tensors at sizes: dtypes and bytes by name, run-time numbers, and numbers over the sizes."""

    dtypes: Mapping[str, str]
    nbytes: Mapping[str, int]
    sizes: Mapping[str, int]
    scalars: Mapping[str, float]


def operands_of(
    task: KernelTask, record: LaunchRecord, sizes: Sequence[int], scalars: Sequence[float]
) -> Operands:
    """Those of a task's call. Raises UsageError where the record's numbers are none at these sizes."""
    from evokernel_core.domain.graph import InputKind

    bound = dict(zip(record.symbols, sizes, strict=True))
    specs = [one.spec for one in task.graph.inputs if one.kind is not InputKind.SCALAR]
    named = {
        **dict(zip(record.inputs, specs, strict=True)),
        **dict(zip(record.outputs, task.graph.output_specs(), strict=True)),
    }
    by_task = {symbol.name: size for symbol, size in zip(task.symbols, sizes, strict=True)}
    elements = record.scratch_elements(bound)
    return Operands(
        dtypes={
            **{name: spec.dtype for name, spec in named.items()},
            **{one.name: one.dtype for one in record.scratch},
        },
        nbytes={
            **{name: spec.nbytes(by_task) for name, spec in named.items()},
            **{one.name: elements[one.name] * ITEM_SIZE[one.dtype] for one in record.scratch},
        },
        sizes=bound,
        scalars=dict(zip(record.scalars, scalars, strict=True)),
    )


def _argument(word: str, operands: Operands) -> dict[str, Any]:
    """An argument as the compiler must know it."""
    if word in operands.dtypes:
        return {"tensor": operands.dtypes[word]}
    if word in operands.scalars:
        return {"float": operands.scalars[word]}
    return {"int": evaluate(word, operands.sizes)}


def wanted(launch: Launch, operands: Operands) -> dict[str, Any]:
    """A launch as the compiling child takes it. Raises UsageError."""
    return {
        "kernel": launch.kernel,
        "arguments": [_argument(word, operands) for word in launch.arguments],
        "constants": launch.constants_at(operands.sizes),
        "warps": launch.warps,
        "stages": launch.stages,
    }


def call_of(record: LaunchRecord, compiled: CompiledCall, operands: Operands) -> dict[str, Any]:
    """The call as the judging child takes it: ``{"launches", "zeroed"}``. Raises UsageError."""
    done = iter(compiled.launches)
    return {
        "launches": [
            _called(stage, operands)
            if isinstance(stage, LibraryCall)
            else _launched(stage, next(done), operands)
            for stage in record.launches
        ],
        "zeroed": [one.name for one in record.scratch if one.zeroed],
    }


def _called(call: LibraryCall, operands: Operands) -> dict[str, Any]:
    """A library's operation, with its tensors as they lie in memory."""
    return {
        "op": call.op,
        "arguments": [_viewed(one, operands) if isinstance(one, View) else one for one in call.arguments],
        "result": call.result,
        "shape": [evaluate(text, operands.sizes) for text in call.shape],
    }


def _viewed(view: View, operands: Operands) -> dict[str, Any]:
    shape, strides = view.at(operands.sizes)
    dtype = operands.dtypes[view.tensor]
    return {"tensor": view.tensor, "dtype": dtype, "shape": shape, "strides": strides}


def _launched(launch: Launch, done: CompiledLaunch, operands: Operands) -> dict[str, Any]:
    words = [launch.arguments[place] for place in done.kept if place < len(launch.arguments)]
    values = [_value(word, operands) for word in words]
    return {
        **{name: getattr(done, name) for name in _TOLD},
        "cubin": str(done.cubin),
        "grid": launch.programs(operands.sizes),
        "values": list(zip(done.types, values, strict=True)),
    }


def _value(word: str, operands: Operands) -> str | float:
    if word in operands.dtypes:
        return word
    return operands.scalars[word] if word in operands.scalars else evaluate(word, operands.sizes)


def require_fits(record: LaunchRecord, compiled: CompiledCall, gpu: Gpu) -> None:
    """Raises CandidateError for a launch that wants more shared memory than a program has."""
    for launch, done in zip(record.kernels, compiled.launches, strict=True):
        if done.shared_bytes > gpu.shared_bytes:
            raise CandidateError(
                "shared-memory",
                "{kernel} wants {wanted} bytes of shared memory, and a program of {gpu} has {has}: use "
                "smaller blocks or fewer stages.",
                kernel=launch.kernel,
                wanted=done.shared_bytes,
                gpu=gpu.title,
                has=gpu.shared_bytes,
            )
