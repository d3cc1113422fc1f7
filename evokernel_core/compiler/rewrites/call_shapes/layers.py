"""Shapes of whole layers: attention, norms, losses, recurrent ones."""

from __future__ import annotations

from collections.abc import Mapping

from evokernel_core.compiler.rewrites.call_shapes.call import Rule, Shape, ShapedCall, Shapes, inside, need
from evokernel_core.compiler.rewrites.call_shapes.pointwise import broadcast
from evokernel_core.domain.graph import ValueRef


def _distances(call: ShapedCall) -> Shapes:
    x, y = call.shape(), call.shape(1)
    need(len(x) >= 2 and len(y) >= 2 and x[-1] == y[-1])
    return [(*broadcast([x[:-2], y[:-2]]), x[-2], y[-2])]


def _crossed(call: ShapedCall) -> Shapes:
    x, y = call.shape(), call.shape(1)
    need(len(x) == len(y))
    result = broadcast([x, y])
    dim = inside(call.whole(call.given("dim"), -1), len(result))
    need(bool(x) and x[dim] == y[dim] == 3)
    return [result]


def _attended(call: ShapedCall) -> Shapes:
    query, key, value = (call.shape(place) for place in range(3))
    need(min(map(len, (query, key, value))) >= 2)
    need(query[-1] == key[-1] and key[-2] == value[-2])
    groups = [shape[:-2] for shape in (key, value)]
    if len(query) > 2 and all(group and group[-1] and query[-3] % group[-1] == 0 for group in groups):
        groups = [(*group[:-1], query[-3]) for group in groups]  # heads that several queries share
    lead = broadcast([query[:-2], *groups])
    if isinstance(call.at(3), ValueRef):
        whole = (*lead, query[-2], key[-2])
        need(broadcast([call.shape(3), whole]) == whole)
    return [(*lead, query[-2], value[-1])]


def _layer_normed(call: ShapedCall) -> Shapes:
    shape, normed = call.shape(), call.numbers(1)
    need(bool(normed) and shape[-len(normed) :] == normed)
    for place in (2, 3):
        need(call.at(place) is None or call.shape(place) == normed)
    return [shape]


def _losses(call: ShapedCall) -> Shapes:
    x, target = call.shape(), call.shape(1)
    need((*x[:-1],) == target if len(x) < 3 else (x[0], *x[2:]) == target)
    classes = x[-1] if len(x) < 3 else x[1]
    need(1 <= len(x) <= 4 and (call.at(2) is None or call.shape(2) == (classes,)))
    return [target if call.number(3, 1) == 0 else (), ()]


def _recurrent(gates: int) -> Rule:
    def rule(call: ShapedCall) -> Shapes:
        x, layers = call.shape(), call.number(4, 1)
        ways, first = 1 + bool(call.at(7)), bool(call.at(8))
        states = call.listed(1) if gates == 4 else [call.shape(1)]
        need(len(x) == 3 and layers > 0 and len(states) == (2 if gates == 4 else 1))
        steps, batch, width = (x[1], x[0], x[2]) if first else x
        hidden = states[0][-1]
        need(all(state == (layers * ways, batch, hidden) for state in states))
        biases = [(gates * hidden,)] * 2 if call.at(3) else []
        wanted: list[Shape] = []
        for layer in range(layers):
            read = hidden * ways if layer else width
            wanted += [(gates * hidden, read), (gates * hidden, hidden), *biases] * ways
        need(call.listed(2) == wanted)
        result = (batch, steps, hidden * ways) if first else (steps, batch, hidden * ways)
        return [result, *states]

    return rule


RULES: Mapping[str, Rule] = {
    **dict.fromkeys(("nll_loss_forward", "nll_loss2d_forward"), _losses),
    **dict.fromkeys(("rnn_tanh", "rnn_relu"), _recurrent(1)),
    "_cdist_forward": _distances,
    "linalg_cross": _crossed,
    "scaled_dot_product_attention": _attended,
    "native_layer_norm": _layer_normed,
    "gru": _recurrent(3),
    "lstm": _recurrent(4),
}
"""By name with the overload, or without it."""
