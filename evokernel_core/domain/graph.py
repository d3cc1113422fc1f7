"""A captured computation: core-ATen nodes over named values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cached_property
from typing import Any

from attrs import frozen

from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.tensor import TensorSpec


@frozen
class ValueRef:
    """An argument that is the value called ``name`` (an input or an earlier node).

    ``index`` picks one result of a node with several (as of ``native_layer_norm``).
    """

    name: str
    index: int = 0


@frozen
class SymbolicInt:
    """An integer argument given as a size expression, e.g. ``"s0*2"``."""

    expression: str


@frozen
class DTypeArg:
    """An argument that is a dtype, by torch's name without the module."""

    name: str


Arg = ValueRef | SymbolicInt | DTypeArg | bool | int | float | str | None | tuple[Any, ...]
"""An argument of a node; tuples nest further arguments."""


def literal(arg: Arg) -> int:
    """The integer that an argument is. Raises PlanError where only the call decides it."""
    if not isinstance(arg, int):
        raise PlanError("A number that only the call decides stands where a kernel has to know it.")
    return int(arg)


def literals(arg: Arg, rank: int) -> tuple[int, ...]:
    """The integers that an argument is, of which a single one stands for all ``rank`` dimensions.
    Raises PlanError as ``literal``."""
    numbers = tuple(map(literal, arg if isinstance(arg, tuple) else (arg,)))
    return numbers * rank if len(numbers) == 1 else numbers


class InputKind(StrEnum):
    TENSOR = "tensor"
    """An operand that the call site passes: a variable or a sub-expression."""
    PARAMETER = "parameter"
    """A parameter or buffer of the module, passed by the call site as ``self.path``."""
    SCALAR = "scalar"
    """A Python float given at run time; its spec is a 0-d tensor."""


@frozen
class GraphInput:
    """One input. ``expression`` is the Python text that yields it at the call site. ``value`` is the one that
    a setting of the module, such as an eps, had when it was captured: the kernel computes for any, and is
    verified around it."""

    name: str
    spec: TensorSpec
    kind: InputKind = InputKind.TENSOR
    expression: str = ""
    value: float | None = None


@frozen
class EagerCall:
    """An operation that eager PyTorch runs, as ``aten.native_group_norm.default``, whatever simpler ones it
    was taken apart into. ``number`` tells calls of one operation apart, in the order of the program."""

    op: str
    number: int


@frozen
class Node:
    """One core-ATen call, e.g. op ``aten.add.Tensor``; ``outputs`` has one spec per result.

    ``line`` is the 1-based source line that the call came from, 0 where unknown. ``call`` is the call of
    eager PyTorch that the node is part of, None where that is not known.
    """

    name: str
    op: str
    args: tuple[Arg, ...]
    kwargs: tuple[tuple[str, Arg], ...]
    outputs: tuple[TensorSpec, ...]
    line: int = 0
    call: EagerCall | None = None

    def operands(self) -> Iterator[ValueRef]:
        """Every value that the node reads, in argument order, nested lists included."""
        yield from _refs(self.args)
        for _, value in self.kwargs:
            yield from _refs((value,))


def _refs(args: tuple[Arg, ...]) -> Iterator[ValueRef]:
    for arg in args:
        if isinstance(arg, ValueRef):
            yield arg
        elif isinstance(arg, tuple):
            yield from _refs(arg)


@frozen
class Update:
    """A tensor that a call changes in place: a buffer of the module, such as the running mean of a batch
    norm, or an argument.

    ``expression`` is the Python text that yields it at the call site. It becomes the value of the
    graph's output number ``output``; where that is None it counts calls, and ``step`` is added to it.
    A buffer whose old value is read is an input of the same name too.
    """

    name: str
    spec: TensorSpec
    expression: str
    output: int | None = None
    step: int = 0


@frozen
class Graph:
    """Inputs, nodes in execution order, and the values computed: first what the region returns, then
    the new values of buffers. ``updates`` say which outputs those are. ``copies`` are the values of which
    eager PyTorch makes a copy that no node stands for, as by ``contiguous()``, once for each: no part of
    what is computed."""

    inputs: tuple[GraphInput, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[ValueRef, ...]
    updates: tuple[Update, ...] = ()
    copies: tuple[ValueRef, ...] = ()

    def computed_by(self, nodes: tuple[Node, ...], outputs: tuple[ValueRef, ...]) -> Graph:
        """The same results, as many and in the same order, computed by other nodes: inputs and updates stay.
        ``copies`` go, which are values of the nodes before."""
        return Graph(self.inputs, nodes, outputs, self.updates)

    @property
    def returned(self) -> int:
        """How many of the outputs the region returns."""
        return len(self.outputs) - sum(update.output is not None for update in self.updates)

    def spec(self, ref: ValueRef) -> TensorSpec:
        """The spec of a value. Raises KeyError for a name that the graph does not define."""
        operand = self.inputs_by_name.get(ref.name)
        return operand.spec if operand else self.nodes_by_name[ref.name].outputs[ref.index]

    @cached_property
    def inputs_by_name(self) -> Mapping[str, GraphInput]:
        return {operand.name: operand for operand in self.inputs}

    @cached_property
    def nodes_by_name(self) -> Mapping[str, Node]:
        return {node.name: node for node in self.nodes}

    @cached_property
    def readers(self) -> Mapping[str, tuple[Node, ...]]:
        """The nodes that read what an input or a node gives, once for each time."""
        readers: dict[str, list[Node]] = {}
        for node in self.nodes:
            for ref in node.operands():
                readers.setdefault(ref.name, []).append(node)
        return {name: tuple(nodes) for name, nodes in readers.items()}

    def output_specs(self) -> tuple[TensorSpec, ...]:
        return tuple(self.spec(ref) for ref in self.outputs)
