"""Which function of ``torch_npu`` a task is, with its arguments.

A function is tried with every assignment of the task's inputs to its parameters: where a composition of
these gives the terms of the task's graph, the task is that function. Intermediate results in the type of the
region's own result do not count as different, as they do not for kernels of ours: fused operators keep them
in float32, and round once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

from attrs import frozen

from evokernel_core.domain.graph import Graph, GraphInput, InputKind
from evokernel_core.domain.task import ById, KernelTask
from evokernel_core.vendor.compositions import results_of
from evokernel_core.vendor.functions import TABLE, Function, Kind, Parameter
from evokernel_core.vendor.reading import Reading, read
from evokernel_core.vendor.rules import RULES
from evokernel_core.vendor.terms import Mismatch, Number, Term, same_number, walk

_MOST_NODES = 80
_MOST_TENSORS = 4
_BUILTINS = {"sum": sum, "all": all, "zip": zip}


@frozen
class Recognised:
    """A task that a function computes. ``arguments``: by parameter the name of the graph's input in braces,
    or a value as Python text. ``results``: which results of the function are the task's, in order."""

    function: Function
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


@frozen
class _Candidate:
    """Something that a parameter may be: for the composition, and as text."""

    value: Any
    text: str


def recognised(task: KernelTask) -> Recognised | None:
    """The function that a task is, None where it is none of the table."""
    return _recognised(ById(task))


@lru_cache(maxsize=512)
def _recognised(key: ById) -> Recognised | None:
    task = key.task
    graph = task.graph
    tensors = [item for item in graph.inputs if item.kind is not InputKind.SCALAR]
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
            found = _as_function(function, graph, tensors, reading, outputs)
            if found is not None:
                return found
    return None


def _as_function(
    function: Function,
    graph: Graph,
    tensors: list[GraphInput],
    reading: Reading,
    outputs: tuple[Term, ...],
) -> Recognised | None:
    for given in _assignments(function, graph, tensors, reading, outputs):
        values = {name: candidate.value for name, candidate in given.items()}
        try:
            found = results_of(function.composition, reading.layouts, values)
        except Mismatch:
            continue
        results = _places(function, graph, tensors, given, outputs, found)
        if results is None:
            continue
        match = Recognised(
            function, tuple((name, candidate.text) for name, candidate in given.items()), results
        )
        if _within_limits(match, graph, reading):
            return match
    return None


def _places(
    function: Function,
    graph: Graph,
    tensors: list[GraphInput],
    given: Mapping[str, _Candidate],
    outputs: tuple[Term, ...],
    found: tuple[Term, ...],
) -> tuple[int, ...] | None:
    """Which results the outputs are, in shape and dtype too; None where one is none."""
    dtypes = {f"{{{item.name}}}": item.spec.dtype for item in tensors}
    first = dtypes[next(iter(given.values())).text]
    places = []
    for output, spec in zip(outputs, graph.output_specs(), strict=True):
        for index, result in enumerate(found):
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
        item.name: SimpleNamespace(shape=tuple(size[0] for size in reading.inputs[item.name].shape))
        for item in graph.inputs
    }
    names = {item.name: f"given[{item.name!r}]" for item in graph.inputs}
    texts = match.limits(names)  # of the table: nothing of a person's file is evaluated
    return all(eval(text, {"__builtins__": _BUILTINS, "given": shapes}) for text in texts)


def _assignments(
    function: Function,
    graph: Graph,
    tensors: list[GraphInput],
    reading: Reading,
    outputs: tuple[Term, ...],
) -> Iterator[dict[str, _Candidate]]:
    """What the parameters may be: every tensor of the graph is one of them, all of a dtype that the function
    takes."""
    wanted = [item for item in function.parameters if item.kind in (Kind.TENSOR, Kind.OPTIONAL)]
    least = sum(item.kind is Kind.TENSOR for item in wanted)
    dtypes = {item.spec.dtype for item in tensors}
    if not least <= len(tensors) <= len(wanted) or len(dtypes) > 1 or not dtypes <= set(function.dtypes):
        return
    others = [item for item in function.parameters if item not in wanted]
    numbers = list(_numbers(graph, reading, outputs)) if any(i.kind is Kind.NUMBER for i in others) else []
    for chosen in _placed(wanted, tensors, reading):
        first = next(iter(chosen.values())).value
        rest = [list(_candidates(item, first, reading, outputs, numbers)) for item in others]
        for values in itertools.product(*rest):
            named = {item.name: value for item, value in zip(others, values, strict=True)}
            yield {item.name: (chosen | named)[item.name] for item in function.parameters}


def _placed(
    wanted: list[Parameter], tensors: list[GraphInput], reading: Reading
) -> Iterator[dict[str, _Candidate]]:
    absent = len(wanted) - len(tensors)
    optional = [item.name for item in wanted if item.kind is Kind.OPTIONAL]
    for left_out in itertools.combinations(optional, absent):
        kept = [item for item in wanted if item.name not in left_out]
        for order in itertools.permutations(tensors):
            pairs = list(zip(kept, order, strict=True))
            if all(item.least <= tensor.spec.rank <= item.most for item, tensor in pairs):
                found = {
                    item.name: _Candidate(reading.inputs[tensor.name], f"{{{tensor.name}}}")
                    for item, tensor in pairs
                }
                yield found | {name: _Candidate(None, "None") for name in left_out}


def _candidates(
    item: Parameter, first: Term, reading: Reading, outputs: tuple[Term, ...], numbers: list[_Candidate]
) -> Iterable[_Candidate]:
    rank = len(first.shape)
    if item.kind is Kind.NUMBER:
        return numbers
    if item.kind is Kind.AXIS:
        return [_Candidate(axis, str(axis)) for axis in range(-1, -rank - 1, -1)]
    if item.kind is Kind.AXES:
        return [_Candidate(axes, str(axes)) for axes in range(1, rank + 1)]
    if item.kind is Kind.GROUPS:
        return [_Candidate(size, str(size)) for size in sorted(_static_sizes(outputs))]
    return [_Candidate(value, repr(value)) for value in item.choices]


def _static_sizes(outputs: tuple[Term, ...]) -> set[int]:
    """Sizes of views that are the same in every call."""
    shapes = [term.shape for output in outputs for term in walk(output) if term.op == "reshape"]
    return {size[0] for shape in shapes for size in shape if len(set(size)) == 1}


def _numbers(graph: Graph, reading: Reading, outputs: tuple[Term, ...]) -> Iterator[_Candidate]:
    """Numbers that are given, and the constants of the terms."""
    for item in graph.inputs:
        if item.kind is InputKind.SCALAR:
            yield _Candidate(reading.inputs[item.name], f"{{{item.name}}}")
    seen: list[Number] = []
    for term in (term for output in outputs for term in walk(output)):
        for number in term.numbers if term.op in {"sum", "attention"} else ():
            if not any(same_number(number, other) for other in seen):
                seen.append(number)
                text = _number_text(number, graph, reading)
                if text:
                    yield _Candidate(reading.layouts.number(number), text)


def _number_text(number: Number, graph: Graph, reading: Reading) -> str:
    """The number as Python: a constant, or what it is of an operand's last axis; empty for any other."""
    if len(set(number)) == 1:
        return repr(number[0])
    for item in graph.inputs:
        shape = reading.inputs[item.name].shape
        if shape and same_number(number, tuple(float(size) ** -0.5 for size in shape[-1])):
            return f"{{{item.name}}}.shape[-1] ** -0.5"
    return ""
