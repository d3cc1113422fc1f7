"""For each operation: where the slices of its operands lie in its result, if it treats them apart.

One table (``RULES``) by the operation's name without its overload. An operation that is not in it is taken
to make each element of its result of all elements of its operands. ``tests/verifier/test_slices.py``
compares every entry with PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeVar

from attrs import frozen

from evokernel_core.domain.graph import Arg, Node, ValueRef
from evokernel_core.domain.operations import operations

T = TypeVar("T")


@frozen
class SliceAxis:
    """Where slices lie in a value: along dimension ``dim``, ``inner`` neighbouring indices to a slice. The
    dimension may hold all slices several times over, as one that a view merged with others does."""

    dim: int
    inner: int = 1


@frozen
class SlicedOperand:
    """An operand of a node: its shape, and where the slices lie in it, None where it has none."""

    shape: tuple[int, ...]
    along: SliceAxis | None


class Mixed(Exception):
    """The operation makes an element of its result of several slices, or nobody knows."""


@frozen
class SlicedNode:
    """A node with its operands by name, the shapes of its results, and how many slices there are."""

    node: Node
    values: Mapping[ValueRef, SlicedOperand]
    shapes: tuple[tuple[int, ...], ...]
    slices: int

    def argument(self, name: str) -> Arg:
        """The argument of a parameter, None where the call leaves it out."""
        by_name = dict(self.node.kwargs)
        order = operations()[self.node.op].positional
        given = dict(zip((position.name for position in order), self.node.args, strict=False))
        return by_name.get(name, given.get(name))

    def operand(self, name: str) -> SlicedOperand | None:
        """The tensor of a parameter, None for one that is left out or a number."""
        value = self.argument(name)
        return self.values[value] if isinstance(value, ValueRef) else None

    def whole(self, *names: str) -> None:
        """Raises Mixed where one of these operands has slices."""
        for name in names:
            operand = self.operand(name)
            if operand is not None and operand.along is not None:
                raise Mixed

    def dims(self, name: str, rank: int) -> tuple[int, ...]:
        """The dimensions that a parameter names, from the front. Raises Mixed for all or unknown ones."""
        value = self.argument(name)
        numbers = value if isinstance(value, tuple) else (value,)
        if not numbers or not all(isinstance(number, int) for number in numbers):
            raise Mixed
        return tuple(int(number) % max(rank, 1) for number in numbers if isinstance(number, int))


Rule = Callable[[SlicedNode], SliceAxis]


def _first(call: SlicedNode) -> tuple[SlicedOperand, SliceAxis]:
    """The first operand, which must have the slices, and where."""
    operand = next((call.values[ref] for ref in call.node.operands()), None)
    if operand is None or operand.along is None:
        raise Mixed
    return operand, operand.along


def _one(rules: list[T]) -> T:
    if not rules or any(rule != rules[0] for rule in rules):
        raise Mixed
    return rules[0]


def pointwise(call: SlicedNode) -> SliceAxis:
    """Operands are broadcast against each other."""
    rank = len(call.shapes[0])
    operands = [call.values[ref] for ref in call.node.operands()]
    sliced = [(operand, operand.along) for operand in operands if operand.along is not None]
    place = _one([SliceAxis(along.dim + rank - len(operand.shape), along.inner) for operand, along in sliced])
    for operand in operands:
        dim = place.dim - rank + len(operand.shape)
        if operand.along is None and dim >= 0 and operand.shape[dim] != 1:
            raise Mixed
    return place


def along_dims(*names: str) -> Rule:
    """The shape stays, and what ``names`` say is mixed along."""

    def rule(call: SlicedNode) -> SliceAxis:
        operand, along = _first(call)
        if any(along.dim in call.dims(name, len(operand.shape)) for name in names):
            raise Mixed
        return along

    return rule


def reduced(call: SlicedNode) -> SliceAxis:
    """The dimensions of ``dim`` are reduced, and kept with one element where ``keepdim`` says so."""
    operand, along = _first(call)
    dims = call.dims("dim", len(operand.shape))
    if along.dim in dims:
        raise Mixed
    if call.argument("keepdim") is True:
        return along
    return SliceAxis(along.dim - sum(dim < along.dim for dim in set(dims)), along.inner)


def reshaped(call: SlicedNode) -> SliceAxis:
    """Elements keep their order: slices lie where as many elements follow one."""
    operand, along = _first(call)
    follow = along.inner * math.prod(operand.shape[along.dim + 1 :])
    shape = call.shapes[0]
    for dim, size in enumerate(shape):
        behind = math.prod(shape[dim + 1 :])
        inner = follow // max(behind, 1)
        if inner and follow % behind == 0 and size % (inner * call.slices) == 0:
            return SliceAxis(dim, inner)
    raise Mixed


def permuted(call: SlicedNode) -> SliceAxis:
    operand, along = _first(call)
    return SliceAxis(call.dims("dims", len(operand.shape)).index(along.dim), along.inner)


def transposed(call: SlicedNode) -> SliceAxis:
    operand, along = _first(call)
    rank = len(operand.shape)
    named = call.node.op == "aten.transpose.int"
    one, other = (call.dims(name, rank)[0] for name in ("dim0", "dim1")) if named else (0, rank - 1)
    return SliceAxis({one: other, other: one}.get(along.dim, along.dim), along.inner)


def expanded(call: SlicedNode) -> SliceAxis:
    operand, along = _first(call)
    return SliceAxis(along.dim + len(call.shapes[0]) - len(operand.shape), along.inner)


def joined(call: SlicedNode) -> SliceAxis:
    """Tensors one behind the other along another dimension."""
    operands = [call.values[ref] for ref in call.node.operands()]
    places = [operand.along for operand in operands]
    place = _one([place for place in places if place is not None] if None not in places else [])
    if place.dim in call.dims("dim", len(operands[0].shape)):
        raise Mixed
    return place


def chosen(call: SlicedNode) -> SliceAxis:
    """One index of another dimension, which goes."""
    operand, along = _first(call)
    (dim,) = call.dims("dim", len(operand.shape))
    if dim == along.dim:
        raise Mixed
    return SliceAxis(along.dim - (dim < along.dim), along.inner)


def last_dims(count: int) -> Rule:
    """The last ``count`` dimensions are mixed, those before are apart."""

    def rule(call: SlicedNode) -> SliceAxis:
        operand, along = _first(call)
        if along.dim >= len(operand.shape) - count or len(call.shapes[0]) != len(operand.shape):
            raise Mixed
        return along

    return rule


def padded(call: SlicedNode) -> SliceAxis:
    pads = call.argument("pad")
    return last_dims(len(pads) // 2 if isinstance(pads, tuple) else 1)(call)


def layer_normalised(call: SlicedNode) -> SliceAxis:
    call.whole("weight", "bias")
    shape = call.argument("normalized_shape")
    return last_dims(len(shape) if isinstance(shape, tuple) else 1)(call)


def convolved(call: SlicedNode) -> SliceAxis:
    """Images are apart; weights belong to all of them."""
    call.whole("weight", "bias")
    return _outermost(call)


def _outermost(call: SlicedNode) -> SliceAxis:
    _, along = _first(call)
    if along.dim != 0:
        raise Mixed
    return along


def multiplied(call: SlicedNode) -> SliceAxis:
    """Rows of the left matrix, columns of the right one, or the products of a batch."""
    left, right = call.operand("self"), call.operand("mat2")
    if left is None or right is None:
        raise Mixed
    batch = len(left.shape) - 2
    places = []
    for operand, free in ((left, batch), (right, batch + 1)):
        if operand.along is not None and operand.along.dim >= batch and operand.along.dim != free:
            raise Mixed
        places.append(operand.along)
    if any(place is not None and place.dim < batch for place in places):
        return _one([place for place in places if place is not None] if None not in places else [])
    known = [place for place in places if place is not None]
    if len(known) != 1:
        raise Mixed
    return known[0]


def linear(call: SlicedNode) -> SliceAxis:
    call.whole("weight", "bias")
    return last_dims(1)(call)


def attended(call: SlicedNode) -> SliceAxis:
    """Batches and heads are apart."""
    operands = [call.operand(name) for name in ("query", "key", "value")]
    if call.argument("attn_mask") is not None:
        raise Mixed
    places = [operand.along for operand in operands if operand is not None]
    place = _one([place for place in places if place is not None] if None not in places else [])
    if place.dim >= len(call.shapes[0]) - 2:
        raise Mixed
    return place


_POINTWISE = """
abs acos acosh add addcdiv addcmul alias angle asin asinh atan atan2 atanh bitwise_and bitwise_left_shift
bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil clamp clamp_max clamp_min clone contiguous
copysign cos cosh detach div elu eq erf erfc erfinv exp exp2 expm1 fill floor fmax fmin fmod full_like ge
gelu gt hardsigmoid hardswish hardtanh heaviside hypot isinf le leaky_relu lerp lift_fresh_copy log log10
log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor lt masked_fill maximum
minimum mish mul ne neg ones_like pow reciprocal relu relu6 remainder round rsqrt rsub sigmoid sign
signbit silu sin sinh softplus sqrt square sub tan tanh trunc where zeros_like _to_copy
""".split()  # noqa: SIM905
_REDUCED = """all any amax amin argmax argmin logsumexp linalg_vector_norm max mean min prod std sum var
var_mean""".split()  # noqa: SIM905
_RESHAPED = "view _unsafe_view reshape squeeze unsqueeze flatten unflatten".split()  # noqa: SIM905

RULES: Mapping[str, Rule] = {
    **dict.fromkeys(_POINTWISE, pointwise),
    **dict.fromkeys(_REDUCED, reduced),
    **dict.fromkeys(_RESHAPED, reshaped),
    **dict.fromkeys(("_softmax", "_log_softmax", "cumsum", "cumprod", "logcumsumexp"), along_dims("dim")),
    **dict.fromkeys(("cummax", "cummin", "slice"), along_dims("dim")),
    **dict.fromkeys(("flip", "roll"), along_dims("dims")),
    **dict.fromkeys(("avg_pool1d", "reflection_pad1d", "replication_pad1d"), last_dims(1)),
    **dict.fromkeys(("avg_pool2d", "max_pool2d_with_indices", "tril", "triu"), last_dims(2)),
    **dict.fromkeys(("_adaptive_avg_pool2d", "adaptive_max_pool2d"), last_dims(2)),
    **dict.fromkeys(("reflection_pad2d", "replication_pad2d"), last_dims(2)),
    **dict.fromkeys(
        ("avg_pool3d", "max_pool3d_with_indices", "_adaptive_avg_pool3d", "adaptive_max_pool3d"), last_dims(3)
    ),
    **dict.fromkeys(("reflection_pad3d", "replication_pad3d"), last_dims(3)),
    "constant_pad_nd": padded,
    "native_layer_norm": layer_normalised,
    "convolution": convolved,
    "mm": multiplied,
    "bmm": multiplied,
    "linear": linear,
    "scaled_dot_product_attention": attended,
    "permute": permuted,
    "transpose": transposed,
    "t": transposed,
    "expand": expanded,
    "broadcast_to": expanded,
    "cat": joined,
    "select": chosen,
}  # fmt: skip
"""What is known of each operation, by its name."""

APART = frozenset((*_POINTWISE, *_RESHAPED, "permute", "transpose", "t", "expand", "broadcast_to"))
"""Operations whose elements do not meet: one that is no number spoils no other."""

SIZED = frozenset((*_RESHAPED, "expand", "broadcast_to"))
"""Operations whose arguments name sizes, the number of slices among them."""
CONSTANT = frozenset(("zeros", "ones", "full"))
"""Operations that make tensors of one value."""
