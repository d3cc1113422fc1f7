"""Which function of ``torch_npu`` a task is, with its arguments.

A function is tried with every assignment of the task's inputs to its parameters: where a composition of
these gives the terms of the task's graph, the task is that function. Intermediate results in the type of the
region's own result do not count as different, as they do not for kernels of ours: fused operators keep them
in float32, and round once.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import SimpleNamespace

from attrs import frozen

from evokernel_core.domain.graph import Graph, GraphInput, InputKind
from evokernel_core.domain.task import ById, KernelTask
from evokernel_core.vendor.assignments import Candidate, assignments
from evokernel_core.vendor.compositions import results_of
from evokernel_core.vendor.functions import TABLE, VendorFunction
from evokernel_core.vendor.reading import Reading, read
from evokernel_core.vendor.rules import RULES
from evokernel_core.vendor.terms import Mismatch, Term, walk

_MOST_NODES = 80
_MOST_TENSORS = 4
_BUILTINS = {"sum": sum, "all": all, "zip": zip}


@frozen
class Recognised:
    """A task that a function computes. ``arguments``: by parameter the name of the graph's input in braces,
    or a value as Python text. ``results``: which results of the function are the task's, in order."""

    function: VendorFunction
    arguments: tuple[tuple[str, str], ...]
    results: tuple[int, ...]

    @property
    def name(self) -> str:
        return f"torch_npu.{self.function.name}"

    def call(self, names: Mapping[str, str]) -> str:
        """The call as Python; ``names`` are those of the graph's inputs at the call site."""
        arguments = {key: value.format_map(names) for key, value in self.arguments}
        return f"{self.name}({self.function.call.format_map(arguments)})"

    def limits(self, names: Mapping[str, str]) -> tuple[str, ...]:
        """Conditions of the function's documentation as Python."""
        arguments = {key: value.format_map(names) for key, value in self.arguments}
        return tuple(limit.format_map(arguments) for limit in self.function.limits)


def recognised(task: KernelTask) -> Recognised | None:
    """The function that a task is, None where it is none of the table."""
    return _recognised(ById(task))


@lru_cache(maxsize=512)
def _recognised(key: ById) -> Recognised | None:
    task = key.task
    graph = task.graph
    tensors = [operand for operand in graph.inputs if operand.kind is not InputKind.SCALAR]
    if graph.updates or len(graph.nodes) > _MOST_NODES or not 0 < len(tensors) <= _MOST_TENSORS:
        return None
    try:
        reading = read(task, RULES)
    except Mismatch:
        return None
    outputs = tuple(reading.values[ref] for ref in graph.outputs)
    kinds = {term.op for output in outputs for term in walk(output)}
    for function in TABLE:
        if function.marks <= kinds:
            result = _as_function(function, graph, tensors, reading, outputs)
            if result is not None:
                return result
    return None


def _as_function(
    function: VendorFunction,
    graph: Graph,
    tensors: list[GraphInput],
    reading: Reading,
    outputs: tuple[Term, ...],
) -> Recognised | None:
    for given in assignments(function, graph, tensors, reading, outputs):
        values = {name: candidate.value for name, candidate in given.items()}
        try:
            result = results_of(function.composition, reading.layouts, values)
        except Mismatch:
            continue
        results = _places(function, graph, tensors, given, outputs, result)
        if results is None:
            continue
        match = Recognised(
            function, tuple((name, candidate.text) for name, candidate in given.items()), results
        )
        if _within_limits(match, graph, reading):
            return match
    return None


def _places(
    function: VendorFunction,
    graph: Graph,
    tensors: list[GraphInput],
    given: Mapping[str, Candidate],
    outputs: tuple[Term, ...],
    terms: tuple[Term, ...],
) -> tuple[int, ...] | None:
    """Which results the outputs are, in shape and dtype too; None where one is none."""
    dtypes = {f"{{{tensor.name}}}": tensor.spec.dtype for tensor in tensors}
    first = dtypes[next(iter(given.values())).text]
    places = []
    for output, spec in zip(outputs, graph.output_specs(), strict=True):
        for index, result in enumerate(terms):
            dtype = function.results[index] or first
            if (output.key, output.shape, spec.dtype) == (result.key, result.shape, dtype):
                places.append(index)
                break
        else:
            return None
    return tuple(places) if len(set(places)) == len(places) else None


def _within_limits(match: Recognised, graph: Graph, reading: Reading) -> bool:
    """Whether the captured sizes are within the function's limits."""
    shapes = {
        operand.name: SimpleNamespace(shape=tuple(size[0] for size in reading.inputs[operand.name].shape))
        for operand in graph.inputs
    }
    names = {operand.name: f"given[{operand.name!r}]" for operand in graph.inputs}
    texts = match.limits(names)  # of the table: nothing of a person's file is evaluated
    return all(eval(text, {"__builtins__": _BUILTINS, "given": shapes}) for text in texts)
