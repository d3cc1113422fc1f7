"""Recurrent layers in a trace: one node a stack of layers, where taking it apart would give a node a step.

A sequence of hundreds of steps, traced step by step, is no graph that anyone can plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from ..errors import Unsupported
from ..tracing import random_samples

aten = torch.ops.aten
_KINDS = ("lstm", "gru", "rnn_tanh", "rnn_relu")
_SUMS = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
"""Sums of products that one hidden unit takes."""
_MOST_STEPS = 32
"""Steps, over all layers and directions, up to which a stack without a kernel is traced step by step."""

_LIBRARY = torch.library.Library("evokernel_capture", "FRAGMENT")


def _empty_results(x: Any, states: Any, params: Any, biases: bool, layers: int, *modes: Any) -> Any:
    """The outputs of all steps, and the last states; ``modes`` are the op's further arguments."""
    _, _, bidirectional, _ = modes
    several = states if isinstance(states, (list, tuple)) else [states]
    width = several[0].shape[-1] * (2 if bidirectional else 1)
    outputs = x.new_empty([*x.shape[:-1], width])
    return (outputs, *(state.new_empty(state.shape) for state in several))


for _kind in _KINDS:
    _schema = str(getattr(aten, _kind).input._schema).removeprefix(f"aten::{_kind}.input")
    _LIBRARY.define(_kind + _schema)
    _LIBRARY.impl(_kind, _empty_results, "CompositeExplicitAutograd")

ATEN_NAMES: Mapping[str, str] = {f"evokernel_capture.{kind}.default": f"aten.{kind}.input" for kind in _KINDS}
"""What nodes of this module's operations are called in a graph."""


def rules(fits: Callable[[str], bool]) -> dict[Any, Callable[..., Any]]:
    """How the operations are traced; ``fits`` tells which have kernels of their own."""
    return {getattr(aten, kind).input: _rule(kind, fits(f"aten.{kind}.input")) for kind in _KINDS}


def kept() -> dict[Any, Callable[..., Any]]:
    """The operations as one node each, whatever their arguments."""
    return {getattr(aten, kind).input: getattr(torch.ops.evokernel_capture, kind) for kind in _KINDS}


def _rule(kind: str, fits: bool) -> Callable[..., Any]:
    operation = getattr(aten, kind).input
    apart = operation.py_kernels[torch._C.DispatchKey.CompositeImplicitAutograd]
    whole = getattr(torch.ops.evokernel_capture, kind)

    def run(*args: Any) -> Any:
        x, layers, dropout, train, bidirectional, batch_first = args[0], *args[4:9]
        if dropout and layers > 1 and train:
            return _layer_by_layer(run, *args)
        steps = x.shape[1 if batch_first and x.dim() == 3 else 0]
        captured = steps.node.hint if isinstance(steps, torch.SymInt) else steps
        short = captured * layers * (2 if bidirectional else 1) <= _MOST_STEPS
        if short and not fits:
            return apart(*args)
        _compare_sizes(kind, *args)
        return whole(*args)

    return run


def _layer_by_layer(run: Callable[..., Any], *args: Any) -> Any:
    """A stack that drops out between its layers: what a layer drops is drawn before the next one runs."""
    x, states, params, biases, layers, dropout, train, bidirectional, batch_first = args
    directions = 2 if bidirectional else 1
    each = (4 if biases else 2) * directions
    several = isinstance(states, (list, tuple))
    if len(params) != each * layers:
        raise Unsupported("A recurrent layer projects its states: set proj_size=0.")
    last: list[list[Any]] = []
    for layer in range(layers):
        first = [
            state.narrow(0, layer * directions, directions) for state in (states if several else [states])
        ]
        weights = params[layer * each : (layer + 1) * each]
        given = first if several else first[0]
        x, *per_direction = run(x, given, weights, biases, 1, 0.0, train, bidirectional, batch_first)
        last.append(per_direction)
        if layer + 1 < layers:  # PyTorch drops out of sequences with the steps in front
            steps = x.transpose(0, 1) if batch_first else x
            x = random_samples.dropout(steps, dropout, True)
            x = x.transpose(0, 1) if batch_first else x
    return (x, *(torch.cat(parts) for parts in zip(*last, strict=True)))


def _compare_sizes(kind: str, *args: Any) -> None:
    """Tells the tracer which sizes of the operands are the same. Raises Unsupported where they are not."""
    x, states, params, biases, layers, _, _, bidirectional, batch_first = args
    hidden_states = states[0] if isinstance(states, (list, tuple)) else states
    hidden, directions = hidden_states.shape[-1], 2 if bidirectional else 1
    sums = _SUMS[kind] * hidden
    each = 4 if biases else 2
    fits = len(params) == each * layers * directions
    for place, weight in enumerate(params if fits else ()):
        width = x.shape[-1] if place < each * directions else hidden * directions
        expected = ((sums, width), (sums, hidden), (sums,), (sums,))[place % each]
        fits = fits and tuple(weight.shape) == expected
    if not fits:
        raise Unsupported("A recurrent layer projects its states: set proj_size=0.")
    batch = x.shape[0 if batch_first else 1]
    if tuple(hidden_states.shape) != (layers * directions, batch, hidden):
        raise Unsupported("The states before the first step have other sizes than the input: correct them.")
