"""The calls that a file supplies inputs for, and whether a kernel captured from one serves another."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from evokernel_core.domain.graph import InputKind
from evokernel_core.domain.region import Region
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec, evaluate_dim


@frozen
class InputGroup:
    """One input group. ``tensors`` by the text that reaches each in the function, such as ``xs[0]``;
    ``values`` are the texts of everything else, by name."""

    tensors: Mapping[str, TensorSpec] = field(converter=dict)
    values: Mapping[str, str] = field(converter=dict)

    @property
    def is_empty(self) -> bool:
        """Whether no tensor has elements, so that there is nothing to compute from."""
        return bool(self.tensors) and all(0 in spec.shape for spec in self.tensors.values())


@frozen
class FileCalls:
    """What a file calls: the qualified name of the function, and the groups in the file's order."""

    symbol: str
    groups: tuple[InputGroup, ...]


def serves(region: Region, captured: InputGroup, other: InputGroup) -> bool:
    """Whether a kernel of the region, which was captured in one call, takes another call too: alike in all
    but the tensors' sizes, as far as those are symbols, and the numbers that are inputs."""
    task = region.task
    if task is None or captured.tensors.keys() != other.tensors.keys():
        return False
    numbers = {operand.expression for operand in task.graph.inputs if operand.kind is InputKind.SCALAR}
    if _fixed(captured, numbers) != _fixed(other, numbers):
        return False
    specs = {
        operand.expression: operand.spec
        for operand in task.graph.inputs
        if operand.expression in other.tensors
    }
    if any(_kind(spec) != _kind(other.tensors[name]) for name, spec in specs.items()):
        return False
    sizes = _sizes(task, [(spec, other.tensors[name]) for name, spec in specs.items()])
    if any(sizes[symbol.name] < symbol.minimum for symbol in task.symbols):
        return False
    return all(spec.sizes(sizes) == other.tensors[name].shape for name, spec in specs.items())


def _fixed(call: InputGroup, numbers: set[str]) -> dict[str, str]:
    return {name: text for name, text in call.values.items() if name not in numbers}


def _kind(spec: TensorSpec) -> tuple[str, int]:
    return spec.dtype, spec.rank


def _sizes(task: KernelTask, pairs: list[tuple[TensorSpec, TensorSpec]]) -> dict[str, int]:
    """The symbols' values where a size of the call is one; those of parameters are as captured."""
    sizes = dict(task.sizes)
    for spec, given in pairs:
        for dim, size in zip(spec.shape, given.shape, strict=True):
            if isinstance(dim, str) and dim in sizes:
                sizes[dim] = evaluate_dim(size, {})
    return sizes
