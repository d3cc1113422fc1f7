"""What the operations of a graph are as terms."""

from __future__ import annotations

from typing import Any

from evokernel_core.domain.graph import SymbolicInt
from evokernel_core.vendor.reading import NodeReader, Rule
from evokernel_core.vendor.terms import Mismatch, Term


def view(c: NodeReader) -> Term:
    return c.m.reshape(c.term(0), c.shape())


def permute(c: NodeReader) -> Term:
    return c.m.permute(c.term(0), c.axes(1, "dims"))


def transpose(c: NodeReader) -> Term:
    x = c.term(0)
    order = list(range(len(x.shape)))
    one, other = (c.m.axis(x, axis) for axis in (c.arg(1, 0), c.arg(2, 1)))
    order[one], order[other] = order[other], order[one]
    return c.m.permute(x, order)


def sliced(c: NodeReader) -> Term:
    x, axis = c.term(0), c.m.axis(c.term(0), int(c.arg(1, 0)))
    start, stop = (bound(c, c.arg(place), x, axis, default) for place, default in ((2, False), (3, True)))
    return c.m.part(x, axis, start, stop, int(c.arg(4, 1)))


def bound(c: NodeReader, arg: Any, x: Term, axis: int, default_is_end: bool) -> tuple[int, ...]:
    """A bound of a slice, which may count from the end or lie behind it."""
    size = x.shape[axis]
    if arg is None:
        return size if default_is_end else c.m.size(0)
    if not isinstance(arg, (int, SymbolicInt)):
        raise Mismatch("a bound that only the call decides")
    result = c.size(arg)
    return tuple(min(max(a + n if a < 0 else a, 0), n) for a, n in zip(result, size, strict=True))


def select(c: NodeReader) -> Term:
    axis = c.m.axis(c.term(0), int(c.arg(1)))
    size = c.term(0).shape[axis]
    start = tuple(a + n if a < 0 else a for a, n in zip(c.size(c.arg(2)), size, strict=True))
    return c.m.reshape(c.m.part(c.term(0), axis, start, tuple(a + 1 for a in start)), c.shape())


def split(c: NodeReader) -> tuple[Term, ...]:
    x, axis = c.term(0), c.m.axis(c.term(0), int(c.option(2, "dim", 0)))
    view, start = [], c.m.size(0)
    for index in range(len(c.node.outputs)):
        stop = tuple(a + n for a, n in zip(start, c.shape(index)[axis], strict=True))
        view.append(c.m.part(x, axis, start, stop))
        start = stop
    return tuple(view)


def join(c: NodeReader) -> Term:
    return c.m.join([c.value(element) for element in c.arg(0)], int(c.option(1, "dim", 0)))


def stack(c: NodeReader) -> Term:
    axis = int(c.option(1, "dim", 0)) % len(c.shape())
    one = tuple(c.m.size(1) if i == axis else size for i, size in enumerate(c.shape()))
    return c.m.join([c.m.reshape(c.value(element), one) for element in c.arg(0)], axis)


def _scaled(c: NodeReader) -> Term:
    """The second operand of a sum or difference, as often as ``alpha`` says."""
    return c.m.multiply(c.read(1), c.m.number(c.number(c.option(2, "alpha", 1))))


def _function(name: str) -> Rule:
    def rule(c: NodeReader) -> Term:
        if len(c.node.args) != 1 or c.node.kwargs:
            raise Mismatch("settings of a function")
        return c.m.function(name, c.read(0))

    return rule


def _power(exponent: float) -> Rule:
    return lambda c: c.m.power(c.read(0), exponent)


def _pow(c: NodeReader) -> Term:
    if not isinstance(c.arg(1), (int, float)):
        raise Mismatch("an exponent that only the call decides")
    return c.m.power(c.read(0), float(c.arg(1)))


def _divide(c: NodeReader) -> Term:
    if c.option(2, "rounding_mode") is not None:
        raise Mismatch("a division of whole numbers")
    return c.m.divide(c.read(0), c.read(1))


def _gelu(c: NodeReader) -> Term:
    return c.m.gelu(c.read(0), str(c.option(1, "approximate", "none")))


def _softplus(c: NodeReader) -> Term:
    if any(value is not None for value in c.node.args[1:]):
        raise Mismatch("a softplus with settings")
    return c.m.function("softplus", c.read(0))


def _mish(c: NodeReader) -> Term:
    x = c.read(0)
    return c.m.multiply(x, c.m.function("tanh", c.m.function("softplus", x)))


def _reduced(name: str) -> Rule:
    return lambda c: c.m.reduce(name, c.term(0), c.axes(1), bool(c.option(2, "keepdim", False)))


def _total(c: NodeReader) -> Term:
    return c.m.total(c.term(0), c.axes(1), bool(c.option(2, "keepdim", False)))


def _spread(c: NodeReader) -> tuple[Term, Term]:
    """Variance and mean."""
    if c.option(2, "correction", 1) not in (0, 0.0):
        raise Mismatch("a variance with a correction")
    x, axes, keep = c.term(0), c.axes(1), bool(c.option(3, "keepdim", False))
    centred = c.m.subtract(x, c.m.reduce("mean", x, axes))
    spread = c.m.reduce("mean", c.m.power(centred, 2.0), axes, keep)
    return spread, c.m.reduce("mean", x, axes, keep)


def _layer_norm(c: NodeReader) -> tuple[Term, Term, Term]:
    """The norm, its mean, and the reciprocal of its deviation."""
    x, shape = c.term(0), c.arg(1)
    over = tuple(range(-len(shape), 0))
    mean = c.m.reduce("mean", x, over)
    centred = c.m.subtract(x, mean)
    spread = c.m.reduce("mean", c.m.power(centred, 2.0), over)
    rstd = c.m.power(c.m.add(spread, c.term(4)), -0.5)
    norm = c.m.multiply(centred, rstd, *([c.term(2)] if c.arg(2) is not None else []))
    return c.m.add(norm, *([c.term(3)] if c.arg(3) is not None else [])), mean, rstd


def _clamp(c: NodeReader) -> Term:
    low, high = c.option(1, "min"), c.option(2, "max")
    words = ["" if bound is None else str(c.number(bound)[0]) for bound in (low, high)]
    return c.m.function("clamp", c.read(0), attributes=" ".join(words))


def _same(c: NodeReader) -> Term:
    return c.term(0)


def _attention(c: NodeReader) -> Term:
    """Of scores ``scale * q k^T``; a mask is a fourth operand."""
    if c.option(4, "dropout_p", 0.0) or c.option(5, "is_causal", False) or c.option(7, "enable_gqa", False):
        raise Mismatch("attention with settings")
    mask = c.option(3, "attn_mask")
    if mask is not None:
        raise Mismatch("attention with a mask")
    query = c.term(0)
    scale = c.option(6, "scale")
    number = tuple(float(size) ** -0.5 for size in query.shape[-1]) if scale is None else c.number(scale)
    return c.m.attention(query, c.term(1), c.term(2), number)


_VIEWS = "view _unsafe_view reshape unsqueeze squeeze flatten"
_SAME = "_to_copy clone contiguous alias detach lift_fresh_copy"

RULES: dict[str, Rule] = {
    "add": lambda c: c.m.add(c.read(0), _scaled(c)),
    "sub": lambda c: c.m.subtract(c.read(0), _scaled(c)),
    "rsub": lambda c: c.m.subtract(_scaled(c), c.read(0)),
    "mul": lambda c: c.m.multiply(c.read(0), c.read(1)),
    "div": _divide,
    "neg": lambda c: c.m.multiply(c.read(0), c.m.number(-1.0)),
    "reciprocal": _power(-1.0),
    "sqrt": _power(0.5),
    "rsqrt": _power(-0.5),
    "square": _power(2.0),
    "pow": _pow,
    "silu": lambda c: c.m.silu(c.read(0)),
    "gelu": _gelu,
    "softplus": _softplus,
    "mish": _mish,
    "clamp": _clamp,
    "mean": _reduced("mean"),
    "amax": _reduced("amax"),
    "sum": _total,
    "native_layer_norm": _layer_norm,
    "var_mean": _spread,
    "var": lambda c: _spread(c)[0],
    "permute": permute,
    "transpose": transpose,
    "t": transpose,
    "slice": sliced,
    "select": select,
    "split": split,
    "split_with_sizes": split,
    "cat": join,
    "stack": stack,
    "expand": lambda c: c.m.expand(c.term(0), c.shape()),
    "scaled_dot_product_attention": _attention,
    **{name: _function(name) for name in ("exp", "erf", "tanh", "sigmoid", "abs", "round")},
    **dict.fromkeys(_VIEWS.split(), view),
    **dict.fromkeys(_SAME.split(), _same),
}
"""By the name of ATen's operation without its overload. A graph with any other is not recognised."""
