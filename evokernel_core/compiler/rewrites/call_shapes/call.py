"""A node with numbers for sizes, as the rules read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from attrs import frozen

from evokernel_core.domain.graph import Arg, Node, SymbolicInt, ValueRef
from evokernel_core.domain.operations import Operation
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.tensor import evaluate_dim

Shape = tuple[int, ...]
Shapes = Sequence[Shape] | None
"""The shapes of a node's results, None where they are not known."""


class Unfit(Exception):
    """A call that is none: its operands do not go together. A Sentence may say what is wrong with it."""


def need(condition: bool) -> None:
    if not condition:
        raise Unfit


@frozen
class ShapedCall:
    """A node with numbers for sizes."""

    node: Node
    operation: Operation
    shapes: Mapping[ValueRef, Shape]
    masks: frozenset[ValueRef]
    sizes: Mapping[str, int]

    def given(self, name: str) -> Arg:
        """An argument by its parameter's name, None where the call has none."""
        for parameter, value in zip(self.operation.positional, self.node.args, strict=False):
            if parameter.name == name:
                return value
        return dict(self.node.kwargs).get(name)

    def at(self, place: int) -> Arg:
        return self.node.args[place] if place < len(self.node.args) else None

    def shape(self, place: int = 0) -> Shape:
        """The shape of an operand; a number has none."""
        value = self.at(place)
        return self.shapes[value] if isinstance(value, ValueRef) else ()

    def listed(self, place: int) -> list[Shape]:
        """The shapes of a list of operands."""
        value = self.at(place)
        need(isinstance(value, tuple))
        assert isinstance(value, tuple)
        return [self.shapes[element] if isinstance(element, ValueRef) else () for element in value]

    def number(self, place: int, default: int) -> int:
        return self.whole(self.at(place), default)

    def whole(self, value: Arg, default: int) -> int:
        if value is None:
            return default
        if isinstance(value, SymbolicInt | str):
            return evaluate_dim(value if isinstance(value, str) else value.expression, self.sizes)
        need(isinstance(value, int))
        assert isinstance(value, int)
        return value

    def numbers(self, place: int, default: Sequence[int] = ()) -> Shape:
        """A list of integers."""
        value = self.at(place)
        if value is None:
            return tuple(default)
        items = value if isinstance(value, tuple) else (value,)
        return tuple(self.whole(item, 0) for item in items)

    def each(self, place: int, rank: int, default: int) -> Shape:
        """An integer for each dimension, of which one stands for all."""
        result = self.numbers(place) or (default,)
        result = result * rank if len(result) == 1 else result
        need(len(result) == rank)
        return result

    def dim(self, place: int, rank: int, default: int = 0) -> int:
        return inside(self.number(place, default), rank)


Rule = Callable[[ShapedCall], Shapes]


def inside(dim: int, rank: int) -> int:
    if not -max(1, rank) <= dim < max(1, rank):
        raise Unfit(Sentence("names dimension {dim} of a tensor that has {rank}", dim=dim, rank=rank))
    return dim % max(1, rank)
