"""What the functions of ``torch_npu`` compute, as terms: the compositions that capture/agent/npu says in
PyTorch, which tests compare these with. Each takes the function's tensors, numbers and choices by name, and
gives its results in order. Mismatch: such arguments do not fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evokernel_core.vendor.layouts import Layouts
from evokernel_core.vendor.terms import Mismatch, Term

Results = tuple[Term, ...]
_INT8_MAX = 127.0


def _last(x: Term, like: Term) -> tuple[int, ...]:
    """The last axes, which have the shape of a weight. Raises Mismatch where they have another."""
    rank = len(like.shape)
    if not 0 < rank <= len(x.shape) or x.shape[-rank:] != like.shape:
        raise Mismatch("a weight of another shape")
    return tuple(range(-rank, 0))


def _rms(m: Layouts, x: Term, gamma: Term, epsilon: Term) -> tuple[Term, Term]:
    squares = m.reduce("mean", m.power(x, 2.0), _last(x, gamma))
    rstd = m.power(m.add(squares, epsilon), -0.5)
    return m.multiply(x, rstd, gamma), rstd


def rms_norm(m: Layouts, input: Term, gamma: Term, epsilon: Term) -> Results:
    return _rms(m, input, gamma, epsilon)


def add_rms_norm(m: Layouts, x1: Term, x2: Term, gamma: Term, epsilon: Term) -> Results:
    if x1.shape != x2.shape:
        raise Mismatch("terms of other shapes")
    total = m.add(x1, x2)
    return *_rms(m, total, gamma, epsilon), total


def layer_norm(
    m: Layouts, input: Term, weight: Term | None, bias: Term | None, eps: Term, axes: int
) -> Results:
    over = tuple(range(-axes, 0))
    for like in (weight, bias):
        if like is not None and _last(input, like) != over:
            raise Mismatch("a weight of other axes")
    centred = m.subtract(input, m.reduce("mean", input, over))
    spread = m.reduce("mean", m.power(centred, 2.0), over)
    norm = m.multiply(centred, m.power(m.add(spread, eps), -0.5), *([weight] if weight else []))
    return (m.add(norm, *([bias] if bias else [])),)


def group_norm_silu(
    m: Layouts, input: Term, weight: Term, bias: Term, eps: Term, group: int, flat: bool
) -> Results:
    """``flat``: the elements of a group are one axis; otherwise channels and pixels are axes of their own."""
    if len(input.shape) < 2 or any(size % group for size in input.shape[1]):
        raise Mismatch("no groups of channels")
    shape = input.shape
    inner = (tuple(size // group for size in shape[1]), *shape[2:])
    if flat:
        inner = (tuple(_product(inner, i) for i in range(m.bindings)),)
    rows = m.reshape(input, (shape[0], m.size(group), *inner))
    over = range(2, len(rows.shape))
    centred = m.subtract(rows, m.reduce("mean", rows, over))
    spread = m.reduce("mean", m.power(centred, 2.0), over)
    rstd = m.power(m.add(spread, eps), -0.5)
    norm = m.reshape(m.multiply(centred, rstd), shape)
    norm = m.add(m.multiply(norm, _by_channel(m, weight, shape)), _by_channel(m, bias, shape))
    return (m.silu(norm),)


def _product(sizes: tuple[tuple[int, ...], ...], binding: int) -> int:
    result = 1
    for size in sizes:
        result *= size[binding]
    return result


def _by_channel(m: Layouts, values: Term, shape: tuple[tuple[int, ...], ...]) -> Term:
    if values.shape != (shape[1],):
        raise Mismatch("not one number a channel")
    return m.reshape(values, (shape[1], *[m.size(1)] * (len(shape) - 2)))


def swiglu(m: Layouts, input: Term, dim: int) -> Results:
    return (m.multiply(m.silu(m.half(input, dim, False)), m.half(input, dim, True)),)


def geglu(m: Layouts, input: Term, dim: int, approximate: int, activate_left: bool) -> Results:
    gate, value = m.half(input, dim, not activate_left), m.half(input, dim, activate_left)
    gelu = m.gelu(gate, "tanh" if approximate else "none")
    return m.multiply(value, gelu), gelu


def gelu(m: Layouts, input: Term, approximate: str) -> Results:
    return (m.gelu(input, approximate),)


def fast_gelu(m: Layouts, input: Term) -> Results:
    gate = m.function("sigmoid", m.multiply(input, m.number(1.702)))
    return (m.multiply(input, gate),)


def silu(m: Layouts, input: Term) -> Results:
    return (m.silu(input),)


def mish(m: Layouts, input: Term) -> Results:
    return (m.multiply(input, m.function("tanh", m.function("softplus", input))),)


def rotary_mul(m: Layouts, input: Term, r1: Term, r2: Term, rotary_mode: str) -> Results:
    minus = m.number(-1.0)
    if rotary_mode == "half":
        turned = m.join([m.multiply(m.half(input, -1, True), minus), m.half(input, -1, False)], -1)
    else:
        odd, even = (_each_second(m, input, start) for start in (1, 0))
        pairs = [m.reshape(x, (*x.shape, m.size(1))) for x in (m.multiply(odd, minus), even)]
        turned = m.reshape(m.join(pairs, -1), input.shape)
    return (m.add(m.multiply(input, r1), m.multiply(turned, r2)),)


def _each_second(m: Layouts, x: Term, start: int) -> Term:
    if any(size % 2 for size in x.shape[-1]):
        raise Mismatch("no pairs")
    return m.part(x, -1, m.size(start), x.shape[-1], 2)


def dynamic_quant(m: Layouts, input: Term, smooth_scales: Term | None, clamp: str) -> Results:
    """``clamp``: the bounds that the integers are clamped to, which none of them is beyond."""
    x = input
    if smooth_scales is not None:
        _last(x, smooth_scales)
        x = m.multiply(x, smooth_scales)
    largest = m.reduce("amax", m.function("abs", x), (-1,))
    scale = m.multiply(largest, m.number(1 / _INT8_MAX))
    whole = m.function("round", m.divide(x, scale))
    bounded = m.function("clamp", whole, attributes=clamp) if clamp else whole
    return m.function("cast", bounded, attributes="int8"), m.reshape(scale, input.shape[:-1])


def attention(m: Layouts, query: Term, key: Term, value: Term, scale: Term) -> Results:
    if any(len(x.shape) != 4 for x in (query, key, value)) or key.shape[1] != query.shape[1]:
        raise Mismatch("not (batch, heads, positions, features)")
    if scale.op != "number":
        raise Mismatch("a scale that only the call decides")
    return (m.attention(query, key, value, scale.numbers[0]),)


Composition = Any
"""A function of this module."""


def results_of(composition: Composition, layouts: Layouts, given: Mapping[str, Any]) -> Results:
    """Raises Mismatch where the arguments do not fit."""
    results: Results = composition(layouts, **given)
    return results
