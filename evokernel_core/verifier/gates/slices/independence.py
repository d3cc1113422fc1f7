"""Which symbols of a task cut it into slices that are computed apart from each other."""

from __future__ import annotations

import re
from collections.abc import Iterator

from attrs import frozen

from evokernel_core.domain.graph import Arg, InputKind, Node, SymbolicInt, ValueRef
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import Dim, TensorSpec
from evokernel_core.verifier.gates.slices.rules import (
    CONSTANT,
    RULES,
    SIZED,
    Mixed,
    SliceAxis,
    SlicedNode,
    SlicedOperand,
)


def independent_symbols(task: KernelTask) -> tuple[str, ...]:
    """The symbols along which every output's slice depends on that slice of the inputs alone.

    Inputs and outputs have such a symbol as one whole dimension or not at all, and each output has it. What
    holds for several symbols holds for them together: slices of slices are slices.
    """
    return tuple(symbol.name for symbol in task.symbols if symbol.size > 1 and _cuts(task, symbol.name))


def names_in(dim: Dim) -> frozenset[str]:
    """The symbols of a size expression."""
    return frozenset(re.findall(r"[A-Za-z_]\w*", dim)) if isinstance(dim, str) else frozenset()


def _cuts(task: KernelTask, symbol: str) -> bool:
    try:
        places = _SliceWalk(task, symbol).places()
        return all(_is_whole(places[ref], task.graph.spec(ref), symbol) for ref in task.graph.outputs)
    except Mixed:
        return False


def _is_whole(place: SliceAxis | None, spec: TensorSpec, symbol: str) -> bool:
    return place is not None and place.inner == 1 and spec.shape[place.dim] == symbol


@frozen
class _SliceWalk:
    """One pass over a graph, which finds where the slices of a symbol lie in each value."""

    task: KernelTask
    symbol: str

    def places(self) -> dict[ValueRef, SliceAxis | None]:
        """By value. Raises Mixed where an operation mixes slices."""
        result: dict[ValueRef, SliceAxis | None] = {}
        for operand in self.task.graph.inputs:
            is_scalar = operand.kind is InputKind.SCALAR
            result[ValueRef(operand.name)] = None if is_scalar else self._own_place(operand.spec)
        for node in self.task.graph.nodes:
            place = self._place(node, result)
            for index in range(len(node.outputs)):
                result[ValueRef(node.name, index)] = place
        return result

    def _own_place(self, spec: TensorSpec) -> SliceAxis | None:
        """Where the slices lie by the shape alone: of an input, or of a tensor of one value."""
        dims = [dim for dim, size in enumerate(spec.shape) if self.symbol in names_in(size)]
        if len(dims) > 1 or (dims and spec.shape[dims[0]] != self.symbol):
            raise Mixed
        return SliceAxis(dims[0]) if dims else None

    def _place(self, node: Node, known: dict[ValueRef, SliceAxis | None]) -> SliceAxis | None:
        packet = node.op.split(".")[1]
        if packet not in SIZED | CONSTANT and self.symbol in _names(node):
            raise Mixed
        if any(known[ref] is not None for ref in node.operands()):
            if packet not in RULES:
                raise Mixed
            return self._alone(node, RULES[packet](self._call(node, known)))
        spreads = packet in CONSTANT or packet in ("expand", "broadcast_to")
        places = [self._own_place(spec) for spec in node.outputs]
        if any(place is not None for place in places) and not (spreads and len(places) == 1):
            raise Mixed
        return places[0] if places else None

    def _alone(self, node: Node, place: SliceAxis) -> SliceAxis:
        """The place, which no other dimension of the results grows with the symbol beside: one that was
        expanded to as many elements has each slice as often as there are slices."""
        for spec in node.outputs:
            if any(self.symbol in names_in(size) for dim, size in enumerate(spec.shape) if dim != place.dim):
                raise Mixed
        return place

    def _call(self, node: Node, known: dict[ValueRef, SliceAxis | None]) -> SlicedNode:
        sizes = self.task.sizes
        operands = {
            ref: SlicedOperand(self.task.graph.spec(ref).sizes(sizes), known[ref]) for ref in node.operands()
        }
        shapes = tuple(spec.sizes(sizes) for spec in node.outputs)
        return SlicedNode(node, operands, shapes, sizes[self.symbol])


def _names(node: Node) -> frozenset[str]:
    values = (*node.args, *(value for _, value in node.kwargs))
    return frozenset(name for text in _expressions(values) for name in names_in(text))


def _expressions(args: tuple[Arg, ...]) -> Iterator[str]:
    for arg in args:
        if isinstance(arg, SymbolicInt):
            yield arg.expression
        elif isinstance(arg, tuple):
            yield from _expressions(arg)
