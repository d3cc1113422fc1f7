"""Random calls of every operation that a task may name, with tensors that PyTorch takes or refuses."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import define, field, frozen

from evokernel_core.domain.graph import Arg, DTypeArg, Graph, GraphInput, InputKind, Node, ValueRef
from evokernel_core.domain.operations import Operation, OperationParameter, operations
from evokernel_core.domain.task import TOLERANCES, KernelTask
from evokernel_core.domain.tensor import TensorSpec

FLOATS = ("float32", "float32", "float32", "float16", "bfloat16")
WHOLE = ("int64", "int32", "int16", "int8", "uint8", "bool")
INDICES = ("int64", "int64", "int32")
_SIZES = (0, 1, 1, 2, 3, 4, 5, 7, 8, 16, 17)
_NUMBERS: tuple[int | float | bool, ...] = (
    *(0, 1, 2, 3, -1, -2, 7, 2**31, -(2**63), True, False),
    *(0.5, -1.5, 2.0, 1e-6, 1e30, math.inf, -math.inf, math.nan),
)
_MOST_ELEMENTS = 4096
_ODDLY = 0.15
"""How often an argument is one that does not fit."""


@frozen
class Drawn:
    """A tensor of a call; its elements are below ``limit`` where they are indices."""

    shape: tuple[int, ...]
    dtype: str
    limit: int | None = None


@define
class Draw:
    """The choices of one call."""

    rng: random.Random
    tensors: list[Drawn] = field(factory=list)
    fits: bool = True
    """Whether nothing odd was chosen on purpose."""

    def odd(self) -> bool:
        found = self.rng.random() < _ODDLY
        self.fits = self.fits and not found
        return found

    def size(self) -> int:
        return self.rng.choice(_SIZES)

    def shape(self, least: int = 0, most: int = 5) -> tuple[int, ...]:
        """A shape of some thousand elements at most."""
        found: list[int] = []
        for _ in range(self.rng.randint(least, most)):
            size = self.size()
            found.append(size if size * math.prod(found) <= _MOST_ELEMENTS else 1)
        return tuple(found)

    def dtype(self) -> str:
        return self.rng.choice(FLOATS if self.rng.random() < 0.7 else WHOLE)

    def tensor(self, shape: Sequence[int], dtype: str, limit: int | None = None) -> ValueRef:
        """A new tensor; now and then of another shape or dtype."""
        if self.odd():
            shape = self.shape() if self.rng.random() < 0.5 else self.broadcast(shape)
        if self.rng.random() < _ODDLY / 3:
            dtype, self.fits = self.dtype(), False
        self.tensors.append(Drawn(tuple(shape), dtype, limit))
        return ValueRef(f"x{len(self.tensors) - 1}")

    def broadcast(self, shape: Sequence[int]) -> tuple[int, ...]:
        """A shape that broadcasts to ``shape``."""
        cut = tuple(shape)[self.rng.randint(0, len(shape)) :]
        return tuple(1 if self.rng.random() < 0.3 else size for size in cut)

    def dim(self, rank: int) -> int:
        if self.odd():
            return self.rng.choice((-rank - 1, rank, rank + 3, -9))
        return self.rng.randint(-max(1, rank), max(1, rank) - 1)

    def dims(self, rank: int) -> tuple[int, ...]:
        count = self.rng.randint(0, rank)
        found = self.rng.sample(range(rank), count)
        return tuple(dim - rank if self.rng.random() < 0.3 else dim for dim in found) or (self.dim(rank),)

    def number(self) -> int | float | bool:
        return self.rng.choice(_NUMBERS)

    def flag(self) -> bool:
        return self.rng.random() < 0.5

    def small(self, least: int = 1, most: int = 3) -> int:
        return self.rng.choice((-1, 0, 9)) if self.odd() else self.rng.randint(least, most)

    def smalls(self, count: int, least: int = 1, most: int = 3) -> tuple[int, ...]:
        count = max(0, count + self.rng.choice((-1, 1))) if self.odd() else count
        return tuple(self.small(least, most) for _ in range(count))


Maker = Callable[[Draw], tuple[Arg, ...]]


@frozen
class Call:
    """One call: the operation, its arguments, the tensors x0, x1, ... that they name."""

    op: str
    args: tuple[Arg, ...]
    kwargs: tuple[tuple[str, Arg], ...]
    tensors: tuple[Drawn, ...]
    fits: bool

    def task(self, outputs: Sequence[TensorSpec]) -> KernelTask:
        """The call as a task that returns all of its results."""
        inputs = tuple(
            GraphInput(f"x{index}", TensorSpec(item.shape, item.dtype), InputKind.TENSOR, f"x{index}")
            for index, item in enumerate(self.tensors)
        )
        node = Node("call", self.op, self.args, self.kwargs, tuple(outputs))
        refs = tuple(ValueRef("call", index) for index in range(len(outputs)))
        tolerance = TOLERANCES.get(outputs[0].dtype, TOLERANCES["float32"])
        return KernelTask("call", Graph(inputs, (node,), refs), (), tolerance, "elementwise")


def random_call(name: str, seed: int) -> Call:
    """The call of ``aten.OP.OVERLOAD`` that belongs to a seed."""
    rng = random.Random(f"{name} {seed}")
    draw = Draw(rng)
    operation = operations()[name]
    maker = MAKERS.get(name.removeprefix("aten.").split(".", maxsplit=1)[0])
    args = maker(draw) if maker is not None else ()
    if not args or rng.random() < _ODDLY:
        draw = Draw(rng)
        args = _of_kinds(operation, draw)
        draw.fits = False
    args = args[: len(operation.positional)]
    kwargs = tuple(
        (item.name, _keyword(item, draw))
        for item in sorted(operation.named, key=lambda item: item.name)
        if not (item.optional or item.base == "d") or draw.flag()
    )
    return Call(name, args, kwargs, tuple(draw.tensors), draw.fits)


def _keyword(parameter: OperationParameter, draw: Draw) -> Arg:
    if parameter.name in ("alpha", "value", "correction"):
        return draw.rng.choice((0, 1, 2, -1, 0.5))
    if parameter.name == "sparse_grad":
        return False
    return _of_kind(parameter, draw, 2, "float32")


def _of_kinds(operation: Operation, draw: Draw) -> tuple[Arg, ...]:
    """Arguments of the declared kinds: tensors that broadcast, dimensions that the first one has."""
    shape, dtype = draw.shape(), draw.dtype()
    args: list[Arg] = []
    for parameter in operation.positional:
        if parameter.base == "t" and not parameter.listed and not args:
            args.append(draw.tensor(shape, dtype))
        elif parameter.base == "t":
            if parameter.optional and draw.flag():
                args.append(None)
            elif parameter.listed:
                args.append(tuple(draw.tensor(shape, dtype) for _ in range(draw.rng.randint(0, 3))))
            else:
                args.append(draw.tensor(draw.broadcast(shape) if draw.flag() else shape, dtype))
        else:
            args.append(_of_kind(parameter, draw, len(shape), dtype))
    return tuple(args)


def _of_kind(parameter: OperationParameter, draw: Draw, rank: int, dtype: str) -> Arg:
    """A value of a parameter's kind, None now and then where it may be absent."""
    found: Arg
    if parameter.words:
        found = draw.rng.choice(parameter.words)
    elif parameter.name.startswith("dim"):
        found = draw.dims(rank) if parameter.listed else draw.dim(rank)
    elif parameter.listed:
        found = draw.smalls(rank, 0)
    else:
        found = {
            "d": lambda: DTypeArg(dtype if draw.flag() else draw.dtype()),
            "b": draw.flag,
            "n": draw.number,
            "f": lambda: draw.rng.choice((0.0, 1.0, 2.0, 0.5, 1e-5)),
        }.get(parameter.base, lambda: draw.rng.choice((0, 1, 2, 3, -1, -3, 5, 40)))()
    return None if parameter.optional and draw.rng.random() < 0.4 else found


# -- operations whose arguments depend on each other ----------------------------------------------


def _floats(draw: Draw) -> str:
    return draw.rng.choice(FLOATS)


def _pooled(dims: int, dilated: bool) -> Maker:
    def make(draw: Draw) -> tuple[Arg, ...]:
        x = draw.tensor((*draw.shape(1, 2), *(draw.rng.randint(1, 12) for _ in range(dims))), _floats(draw))
        kernel, stride = draw.smalls(dims), draw.smalls(dims) if draw.flag() else ()
        padding = draw.smalls(dims, 0, 1)
        if dilated:
            return x, kernel, stride, padding, draw.smalls(dims, 1, 2), draw.flag()
        return x, kernel, stride, padding, draw.flag(), draw.flag(), draw.rng.choice((None, 1, 3))

    return make


def _padded(dims: int) -> Maker:
    def make(draw: Draw) -> tuple[Arg, ...]:
        x = draw.tensor((*draw.shape(1, 2), *(draw.size() for _ in range(dims))), draw.dtype())
        return x, draw.smalls(2 * dims, 0)

    return make


def _constant_pad(draw: Draw) -> tuple[Arg, ...]:
    shape = draw.shape()
    pairs = 2 * draw.rng.randint(0, len(shape))
    return draw.tensor(shape, draw.dtype()), draw.smalls(pairs, -1), draw.number()


def _resized(dims: int, nearest: bool = False) -> Maker:
    def make(draw: Draw) -> tuple[Arg, ...]:
        x = draw.tensor((*draw.shape(2, 2), *(draw.size() for _ in range(dims))), _floats(draw))
        given = draw.flag()
        factors = [draw.rng.choice((0.5, 2.0, 1.7)) if given else None for _ in range(dims)]
        aligned = () if nearest else (draw.flag(),)
        return x, draw.smalls(dims, 1, 12), *aligned, *factors

    return make


def _adaptive(dims: int) -> Maker:
    def make(draw: Draw) -> tuple[Arg, ...]:
        x = draw.tensor((*draw.shape(1, 2), *(draw.size() for _ in range(dims))), _floats(draw))
        return x, draw.smalls(dims, 1, 9)

    return make


def _sampled(dims: int) -> Maker:
    def make(draw: Draw) -> tuple[Arg, ...]:
        batch, dtype = draw.size(), _floats(draw)
        x = draw.tensor((batch, draw.size(), *(draw.size() for _ in range(dims))), dtype)
        grid = draw.tensor((batch, *(draw.size() for _ in range(dims)), dims), dtype)
        return x, grid, draw.rng.randint(0, 2), draw.rng.randint(0, 2), draw.flag()

    return make


def _convolution(draw: Draw) -> tuple[Arg, ...]:
    dims, groups, dtype = draw.rng.randint(1, 3), draw.rng.choice((1, 1, 2, 3)), _floats(draw)
    channels, results = groups * draw.rng.randint(1, 4), groups * draw.rng.randint(1, 4)
    batch, transposed = draw.rng.randint(0, 3), draw.rng.random() < 0.4
    x = draw.tensor((batch, channels, *(draw.rng.randint(1, 9) for _ in range(dims))), dtype)
    ends = (channels, results // groups) if transposed else (results, channels // groups)
    weight = draw.tensor((*ends, *(draw.rng.randint(1, 3) for _ in range(dims))), dtype)
    bias = draw.tensor((results,), dtype) if draw.flag() else None
    stride, padding, dilation = draw.smalls(dims), draw.smalls(dims, 0, 1), draw.smalls(dims, 1, 2)
    extra = draw.smalls(dims, 0, 0) if not transposed else tuple(max(0, s - 1) for s in stride)
    return x, weight, bias, stride, padding, dilation, transposed, extra, groups


def _mm(draw: Draw) -> tuple[Arg, ...]:
    m, k, n, dtype = draw.size(), draw.size(), draw.size(), _floats(draw)
    return draw.tensor((m, k), dtype), draw.tensor((k, n), dtype)


def _bmm(draw: Draw) -> tuple[Arg, ...]:
    b, m, k, n, dtype = draw.size(), draw.size(), draw.size(), draw.size(), _floats(draw)
    return draw.tensor((b, m, k), dtype), draw.tensor((b, k, n), dtype)


def _linear(draw: Draw) -> tuple[Arg, ...]:
    k, n, dtype = draw.size(), draw.size(), _floats(draw)
    x, w = draw.tensor((*draw.shape(0, 3), k), dtype), draw.tensor((n, k), dtype)
    return x, w, draw.tensor((n,), dtype) if draw.flag() else None


def _along(*, values: int) -> Maker:
    """gather and scatter: a tensor, a dimension, indices and ``values`` 0 none, 1 a tensor, 2 a number."""

    def make(draw: Draw) -> tuple[Arg, ...]:
        shape, dtype = draw.shape(0, 4), draw.dtype()
        x, dim = draw.tensor(shape, dtype), draw.dim(len(shape))
        inside = dim % len(shape) if shape and -len(shape) <= dim < len(shape) else 0
        if values == 0:
            chosen = [draw.rng.randint(0, size) for size in shape]
        else:
            chosen = [draw.rng.randint(size // 2, size) for size in shape]
        if shape:
            chosen[inside] = draw.size()
        index = draw.tensor(chosen, draw.rng.choice(INDICES), shape[inside] if shape else 1)
        if values == 0:
            return x, dim, index
        value: Arg = draw.number() if values == 2 else draw.tensor(chosen, dtype)
        reduce = draw.rng.choice(("sum", "prod", "mean", "amax", "amin"))
        return x, dim, index, value, reduce

    return make


def _scatter(draw: Draw) -> tuple[Arg, ...]:
    return _along(values=draw.rng.choice((1, 2)))(draw)


def _index_select(draw: Draw) -> tuple[Arg, ...]:
    shape = draw.shape(0, 4)
    dim = draw.dim(len(shape))
    limit = shape[dim] if shape and -len(shape) <= dim < len(shape) else 1
    return draw.tensor(shape, draw.dtype()), dim, draw.tensor((draw.size(),), draw.rng.choice(INDICES), limit)


def _embedding(draw: Draw) -> tuple[Arg, ...]:
    rows = draw.size()
    weight = draw.tensor((rows, draw.size()), _floats(draw))
    index = draw.tensor(draw.shape(0, 3), draw.rng.choice(INDICES), rows)
    return weight, index, draw.rng.choice((-1, 0, 1)), False, False


def _embedding_backward(draw: Draw) -> tuple[Arg, ...]:
    rows, chosen = draw.size(), draw.shape(1, 2)
    gradient = draw.tensor((*chosen, draw.size()), "float32")
    return gradient, draw.tensor(chosen, "int64", rows), rows, draw.rng.choice((-1, 0, 1)), draw.flag()


def _embedding_bag(draw: Draw) -> tuple[Arg, ...]:
    rows, count, bags = draw.size(), draw.size(), draw.rng.randint(0, 4)
    weight = draw.tensor((rows, draw.size()), "float32")
    index = draw.tensor((count,), "int64", rows)
    return (
        weight,
        index,
        draw.tensor((bags,), "int64", 1),
        False,
        draw.rng.randint(0, 2),
        False,
        None,
        False,
        -1,
    )


def _indexed(draw: Draw) -> tuple[Arg, ...]:
    shape, result = draw.shape(0, 4), draw.shape(0, 2)
    given = [
        None if draw.rng.random() < 0.4 else _chooser(draw, result, size)
        for size in shape[: draw.rng.randint(0, len(shape))]
    ]
    return draw.tensor(shape, draw.dtype()), tuple(given)


def _chooser(draw: Draw, result: tuple[int, ...], size: int) -> ValueRef:
    if draw.rng.random() < 0.1:
        return draw.tensor((size,), "bool")
    return draw.tensor(draw.broadcast(result), draw.rng.choice(INDICES), size)


def _index_put(draw: Draw) -> tuple[Arg, ...]:
    x, given = _indexed(draw)
    return x, given, draw.tensor(draw.shape(0, 2), draw.tensors[-1].dtype), draw.flag()


def _part(draw: Draw) -> tuple[Arg, ...]:
    shape = draw.shape()
    return (draw.tensor(shape, draw.dtype()), *_bounds(draw, len(shape)))


def _bounds(draw: Draw, rank: int) -> tuple[Arg, ...]:
    start, end = (draw.rng.choice((None, 0, 1, 2, -1, -3, 5, -30, 2**63 - 1)) for _ in range(2))
    return draw.dim(rank), start, end, draw.rng.choice((1, 1, 2, 3, draw.small()))


def _slice_scatter(draw: Draw) -> tuple[Arg, ...]:
    shape, dtype = draw.shape(), draw.dtype()
    x = draw.tensor(shape, dtype)
    dim, start, end, step = _bounds(draw, len(shape))
    assert isinstance(dim, int)
    source = list(shape)
    if shape and -len(shape) <= dim < len(shape) and isinstance(step, int) and step > 0:
        source[dim] = len(range(shape[dim])[slice(start, end, step)])  # type: ignore[misc]
    return x, draw.tensor(source, dtype), dim, start, end, step


def _select_scatter(draw: Draw) -> tuple[Arg, ...]:
    shape, dtype = draw.shape(), draw.dtype()
    x, dim = draw.tensor(shape, dtype), draw.dim(len(shape))
    left = [size for axis, size in enumerate(shape) if axis != dim % max(1, len(shape))]
    return x, draw.tensor(left, dtype), dim, draw.rng.choice((0, 1, -1, 3, -40))


def _viewed(draw: Draw) -> tuple[Arg, ...]:
    shape = draw.shape()
    found = list(shape)
    draw.rng.shuffle(found)
    if found and draw.flag():
        found[draw.rng.randrange(len(found))] = -1
    if draw.flag():
        found = [math.prod(shape), 1]
    return draw.tensor(shape, draw.dtype()), tuple(found)


def _expanded(draw: Draw) -> tuple[Arg, ...]:
    shape = draw.shape()
    x = draw.tensor(draw.broadcast(shape), draw.dtype())
    return x, tuple(-1 if draw.rng.random() < 0.1 else size for size in shape)


def _permuted(draw: Draw) -> tuple[Arg, ...]:
    shape = draw.shape()
    order = list(range(len(shape)))
    draw.rng.shuffle(order)
    turned = tuple(dim - len(shape) if draw.rng.random() < 0.3 else dim for dim in order)
    return draw.tensor(shape, draw.dtype()), draw.dims(len(shape)) if draw.odd() else turned


def _repeated(draw: Draw) -> tuple[Arg, ...]:
    shape = draw.shape()
    return draw.tensor(shape, draw.dtype()), draw.smalls(len(shape) + draw.rng.randint(0, 1), 0)


def _rolled(draw: Draw) -> tuple[Arg, ...]:
    shape = draw.shape()
    dims = draw.dims(len(shape)) if draw.flag() else ()
    count = len(dims) or 1
    return draw.tensor(shape, draw.dtype()), tuple(draw.rng.randint(-9, 9) for _ in range(count)), dims


def _split_sizes(draw: Draw) -> tuple[Arg, ...]:
    shape = draw.shape(1)
    dim = draw.dim(len(shape))
    total = shape[dim] if -len(shape) <= dim < len(shape) else 3
    first = draw.rng.randint(0, total)
    return draw.tensor(shape, draw.dtype()), (first, total - first), dim


def _joined(draw: Draw) -> tuple[Arg, ...]:
    shape, dtype = list(draw.shape()), draw.dtype()
    dim = draw.dim(len(shape))
    parts: list[Arg] = []
    for _ in range(draw.rng.randint(1, 4)):
        if shape and -len(shape) <= dim < len(shape):
            shape[dim] = draw.size()
        parts.append(draw.tensor(shape, dtype))
    return tuple(parts), dim


def _stacked(draw: Draw) -> tuple[Arg, ...]:
    shape, dtype = draw.shape(0, 4), draw.dtype()
    return tuple(draw.tensor(shape, dtype) for _ in range(draw.rng.randint(1, 3))), draw.dim(len(shape) + 1)


def _unfolded(draw: Draw) -> tuple[Arg, ...]:
    shape = draw.shape()
    return draw.tensor(shape, draw.dtype()), draw.dim(len(shape)), draw.small(0, 4), draw.small()


def _strided(draw: Draw) -> tuple[Arg, ...]:
    shape, found = draw.shape(), draw.shape(0, 3)
    return draw.tensor(shape, draw.dtype()), found, tuple(draw.small(0, 4) for _ in found), draw.small(0, 2)


def _attention(draw: Draw) -> tuple[Arg, ...]:
    batch, heads, dtype = draw.size(), draw.rng.choice((1, 2, 4)), _floats(draw)
    rows, columns, width = draw.size(), draw.size(), draw.rng.choice((1, 3, 8, 16))
    shared = draw.rng.random() < 0.3
    query = draw.tensor((batch, heads, rows, width), dtype)
    key = draw.tensor((batch, 1 if shared else heads, columns, width), dtype)
    value = draw.tensor((batch, 1 if shared else heads, columns, draw.rng.choice((width, 5))), dtype)
    mask = draw.tensor((rows, columns), "bool" if draw.flag() else dtype) if draw.flag() else None
    return query, key, value, mask, 0.0, mask is None and draw.flag()


def _layer_norm(draw: Draw) -> tuple[Arg, ...]:
    shape, dtype = draw.shape(1), _floats(draw)
    normed = shape[draw.rng.randint(0, len(shape) - 1) :]
    weight, bias = (draw.tensor(normed, dtype) if draw.flag() else None for _ in range(2))
    return draw.tensor(shape, dtype), normed, weight, bias, draw.rng.choice((1e-5, 0.0, 1.0))


def _recurrent(gates: int, states: int) -> Maker:
    def make(draw: Draw) -> tuple[Arg, ...]:
        layers, ways = draw.rng.randint(1, 2), draw.rng.randint(1, 2)
        batch, steps = draw.rng.randint(1, 3), draw.rng.randint(0, 4)
        width, hidden, first = draw.rng.randint(1, 9), draw.rng.randint(1, 9), draw.flag()
        biases = draw.flag()
        x = draw.tensor((batch, steps, width) if first else (steps, batch, width), "float32")
        state = [draw.tensor((layers * ways, batch, hidden), "float32") for _ in range(states)]
        params: list[Arg] = []
        for layer in range(layers):
            for _ in range(ways):
                read = hidden * ways if layer else width
                params += [draw.tensor((gates * hidden, read), "float32")]
                params += [draw.tensor((gates * hidden, hidden), "float32")]
                params += [draw.tensor((gates * hidden,), "float32") for _ in range(2 * biases)]
        given: Arg = tuple(state) if states > 1 else state[0]
        return x, given, tuple(params), biases, layers, 0.0, False, ways == 2, first

    return make


def _nll_loss(dims: int) -> Maker:
    def make(draw: Draw) -> tuple[Arg, ...]:
        classes, batch = draw.size(), draw.size()
        behind = (draw.size(), draw.size()) if dims else ()
        x = draw.tensor((batch, classes, *behind), "float32")
        target = draw.tensor((batch, *behind), "int64", classes)
        weight = draw.tensor((classes,), "float32") if draw.flag() else None
        return x, target, weight, draw.rng.randint(0, 2), draw.rng.choice((-100, 0, 1))

    return make


def _cdist(draw: Draw) -> tuple[Arg, ...]:
    lead, k = draw.shape(0, 2), draw.size()
    x, y = (draw.tensor((*lead, draw.size(), k), "float32") for _ in range(2))
    return x, y, draw.rng.choice((0.0, 1.0, 2.0, 3.0, math.inf)), draw.rng.choice((None, 1, 2))


def _searched(draw: Draw) -> tuple[Arg, ...]:
    lead = draw.shape(0, 2)
    edges, x = draw.tensor((*lead, draw.size()), "float32"), draw.tensor((*lead, draw.size()), "float32")
    return edges, x


def _bucketized(draw: Draw) -> tuple[Arg, ...]:
    return draw.tensor(draw.shape(), "float32"), draw.tensor((draw.size(),), "float32")


def _top(draw: Draw) -> tuple[Arg, ...]:
    shape = draw.shape()
    return draw.tensor(shape, draw.dtype()), draw.small(0, 4), draw.dim(len(shape)), draw.flag(), draw.flag()


def _softmax(draw: Draw) -> tuple[Arg, ...]:
    shape = draw.shape()
    return draw.tensor(shape, _floats(draw)), draw.dim(len(shape)), False


def _made(draw: Draw) -> tuple[Arg, ...]:
    return draw.shape(), draw.number()


def _where(draw: Draw) -> tuple[Arg, ...]:
    shape, dtype = draw.shape(), draw.dtype()
    chosen = draw.tensor(draw.broadcast(shape), "bool")
    return chosen, draw.tensor(shape, dtype), draw.tensor(draw.broadcast(shape), dtype)


def _cast(draw: Draw) -> tuple[Arg, ...]:
    return (draw.tensor(draw.shape(), draw.dtype()),)


MAKERS: Mapping[str, Maker] = {
    "avg_pool1d": _pooled(1, dilated=False),
    "avg_pool2d": _pooled(2, dilated=False),
    "avg_pool3d": _pooled(3, dilated=False),
    "max_pool2d_with_indices": _pooled(2, dilated=True),
    "max_pool3d_with_indices": _pooled(3, dilated=True),
    "_adaptive_avg_pool2d": _adaptive(2),
    "_adaptive_avg_pool3d": _adaptive(3),
    "adaptive_max_pool2d": _adaptive(2),
    "adaptive_max_pool3d": _adaptive(3),
    "reflection_pad1d": _padded(1),
    "reflection_pad2d": _padded(2),
    "reflection_pad3d": _padded(3),
    "replication_pad1d": _padded(1),
    "replication_pad2d": _padded(2),
    "replication_pad3d": _padded(3),
    "constant_pad_nd": _constant_pad,
    **{f"upsample_nearest{dims}d": _resized(dims, nearest=True) for dims in (1, 2, 3)},
    **{f"_upsample_nearest_exact{dims}d": _resized(dims, nearest=True) for dims in (1, 2, 3)},
    "upsample_linear1d": _resized(1),
    "upsample_bilinear2d": _resized(2),
    "upsample_trilinear3d": _resized(3),
    "upsample_bicubic2d": _resized(2),
    "_upsample_bilinear2d_aa": _resized(2),
    "_upsample_bicubic2d_aa": _resized(2),
    "grid_sampler_2d": _sampled(2),
    "grid_sampler_3d": _sampled(3),
    "convolution": _convolution,
    "mm": _mm,
    "bmm": _bmm,
    "linear": _linear,
    "gather": _along(values=0),
    "scatter": _scatter,
    "scatter_add": _along(values=1),
    "scatter_reduce": _along(values=1),
    "index_select": _index_select,
    "embedding": _embedding,
    "embedding_dense_backward": _embedding_backward,
    "_embedding_bag": _embedding_bag,
    "_embedding_bag_forward_only": _embedding_bag,
    "index": _indexed,
    "_unsafe_index": _indexed,
    "index_put": _index_put,
    "slice": _part,
    "slice_scatter": _slice_scatter,
    "select_scatter": _select_scatter,
    "view": _viewed,
    "reshape": _viewed,
    "_unsafe_view": _viewed,
    "expand": _expanded,
    "broadcast_to": _expanded,
    "permute": _permuted,
    "repeat": _repeated,
    "roll": _rolled,
    "split_with_sizes": _split_sizes,
    "cat": _joined,
    "stack": _stacked,
    "unfold": _unfolded,
    "as_strided": _strided,
    "scaled_dot_product_attention": _attention,
    "native_layer_norm": _layer_norm,
    "gru": _recurrent(3, 1),
    "lstm": _recurrent(4, 2),
    "rnn_tanh": _recurrent(1, 1),
    "rnn_relu": _recurrent(1, 1),
    "nll_loss_forward": _nll_loss(0),
    "nll_loss2d_forward": _nll_loss(2),
    "_cdist_forward": _cdist,
    "searchsorted": _searched,
    "bucketize": _bucketized,
    "topk": _top,
    "_softmax": _softmax,
    "_log_softmax": _softmax,
    "full": _made,
    "zeros": _made,
    "ones": _made,
    "where": _where,
    "_to_copy": _cast,
}
"""Operations of which calls of any arguments of the declared kinds hardly ever fit."""


# -- what PyTorch makes of a call -----------------------------------------------------------------


def shapes_of(call: Call) -> list[Any]:
    """The tensors of a call, on PyTorch's meta device."""
    import torch

    return [torch.empty(item.shape, dtype=getattr(torch, item.dtype), device="meta") for item in call.tensors]


def values_of(call: Call, seed: int) -> list[Any]:
    """The tensors of a call, as PyTorch's."""
    import torch

    rng = np.random.default_rng(seed)
    found = []
    for item in call.tensors:
        dtype = getattr(torch, item.dtype)
        if item.limit is not None or item.dtype in WHOLE:
            high = max(1, item.limit) if item.limit is not None else 2 if item.dtype == "bool" else 100
            low = -high if item.limit is None and item.dtype in ("int64", "int32", "int16", "int8") else 0
            found.append(torch.from_numpy(np.asarray(rng.integers(low, high, item.shape))).to(dtype))
        else:
            found.append(torch.from_numpy(np.asarray(rng.normal(size=item.shape), np.float32)).to(dtype))
    return found


_TRUSTING = frozenset(
    {"_embedding_bag", "_embedding_bag_forward_only", "gru", "lstm", "rnn_tanh", "rnn_relu"}
)
"""Operations that end the process where they are given lists that are too short."""


def torch_results(call: Call, values: Sequence[Any]) -> list[Any] | None:
    """What PyTorch computes, None where it refuses; of tensors of the meta device the shapes alone. On the
    CPU some operations read whatever they are given: calls come here that the meta device has taken."""
    import torch

    packet, overload = call.op.removeprefix("aten.").split(".")
    if packet in _TRUSTING and not call.fits:
        return None

    def argument(arg: Arg) -> Any:
        if isinstance(arg, ValueRef):
            return values[int(arg.name[1:])]
        if isinstance(arg, DTypeArg):
            return getattr(torch, arg.name)
        return [argument(item) for item in arg] if isinstance(arg, tuple) else arg

    function = getattr(getattr(torch.ops.aten, packet), overload)
    try:
        found = function(*map(argument, call.args), **{key: argument(arg) for key, arg in call.kwargs})
    except Exception:  # of many kinds, some of them assertions
        return None
    return list(found) if isinstance(found, (tuple, list)) else [found]


def specs_of(call: Call, results: Sequence[Any] | None) -> list[TensorSpec]:
    """The results' specs; those of a call that PyTorch refuses, or that has none, are the first tensor's."""
    if results:
        return [TensorSpec(tuple(item.shape), str(item.dtype).removeprefix("torch.")) for item in results]
    return [TensorSpec(item.shape, item.dtype) for item in call.tensors[:1]] or [TensorSpec((2,), "float32")]
