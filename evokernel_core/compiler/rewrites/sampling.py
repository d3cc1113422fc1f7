"""Images sampled where a grid says: runs of channels that indices choose, in weighted sums."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
from attrs import frozen

from evokernel_core.compiler.limits import MOST_SAMPLED
from evokernel_core.compiler.ops import FLOATS, GRID_SAMPLE, SAMPLE_MODES, SAMPLE_PADDINGS
from evokernel_core.compiler.rewrites.elementwise import apply, cast, part
from evokernel_core.compiler.rewrites.indexing import take, tensor
from evokernel_core.compiler.rewrites.picking import numbers, view
from evokernel_core.compiler.rewrites.split_reductions import size
from evokernel_core.compiler.rewrites.writer import GraphWriter, Rewrite
from evokernel_core.compiler.shapes.sizes import extent, times
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Node, ValueRef
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.tensor import Dim

_LINEAR, _NEAREST = 0, 1
_ZEROS, _BORDER = 0, 1
"""PyTorch's numbers of the modes and paddings; 2 is cubic, and reflection."""


@frozen
class _Tap:
    """One neighbour along a dimension: its index, inside of the image, and its weight."""

    index: ValueRef
    weight: ValueRef | None


@frozen
class _Axis:
    """A dimension of ``size`` elements, of which the grid has places between -1 and 1."""

    writer: GraphWriter
    size: Dim
    padding: int
    aligned: bool

    def call(self, op: str, *args: ValueRef | float, dtype: str = "float32") -> ValueRef:
        return apply(self.writer, op, *args, dtype=dtype)

    @property
    def last(self) -> ValueRef:
        return self.call("sub.Scalar", size(self.writer, (self.size,)), 1.0)

    def place(self, grid: ValueRef) -> ValueRef:
        """From -1 to 1 to the number of an element."""
        ahead = self.call("add.Scalar", grid, 1.0)
        if self.aligned:
            result = self.call("mul.Scalar", self.call("mul.Tensor", ahead, self.last), 0.5)
        else:
            wide = self.call("mul.Tensor", ahead, size(self.writer, (self.size,)))
            result = self.call("mul.Scalar", self.call("sub.Scalar", wide, 1.0), 0.5)
        return self.inside(result) if self.padding == _BORDER else result

    def inside(self, x: ValueRef) -> ValueRef:
        return self.call("minimum.default", self.call("clamp_min.default", x, 0.0), self.last)

    def tap(self, at: ValueRef, weight: ValueRef | None) -> _Tap:
        """Outside of an image that zeros surround, the weight is zero."""
        within = self.inside(at)
        if self.padding == _ZEROS:
            same = self.call("eq.Tensor", within, at, dtype="bool")
            weight = self.call("where.ScalarOther", same, 1.0 if weight is None else weight, 0.0)
        return _Tap(cast(self.writer, within, "int64"), weight)

    def taps(self, grid: ValueRef, mode: int) -> list[_Tap]:
        place = self.place(grid)
        if mode == _NEAREST:
            return [self.tap(self.call("round.default", place), None)]
        first = self.call("floor.default", place)
        share = self.call("sub.Tensor", place, first)
        rest = self.call("rsub.Scalar", share, 1.0)
        return [self.tap(first, rest), self.tap(self.call("add.Scalar", first, 1.0), share)]


def _sampled(dims: int) -> Rewrite:
    """The rewrite of sampling along ``dims`` dimensions."""

    def rewrite(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
        if dims == 2 and _is_known(node, writer):
            return (_in_bands(node, writer),)
        x, grid = tensor(node, 0), cast(writer, tensor(node, 1), "float32")
        mode, padding, aligned = (int(_number(arg)) for arg in node.args[2:5])
        if mode > _NEAREST or padding > _BORDER:
            what = Sentence("volumes")
            if dims != 3:
                what = Sentence("planes of more than {most} elements", most=MOST_SAMPLED)
            raise PlanError(
                "Sampling {what} with cubic interpolation or reflection at the border is not covered: "
                "use bilinear or nearest, and zeros or border.",
                what=what,
            )
        shape, chosen = writer.shape(x), writer.shape(grid)
        images, channels, sizes = shape[0], shape[1], shape[2:]
        count = times(chosen[1:-1])
        places = view(writer, grid, (images, count, dims))
        axes = [
            _Axis(writer, sizes[i], padding, bool(aligned)).taps(part(writer, places, 2, dims - 1 - i), mode)
            for i in range(dims)
        ]
        behind = (0, *range(2, dims + 2), 1)
        turned = writer.call(
            "aten.permute.default",
            x,
            behind,
            shape=tuple(shape[i] for i in behind),
            dtype=writer.spec(x).dtype,
        )
        whole = (images, *sizes, 1, channels)
        total: ValueRef | None = None
        for taps in itertools.product(*axes):
            runs = take(writer, turned, [tap.index for tap in taps], whole, count, wraps=False)
            result = cast(writer, view(writer, runs, (images, count, channels)), "float32")
            for tap in taps:
                if tap.weight is not None:
                    result = apply(writer, "mul.Tensor", result, tap.weight)
            total = result if total is None else apply(writer, "add.Tensor", total, result)
        assert total is not None
        total = cast(writer, total, node.outputs[0].dtype)
        back = writer.call(
            "aten.permute.default",
            total,
            (0, 2, 1),
            shape=(images, channels, count),
            dtype=node.outputs[0].dtype,
        )
        return (view(writer, back, node.outputs[0].shape),)

    return rewrite


def _is_known(node: Node, writer: GraphWriter) -> bool:
    """Whether a kernel takes the images into the unified buffer, band by band."""
    spec = writer.spec(tensor(node, 0))
    rows, columns = (extent(dim).evaluate(writer.sizes) for dim in spec.shape[2:])
    if spec.dtype not in FLOATS:
        return False
    return 1 <= rows * columns <= MOST_SAMPLED


def _in_bands(node: Node, writer: GraphWriter) -> ValueRef:
    """The images at all places of the grid by one kernel."""
    x, grid = tensor(node, 0), cast(writer, tensor(node, 1), "float32")
    mode, padding, aligned = (int(_number(arg)) for arg in node.args[2:5])
    images, channels = writer.shape(x)[:2]
    count = times(writer.shape(grid)[1:-1])
    places = view(writer, grid, (images, count, 2))
    how = (SAMPLE_MODES[mode], SAMPLE_PADDINGS[padding], bool(aligned))
    made, dtype = (images, channels, count), writer.spec(x).dtype
    result = writer.call(GRID_SAMPLE.name, x, places, *how, shape=made, dtype=dtype)
    return view(writer, result, node.outputs[0].shape)


def _number(arg: object) -> int:
    if not isinstance(arg, int):
        raise PlanError("A mode of sampling is not a literal.")
    return int(arg)


def _affine_grid(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
    """Places of [images, *sizes, dims]: each is a matrix's row times the place of its element.

    Computed as [images, dims, *sizes], whose rows are long, and turned at last.
    """
    theta, shape = tensor(node, 0), node.outputs[0].shape
    dims, aligned = len(shape) - 2, bool(node.args[2])
    dtype = writer.spec(theta).dtype
    theta = cast(writer, theta, "float32")
    ones = (1,) * dims
    each = (shape[0], dims, *ones)
    total: ValueRef | None = None
    for i in range(dims):  # the last dimension is the first coordinate
        axis = dims - 1 - i
        place = _steps(writer, shape[1 + axis], aligned)
        along = view(writer, place, (1, 1, *ones[:axis], shape[1 + axis], *ones[axis + 1 :]))
        factor = _coefficient(writer, theta, i, each)
        if total is None:
            total = apply(writer, "mul.Tensor", factor, along)
        else:
            total = _multiplied_into(writer, total, factor, along)
    result = apply(writer, "add.Tensor", total, _coefficient(writer, theta, dims, each))
    count = times(shape[1:-1])
    turned = writer.call(
        "aten.permute.default",
        view(writer, cast(writer, result, dtype), (shape[0], dims, count)),
        (0, 2, 1),
        shape=(shape[0], count, dims),
        dtype=dtype,
    )
    return (view(writer, turned, shape),)


_SPLITS = 4097.0
"""2^12 + 1: what a float32 is multiplied by to part its 24 bits in the middle (Dekker)."""


def _multiplied_into(writer: GraphWriter, total: ValueRef, x: ValueRef, y: ValueRef | float) -> ValueRef:
    """total + x * y, rounded once, as PyTorch's products of matrices round: a sampled image magnifies the
    last bit of its grid where places are differences of large numbers.

    The product and the sum are each taken with what rounding leaves of them (Dekker; Knuth), and both rests
    are added at last.
    """

    def call(op: str, left: ValueRef, right: ValueRef | float) -> ValueRef:
        kind = "Scalar" if isinstance(right, float) else "Tensor"
        return apply(writer, f"{op.partition('.')[0]}.{kind}", left, right)

    def halves(value: ValueRef | float) -> tuple[ValueRef | float, ValueRef | float]:
        if isinstance(value, float):
            given, wide_number = np.float32(value), np.float32(value) * np.float32(_SPLITS)
            upper = wide_number - (wide_number - given)
            return float(upper), float(given - upper)
        wide = call("mul.Scalar", value, _SPLITS)
        high = call("sub.Tensor", wide, call("sub.Tensor", wide, value))
        return high, call("sub.Tensor", value, high)

    (x_high, x_low), (y_high, y_low) = halves(x), halves(y)
    assert isinstance(x_high, ValueRef) and isinstance(x_low, ValueRef)
    product = call("mul.Tensor", x, y)
    left = call("sub.Tensor", call("mul.Tensor", x_high, y_high), product)
    for one, other in ((x_high, y_low), (x_low, y_high), (x_low, y_low)):
        left = call("add.Tensor", left, call("mul.Tensor", one, other))
    result = call("add.Tensor", total, product)
    part = call("sub.Tensor", result, total)
    rest = call("sub.Tensor", total, call("sub.Tensor", result, part))
    rest = call("add.Tensor", rest, call("sub.Tensor", product, part))
    return call("add.Tensor", result, call("add.Tensor", rest, left))


def _coefficient(writer: GraphWriter, theta: ValueRef, column: int, shape: tuple[Dim, ...]) -> ValueRef:
    """A column of every matrix."""
    return view(writer, part(writer, theta, 2, column), shape)


def _steps(writer: GraphWriter, count: Dim, aligned: bool) -> ValueRef:
    """The places of ``count`` elements between -1 and 1, which are the outermost ones where ``aligned``.

    They are counted from the nearer end, and rounded once, as torch.linspace does: a grid magnifies what
    rounding leaves.
    """
    number, total = numbers(writer, count), size(writer, (count,))
    if count == 1:
        return apply(writer, "mul.Scalar", number, 0.0)
    last = apply(writer, "sub.Scalar", total, 1.0)
    step: ValueRef | float
    if isinstance(count, int):
        step = float(np.float32(2) / np.float32(count - 1))
    else:
        most = apply(writer, "clamp_min.default", last, 1.0)
        step = apply(writer, "div.Tensor", size(writer, (2,)), most)
    first = apply(writer, "sub.Scalar", apply(writer, "mul.Scalar", number, 0.0), 1.0)
    left = _multiplied_into(writer, first, number, step)
    behind = apply(writer, "sub.Tensor", last, number)
    right = apply(writer, "mul.Scalar", _multiplied_into(writer, first, behind, step), -1.0)
    nearer = apply(writer, "lt.Tensor", number, behind, dtype="bool")
    place = apply(writer, "where.self", nearer, left, right)
    if aligned:
        return place
    shrunk = apply(writer, "mul.Tensor", place, last)
    return (
        _divided(writer, shrunk, count)
        if isinstance(count, int)
        else apply(writer, "div.Tensor", shrunk, total)
    )


def _divided(writer: GraphWriter, x: ValueRef, by: int) -> ValueRef:
    """x / by, rounded once: kernels multiply by the reciprocal, whose rounding is taken back here."""
    inverse = float(np.float32(1) / np.float32(by))
    result = apply(writer, "mul.Scalar", x, inverse)
    left = _multiplied_into(writer, x, result, -float(by))
    return apply(writer, "add.Tensor", result, apply(writer, "mul.Scalar", left, inverse))


REWRITES: Mapping[str, Rewrite] = {
    "aten.affine_grid_generator.default": _affine_grid,
    "aten.grid_sampler_2d.default": _sampled(2),
    "aten.grid_sampler_3d.default": _sampled(3),
}
