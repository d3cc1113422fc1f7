"""Recurrent layers: one product for the inputs of all steps, then a recurrence over the hidden states.

A layer's products with its input do not wait for anything, so that one matrix product does all steps at
once. What is left is ``evokernel.recurrence.default``, one node for both directions of a layer, or for
layers above each other that go side by side, each some steps behind the one below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

from evokernel_core.compiler.ops import GATES, RECURRENCE
from evokernel_core.compiler.rewrites.writer import GraphWriter, Rewrite
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Arg, Node, ValueRef, literal
from evokernel_core.domain.tensor import Dim, TensorSpec, evaluate_dim

_ZEROS = frozenset({"aten.zeros.default", "aten.zeros_like.default", "aten.new_zeros.default"})
_GIVEN_FILLS = frozenset({"aten.full.default", "aten.full_like.default", "aten.new_full.default"})

LayersTogether = Callable[[str, int, int, int, int, str, Any], int]
"""How many layers above each other one kernel best computes, of: the kind, how many there are, steps, batch,
hidden size, dtype and device. Only who knows the kernels can say."""


@frozen
class _Stack:
    """The arguments of a stack of layers; ``parameters`` has a tuple for each direction of each layer."""

    kind: str
    x: ValueRef
    states: tuple[ValueRef, ...]
    parameters: tuple[tuple[ValueRef, ...], ...]
    layers: int
    directions: int
    batch_first: bool


def _read(kind: str, node: Node) -> _Stack:
    x, states, parameters, biases, layers, dropout, train, both, batch_first = node.args
    if dropout and train and literal(layers) > 1:
        raise PlanError("A recurrent layer drops out between its layers, which is not covered; call eval().")
    given = states if isinstance(states, tuple) else (states,)
    listed = parameters if isinstance(parameters, tuple) else ()
    refs = tuple(parameter for parameter in listed if isinstance(parameter, ValueRef))
    each = 4 if biases else 2
    count = literal(layers) * (2 if both else 1)
    if not isinstance(x, ValueRef) or len(refs) != each * count:
        raise PlanError("A recurrent layer with a projection of its states is not covered; use proj_size=0.")
    return _Stack(
        kind,
        x,
        tuple(element for element in given if isinstance(element, ValueRef)),
        tuple(refs[place : place + each] for place in range(0, len(refs), each)),
        literal(layers),
        2 if both else 1,
        bool(batch_first),
    )


def _rewrite_stack(
    kind: str, node: Node, writer: GraphWriter, layers_together: LayersTogether
) -> tuple[ValueRef, ...] | None:
    stack = _read(kind, node)
    initial = tuple(None if is_zero(ref, writer) else ref for ref in stack.states)
    layers = []
    x = stack.x
    together = _together(stack, writer, layers_together)
    for first in range(0, stack.layers, together):
        layers.append(_layers(stack, x, initial, range(first, min(stack.layers, first + together)), writer))
        x = layers[-1][0]
    last = (_joined([results[i] for results in layers], writer) for i in range(1, len(layers[0])))
    return (x, *last)


def _together(stack: _Stack, writer: GraphWriter, layers_together: LayersTogether) -> int:
    """How many layers one kernel computes: two directions meet at the end of each layer."""
    hidden = writer.shape(stack.parameters[0][1])[1]
    if stack.directions == 2 or stack.layers == 1 or not isinstance(hidden, int):
        return 1
    *lengths, _ = (evaluate_dim(dim, writer.sizes) for dim in writer.shape(stack.x))
    steps, batch = reversed(lengths) if stack.batch_first else lengths
    dtype = writer.spec(stack.x).dtype
    return layers_together(stack.kind, stack.layers, steps, batch, hidden, dtype, writer.device)


def _layers(
    stack: _Stack, x: ValueRef, initial: tuple[Arg, ...], layers: range, writer: GraphWriter
) -> tuple[ValueRef, ...]:
    """The outputs of all steps of the last one of some layers, and the last states of all."""
    first = layers[0] * stack.directions
    parameters = stack.parameters[first : (layers[-1] + 1) * stack.directions]
    *lengths, _ = writer.shape(x)
    batch, hidden = lengths[0 if stack.batch_first else 1], writer.shape(parameters[0][1])[1]
    dtype = writer.spec(x).dtype
    state = TensorSpec((len(parameters), batch, hidden), dtype)
    width = hidden * stack.directions if isinstance(hidden, int) else f"{hidden}*{stack.directions}"
    states = 2 if stack.kind == "lstm" else 1
    return writer.call_many(
        RECURRENCE.name,
        stack.kind,
        tuple(projected(x, own[0], writer) for own in parameters[: stack.directions]),
        tuple(own[1] for own in parameters),
        tuple(own[2] for own in parameters if len(own) == 4),
        tuple(own[3] for own in parameters if len(own) == 4),
        *(initial if states == 2 else (*initial, None)),
        first,
        stack.batch_first,
        tuple(own[0] for own in parameters[stack.directions :]),
        outputs=(TensorSpec((*lengths, width), dtype), *(state,) * states),
    )


def projected(x: ValueRef, weight: ValueRef, writer: GraphWriter) -> ValueRef:
    """[steps * batch, gates * hidden]: the inputs of all steps times the weights of all gates."""
    rows = flat(x, writer)
    dtype = writer.spec(x).dtype
    gates, depth = writer.shape(weight)
    turned = writer.call("aten.t.default", weight, shape=(depth, gates), dtype=dtype)
    shape = (writer.shape(rows)[0], gates)
    return writer.call("aten.mm.default", rows, turned, shape=shape, dtype=dtype)


def flat(x: ValueRef, writer: GraphWriter) -> ValueRef:
    """[steps * batch, width] of three dimensions."""
    *lengths, width = writer.shape(x)
    shape = (_product(lengths), width)
    return writer.call("aten.view.default", x, shape, shape=shape, dtype=writer.spec(x).dtype)


def _product(dims: list[Dim]) -> Dim:
    if all(isinstance(dim, int) for dim in dims):
        return int(dims[0]) * int(dims[1])
    return "*".join(str(dim) if str(dim).isalnum() else f"({dim})" for dim in dims)


def _joined(states: list[ValueRef], writer: GraphWriter) -> ValueRef:
    """The last states of all layers: [layers * directions, batch, hidden]."""
    if len(states) == 1:
        return states[0]
    shapes = [writer.shape(state) for state in states]
    shape = (sum(int(shape[0]) for shape in shapes), *shapes[0][1:])
    return writer.call("aten.cat.default", tuple(states), 0, shape=shape, dtype=writer.spec(states[0]).dtype)


def is_zero(ref: ValueRef, writer: GraphWriter) -> bool:
    """Whether a state is made as zeros."""
    made = {node.name: node for node in writer.nodes}.get(ref.name)
    if made is None:
        return False
    if made.op in _GIVEN_FILLS:
        return made.args[1] == 0
    return made.op in _ZEROS


def rewrites_with(layers_together: LayersTogether) -> Mapping[str, Rewrite]:
    """The rewrites of stacks of layers, as many of which become one node as ``layers_together`` says."""

    def rule(kind: str) -> Rewrite:
        return lambda node, writer: _rewrite_stack(kind, node, writer, layers_together)

    return {f"aten.{kind}.input": rule(kind) for kind in GATES}
