"""A case of a candidate as the interpreting process is asked for it: numbers in place of expressions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import field, frozen

from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.graph import InputKind
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.targets.triton.expressions import evaluate
from evokernel_core.targets.triton.kernels.text import DTYPES
from evokernel_core.targets.triton.launch import Launch, LaunchRecord, LibraryCall, View, sizes_of

_MOST_DECIDED = 8
"""Launches whose numbers say what a record decides."""
_WORD = 1 << 32


@frozen
class Call:
    """A call of a kernel at given sizes: the frame's head, and what limits follow from. Raises UsageError
    where an expression of the record is no number there."""

    record: LaunchRecord
    dtypes: Mapping[str, str]
    """Of inputs and outputs, by name."""
    sizes: Mapping[str, int]
    scalars: tuple[float, ...] = ()
    nbytes: Mapping[str, int] = field(factory=dict)
    """Of inputs and outputs, by name."""

    def head(self, given: Sequence[str], *, repeat: int = 1, sample: int = 0) -> dict[str, Any]:
        """``given``: the inputs whose elements come with the frame, in order; ``sample``: as in cases.py."""
        return {
            "tensors": self._tensors(given, is_counted=bool(sample)),
            "launches": [self._stage(stage) for stage in self.record.launches],
            "repeat": repeat,
            "sample": sample,
        }

    def programs(self) -> int:
        """Of all launches."""
        return sum(math.prod(launch.programs(self.sizes)) for launch in self.record.kernels)

    def words(self) -> tuple[int, ...]:
        """The numbers that the record chose for the sizes, as a tiling has them."""
        return tuple(
            number
            for launch in self.record.kernels
            for number in (*launch.constants_at(self.sizes).values(), *launch.programs(self.sizes))
        )

    def scratch_bytes(self) -> Mapping[str, int]:
        """Of each scratch tensor."""
        elements = self.record.scratch_elements(self.sizes)
        return {one.name: ITEM_SIZE[one.dtype] * max(elements[one.name], 0) for one in self.record.scratch}

    def _tensors(self, given: Sequence[str], *, is_counted: bool) -> list[dict[str, Any]]:
        """Where programs are only counted, memory that nobody gave is zeros."""
        elements = self.record.scratch_elements(self.sizes)
        tensors = []
        for role, names in (("input", self.record.inputs), ("output", self.record.outputs)):
            for name in names:
                dtype = self.dtypes[name]
                count = self.nbytes[name] // ITEM_SIZE[dtype]
                tensors.append(_tensor(name, dtype, count, role, is_counted, name in given))
        for one in self.record.scratch:
            count = max(elements[one.name], 0)
            tensors.append(_tensor(one.name, one.dtype, count, "scratch", is_counted or one.zeroed, False))
        return tensors

    def _stage(self, stage: Launch | LibraryCall) -> dict[str, Any]:
        return self._launch(stage) if isinstance(stage, Launch) else self._call(stage)

    def _call(self, call: LibraryCall) -> dict[str, Any]:
        tensors = self.record.tensors()
        return {
            "op": call.op,
            "arguments": [
                ("tensor", tensors.index(one.tensor), *one.at(self.sizes))
                if isinstance(one, View)
                else ("value", one)
                for one in call.arguments
            ],
            "result": tensors.index(call.result),
            "shape": [evaluate(text, self.sizes) for text in call.shape],
        }

    def _launch(self, launch: Launch) -> dict[str, Any]:
        return {
            "kernel": launch.kernel,
            "grid": launch.programs(self.sizes),
            "arguments": [self._argument(word) for word in launch.arguments],
            "constants": launch.constants_at(self.sizes),
        }

    def _argument(self, word: str) -> tuple[str, int | float]:
        tensors = self.record.tensors()
        if word in tensors:
            return "tensor", tensors.index(word)
        if word in self.record.scalars:
            return "number", float(self.scalars[self.record.scalars.index(word)])
        return "number", evaluate(word, self.sizes)


def decisions(record: LaunchRecord, probes: Sequence[Sequence[int]]) -> npt.NDArray[np.uint32]:
    """What a record chooses at some sizes, a row of words each: 0 where it declines or has no numbers, else
    1, and the constants and grids of its first launches."""
    stages = record.kernels[:_MOST_DECIDED]
    count = 1 + sum(len(launch.constants) + 3 for launch in stages)
    table = np.zeros((len(probes), count), np.uint32)
    for row, probe in zip(table, probes, strict=True):
        sizes = sizes_of(record, probe)
        try:
            if record.takes(sizes):
                words = [
                    number
                    for launch in stages
                    for number in (*launch.constants_at(sizes).values(), *launch.programs(sizes))
                ]
                row[:] = [1, *(word % _WORD for word in words)]
        except UsageError:
            row[:] = 0
    return table


def _tensor(name: str, dtype: str, elements: int, role: str, zeroed: bool, given: bool) -> dict[str, Any]:
    return {
        "name": name,
        "dtype": dtype,
        "elements": elements,
        "role": role,
        "zeroed": zeroed,
        "given": given,
    }


def dtypes_of(task: KernelTask, record: LaunchRecord) -> dict[str, str]:
    """The dtypes of a task's tensors by the record's names."""
    specs = [one.spec for one in task.graph.inputs if one.kind is not InputKind.SCALAR]
    every = (*specs, *task.graph.output_specs())
    return dict(zip((*record.inputs, *record.outputs), (spec.dtype for spec in every), strict=True))


def unknown_dtypes(dtypes: Mapping[str, str]) -> list[str]:
    """Those that Triton has not."""
    return sorted({dtype for dtype in dtypes.values() if dtype not in DTYPES})


def call_of(
    task: KernelTask,
    record: LaunchRecord,
    sizes: Sequence[int],
    scalars: tuple[float, ...],
    input_bytes: Sequence[int],
    output_bytes: Sequence[int],
) -> Call:
    """The call of a record for sizes in the task's order."""
    names = (*record.inputs, *record.outputs)
    nbytes = dict(zip(names, (*input_bytes, *output_bytes), strict=True))
    return Call(record, dtypes_of(task, record), sizes_of(record, sizes), scalars, nbytes)
