"""Sums and means of convolutions along spatial dimensions: products and convolutions of sums of the input.

Along a dimension, the sum over all places is what each tap's weight has met: all elements of the input but
the few at its ends that the tap does not reach, as many as the padding says whatever the size. So the sum of
the dimension goes with the sum of all taps, and each of those elements, subtracted, with the sum of the taps
that miss it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from attrs import frozen

from evokernel_core.compiler.rewrites.picking import view
from evokernel_core.compiler.rewrites.summing import Summing, reduced
from evokernel_core.compiler.rewrites.writer import GraphWriter
from evokernel_core.domain.graph import Arg, Node, ValueRef, literals
from evokernel_core.domain.tensor import Dim, evaluate_dim

_END = 2**63 - 1
"""What PyTorch takes for the end of a dimension."""
_MOST_ENDS = 4
"""Elements at the ends of a dimension that are looked at one by one."""
_MOST_PRODUCTS = 2**26
"""Multiplications of sums that vector cores are to do."""
_LONGEST = 128
"""Places that may become one of a convolution that stays: the verifier takes it for skipped work if there are
many times fewer products for each element at full size than at the sizes that it compares."""
_LEAST_GAIN = 2
"""How many times fewer multiplications there have to be."""


@frozen
class SummedAxis:
    """One spatial dimension of a convolution."""

    taps: int
    stride: int
    padding: int
    dilation: int
    output_padding: int
    is_transposed: bool

    def front(self, tap: int) -> int:
        """How many of the first elements a tap misses."""
        first = self.padding - tap * self.dilation
        return max(0, -(-first // self.stride) if self.is_transposed else -first)

    def back(self, tap: int) -> int:
        """How many of the last elements a tap misses, of a plain convolution of stride 1."""
        behind = (self.taps - 1 - tap) * self.dilation - self.padding
        if not self.is_transposed:
            return max(0, behind)
        return max(0, 1 + (-(behind + self.output_padding + 1)) // self.stride)

    @property
    def missed(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Of the first elements, from the end inwards, and of the last ones: by how many taps."""
        fronts = [self.front(tap) for tap in range(self.taps)]
        backs = [self.back(tap) for tap in range(self.taps)]
        return tuple(
            tuple(sum(count > place for count in counts) for place in range(max(counts)))
            for counts in (fronts, backs)
        )  # type: ignore[return-value]

    def outermost(self, count: int, is_first: bool) -> tuple[int, int]:
        """Where the first or last taps begin and end."""
        return (0, count) if is_first else (self.taps - count, self.taps)

    @property
    def shortest(self) -> int:
        """The least size of the input for which what a tap misses in front and behind is apart."""
        return max(self.front(tap) + self.back(tap) for tap in range(self.taps))


def axes_of(root: Node, writer: GraphWriter) -> list[SummedAxis] | None:
    """Those of a convolution in ATen, None where its weights have no known sizes."""
    weight = root.args[1]
    assert isinstance(weight, ValueRef)
    taps = writer.shape(weight)[2:]
    stride, padding, dilation, output = (literals(root.args[i], len(taps)) for i in (3, 4, 5, 7))
    known = [tap for tap in taps if isinstance(tap, int)]
    if len(known) < len(taps):
        return None
    return [
        SummedAxis(*each, root.args[6] is True)
        for each in zip(known, stride, padding, dilation, output, strict=True)
    ]


def summed_convolution(root: Node, summing: Summing) -> ValueRef | None:
    """The reduction of a convolution over spatial dimensions, None where it has groups, steps over elements
    or would not get cheaper."""
    writer, (x, weight, bias) = summing.writer, root.args[:3]
    assert isinstance(x, ValueRef)
    assert isinstance(weight, ValueRef)
    axes = axes_of(root, writer)
    if axes is None or root.args[8] != 1 or min(summing.dims) < 2:
        return None
    if not all(_is_covered(writer, axes[dim - 2], writer.shape(x)[dim]) for dim in summing.dims):
        return None
    if not _gains(root, summing, axes):
        return None
    channels = 0 if root.args[6] else 1
    x, weight = _ends(writer, x, weight, channels, {dim: axes[dim - 2] for dim in summing.dims})
    left = [dim - 2 for dim in range(2, len(summing.shape)) if dim not in summing.dims]
    if _is_too_large(summing, x, weight, left):
        return None
    value = _product(root, writer, x, weight, left) if left else _small_product(writer, x, weight, channels)
    value = view(writer, value, summing.kept_shape)
    if summing.is_mean:
        value = writer.call(
            "aten.div.Tensor", value, summing.count(), shape=summing.kept_shape, dtype="float32"
        )
    if not isinstance(bias, ValueRef):
        return value
    flat = view(writer, bias, (summing.shape[1], *(1 for _ in axes)))
    shift = summing.operand(flat)
    return writer.call("aten.add.Tensor", value, shift, shape=summing.kept_shape, dtype="float32")


def _is_too_large(summing: Summing, x: ValueRef, weight: ValueRef, left: Sequence[int]) -> bool:
    writer, sizes = summing.writer, summing.writer.sizes
    if left:
        lengths = (evaluate_dim(summing.shape[dim], sizes) for dim in summing.dims)
        return math.prod(lengths) > _LONGEST
    images = evaluate_dim(writer.shape(x)[0], sizes)
    return images * math.prod(writer.spec(weight).sizes(sizes)) > _MOST_PRODUCTS


def _is_covered(writer: GraphWriter, axis: SummedAxis, length: Dim) -> bool:
    if not axis.is_transposed and axis.stride != 1:
        return False
    if sum(map(len, axis.missed)) > _MOST_ENDS:
        return False
    return axis.shortest == 0 or _least(writer, length) >= axis.shortest


def _least(writer: GraphWriter, length: Dim) -> int:
    """The least size of a dimension that is a number or a symbol; of others nothing is known."""
    if isinstance(length, int):
        return length
    return next((symbol.minimum for symbol in writer.task.symbols if symbol.name == length), 0)


def _gains(root: Node, summing: Summing, axes: Sequence[SummedAxis]) -> bool:
    """Whether fewer multiplications are left: each place of the result and tap becomes one sum or end."""
    sizes = summing.writer.sizes
    now = math.prod(evaluate_dim(summing.shape[dim], sizes) * axes[dim - 2].taps for dim in summing.dims)
    if root.args[6]:
        now //= math.prod(axes[dim - 2].stride for dim in summing.dims)
    then = math.prod(1 + sum(map(len, axes[dim - 2].missed)) for dim in summing.dims)
    return now >= _LEAST_GAIN * then


def _ends(
    writer: GraphWriter, x: ValueRef, weight: ValueRef, channels: int, axes: Mapping[int, SummedAxis]
) -> tuple[ValueRef, ValueRef]:
    """Sums of the input and of the weights over dimensions, with the ends of each as more channels.

    ``channels``: the dimension of the weights that goes along the input's channels. The outermost dimension
    comes first: its ends are long runs, and those of the others are then few.
    """
    plain = tuple(dim for dim, axis in axes.items() if not any(axis.missed))
    if plain:
        x, weight = (reduced(writer, ref, plain, is_mean=False) for ref in (x, weight))
    for dim in sorted(axes.keys() - set(plain)):
        axis = axes[dim]
        front, back = axis.missed
        inputs = [reduced(writer, x, (dim,), is_mean=False)]
        weights = [reduced(writer, weight, (dim,), is_mean=False)]
        for place, count in enumerate(front):
            inputs.append(_slice(writer, x, dim, place, place + 1))
            weights.append(_minus(writer, weight, dim, *axis.outermost(count, axis.is_transposed)))
        for place, count in enumerate(back):
            inputs.append(_slice(writer, x, dim, -1 - place, -place or _END))
            weights.append(_minus(writer, weight, dim, *axis.outermost(count, not axis.is_transposed)))
        x, weight = _joined(writer, inputs, 1), _joined(writer, weights, channels)
    return x, weight


def _slice(writer: GraphWriter, x: ValueRef, dim: int, start: int, end: int) -> ValueRef:
    """A part of a dimension: taps of weights, or an element of an input, maybe counted from its end."""
    shape = list(writer.shape(x))
    shape[dim] = end - start if start >= 0 else 1
    return writer.call("aten.slice.Tensor", x, dim, start, end, shape=tuple(shape), dtype="float32")


def _minus(writer: GraphWriter, weight: ValueRef, dim: int, start: int, end: int) -> ValueRef:
    total = reduced(writer, _slice(writer, weight, dim, start, end), (dim,), is_mean=False)
    return writer.call("aten.neg.default", total, shape=writer.shape(total), dtype="float32")


def _joined(writer: GraphWriter, parts: Sequence[ValueRef], dim: int) -> ValueRef:
    shape = list(writer.shape(parts[0]))
    length = shape[dim]
    shape[dim] = length * len(parts) if isinstance(length, int) else f"{len(parts)} * ({length})"
    return writer.call("aten.cat.default", tuple(parts), dim, shape=tuple(shape), dtype="float32")


def _small_product(writer: GraphWriter, x: ValueRef, weight: ValueRef, channels: int) -> ValueRef:
    """[images, results] of sums [images, channels, 1..] and weights that are one tap, on vector cores: as
    many products as there are results and channels are done before cube cores would begin."""
    images, depth, *_ = writer.shape(x)
    results = writer.shape(weight)[1 - channels]
    spread: tuple[Dim, ...] = (images, depth, 1) if channels == 0 else (images, 1, depth)
    shape: tuple[Dim, ...] = (images, depth, results) if channels == 0 else (images, results, depth)
    operands = view(writer, x, spread), view(writer, weight, writer.shape(weight)[:2])
    products = writer.call("aten.mul.Tensor", *operands, shape=shape, dtype="float32")
    return reduced(writer, products, (1 + channels,), is_mean=False)


def _product(root: Node, writer: GraphWriter, x: ValueRef, weight: ValueRef, left: Sequence[int]) -> ValueRef:
    """The convolution along the dimensions that are left."""

    def squeezed(ref: ValueRef) -> ValueRef:
        shape = writer.shape(ref)
        return view(writer, ref, (*shape[:2], *(shape[2 + place] for place in left)))

    rank = len(writer.shape(x)) - 2
    stride, padding, dilation, output = (
        tuple(literals(root.args[i], rank)[place] for place in left) for i in (3, 4, 5, 7)
    )
    made = root.outputs[0].shape
    shape = (*made[:2], *(made[2 + place] for place in left))
    args: tuple[Arg, ...] = (
        squeezed(x),
        squeezed(weight),
        None,
        stride,
        padding,
        dilation,
        root.args[6],
        output,
        1,
    )
    return writer.call("aten.convolution.default", *args, shape=shape, dtype="float32")
