"""What the parameters of a function may be in a task."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from attrs import frozen

from evokernel_core.domain.graph import Graph, GraphInput, InputKind
from evokernel_core.vendor.functions import ParameterKind, VendorFunction, VendorParameter
from evokernel_core.vendor.reading import Reading
from evokernel_core.vendor.terms import Number, Term, same_number, walk


@frozen
class Candidate:
    """Something that a parameter may be: for the composition, and as text."""

    value: Any
    text: str


def assignments(
    function: VendorFunction,
    graph: Graph,
    tensors: list[GraphInput],
    reading: Reading,
    outputs: tuple[Term, ...],
) -> Iterator[dict[str, Candidate]]:
    """What the parameters may be: every tensor of the graph is one of them, all of a dtype that the function
    takes."""
    wanted = [
        parameter
        for parameter in function.parameters
        if parameter.kind in (ParameterKind.TENSOR, ParameterKind.OPTIONAL)
    ]
    least = sum(name.kind is ParameterKind.TENSOR for name in wanted)
    dtypes = {tensor.spec.dtype for tensor in tensors}
    if not least <= len(tensors) <= len(wanted) or len(dtypes) > 1 or not dtypes <= set(function.dtypes):
        return
    others = [parameter for parameter in function.parameters if parameter not in wanted]
    numbers = (
        list(_numbers(graph, reading, outputs)) if any(i.kind is ParameterKind.NUMBER for i in others) else []
    )
    for chosen in _placed(wanted, tensors, reading):
        first = next(iter(chosen.values())).value
        rest = [list(_candidates(other_, first, reading, outputs, numbers)) for other_ in others]
        for values in itertools.product(*rest):
            named = {other_.name: value for other_, value in zip(others, values, strict=True)}
            yield {parameter.name: (chosen | named)[parameter.name] for parameter in function.parameters}


def _placed(
    wanted: list[VendorParameter], tensors: list[GraphInput], reading: Reading
) -> Iterator[dict[str, Candidate]]:
    absent = len(wanted) - len(tensors)
    optional = [name.name for name in wanted if name.kind is ParameterKind.OPTIONAL]
    for left_out in itertools.combinations(optional, absent):
        kept = [name for name in wanted if name.name not in left_out]
        for order in itertools.permutations(tensors):
            pairs = list(zip(kept, order, strict=True))
            if all(parameter.least <= tensor.spec.rank <= parameter.most for parameter, tensor in pairs):
                result = {
                    parameter.name: Candidate(reading.inputs[tensor.name], f"{{{tensor.name}}}")
                    for parameter, tensor in pairs
                }
                yield result | {name: Candidate(None, "None") for name in left_out}


def _candidates(
    parameter: VendorParameter,
    first: Term,
    reading: Reading,
    outputs: tuple[Term, ...],
    numbers: list[Candidate],
) -> Iterable[Candidate]:
    rank = len(first.shape)
    if parameter.kind is ParameterKind.NUMBER:
        return numbers
    if parameter.kind is ParameterKind.AXIS:
        return [Candidate(axis, str(axis)) for axis in range(-1, -rank - 1, -1)]
    if parameter.kind is ParameterKind.AXES:
        return [Candidate(axes, str(axes)) for axes in range(1, rank + 1)]
    if parameter.kind is ParameterKind.GROUPS:
        return [Candidate(size, str(size)) for size in sorted(_static_sizes(outputs))]
    return [Candidate(value, repr(value)) for value in parameter.choices]


def _static_sizes(outputs: tuple[Term, ...]) -> set[int]:
    """Sizes of views that are the same in every call."""
    shapes = [term.shape for output in outputs for term in walk(output) if term.op == "reshape"]
    return {size[0] for shape in shapes for size in shape if len(set(size)) == 1}


def _numbers(graph: Graph, reading: Reading, outputs: tuple[Term, ...]) -> Iterator[Candidate]:
    """Numbers that are given, and the constants of the terms."""
    for operand in graph.inputs:
        if operand.kind is InputKind.SCALAR:
            yield Candidate(reading.inputs[operand.name], f"{{{operand.name}}}")
    seen: list[Number] = []
    for term in (term for output in outputs for term in walk(output)):
        for number in term.numbers if term.op in {"sum", "attention"} else ():
            if not any(same_number(number, other) for other in seen):
                seen.append(number)
                text = _number_text(number, graph, reading)
                if text:
                    yield Candidate(reading.layouts.number(number), text)


def _number_text(number: Number, graph: Graph, reading: Reading) -> str:
    """The number as Python: a constant, or what it is of an operand's last axis; empty for any other."""
    if len(set(number)) == 1:
        return repr(number[0])
    for operand in graph.inputs:
        shape = reading.inputs[operand.name].shape
        if shape and same_number(number, tuple(float(size) ** -0.5 for size in shape[-1])):
            return f"{{{operand.name}}}.shape[-1] ** -0.5"
    return ""
